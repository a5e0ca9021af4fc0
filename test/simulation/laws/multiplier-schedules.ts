import type { ReadState } from '../../../src/devnet/chain/account-state.ts'
import { effectiveAtKey, multiplierAt, scheduledMultiplierKey } from '../../../src/devnet/tokens/token-storage.ts'
import type { Hex } from '../../../src/lib/hex.ts'
import type { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/relay/tape/tape.ts'
import type { PlacedLog } from '../placed-logs.ts'
import type { SimulatedBlock } from '../simulated-chain.ts'
import type { Completeness } from './completeness.ts'
import { wadText } from './exact-decimals.ts'
import { expectedLogsOf } from './expected-logs.ts'
import type { KeyLifecycles } from './key-lifecycles.ts'
import type { Law, LawContext } from './law.ts'
import { isIntroduction, type ListedTokens } from './listed-tokens.ts'
import { openMultiplierChanges } from './open-changes.ts'
import { type AmendedFact, type Fact, isFact, isValued } from './published-facts.ts'

type MultiplierUpdate = Extract<Update, { type: 'multiplier' }>

/** A scheduled change as the tape has it. */
type Schedule = {
  readonly address: string
  readonly to: string
  readonly at: string
  /** Whether a change later in the chain was published before it, or the list reported a change meanwhile. */
  isOvertaken: boolean
  isPublished: boolean
}

const PUBLISH_TIMEOUT_MS = 5_000
const reorgs = ['reorg', 'deepReorg', 'rewind'] as const

/**
 * I16: a scheduled change is published as effective once, when the chain's time has reached it, and before any movement
 * that uses it. I18: a retract of a multiplier, a pause or a record contains the value that holds again.
 */
export class MultiplierSchedules implements Law {
  readonly #context: LawContext
  readonly #lifecycles: KeyLifecycles
  readonly #tokens: ListedTokens
  readonly #completeness: Completeness
  readonly #schedules = new Map<string, Schedule>()
  /** The chain position of each change by a log. It stays after a retract. */
  readonly #changePositions = new Map<string, { readonly address: string; readonly block: number; readonly logIndex: number }>()
  /** Every multiplier of a token that was in force according to any source. */
  readonly #effectiveValues = new Map<string, Set<string>>()
  #chainTime = 0

  constructor(context: LawContext, lifecycles: KeyLifecycles, tokens: ListedTokens, completeness: Completeness) {
    this.#context = context
    this.#lifecycles = lifecycles
    this.#tokens = tokens
    this.#completeness = completeness
  }

  onBatch(entries: readonly Entry[]): void {
    const { chain } = this.#context
    const head = chain.block(chain.head)
    this.#chainTime = Math.max(this.#chainTime, head?.timestamp ?? 0, chain.pendingBlock.timestamp)
    for (const { update } of entries) {
      // A contract's own log says which value it had before: also where the schedule's end was in a hole.
      const fact = (update.type === 'amend' ? update.update : update) as Fact
      if (fact.type === 'multiplier' && fact.source === 'log') this.#addEffective(fact.address, fact.previous)
    }
    // A block is settled in one batch, and its amends come before the log that made their multiplier effective.
    const settled = new Set(entries.flatMap(({ update }) => (isEffectiveByLog(update) ? [valueKey(update)] : [])))
    for (const [index, { update }] of entries.entries()) {
      if (isIntroduction(entries, index)) continue
      if (update.type === 'multiplier' && update.source !== 'log') this.#checkEffective(update)
      if (isFact(update)) this.#checkFact(update.id, update)
      else if (update.type === 'amend') this.#checkFact(update.id, update.update as AmendedFact, settled)
      else if (update.type === 'retract') this.#checkRetract(update)
    }
  }

  onEnd(recovered: boolean): void {
    const { chain, clock, settings } = this.#context
    // Where a node does not send the time of the pending block, the relay may receive a change before its time.
    if (!recovered || settings.traits.includes('timeless')) return
    for (const [address, listedAt] of this.#tokens.listedSince) {
      let waiting: PlacedLog | null = null
      for (let number = listedAt + 1; number <= chain.head; number += 1) {
        const block = chain.block(number)
        if (!block || block.canonicalFrom > clock.elapsedMs - PUBLISH_TIMEOUT_MS) break
        if (waiting && maturityOf(waiting) <= block.timestamp) {
          this.#checkMatured(waiting)
          waiting = null
        }
        for (const { log, counts } of this.#changesIn(address, block))
          waiting = counts && maturityOf(log) > log.timestamp ? log : null
      }
    }
  }

  /**
   * The changes of a token's multiplier in a block that end a schedule from before, and whether each counts for sure.
   *
   * Of a block in a hole these are the ones that the tape holds: sealed beside what cannot be read, or still open. Where contracts
   * answer, the relay may also know the ones that it could not read, and that an open one was not sealed.
   */
  #changesIn(address: string, { number, logs }: SimulatedBlock): readonly { log: PlacedLog; counts: boolean }[] {
    const { answersCalls } = this.#context.settings
    const sealed = [...expectedLogsOf(logs).values()].filter(
      ({ log, isPart }) => log.content.address === address && !isPart && changesMultiplier(log),
    )
    if (!this.#completeness.isInHole(number)) return sealed.map(({ log }) => ({ log, counts: true }))
    const held = sealed.map(({ log, text }) => ({ log, counts: this.#lifecycles.isAliveWith(log.key, text) }))
    const isHeld = ({ key }: PlacedLog) => held.some(({ log, counts }) => counts && log.key === key)
    const open = openMultiplierChanges(this.#context, this.#lifecycles, address, number).filter((log) => !isHeld(log))
    const known = answersCalls ? held : held.filter(({ counts }) => counts)
    return [...known, ...open.map((log) => ({ log, counts: !answersCalls }))].sort((a, b) => a.log.logIndex - b.log.logIndex)
  }

  /** A schedule that came due on the sealed chain was published as effective, unless its value was in force before. */
  #checkMatured({ key, content }: PlacedLog): void {
    const { violation } = this.#context
    const schedule = this.#schedules.get(key)
    if (!schedule || schedule.isPublished || schedule.isOvertaken) return
    const wasInForce = [...(this.#effectiveValues.get(content.address) ?? [])].some(
      (value) => Number(value) === Number(schedule.to),
    )
    if (!wasInForce) violation('I16', `${key} took effect at ${schedule.at}, which was not published`)
  }

  #checkEffective({ id, address, previous, multiplier, effective_at, source }: MultiplierUpdate): void {
    const { violation } = this.#context
    this.#addEffective(address, previous, multiplier)
    // A change of the clock without a time comes from a call: a log was missed.
    const isCalled = source === 'clock' && effective_at === null
    if (source === 'list' || isCalled) {
      for (const schedule of this.#schedules.values()) if (schedule.address === address) schedule.isOvertaken = true
    }
    const wasReturned = () => this.#wasInContract((read, second) => wadText(multiplierAt(read, address, second)) === multiplier)
    // A reorganisation makes calls void: what the list said before them holds again.
    const isRestored = () => this.#wasReorganised && this.#isListed(address, String(multiplier))
    if (isCalled && !wasReturned() && !isRestored()) violation('I16', `${id}: no contract ever returned ${multiplier}`)
    if (source !== 'clock' || isCalled) return
    const matches = (schedule: Schedule) =>
      schedule.address === address && schedule.to === multiplier && schedule.at === effective_at
    const found = [...this.#schedules.values()].filter(matches)
    const schedule = found.find(({ isPublished }) => !isPublished)
    if (schedule) schedule.isPublished = true
    else if (found.length > 0 || !this.#wasScheduledInContract(address, multiplier, effective_at))
      violation('I16', `${id}: ${multiplier} is effective ${found.length > 0 ? 'again' : 'without a schedule'}`)
    const at = Date.parse(effective_at ?? '') / 1_000
    if (!(at <= this.#chainTime)) violation('I16', `${id} is effective at ${at}, and the chain is at ${this.#chainTime}`)
  }

  #checkFact(id: string, fact: AmendedFact | Fact, settled: ReadonlySet<string> = new Set()): void {
    const { violation } = this.#context
    const published = fact as Fact
    if (isValued(published)) {
      const { multiplier, key } = published
      if (multiplier === null || settled.has(valueKey(published)) || !this.#isFuture({ ...published, multiplier })) return
      return violation('I16', `${id}: ${key} has multiplier ${multiplier} before it is in force`)
    }
    if (published.type !== 'multiplier') return
    const { key, address, phase, previous, multiplier, effective_at } = published
    const position = { address, block: published.block.number, logIndex: published.tx.log_index }
    this.#addEffective(address, previous, phase === 'effective' ? multiplier : null)
    if (phase !== 'scheduled') this.#schedules.delete(key)
    else {
      const known = this.#schedules.get(key)
      const same = known?.to === multiplier && known?.at === effective_at
      const isOvertaken = [...this.#changePositions.values()].some(
        (change) => change.address === address && isAfter(change, position),
      )
      if (!same)
        this.#schedules.set(key, { address, to: multiplier ?? '', at: effective_at ?? '', isOvertaken, isPublished: false })
    }
    this.#changePositions.set(key, position)
  }

  #checkRetract({ id, key, fact_type, replaced_by, restored, address }: Extract<Update, { type: 'retract' }>): void {
    const { violation, chain } = this.#context
    this.#schedules.delete(key)
    const multiplier = restored && 'multiplier' in restored ? restored.multiplier : null
    if (multiplier !== null) this.#addEffective(address, multiplier, null)
    const field = { multiplier: 'multiplier', pause: 'paused', token: 'token' }[fact_type as string] ?? null
    if (field === null) {
      if (restored !== null) violation('I18', `${id} has a current value for a ${fact_type}`)
      return
    }
    if (restored === null || !(field in restored) || (fact_type === 'multiplier' && multiplier === null))
      return violation('I18', `${id} retracts a ${fact_type} without the value that holds again`)
    if (fact_type !== 'multiplier' || replaced_by !== null) return
    const all = [
      ...chain.announced.values(),
      ...[...chain.blocksByNumber.values()].flatMap((blocks) => blocks.map(({ logs }) => logs)),
    ]
    const others = all
      .flat()
      .some((log) => log.key !== key && log.content.address === address && namedMultiplier(log) === multiplier)
    const own = all.flat().some((log) => log.key === key && namedMultiplier(log) === multiplier)
    if (own && !others && !this.#isListed(address, String(multiplier)))
      violation('I18', `${id} names ${multiplier} as the value that holds again, which it retracts`)
  }

  get #wasReorganised(): boolean {
    return reorgs.some((kind) => this.#context.activeFaults.wasActiveWithin(kind, PUBLISH_TIMEOUT_MS))
  }

  #addEffective(address: string, ...values: readonly (string | null)[]): void {
    const effective = this.#effectiveValues.get(address) ?? new Set()
    for (const value of values) if (value !== null) effective.add(value)
    this.#effectiveValues.set(address, effective)
  }

  /**
   * Whether the value of a fact is scheduled and not yet published as being in force. Of a schedule that was overtaken nothing more
   * is published: its value is in force in the blocks from its time on.
   */
  #isFuture({ address, multiplier, block }: Placed): boolean {
    const isAhead = ({ isOvertaken, at }: Schedule) => !isOvertaken || Date.parse(String(block.timestamp)) < Date.parse(at)
    const scheduled = [...this.#schedules.values()].some((one) => one.address === address && one.to === multiplier && isAhead(one))
    return scheduled && !this.#effectiveValues.get(address)?.has(multiplier) && !this.#isListed(address, multiplier)
  }

  /** Where the log of a schedule cannot be read, a call may return it. */
  #wasScheduledInContract(address: Hex, to: string | null, at: string | null): boolean {
    if (!this.#context.settings.answersCalls || at === null) return false
    const second = BigInt(Date.parse(at) / 1_000)
    return this.#wasInContract(
      (read) => read(effectiveAtKey(address)) === second && wadText(read(scheduledMultiplierKey(address))) === to,
    )
  }

  /** Whether the contract was ever in such a state, in any block there ever was. */
  #wasInContract(isMatch: (readState: ReadState, second: number) => boolean): boolean {
    return [...this.#context.chain.blocksByNumber.values()].flat().some(({ state, timestamp }) => isMatch(state.read, timestamp))
  }

  #isListed(address: string, multiplier: string): boolean {
    const { list } = this.#context
    return list.served.some(({ records }) =>
      records.some((one) => one.contract_address === address && String(one.multiplier) === multiplier),
    )
  }
}

type Placed = { readonly address: string; readonly multiplier: string; readonly block: { readonly timestamp: string | null } }

const isEffectiveByLog = (update: Update): boolean =>
  update.type === 'multiplier' && update.source === 'log' && update.phase === 'effective'
const valueKey = (update: { readonly address: string | null; readonly multiplier?: string | null }): string =>
  `${update.address} ${update.multiplier}`

type LogPosition = { readonly block: number; readonly logIndex: number }
const isAfter = (first: LogPosition, second: LogPosition): boolean =>
  first.block > second.block || (first.block === second.block && first.logIndex > second.logIndex)

function maturityOf({ content: { tokenEvent } }: PlacedLog): number {
  return tokenEvent?.event === 'UIMultiplierUpdated' ? tokenEvent.at : Number.NEGATIVE_INFINITY
}

const changesMultiplier = ({ content: { tokenEvent } }: PlacedLog): boolean =>
  ['MultiplierUpdated', 'UIMultiplierUpdated', 'UIMultiplierUpdateCancelled'].includes(tokenEvent?.event ?? '')

/** The multiplier that a log sets. */
function namedMultiplier({ content: { tokenEvent } }: PlacedLog): string | null {
  return tokenEvent?.event === 'UIMultiplierUpdated' || tokenEvent?.event === 'MultiplierUpdated' ? wadText(tokenEvent.to) : null
}
