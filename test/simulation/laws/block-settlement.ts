import { createHash } from 'node:crypto'
import type { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/relay/tape/tape.ts'
import type { PlacedLog } from '../placed-logs.ts'
import { MANAGER, poolOf } from '../simulated-pools.ts'
import type { FollowedPools } from './followed-pools.ts'
import { type KeyLifecycle, KeyLifecycles } from './key-lifecycles.ts'
import type { Law, LawContext } from './law.ts'
import { type AmendedFact, blockTime, isFact, publishedText } from './published-facts.ts'
import { RetractReasons } from './retract-reasons.ts'
import { swapOf } from './swaps.ts'

type Seal = Extract<Update, { type: 'seal' }>

/** By then a block is read again that a node showed before it found its logs. */
const INDEXED_MS = 5_000

/** The order of messages within one settled block. */
const phaseOrder = { retract: 0, amend: 1, sealed: 2, seal: 3 } as const
type Phase = keyof typeof phaseOrder

/** One block while its settlement is on the tape. */
type BlockInProgress = {
  readonly number: number
  readonly hash: string | null
  phase: Phase
  readonly published: { readonly key: string; readonly address: string; readonly late: boolean; readonly logIndex: number }[]
  readonly seals: Seal[]
  readonly ended: Set<string>
}

/** I4: the messages of one settled block are complete and in order, and leave no key open. Tracks all keys. */
export class BlockSettlement implements Law {
  readonly lifecycles: KeyLifecycles
  /** The last seal of each token and block number. */
  readonly seals = new Map<string, Seal>()
  /** The seals of facts that the tape no longer had when the relay restarted. */
  readonly #forgottenSeals = new Set<string>()
  readonly #context: LawContext
  readonly #pools: FollowedPools
  readonly #reasons: RetractReasons
  /** Blocks with logs that cannot be read: what they lack is not known to be gone. */
  readonly #partial = new Set<number>()
  #current: BlockInProgress | null = null
  /** A block of this batch that a correction of another block interrupted: nothing more of it may follow. */
  #interrupted: BlockInProgress | null = null

  constructor(context: LawContext, pools: FollowedPools) {
    this.#context = context
    this.#pools = pools
    this.lifecycles = new KeyLifecycles(context)
    this.#reasons = new RetractReasons(context, this.lifecycles)
  }

  /** A restarted relay may settle a block again. What the tape has evicted is news then, and is sealed again. */
  onRelayStart(): void {
    this.lifecycles.onRelayStart()
    for (const [name, { keys }] of this.seals)
      if (keys.some((key) => this.lifecycles.all.get(key)?.isForgotten)) this.#forgottenSeals.add(name)
  }

  onBatch(entries: readonly Entry[]): void {
    for (const { update } of entries) this.#check(update)
    this.#finishBlock()
    this.#interrupted = null
  }

  #check(update: Update): void {
    if (isFact(update)) {
      if (update.stage === 'preconfirmed') this.#checkPreconfirmed(update.id, update.block.number)
      this.lifecycles.publish(update)
      if (update.stage === 'preconfirmed') return
      const block = this.#blockInProgress(update.block.number, update.block.hash, 'sealed', update.id)
      const { key, address, late } = update
      block.published.push({ key, address, late, logIndex: update.tx.log_index })
    } else if (update.type === 'retract') {
      const block = this.#blockInProgress(update.block.number, update.block.hash, 'retract', update.id)
      const ended = this.lifecycles.retract(update)
      block.ended.add(update.key)
      if (ended) this.#checkRetract(update, ended)
      // Another block took the place of the sealed one. The old block may return and be sealed again.
      const name = `${update.block.number} ${update.address}`
      if (this.seals.get(name)?.block.hash !== update.block.hash) this.seals.delete(name)
    } else if (update.type === 'amend') {
      const fact = update.update as AmendedFact
      if (fact.stage === 'sealed' && !this.#isCorrection(fact))
        this.#blockInProgress(fact.block.number, fact.block.hash, 'amend', update.id)
      if (!this.#mayWait(update.key)) this.#reasons.checkAmend(update)
      this.lifecycles.amend(update)
    } else if (update.type === 'hole' && update.reason === 'unreadable') {
      this.#partial.add(update.blocks.first)
    } else if (update.type === 'seal') {
      this.#checkSeal(update, this.#blockInProgress(update.block.number, update.block.hash, 'seal', update.id))
    }
  }

  /** While a manager is refused it is not known where a trade went, only that another log has its key. */
  #checkRetract(retract: Extract<Update, { type: 'retract' }>, ended: KeyLifecycle): void {
    const { id, key, block } = retract
    const isTaken = this.lifecycles.expectedLogOf(block.hash, key) !== undefined
    if (!(isTaken && this.#mayWait(key))) this.#reasons.checkRetract(retract, ended)
    if (!isTaken) this.#pools.checkEnd(id, ended.lastPublished)
  }

  #mayWait(key: string): boolean {
    const lifecycle = this.lifecycles.all.get(key)
    return lifecycle !== undefined && this.#pools.mayWait(lifecycle.lastPublished)
  }

  /** A sealed fact may be corrected whenever it is known to be wrong, but not between the messages of another block. */
  #isCorrection(fact: AmendedFact): boolean {
    const { key, block } = fact
    const lifecycle = this.lifecycles.all.get(key)
    const current = this.#current
    if (current && current.number === block.number && current.hash === block.hash) return false
    if (lifecycle?.state !== 'sealed' || lifecycle.hash !== block.hash || lifecycle.text !== publishedText(fact)) return false
    // A block that contains nothing any more ends without a seal.
    if (current && current.phase !== 'seal') {
      this.#finishBlock()
      this.#interrupted = current
    }
    return true
  }

  /**
   * A settled block that is still canonical has no more pre-confirmed messages. A lagging node may bring back the chain that it
   * or a block below it replaced; then its logs are news until its block is settled again.
   */
  #checkPreconfirmed(id: string, number: number): void {
    const { violation, chain, activeFaults } = this.#context
    if (activeFaults.isActive('nodeLags') && chain.wasReplacedUpTo(number)) return
    const canonicalHash = chain.block(number)?.hash
    const settled = [...this.seals.values()].some(({ block }) => block.number === number && block.hash === canonicalHash)
    if (settled) violation('I4', `${id} is pre-confirmed though block ${number} is settled`)
  }

  #blockInProgress(number: number, hash: string | null, phase: Phase, id: string): BlockInProgress {
    const { violation } = this.#context
    const current = this.#current
    if (current && current.number === number && current.hash === hash) {
      if (phaseOrder[phase] < phaseOrder[current.phase])
        violation('I4', `${id}: ${phase} after ${current.phase} in block ${number}`)
      current.phase = phase
      return current
    }
    this.#finishBlock()
    if (this.#interrupted?.number === number && this.#interrupted.hash === hash)
      violation('I4', `${id}: a correction interrupts block ${number}`)
    if (hash === null) violation('I4', `${id} settles block ${number} without a hash`)
    const block: BlockInProgress = { number, hash, phase, published: [], seals: [], ended: new Set() }
    this.#current = block
    return block
  }

  #checkSeal(seal: Seal, { published, seals }: BlockInProgress): void {
    const { violation } = this.#context
    const { id, address, block, keys } = seal
    const truth = this.lifecycles.blockOf(block.hash)
    if (!truth || truth.number !== block.number) return violation('I3', `${id} seals block ${block.number} ${block.hash}`)
    if (blockTime(block) !== truth.timestamp) violation('I3', `${id} has the time ${block.timestamp}`)
    const isSealable = (log: PlacedLog) => log.content.address === address || this.#isTradeOf(log, seal)
    const sealable = truth.logs.filter(isSealable).map((log) => log.key)
    const expected = this.#partial.has(block.number) ? sealable.filter((key) => keys.includes(key)) : sealable
    if (keys.join() !== expected.join())
      violation('I4', `${id} seals ${address} in block ${block.number}: ${keys.join()}, not ${expected.join()}`)
    const digest = createHash('sha256').update(expected.join('\n')).digest('hex').slice(0, 32)
    if (seal.digest !== digest) violation('I4', `${id}: digest ${seal.digest}, not ${digest}`)
    if (seal.count !== expected.length) violation('I4', `${id}: count ${seal.count}, not ${expected.length}`)
    if (seals.some((other) => other.address === address)) violation('I4', `${id}: ${address} has two seals in one block`)
    const late = published.filter((fact) => fact.address === address && fact.late).map(({ key }) => key)
    if (seal.late_keys.join() !== late.join()) violation('I4', `${id}: late ${seal.late_keys.join()}, not ${late.join()}`)
    // A node that returns the logs of all contracts returns those of the manager too, though it was not asked for them.
    const isRead = this.#context.settings.traits.includes('unfiltered')
    for (const lifecycle of isRead ? [] : keys.flatMap((key) => this.lifecycles.all.get(key) ?? []))
      if (lifecycle.state === 'open') this.#pools.checkEnd(id, lifecycle.lastPublished)
    const types = keys.map((key) => (this.#isPart(key, seal) ? 'part' : this.lifecycles.seal(key, seal)?.type))
    if (seal.types.join() !== types.join()) violation('I4', `${id}: types ${seal.types.join()}, not ${types.join()}`)
    const name = `${block.number} ${address}`
    const before = this.seals.get(name)
    const isForgotten = this.#forgottenSeals.delete(name)
    if (before && before.block.hash === block.hash && before.keys.join() === keys.join() && !isForgotten)
      violation('I5', `${id} seals ${address} in block ${block.number} again as ${before.id} did`)
    this.seals.set(name, seal)
    seals.push(seal)
  }

  /**
   * Whether a seal of a token contains this swap. One of a pool that is not followed may be open, and sealed. What this block has
   * sealed before stays in its seals, even if it is settled again without the pool.
   */
  #isTradeOf(log: PlacedLog, { address, block, keys }: Seal): boolean {
    if (poolOf(log.content)?.token !== address) return false
    if (keys.includes(log.key)) return swapOf(log) !== null
    const { state, hash, isForgotten } = this.lifecycles.all.get(log.key) ?? {}
    const isSealed = state === 'sealed' && hash === block.hash && !isForgotten
    return isSealed || (this.#pools.isExpected(log) && !this.#isReadBefore(log))
  }

  /** The logs of a manager are an answer by themselves: a node may have given it before it found the logs of the block. */
  #isReadBefore({ content }: PlacedLog): boolean {
    return content.address === MANAGER && this.#context.activeFaults.wasActiveWithin('lateIndexing', INDEXED_MS)
  }

  /**
   * Whether the block folds this log into another: then it is not published by itself. What another block had sealed under its key
   * is retracted, unless the tape no longer had it when the relay restarted.
   */
  #isPart(key: string, { id, block }: Seal): boolean {
    const { violation } = this.#context
    if (!this.lifecycles.expectedLogOf(block.hash, key)?.isPart) return false
    const lifecycle = this.lifecycles.all.get(key)
    if (lifecycle && lifecycle.state !== 'retracted' && !lifecycle.isForgotten)
      violation('I17', `${id}: ${key} is part of another log and ${lifecycle.state}`)
    return true
  }

  #finishBlock(): void {
    const block = this.#current
    if (!block) return
    this.#current = null
    const { violation } = this.#context
    const { number, hash, published, seals } = block
    for (const [nth, { key, logIndex }] of published.entries()) {
      if (logIndex <= (published[nth - 1]?.logIndex ?? -1)) violation('I4', `${key} is published out of log order`)
      if (!seals.some((seal) => seal.keys.includes(key))) violation('I4', `${key} is published as sealed without a seal`)
    }
    for (const lifecycle of this.lifecycles.aliveInBlock(number)) {
      if (this.#partial.has(number) || this.#pools.mayWait(lifecycle.lastPublished)) continue
      if (lifecycle.state === 'open') violation('I4', `${lifecycle.key} stays open after block ${number} was settled`)
      else if (lifecycle.hash !== hash && !lifecycle.isForgotten)
        violation('I4', `${lifecycle.key} stays sealed by ${lifecycle.hash} after ${hash} was settled`)
    }
    this.#reasons.onBlockSettled()
  }
}
