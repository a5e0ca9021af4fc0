import type { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/relay/tape/tape.ts'
import type { Fault, FaultKind } from '../fault-table.ts'
import type { SimulatedBlock } from '../simulated-chain.ts'
import { poolOf } from '../simulated-pools.ts'
import type { BlockSettlement } from './block-settlement.ts'
import { expectedLogsOf } from './expected-logs.ts'
import { type FollowedPools, hindersAll, REFUSED_MOST_MS } from './followed-pools.ts'
import type { KeyLifecycle } from './key-lifecycles.ts'
import type { Law, LawContext } from './law.ts'
import type { ListedTokens } from './listed-tokens.ts'

type Hole = Extract<Update, { type: 'hole' }>

/** P2: the relay publishes what it can read within this time. */
const PUBLISH_TIMEOUT_MS = 5_000
/** How long it may take with one healthy endpoint among several, while the first one fails in one of these ways. */
const FAILOVER_MS = 30_000
const failoverKinds: ReadonlySet<FaultKind> = new Set<FaultKind>([
  'disconnect',
  'connectionRefused',
  'handshakeHangs',
  'subscriptionsRefused',
  'flapping',
  'noPendingPushes',
  'noHeadPushes',
  'noPushes',
  'pendingLogsRefused',
  'unreachable',
  'rateLimited',
  'htmlAnswers',
  'hangingAnswers',
  'logsFail',
  'endpointFrozen',
])
const hindersFailover = ({ kind, target }: Fault): boolean =>
  !['list', 'clock', 'chain'].includes(target) && !failoverKinds.has(kind) && kind !== 'managersRefused'
/** Faults that leave blocks of which the relay cannot read all logs. */
const unreadableKinds = ['historyPruned', 'fewResults', 'unreadableLogs'] as const
/** How long recovery may take after the last fault. */
const RECOVERY_MS = 60_000
/** How far above the safe block a reorganisation is undone. */
const REMEMBERED_BLOCKS = 1_024
/** How much later than its bound a hole for age may be published, in chain time. */
const HOLE_AGE_SLACK_MS = 15_000

type Parts = { readonly settlement: BlockSettlement; readonly tokens: ListedTokens; readonly pools: FollowedPools }

/** I5 and I6: without faults and after recovery, the tape matches every sealed log of the chain; no key is open. */
export class Completeness implements Law {
  readonly #context: LawContext
  readonly #settlement: BlockSettlement
  readonly #tokens: ListedTokens
  readonly #pools: FollowedPools
  readonly holes: Hole[] = []
  /** The last block that was checked. */
  #checkedUpTo: number

  constructor(context: LawContext, { settlement, tokens, pools }: Parts) {
    this.#context = context
    this.#settlement = settlement
    this.#tokens = tokens
    this.#pools = pools
    this.#checkedUpTo = context.chain.head
  }

  onBatch(entries: readonly Entry[]): void {
    for (const { update } of entries) {
      if (update.type !== 'hole') continue
      this.#checkHole(update)
      this.holes.push(update)
    }
  }

  /** Without recent faults no block waits. Nor does it for long where another endpoint is healthy. */
  onTick(): void {
    const { chain, clock, activeFaults, settings } = this.#context
    const isQuiet = activeFaults.isQuietFor(RECOVERY_MS, hindersAll)
    const publishMs = PUBLISH_TIMEOUT_MS + (activeFaults.wasActiveWithin('managersRefused', RECOVERY_MS) ? REFUSED_MOST_MS : 0)
    if (!isQuiet && !(settings.othersHealthy && activeFaults.isQuietFor(RECOVERY_MS, hindersFailover))) {
      this.#checkedUpTo = chain.head
      return
    }
    for (let number = this.#checkedUpTo + 1; ; number += 1) {
      const block = chain.block(number)
      if (!block || block.canonicalFrom > clock.elapsedMs - (isQuiet ? publishMs : FAILOVER_MS)) return
      this.#checkedUpTo = number
      this.#checkBlock(block)
      for (const lifecycle of this.#settlement.lifecycles.aliveInBlock(number)) this.#checkLifecycle(lifecycle)
    }
  }

  onEnd(recovered: boolean): void {
    if (!recovered) return
    const { chain, clock } = this.#context
    const from = Math.min(...this.#tokens.listedSince.values())
    for (let number = from + 1; number <= chain.head; number += 1) {
      const block = chain.block(number)
      if (!block || block.canonicalFrom > clock.elapsedMs - PUBLISH_TIMEOUT_MS) break
      this.#checkBlock(block)
    }
    for (const lifecycle of this.#settlement.lifecycles.all.values()) this.#checkLifecycle(lifecycle)
  }

  #checkBlock(block: SimulatedBlock): void {
    const { violation } = this.#context
    const { lifecycles, seals } = this.#settlement
    if (this.isInHole(block.number)) return
    for (const [key, { log, text, isPart }] of expectedLogsOf(block.logs)) {
      const { content } = log
      const pool = poolOf(content)
      const token = pool?.token ?? content.address
      const since = this.#tokens.listedSince.get(token)
      if (since === undefined || block.number <= since || isPart) continue
      if (pool && !this.#pools.wasExpected(log, block.canonicalFrom)) continue
      const lifecycle = lifecycles.all.get(key)
      if (lifecycle?.state !== 'sealed')
        violation('I5', `${key} is sealed on the chain and ${lifecycle?.state ?? 'never published'}`)
      else if (lifecycle.hash !== block.hash) violation('I5', `${key} is sealed by ${lifecycle.hash}, not ${block.hash}`)
      else if (lifecycle.text !== text) violation('I5', `${key} contains ${lifecycle.text}`)
      const seal = seals.get(`${block.number} ${token}`)
      if (seal?.block.hash !== block.hash) violation('I5', `block ${block.number} has no seal of ${token}`)
    }
  }

  #checkLifecycle({ key, number, state, hash, isForgotten, lastPublished }: KeyLifecycle): void {
    const { violation, chain, clock } = this.#context
    if (this.#pools.mayWait(lastPublished)) return
    const block = chain.block(number)
    const settled = block && block.canonicalFrom <= clock.elapsedMs - PUBLISH_TIMEOUT_MS
    if (state === 'open' && settled && !this.#isUnreadable(number)) violation('I6', `${key} is open though its block is sealed`)
    if (state !== 'sealed' || hash === null || !settled || isForgotten) return
    if (hash !== block.hash && !this.#isUnreadable(number)) violation('I6', `${key} stays sealed by ${hash}`)
  }

  /** Whether a hole covers the block. */
  isInHole(number: number): boolean {
    return this.holes.some(({ blocks }) => blocks.first <= number && number <= blocks.last)
  }

  /** The node no longer has the block, so the relay cannot settle it. */
  #isUnreadable(number: number): boolean {
    return this.holes.some(({ blocks, reason }) => blocks.first <= number && number <= blocks.last && reason !== 'backfill_bound')
  }

  /** A hole is allowed only where blocks could not be read, or are older than the bound. */
  #checkHole({ id, blocks, reason }: Hole): void {
    const { violation, chain, clock, settings, activeFaults } = this.#context
    const last = chain.blocksByNumber.get(blocks.last)?.at(-1)
    const oldest = clock.now() - settings.backfillBoundMs + HOLE_AGE_SLACK_MS
    const tooOld = last !== undefined && last.timestamp * 1_000 <= oldest
    const unreadable = unreadableKinds.some((kind) => activeFaults.wasActiveWithin(kind, 60_000))
    if (blocks.first > blocks.last) violation('I5', `${id} is a hole from ${blocks.first} to ${blocks.last}`)
    const isForgotten = activeFaults.wasActiveWithin('deepReorg', 60_000) && settings.safeLag > REMEMBERED_BLOCKS
    if (!tooOld && !unreadable && !isForgotten)
      violation('I5', `${id}: blocks ${blocks.first} to ${blocks.last} could be read (${reason})`)
  }
}
