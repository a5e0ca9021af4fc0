import type { SourceName, SourceReason } from '../../../src/protocol/fields.ts'
import type { Entry } from '../../../src/tape/tape.ts'
import type { Kind } from '../fault-table.ts'
import type { Block, Placed } from '../simulated-block.ts'
import { stockAt } from '../simulated-tokens.ts'
import { readingsOf } from './expected-logs.ts'
import type { Lives } from './key-lifecycles.ts'
import type { Law, Scene } from './law.ts'
import type { Tokens } from './listed-tokens.ts'
import { type Fact, isFact } from './published-facts.ts'

/** A log that was sealed and not pre-confirmed before. */
type Missed = { readonly at: number; readonly block: Block }

type Status = { readonly source: SourceName; readonly reason: SourceReason; readonly at: number }

/** A source that says it is well must have pre-confirmed something of so many sealed logs, or of so long. */
const SEALED_BOUND = 3
const QUIET_BOUND_MS = 10_000
/** A block that is half over, and one before it that is not known yet. */
const HALF_OVER_MS = 4_000
/** What it may take to read what is needed to notice. */
const NOTICE_MS = 6_000
/** What is shown for less may escape a poll. */
const GLIMPSE_MS = 1_000
/** Evidence lasts so long. */
const EVIDENCE_MS = 120_000

/** Faults after which nothing pre-confirmed may be seen though the chain pre-confirms. */
const blinding: readonly Kind[] = [
  ...(['dark', 'gap', 'pendingNull', 'pendingLatest', 'pendingBehind', 'pendingNumberless', 'pendingHashed'] as const),
  ...(['uneven', 'lagging', 'slow', 'stop', 'restart', 'reorg', 'deepReorg', 'rewind', 'slowTape'] as const),
]
const breaking: readonly Kind[] = ['unreachable', 'flaky', 'busy', 'html', 'slow', 'stalled']

/** Faults under which nothing, or too little, can be known in time. */
const mumbling: readonly Kind[] = [
  ...breaking,
  ...(['uneven', 'lagging', 'pendingBehind', 'narrow', 'crowded', 'slowTape', 'unindexed', 'gone'] as const),
]

/** I13: the source never claims to be well while it misses what is sealed, and is never called dead for being quiet. */
export class Standing implements Law {
  readonly #scene: Scene
  readonly #lives: Lives
  #status: Status | null = null
  /** When something pre-confirmed was told last, or might have been begun to be. */
  #heardAt = 0
  /** When each log of a listed token was sealed that was not pre-confirmed before. */
  readonly #missed: Missed[] = []
  #pushingSince = 0
  /** When anything was sealed last that had not been told before: evidence against whoever should have told it. */
  #evidentAt = Number.NEGATIVE_INFINITY

  constructor(scene: Scene, lives: Lives, tokens: Tokens) {
    this.#scene = scene
    this.#lives = lives
    let highest = scene.chain.head
    scene.chain.deeds.subscribe((deed) => {
      const blocks = deed.type === 'sealed' ? [deed.block] : deed.type === 'reorganised' ? deed.added : []
      for (const block of blocks) {
        const { number, logs } = block
        const unheard = [...readingsOf(logs).values()].filter(
          ({ log, isPart }) => stockAt(log.content.address) && !isPart && !lives.all.get(log.key)?.preconfirmed,
        )
        // An announcement that is never said to be over is not told before its block is sealed.
        const tellable = unheard.filter(({ closed, keys }) => closed || keys === null).map(({ log }) => log)
        const missed = tellable.filter((log) => tokens.isListed(log.content.address) && !this.#glimpsed(log))
        if (unheard.length > 0) this.#evidentAt = scene.clock.frame
        // What takes the place of a sealed block is no news to whoever thinks that block sealed.
        // And who polls sees a block begin, and cannot tell what is lost of it.
        const lost = (scene.weather.is('gap') && this.#isPolled) || this.#mumbles(NOTICE_MS)
        if (number > highest && deed.type === 'sealed' && !lost)
          this.#missed.push(...missed.map(() => ({ at: scene.clock.frame, block })))
        highest = Math.max(highest, number)
      }
    })
  }

  #mumbles(withinMs: number): boolean {
    return mumbling.some((kind) => this.#scene.weather.lately(kind, withinMs))
  }

  /** A poll comes too late for what is shown just before its block is sealed. */
  #glimpsed({ block, tx }: Placed): boolean {
    const { chain, clock } = this.#scene
    const building = chain.buildings.findLast(({ number }) => number === block)
    const shownAt = building?.shownAt[building.txs.findIndex(({ hash }) => hash === tx)]
    return this.#isPolled && shownAt !== undefined && clock.frame - shownAt < GLIMPSE_MS
  }

  get #isPolled(): boolean {
    return this.#status?.source === 'poll'
  }

  turn(entries: readonly Entry[]): void {
    const { broken, clock } = this.#scene
    const replacing = new Set<string>()
    for (const { update } of entries) {
      if (update.type === 'retract' && update.by?.startsWith(`${update.block.number}-`)) replacing.add(update.by)
      if (isFact(update) && update.stage === 'preconfirmed') this.#heardAt = clock.frame
      if (isFact(update) && update.stage === 'sealed') this.#late(update, replacing.has(update.key))
      // Who listens to one more begins anew, and so does what is known of it.
      if (update.type === 'token' && update.change === 'listed') this.#heardAt = clock.frame
      if (update.type !== 'status') continue
      const { id, source, reason, since, time } = update
      if (this.#status?.source === source && this.#status.reason === reason) broken('I13', `${id} says the same again`)
      if (since > time) broken('I13', `${id} is since ${since}`)
      this.#doubt(id, source, reason)
      if (source === 'pendingLogs' && this.#status?.source !== source) this.#pushingSince = clock.frame
      this.#status = { source, reason, at: clock.frame }
    }
    this.moment()
  }

  born(): void {
    this.#heardAt = this.#scene.clock.frame
  }

  moment(): void {
    const { broken, clock } = this.#scene
    const status = this.#status
    if (status?.reason !== 'ok' || (status.source !== 'pendingLogs' && status.source !== 'poll')) return
    // Who asks a node that hardly answers hears little, and cannot know how much.
    if (this.#mumbles(QUIET_BOUND_MS + NOTICE_MS)) return
    // What was half over when the source began to be well may have been missed.
    const since = Math.max(this.#heardAt, status.at) + HALF_OVER_MS
    const missed = this.#missed
      .slice(this.#missed.findLastIndex(({ at }) => at <= since) + 1)
      .filter(({ block }) => block.until === Number.POSITIVE_INFINITY)
    const [first, last] = [missed[0], missed[SEALED_BOUND - 1]]
    if (!first || !last) return
    const due = Math.max(first.at + QUIET_BOUND_MS, last.at) + NOTICE_MS
    if (clock.frame <= due) return
    broken('I13', `${status.source} says ok since ${since}, though it missed ${missed.length} logs from ${first.at} on`)
    this.#heardAt = clock.frame
  }

  /** I4: `late` is what was first told when sealed though something might have told it before. */
  #late(fact: Fact, replaces: boolean): void {
    const { broken } = this.#scene
    const { id, late, type } = fact
    // Its content had been told under another index.
    if (replaces && late) broken('I4', `${id} replaces another key and is late`)
    if (replaces || type === 'log') return
    // What says nothing of how it came may have been caught up.
    const backfilled = 'ingest' in fact ? fact.ingest.source === 'backfill' : late
    const known = this.#lives.all.has(fact.key)
    const source = this.#status?.source
    if (late && !backfilled && (source === 'sealed' || source === 'down'))
      broken('I4', `${id} is late though the source is ${source}`)
    if (!late && backfilled && !known) broken('I4', `${id} is backfilled and not late`)
    if (!late && !backfilled && (source === 'pendingLogs' || source === 'poll') && !known)
      broken('I4', `${id} is not late though the source is ${source}`)
  }

  #doubt(id: string, source: SourceName, reason: SourceReason): void {
    const { broken, settings, weather } = this.#scene
    const lately = (kinds: readonly Kind[]) => kinds.some((kind) => weather.lately(kind, EVIDENCE_MS))
    if (reason === 'silent' && this.#evidentAt < this.#pushingSince && !lately(blinding))
      broken('I13', `${id} calls a quiet market silent`)
    if (reason === 'no_pending' && settings.mode === 'flash' && !lately(blinding))
      broken('I13', `${id} sees nothing pre-confirmed`)
    if (source === 'down' && !lately(breaking)) broken('I13', `${id} is down for no reason`)
  }

  end(recovered: boolean): void {
    const { broken, settings } = this.#scene
    if (!recovered) return
    const { source, reason } = this.#status ?? {}
    const wrong = settings.mode === 'flash' ? ['sealed', 'down'] : ['down', 'poll']
    if (!source || wrong.includes(source)) broken('I13', `recovered, and the source is ${source} ${reason}`)
  }
}
