import type { SourceName, SourceReason } from '../../../src/protocol/fields.ts'
import type { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/relay/tape/tape.ts'
import type { FaultKind } from '../fault-table.ts'
import type { PlacedLog } from '../placed-logs.ts'
import type { SimulatedBlock } from '../simulated-chain.ts'
import { isRound } from '../simulated-feed.ts'
import { poolOf } from '../simulated-pools.ts'
import { tokenAt } from '../simulated-tokens.ts'
import { expectedLogsOf } from './expected-logs.ts'
import { type FollowedPools, REFUSED_MOST_MS } from './followed-pools.ts'
import type { KeyLifecycles } from './key-lifecycles.ts'
import type { Law, LawContext } from './law.ts'
import type { ListedTokens } from './listed-tokens.ts'
import { type Fact, isFact } from './published-facts.ts'

/** A sealed log that was not pre-confirmed before. */
type MissedLog = { readonly at: number; readonly block: SimulatedBlock }

type PublishedStatus = { readonly source: SourceName; readonly reason: SourceReason; readonly at: number }

/** A source that reports `ok` must have pre-confirmed one of this many sealed logs, or something within this time. */
const SEALED_BOUND = 3
const QUIET_BOUND_MS = 10_000
/** A block that was partly over, and one before it that is not known yet. */
const HALF_OVER_MS = 4_000
/** How long it may take to read the evidence. */
const NOTICE_MS = 6_000
/** How long settling may be behind without a word: two blocks, `SILENCE`, and a deadline that passes meanwhile. */
const UNSETTLED_MS = 15_000
/** How much longer what a restart left open may take: its blocks are read last, and three times before what they lack counts as gone. */
const LEFT_OPEN_MS = 10_000
/** Settling is behind only by more than two blocks: of a chain that stands still the newest two may wait. */
const NEWEST_BLOCKS = 2
/** A node that prunes its history may have lost blocks this far below its head. */
const PRUNED_BLOCKS = 5
const TWO_BLOCKS_MS = 4_000
/** A poll may miss what is shown for less time. */
const POLL_GAP_MS = 1_000
/** How long evidence counts. */
const EVIDENCE_MS = 120_000

/** Faults that may hide all pre-confirmations although the chain has them. */
const hidingFaults: readonly FaultKind[] = [
  'nothingShown',
  'flashblocksLost',
  'pendingNull',
  'pendingLatest',
  'pendingBehind',
  'pendingNumberless',
  'pendingHashed',
  'halfTheNodesLag',
  'nodeLags',
  'slowAnswers',
  'chainStops',
  'builderRestarts',
  'reorg',
  'deepReorg',
  'rewind',
  'slowTape',
  'endpointFrozen',
]
const failingFaults: readonly FaultKind[] = [
  'unreachable',
  'flaky',
  'rateLimited',
  'htmlAnswers',
  'wrongAnswers',
  'slowAnswers',
  'hangingAnswers',
  'logsFail',
  'otherChain',
  'misplacedLogs',
  'contradictions',
  'unreadableLogs',
]

/** Faults under which the relay cannot know how far the chain is, or may retract what it brings back. */
const blindingFaults: readonly FaultKind[] = [
  'halfTheNodesLag',
  'nodeLags',
  'endpointFrozen',
  'slowTape',
  'reorg',
  'deepReorg',
  'rewind',
  'unreachable',
]

/** Faults under which the relay learns too little, or too late. */
const slowingFaults: readonly FaultKind[] = [
  ...failingFaults,
  'halfTheNodesLag',
  'nodeLags',
  'pendingBehind',
  'narrowRanges',
  'fewResults',
  'slowTape',
  'lateIndexing',
  'historyPruned',
  'endpointFrozen',
  'truncatedPages',
]

const isOfTokenOrPool = ({ content }: PlacedLog): boolean => (tokenAt(content.address) ?? poolOf(content)) !== undefined

/** I13: the source never reports `ok` while it misses sealed logs, nor `silent` because the market is quiet. */
export class SourceStatusLaw implements Law {
  readonly #context: LawContext
  readonly #lifecycles: KeyLifecycles
  readonly #pools: FollowedPools
  #status: PublishedStatus | null = null
  /** When the relay last published something pre-confirmed, or began to listen. */
  #receivedAt = 0
  /** When each log of a listed token was sealed without a pre-confirmation. */
  readonly #missed: MissedLog[] = []
  #pushingSince = 0
  /** The newest block that the relay had sealed when it began to listen. Logs of later ones are evidence, even if these are older. */
  #pushingAfter = Number.POSITIVE_INFINITY
  #startedAt = 0
  /** Blocks that could not be read: what is open in them stays open. */
  readonly #unread: Extract<Update, { type: 'hole' }>['blocks'][] = []
  /** When a log was last sealed without having been published before: evidence against the source. */
  #evidenceAt = Number.NEGATIVE_INFINITY
  /** The newest block with such a log. */
  #evidenceBlock = -1
  /** When the relay last reported `no_pending` on the word of another chain. */
  #misledAt = Number.NEGATIVE_INFINITY

  constructor(
    context: LawContext,
    {
      lifecycles,
      tokens,
      pools,
    }: { readonly lifecycles: KeyLifecycles; readonly tokens: ListedTokens; readonly pools: FollowedPools },
  ) {
    this.#context = context
    this.#lifecycles = lifecycles
    this.#pools = pools
    // The laws of a restored tape begin anew, and the chain may have been higher before.
    let highest = context.chain.watermarks.reduce((highest, { number }) => Math.max(highest, number), 0)
    context.chain.events.subscribe((event) => {
      const blocks = event.type === 'sealed' ? [event.block] : event.type === 'reorganised' ? event.added : []
      for (const block of blocks) {
        const { number, logs } = block
        const unannounced = [...expectedLogsOf(logs).values()].filter(
          ({ log, isPart }) => isOfTokenOrPool(log) && !isPart && !lifecycles.all.get(log.key)?.wasPreconfirmed,
        )
        // An announcement without an end is not published before its block is sealed.
        const announceable = unannounced.filter(({ isClosed, keys }) => isClosed || keys === null).map(({ log }) => log)
        const missed = announceable.filter((log) => tokens.isListed(log.content.address) && !this.#isMissedByPoll(log))
        const hasRound = logs.some(isRound)
        // Nor is it quiet while a feed publishes: its rounds are pushed and missed like other logs.
        if (unannounced.length > 0 || hasRound) {
          this.#evidenceAt = context.clock.elapsedMs
          this.#evidenceBlock = number
        }
        // A round that was pushed shows that the source works, though nothing of it is a fact.
        if (hasRound) this.#receivedAt = context.clock.elapsedMs
        // A replacement of a sealed block is not new to a relay that considers the block sealed.
        // And a polling relay sees a block begin, and cannot know what is lost of it.
        const lost = (context.activeFaults.isActive('flashblocksLost') && this.#isPolled) || this.#isSlowed(NOTICE_MS)
        if (number > highest && event.type === 'sealed' && !lost)
          this.#missed.push(...missed.map(() => ({ at: context.clock.elapsedMs, block })))
        highest = Math.max(highest, number)
      }
    })
  }

  #isSlowed(withinMs: number): boolean {
    return slowingFaults.some((kind) => this.#context.activeFaults.wasActiveWithin(kind, withinMs))
  }

  /** A poll comes too late for what is shown just before its block is sealed, and cannot read what is never shown. */
  #isMissedByPoll({ block, tx }: PlacedLog): boolean {
    const { chain, clock } = this.#context
    const building = chain.pendingBlocks.findLast(({ number }) => number === block)
    const shownAt = building?.versions.find(({ block }) => block.transactions.some(({ hash }) => hash === tx))?.at
    return this.#isPolled && (shownAt === undefined || clock.elapsedMs - shownAt < POLL_GAP_MS)
  }

  get #isPolled(): boolean {
    return this.#status?.source === 'poll'
  }

  onBatch(entries: readonly Entry[]): void {
    const { violation, clock } = this.#context
    const replacing = new Set<string>()
    for (const { update } of entries) {
      if (update.type === 'retract' && update.replaced_by?.startsWith(`${update.block.number}-`)) replacing.add(update.replaced_by)
      if (isFact(update) && update.stage === 'preconfirmed') this.#receivedAt = clock.elapsedMs
      if (isFact(update) && update.stage === 'sealed') this.#checkLate(update, replacing.has(update.key))
      if ('ingest' in update && update.ingest.source === 'backfill') this.#excuseBackfill(update.block.number)
      // With one token or pool more or less, the relay subscribes again, and its evidence starts again.
      if (update.type === 'venue' || (update.type === 'token' && update.change !== 'changed')) this.#receivedAt = clock.elapsedMs
      if (update.type === 'hole') this.#unread.push(update.blocks)
      if (update.type !== 'status') continue
      const { id, source, reason, started_at, time, head } = update
      if (this.#status?.source === source && this.#status.reason === reason) violation('I13', `${id} repeats the status`)
      if (started_at > time) violation('I13', `${id} begins in the future, at ${started_at}`)
      this.#checkReason(id, source, reason)
      if (source === 'pendingLogs' && this.#status?.source !== source) {
        this.#pushingSince = clock.elapsedMs
        this.#pushingAfter = head.sealed ?? Number.POSITIVE_INFINITY
      }
      this.#status = { source, reason, at: clock.elapsedMs }
    }
    this.onTick()
  }

  onRelayStart(): void {
    this.#startedAt = this.#context.clock.elapsedMs
    this.#receivedAt = this.#startedAt
  }

  onTick(): void {
    const { violation, clock, activeFaults, connectedAt, managerPushedAt, otherEventPushedAt } = this.#context
    // A node may push what it refuses to read. A timely trade of a dropped pool is no fact, but shows that the source works.
    if (this.#pools.areRefused) this.#receivedAt = Math.max(this.#receivedAt, managerPushedAt())
    const status = this.#status
    if (status?.reason !== 'ok') return
    this.#checkSettling(status)
    if (status.source !== 'pendingLogs' && status.source !== 'poll') return
    // With a node that hardly answers the relay receives little, and cannot know how much it misses.
    if (this.#isSlowed(QUIET_BOUND_MS + NOTICE_MS)) return
    // The source may have missed part of a block that had begun when it became `ok`.
    const receivedAt = Math.max(this.#receivedAt, otherEventPushedAt(), status.at, connectedAt())
    const since = receivedAt + HALF_OVER_MS
    const missed = this.#missed
      .slice(this.#missed.findLastIndex(({ at }) => at <= since) + 1)
      .filter(({ block }) => block.canonicalUntil === Number.POSITIVE_INFINITY && !this.#hadBegun(block, receivedAt))
    const [first, last] = [missed[0], missed[SEALED_BOUND - 1]]
    if (!first || !last) return
    // A block waits for the filter of a refused manager, and the relay learns of its logs only once it is settled.
    const waitMs = activeFaults.wasActiveWithin('managersRefused', clock.elapsedMs - last.at) ? REFUSED_MOST_MS : 0
    const due = Math.max(first.at + QUIET_BOUND_MS, last.at + waitMs) + NOTICE_MS
    if (clock.elapsedMs <= due) return
    violation('I13', `${status.source} reports ok since ${since}, though it missed ${missed.length} logs from ${first.at} on`)
    this.#receivedAt = clock.elapsedMs
  }

  /** While a manager refuses, settling waits, and what waits for long is read as a past, which is no evidence about the source. */
  #excuseBackfill(number: number): void {
    if (!this.#context.activeFaults.wasActiveWithin('managersRefused', REFUSED_MOST_MS)) return
    const others = this.#missed.filter(({ block }) => block.number !== number)
    this.#missed.splice(0, this.#missed.length, ...others)
  }

  /** Where the chain stood still, a block may have been built for much longer than usual. */
  #hadBegun({ number }: SimulatedBlock, at: number): boolean {
    return this.#context.chain.pendingBlocks.some((pending) => pending.number === number && pending.startedAt <= at)
  }

  /** Nothing stays open under the word `ok` long after its block was sealed. */
  #checkSettling({ source, at }: PublishedStatus): void {
    const { violation, chain, clock, activeFaults } = this.#context
    // The relay learns later of new heads while answers are slow or fail.
    const isFailing = failingFaults.some((kind) => activeFaults.wasActiveWithin(kind, UNSETTLED_MS))
    // Blocks wait until the relay gives up a refused manager, which takes a failing node longer. That is no reason to be behind.
    const refusedMs = activeFaults.wasActiveWithin('managersRefused', UNSETTLED_MS) ? REFUSED_MOST_MS : 0
    const since = clock.elapsedMs - UNSETTLED_MS - (isFailing ? NOTICE_MS : 0) - refusedMs
    if (Math.max(at, this.#startedAt) > since || blindingFaults.some((kind) => activeFaults.wasActiveWithin(kind, UNSETTLED_MS)))
      return
    const newestDue = chain.headAt(since + TWO_BLOCKS_MS) - NEWEST_BLOCKS
    const pruned = activeFaults.wasActiveWithin('historyPruned', UNSETTLED_MS + NOTICE_MS) ? chain.headAt(since) - PRUNED_BLOCKS : 0
    for (const { key, number, state, publishedAt, lastPublished } of this.#lifecycles.all.values()) {
      const block = state === 'open' && publishedAt <= since ? chain.block(number) : undefined
      const isUnread = this.#unread.some(({ first, last }) => first <= number && number <= last)
      // Blocks from before an outage can only be settled once the node has them again.
      const wasPruned = number < pruned
      const wasLeftOpen = publishedAt <= this.#startedAt && this.#startedAt > since - LEFT_OPEN_MS
      if (wasLeftOpen || this.#pools.mayWait(lastPublished)) continue
      if (block && block.canonicalFrom <= since && number <= newestDue && !isUnread && !wasPruned)
        violation('I13', `${source} reports ok since ${at}, though ${key} is open and was sealed at ${block.canonicalFrom}`)
    }
  }

  /** I4: `late` marks a fact that was first published when sealed, although it could have been pre-confirmed. */
  #checkLate(fact: Fact, replaces: boolean): void {
    const { violation } = this.#context
    const { id, late, type } = fact
    // Its content was published before under another index.
    if (replaces && late) violation('I4', `${id} replaces another key and is late`)
    if (replaces || type === 'log') return
    // A message without `ingest` may have been backfilled.
    const backfilled = 'ingest' in fact ? fact.ingest.source === 'backfill' : late
    const wasPublished = this.#lifecycles.all.has(fact.key)
    const source = this.#status?.source
    if (late && !backfilled && (source === 'sealed' || source === 'down'))
      violation('I4', `${id} is late though the source is ${source}`)
    if (!late && backfilled && !wasPublished) violation('I4', `${id} is backfilled and not late`)
    if (!late && !backfilled && (source === 'pendingLogs' || source === 'poll') && !wasPublished)
      violation('I4', `${id} is not late though the source is ${source}`)
  }

  #checkReason(id: string, source: SourceName, reason: SourceReason): void {
    const { violation, settings, activeFaults, clock, wasOfUnnamedChainWithin } = this.#context
    const lately = (kinds: readonly FaultKind[]) => kinds.some((kind) => activeFaults.wasActiveWithin(kind, EVIDENCE_MS))
    // Under a head that is not there yet, what is pushed before its block is sealed looks late.
    const hasEvidence = this.#evidenceAt >= this.#pushingSince || this.#evidenceBlock > this.#pushingAfter
    if (reason === 'silent' && !hasEvidence && !lately([...hidingFaults, 'falseHeads']))
      violation('I13', `${id} reports a quiet market as silent`)
    // A relay that cannot know yet that another chain answers takes its word, and repeats it until it reads the pending block again.
    if (reason === 'no_pending' && wasOfUnnamedChainWithin(NOTICE_MS)) this.#misledAt = clock.elapsedMs
    const mayLackPending = lately(hidingFaults) || clock.elapsedMs - this.#misledAt <= EVIDENCE_MS
    if (reason === 'no_pending' && settings.mode === 'flash' && !mayLackPending)
      violation('I13', `${id} reports no_pending although the chain pre-confirms`)
    const isManagerAlone =
      lately(['managersRefused']) && activeFaults.isQuietFor(EVIDENCE_MS, ({ kind }) => kind !== 'managersRefused')
    if ((reason === 'behind' || reason === 'refused') && isManagerAlone)
      violation('I13', `${id} reports ${reason} because of a manager alone`)
    if (source === 'down' && !lately(failingFaults)) violation('I13', `${id} reports down without a reason`)
  }

  onEnd(recovered: boolean): void {
    const { violation, settings } = this.#context
    if (!recovered) return
    const { source, reason } = this.#status ?? {}
    const wrong = settings.mode === 'flash' ? ['sealed', 'down'] : ['down', 'poll']
    if (!source || wrong.includes(source)) violation('I13', `after recovery the source is ${source} ${reason}`)
  }
}
