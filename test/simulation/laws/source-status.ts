import type { SourceName, SourceReason } from '../../../src/protocol/fields.ts'
import type { Entry } from '../../../src/tape/tape.ts'
import type { FaultKind } from '../fault-table.ts'
import type { PlacedLog, SimulatedBlock } from '../simulated-block.ts'
import { tokenAt } from '../simulated-tokens.ts'
import { expectedLogsOf } from './expected-logs.ts'
import type { KeyLifecycles } from './key-lifecycles.ts'
import type { Law, LawContext } from './law.ts'
import type { ListedTokens } from './listed-tokens.ts'
import { type Fact, isFact } from './published-facts.ts'

/** A log that was sealed and not pre-confirmed before. */
type MissedLog = { readonly at: number; readonly block: SimulatedBlock }

type PublishedStatus = { readonly source: SourceName; readonly reason: SourceReason; readonly at: number }

/** A source that says it is well must have pre-confirmed something of so many sealed logs, or of so long. */
const SEALED_BOUND = 3
const QUIET_BOUND_MS = 10_000
/** A block that is half over, and one before it that is not known yet. */
const HALF_OVER_MS = 4_000
/** What it may take to read what is needed to notice. */
const NOTICE_MS = 6_000
/** What is shown for less may escape a poll. */
const POLL_GAP_MS = 1_000
/** Evidence lasts so long. */
const EVIDENCE_MS = 120_000

/** Faults after which nothing pre-confirmed may be seen though the chain pre-confirms. */
const hidingFaults: readonly FaultKind[] = [
  ...(['dark', 'gap', 'pendingNull', 'pendingLatest', 'pendingBehind', 'pendingNumberless', 'pendingHashed'] as const),
  ...(['uneven', 'lagging', 'slow', 'stop', 'restart', 'reorg', 'deepReorg', 'rewind', 'slowTape'] as const),
]
const failingFaults: readonly FaultKind[] = ['unreachable', 'flaky', 'busy', 'html', 'slow', 'stalled']

/** Faults under which nothing, or too little, can be known in time. */
const slowingFaults: readonly FaultKind[] = [
  ...failingFaults,
  ...(['uneven', 'lagging', 'pendingBehind', 'narrow', 'crowded', 'slowTape', 'unindexed', 'gone'] as const),
]

/** I13: the source never claims to be well while it misses what is sealed, and is never called dead for being quiet. */
export class SourceStatusLaw implements Law {
  readonly #context: LawContext
  readonly #lifecycles: KeyLifecycles
  #status: PublishedStatus | null = null
  /** When something pre-confirmed was told last, or might have been begun to be. */
  #receivedAt = 0
  /** When each log of a listed token was sealed that was not pre-confirmed before. */
  readonly #missed: MissedLog[] = []
  #pushingSince = 0
  /** When anything was sealed last that had not been told before: evidence against whoever should have told it. */
  #evidenceAt = Number.NEGATIVE_INFINITY

  constructor(context: LawContext, lifecycles: KeyLifecycles, tokens: ListedTokens) {
    this.#context = context
    this.#lifecycles = lifecycles
    let highest = context.chain.head
    context.chain.events.subscribe((event) => {
      const blocks = event.type === 'sealed' ? [event.block] : event.type === 'reorganised' ? event.added : []
      for (const block of blocks) {
        const { number, logs } = block
        const unannounced = [...expectedLogsOf(logs).values()].filter(
          ({ log, isPart }) => tokenAt(log.content.address) && !isPart && !lifecycles.all.get(log.key)?.wasPreconfirmed,
        )
        // An announcement that is never said to be over is not told before its block is sealed.
        const announceable = unannounced.filter(({ isClosed, keys }) => isClosed || keys === null).map(({ log }) => log)
        const missed = announceable.filter((log) => tokens.isListed(log.content.address) && !this.#isMissedByPoll(log))
        if (unannounced.length > 0) this.#evidenceAt = context.clock.elapsedMs
        // What takes the place of a sealed block is no news to whoever thinks that block sealed.
        // And who polls sees a block begin, and cannot tell what is lost of it.
        const lost = (context.activeFaults.isActive('gap') && this.#isPolled) || this.#isSlowed(NOTICE_MS)
        if (number > highest && event.type === 'sealed' && !lost)
          this.#missed.push(...missed.map(() => ({ at: context.clock.elapsedMs, block })))
        highest = Math.max(highest, number)
      }
    })
  }

  #isSlowed(withinMs: number): boolean {
    return slowingFaults.some((kind) => this.#context.activeFaults.wasActiveWithin(kind, withinMs))
  }

  /** A poll comes too late for what is shown just before its block is sealed. */
  #isMissedByPoll({ block, tx }: PlacedLog): boolean {
    const { chain, clock } = this.#context
    const building = chain.pendingBlocks.findLast(({ number }) => number === block)
    const shownAt = building?.shownAt[building.txs.findIndex(({ hash }) => hash === tx)]
    return this.#isPolled && shownAt !== undefined && clock.elapsedMs - shownAt < POLL_GAP_MS
  }

  get #isPolled(): boolean {
    return this.#status?.source === 'poll'
  }

  onBatch(entries: readonly Entry[]): void {
    const { violation, clock } = this.#context
    const replacing = new Set<string>()
    for (const { update } of entries) {
      if (update.type === 'retract' && update.by?.startsWith(`${update.block.number}-`)) replacing.add(update.by)
      if (isFact(update) && update.stage === 'preconfirmed') this.#receivedAt = clock.elapsedMs
      if (isFact(update) && update.stage === 'sealed') this.#checkLate(update, replacing.has(update.key))
      // Who listens to one more begins anew, and so does what is known of it.
      if (update.type === 'token' && update.change === 'listed') this.#receivedAt = clock.elapsedMs
      if (update.type !== 'status') continue
      const { id, source, reason, since, time } = update
      if (this.#status?.source === source && this.#status.reason === reason)
        violation('I13', `${id} says the same again`)
      if (since > time) violation('I13', `${id} is since ${since}`)
      this.#checkReason(id, source, reason)
      if (source === 'pendingLogs' && this.#status?.source !== source) this.#pushingSince = clock.elapsedMs
      this.#status = { source, reason, at: clock.elapsedMs }
    }
    this.onTick()
  }

  onRelayStart(): void {
    this.#receivedAt = this.#context.clock.elapsedMs
  }

  onTick(): void {
    const { violation, clock } = this.#context
    const status = this.#status
    if (status?.reason !== 'ok' || (status.source !== 'pendingLogs' && status.source !== 'poll')) return
    // Who asks a node that hardly answers hears little, and cannot know how much.
    if (this.#isSlowed(QUIET_BOUND_MS + NOTICE_MS)) return
    // What was half over when the source began to be well may have been missed.
    const since = Math.max(this.#receivedAt, status.at) + HALF_OVER_MS
    const missed = this.#missed
      .slice(this.#missed.findLastIndex(({ at }) => at <= since) + 1)
      .filter(({ block }) => block.canonicalUntil === Number.POSITIVE_INFINITY)
    const [first, last] = [missed[0], missed[SEALED_BOUND - 1]]
    if (!first || !last) return
    const due = Math.max(first.at + QUIET_BOUND_MS, last.at) + NOTICE_MS
    if (clock.elapsedMs <= due) return
    violation(
      'I13',
      `${status.source} says ok since ${since}, though it missed ${missed.length} logs from ${first.at} on`,
    )
    this.#receivedAt = clock.elapsedMs
  }

  /** I4: `late` is what was first told when sealed though something might have told it before. */
  #checkLate(fact: Fact, replaces: boolean): void {
    const { violation } = this.#context
    const { id, late, type } = fact
    // Its content had been told under another index.
    if (replaces && late) violation('I4', `${id} replaces another key and is late`)
    if (replaces || type === 'log') return
    // What says nothing of how it came may have been caught up.
    const backfilled = 'ingest' in fact ? fact.ingest.source === 'backfill' : late
    const known = this.#lifecycles.all.has(fact.key)
    const source = this.#status?.source
    if (late && !backfilled && (source === 'sealed' || source === 'down'))
      violation('I4', `${id} is late though the source is ${source}`)
    if (!late && backfilled && !known) violation('I4', `${id} is backfilled and not late`)
    if (!late && !backfilled && (source === 'pendingLogs' || source === 'poll') && !known)
      violation('I4', `${id} is not late though the source is ${source}`)
  }

  #checkReason(id: string, source: SourceName, reason: SourceReason): void {
    const { violation, settings, activeFaults } = this.#context
    const lately = (kinds: readonly FaultKind[]) =>
      kinds.some((kind) => activeFaults.wasActiveWithin(kind, EVIDENCE_MS))
    if (reason === 'silent' && this.#evidenceAt < this.#pushingSince && !lately(hidingFaults))
      violation('I13', `${id} calls a quiet market silent`)
    if (reason === 'no_pending' && settings.mode === 'flash' && !lately(hidingFaults))
      violation('I13', `${id} sees nothing pre-confirmed`)
    if (source === 'down' && !lately(failingFaults)) violation('I13', `${id} is down for no reason`)
  }

  onEnd(recovered: boolean): void {
    const { violation, settings } = this.#context
    if (!recovered) return
    const { source, reason } = this.#status ?? {}
    const wrong = settings.mode === 'flash' ? ['sealed', 'down'] : ['down', 'poll']
    if (!source || wrong.includes(source)) violation('I13', `recovered, and the source is ${source} ${reason}`)
  }
}
