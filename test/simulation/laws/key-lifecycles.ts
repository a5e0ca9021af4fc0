import type { Update } from '../../../src/protocol/updates.ts'
import type { SimulatedBlock } from '../simulated-chain.ts'
import { tokenAt } from '../simulated-tokens.ts'
import { type ExpectedLog, expectedLogsOf } from './expected-logs.ts'
import type { LawContext } from './law.ts'
import {
  type AmendedFact,
  acceptableTexts,
  type Fact,
  findDetailError,
  findFactError,
  publishedDetail,
  publishedText,
} from './published-facts.ts'

type UpdateOf<Type extends Update['type']> = Extract<Update, { type: Type }>

/** What the tape contains about one key so far. */
export type KeyLifecycle = {
  readonly key: string
  readonly number: number
  readonly address: string
  readonly tx: string
  state: 'open' | 'sealed' | 'retracted'
  type: string
  /** Its current content as text, and the last published fact. */
  text: string
  lastPublished: AmendedFact
  /** The message that published it last, and the last one that published or amended it. */
  readonly publishedBy: string
  position: string
  wasLate: boolean
  /** Whether it was ever published as pre-confirmed; when it was last published (ms since the beginning). */
  wasPreconfirmed: boolean
  publishedAt: number
  /** The hash of the block that sealed it; null where none did. */
  hash: string | null
  /** The tape no longer had it when the relay restarted, so the relay cannot know it. */
  isForgotten: boolean
  /** The relay restarted after it was published, and knows of it what is on the tape. */
  isRestored: boolean
}

const isSealedSource = ({ ingest }: Extract<Fact, { ingest: unknown }>): boolean =>
  ingest.source === 'sealed' || ingest.source === 'backfill'

/** Every published key and its state: I2, I3, I4 and the false retractions of I6. */
export class KeyLifecycles {
  readonly all = new Map<string, KeyLifecycle>()
  /** The keys of each block number, so that settling can find open ones. */
  readonly byNumber = new Map<number, Set<string>>()
  readonly #context: LawContext

  constructor(context: LawContext) {
    this.#context = context
  }

  /** Keys of a block that are open or sealed. */
  aliveInBlock(number: number): readonly KeyLifecycle[] {
    return [...(this.byNumber.get(number) ?? [])].flatMap((key) => {
      const lifecycle = this.all.get(key)
      return lifecycle && lifecycle.state !== 'retracted' ? [lifecycle] : []
    })
  }

  /** Whether the tape holds a key with this content. */
  isAliveWith(key: string, text: string): boolean {
    const lifecycle = this.all.get(key)
    return lifecycle !== undefined && lifecycle.state !== 'retracted' && lifecycle.text === text
  }

  /** A restarted relay knows what is on the tape. Open keys are never evicted. */
  onRelayStart(): void {
    const { settings, tape } = this.#context
    for (const lifecycle of this.all.values()) {
      lifecycle.isRestored = true
      if (settings.tapeBound !== undefined && lifecycle.state === 'sealed')
        lifecycle.isForgotten ||= !tape()
          .find({ key: lifecycle.key })
          .some(({ update }) => update.id === lifecycle.publishedBy)
    }
  }

  publish(fact: Fact): void {
    const { violation, chain, activeFaults, clock } = this.#context
    const { key, id, address, type, stage, late } = fact
    const before = this.all.get(key)
    if (before && before.state !== 'retracted' && !before.isForgotten)
      violation('I2', `${id} ${key} is published again while it is ${before.state}`)
    const text = publishedText(fact)
    const { number } = fact.block
    const reorganised =
      chain.blocksByNumber.get(number)?.some(({ canonicalUntil }) => canonicalUntil <= clock.elapsedMs) ||
      // A lagging node may bring back the chain that a reorganisation replaced below this block.
      (activeFaults.isActive('nodeLags') && chain.wasReplacedUpTo(number))
    if (before?.state === 'retracted' && before.text === text && !reorganised)
      violation('I6', `${id} ${key} is published again unchanged, though there was no reorganisation`)
    if (key !== `${fact.block.number}-${fact.tx.hash}-${fact.tx.log_index}`) violation('I3', `${id} does not match its key ${key}`)
    if (!tokenAt(address)) violation('I3', `${id} ${key} is of ${address}, which is not listed`)
    if (stage === 'sealed') this.#checkSealed(fact.block.hash, key, fact, id)
    else this.#checkAnnounced(key, fact, id)
    if (stage === 'preconfirmed' && late) violation('I4', `${id} ${key} is late though it is pre-confirmed`)
    if ('ingest' in fact && isSealedSource(fact) !== (stage === 'sealed'))
      violation('I3', `${id} ${key} is ${stage} and from ${fact.ingest.source}`)
    const wasPreconfirmed = stage === 'preconfirmed' || (before?.wasPreconfirmed ?? false)
    this.all.set(key, {
      key,
      number: fact.block.number,
      address,
      tx: fact.tx.hash,
      type,
      text,
      lastPublished: fact,
      publishedBy: id,
      position: id,
      wasPreconfirmed,
      state: stage === 'sealed' ? 'sealed' : 'open',
      wasLate: late,
      publishedAt: clock.elapsedMs,
      hash: null,
      isForgotten: false,
      isRestored: false,
    })
    const keys = this.byNumber.get(fact.block.number)
    if (keys) keys.add(key)
    else this.byNumber.set(fact.block.number, new Set([key]))
  }

  amend(amend: UpdateOf<'amend'>): void {
    const { violation } = this.#context
    const { id, key } = amend
    const lifecycle = this.#aliveFor(amend)
    if (!lifecycle) return
    const update = amend.update as AmendedFact
    if (update.key !== key) violation('I4', `${id} amends ${key} with ${update.key}`)
    const text = publishedText(update)
    if (text === lifecycle.text && publishedDetail(update) === publishedDetail(lifecycle.lastPublished))
      violation('I4', `${id} amends ${key} without a change`)
    if (amend.changed.length === 0) violation('I4', `${id} names nothing that changed`)
    if (update.stage === 'sealed') {
      this.#checkSealed(update.block.hash, key, update, id, lifecycle)
      lifecycle.state = 'sealed'
    } else {
      if (lifecycle.hash !== null) violation('I4', `${id} amends ${key}, which is sealed, as pre-confirmed`)
      this.#checkAnnounced(key, update, id)
    }
    lifecycle.text = text
    lifecycle.isRestored &&= update.tx.index === lifecycle.lastPublished.tx.index
    lifecycle.lastPublished = update
    lifecycle.type = update.type
    lifecycle.position = id
  }

  /** Marks a key as retracted. Returns its state before. */
  retract(retract: UpdateOf<'retract'>): KeyLifecycle | null {
    const { violation } = this.#context
    const { id, key, block } = retract
    const lifecycle = this.#aliveFor(retract)
    if (!lifecycle) return null
    if (block.number !== lifecycle.number) violation('I4', `${id} retracts ${key} by block ${block.number}`)
    const read = this.expectedLogOf(block.hash, key)
    if (read && !read.isPart && read.text === lifecycle.text) violation('I6', `${id} ${key} is retracted by a block that holds it`)
    lifecycle.state = 'retracted'
    return lifecycle
  }

  seal(key: string, seal: UpdateOf<'seal'>): KeyLifecycle | null {
    const { violation } = this.#context
    const lifecycle = this.all.get(key)
    if (!lifecycle || lifecycle.state === 'retracted') {
      violation('I4', `${seal.id} seals ${key}, which ${lifecycle ? 'was retracted' : 'was never published'}`)
      return null
    }
    const read = this.expectedLogOf(seal.block.hash, key)
    if (read && read.text !== lifecycle.text) violation('I3', `${seal.id} seals ${key} as ${lifecycle.text}`)
    const error = read && findDetailError(lifecycle.lastPublished, read)
    if (error) violation('I17', `${seal.id} seals ${key}, which ${error}`)
    lifecycle.state = 'sealed'
    lifecycle.hash = seal.block.hash
    return lifecycle
  }

  #aliveFor(update: UpdateOf<'retract' | 'amend'>): KeyLifecycle | null {
    const { violation } = this.#context
    const { id, key, type } = update
    const lifecycle = this.all.get(key)
    if (!lifecycle || lifecycle.state === 'retracted') {
      violation('I4', `${id} is a ${type} of ${key}, which ${lifecycle ? 'was retracted' : 'was never published'}`)
      return null
    }
    if (update.fact_id !== lifecycle.position) violation('I4', `${id} ${key}: was ${update.fact_id}, not ${lifecycle.position}`)
    if (update.fact_type !== lifecycle.type) violation('I4', `${id} ${key}: of ${update.fact_type}, not ${lifecycle.type}`)
    if (update.address !== lifecycle.address) violation('I4', `${id} ${key}: address ${update.address}, not ${lifecycle.address}`)
    return lifecycle
  }

  /**
   * A block with this hash was canonical at some time, and contains the fact. A seal does not say at which index its transaction is, so
   * after a restart the relay knows the index that it published.
   */
  #checkSealed(hash: string | null, key: string, fact: AmendedFact, id: string, amended?: KeyLifecycle): void {
    const { violation } = this.#context
    const read = this.expectedLogOf(hash, key)
    const isPublishedIndex = amended?.isRestored === true && fact.tx.index === amended.lastPublished.tx.index
    const log = read && (isPublishedIndex ? { ...read.log, txIndex: fact.tx.index } : read.log)
    const error = read && log ? findFactError(fact, log, [read.text]) : `is in no block ${hash}`
    if (error) violation('I3', `${id} ${key} ${error}`)
  }

  /** The fact was shown as pre-confirmed, or sealed: answers about pending logs also contain the newest sealed ones. */
  #checkAnnounced(key: string, fact: AmendedFact, id: string): void {
    const { violation, chain, settings, activeFaults } = this.#context
    if (fact.block.hash !== null) violation('I4', `${id} ${key} is pre-confirmed and has a hash`)
    const { number } = fact.block
    const sealed = chain.blocksByNumber.get(number)?.flatMap(({ logs }) => logs.filter(({ tx }) => tx === fact.tx.hash)) ?? []
    const beside = [...(chain.announcedByTransaction.get(`${number} ${fact.tx.hash}`) ?? []), ...sealed]
    const candidates = beside.filter((log) => log.key === key)
    const hasFalseTimes = activeFaults.occurs('falseLogTimes')
    const times = hasFalseTimes ? 'false' : settings.traits.includes('timeless') ? 'missing' : 'true'
    const errors = candidates.map((log) => findFactError(fact, log, acceptableTexts(log, beside, fact, times), times))
    if (!errors.includes(null)) violation('I3', `${id} ${key} ${errors[0] ?? 'was never shown'}`)
  }

  expectedLogOf(hash: string | null, key: string): ExpectedLog | undefined {
    return expectedLogsOf(this.blockOf(hash)?.logs ?? []).get(key)
  }

  blockOf(hash: string | null): SimulatedBlock | undefined {
    return hash === null ? undefined : this.#context.chain.blocksByHash.get(hash as SimulatedBlock['hash'])
  }
}
