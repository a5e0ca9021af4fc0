import { parseMultiplier } from '../../../src/devnet/tokens/token-storage.ts'
import type { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/relay/tape/tape.ts'
import type { PlacedLog } from '../placed-logs.ts'
import type { SimulatedBlock } from '../simulated-chain.ts'
import { tokenAt } from '../simulated-tokens.ts'
import type { Completeness } from './completeness.ts'
import { wadText } from './exact-decimals.ts'
import { type ExpectedLog, expectedLogsOf, movementOf } from './expected-logs.ts'
import type { KeyLifecycles } from './key-lifecycles.ts'
import type { Law, LawContext } from './law.ts'
import { isIntroduction, type ListedTokens } from './listed-tokens.ts'
import { openMultiplierChanges } from './open-changes.ts'
import { isFact, isValued } from './published-facts.ts'

type LogPosition = { readonly block: number; readonly logIndex: number }

/** The list reported another multiplier. The chain position at which the relay learned it lies between these two. */
type ListChange = { readonly address: string; readonly to: string | null; readonly from: LogPosition; readonly until: LogPosition }

/** A token's multiplier according to the chain's logs; `since`: the position of the log that set it. */
type MultiplierState = {
  value: bigint
  schedule: { readonly to: bigint; readonly at: number; readonly since: LogPosition; readonly isReceived: boolean } | null
  since: LogPosition
  /** Whether the relay can know it from logs. */
  isKnown: boolean
}

const WHOLE_BLOCK = Number.MAX_SAFE_INTEGER
const BEGINNING: LogPosition = { block: -1, logIndex: 0 }
/** Blocks sealed more recently are not checked yet. */
const PUBLISH_TIMEOUT_MS = 5_000

const isBefore = (first: LogPosition, second: LogPosition): boolean =>
  first.block < second.block || (first.block === second.block && first.logIndex < second.logIndex)

/**
 * I15: at the end every movement on the tape has the multiplier that the logs before it in the sealed chain give, and the matching
 * shares. Not checked: movements whose multiplier no readable log determines (before the first such log where the chain was not
 * quiet until then, and after one in a hole), and movements after the list reported another multiplier, unless a readable log shows
 * that the list was early.
 *
 * A change that was pre-confirmed in the block of a hole may be in it or not: nothing on the tape ends its key. So the movements
 * after the hole may have its multiplier too, unless the next log of a change is read before another hole and has a previous value.
 */
export class MultiplierValues implements Law {
  readonly #context: LawContext
  readonly #lifecycles: KeyLifecycles
  readonly #tokens: ListedTokens
  readonly #completeness: Completeness
  readonly #listChanges: ListChange[] = []
  #lastPublished: LogPosition = BEGINNING
  #highest = 0
  /** How many movements were compared with the chain, and how many could not be. */
  readonly count = { checked: 0, passed: 0 }

  constructor(context: LawContext, lifecycles: KeyLifecycles, tokens: ListedTokens, completeness: Completeness) {
    this.#context = context
    this.#lifecycles = lifecycles
    this.#tokens = tokens
    this.#completeness = completeness
    context.chain.events.subscribe(() => {
      this.#highest = Math.max(this.#highest, context.chain.head + 1)
    })
  }

  onBatch(entries: readonly Entry[]): void {
    for (const [index, { update }] of entries.entries()) {
      if (isIntroduction(entries, index)) continue
      if (isFact(update)) this.#advanceTo({ block: update.block.number, logIndex: update.tx.log_index })
      else if (update.type === 'seal') this.#advanceTo({ block: update.block.number, logIndex: WHOLE_BLOCK })
      else if (update.type === 'multiplier' && update.source === 'list') this.#addListChange(update)
    }
  }

  onEnd(recovered: boolean): void {
    if (!recovered) return
    for (const [address, since] of this.#tokens.listedSince) this.#checkToken(address, since)
  }

  #advanceTo(position: LogPosition): void {
    if (isBefore(this.#lastPublished, position)) this.#lastPublished = position
  }

  #addListChange({ address, multiplier: to }: Extract<Update, { type: 'multiplier' }>): void {
    const until = { block: Math.max(this.#highest, this.#context.chain.head + 1), logIndex: WHOLE_BLOCK }
    this.#listChanges.push({ address, to, from: this.#lastPublished, until })
  }

  #checkToken(address: string, listedAt: number): void {
    const { chain } = this.#context
    const first = parseMultiplier(tokenAt(address)?.multiplier ?? '1')
    const isKnown = !this.#hasChangeUntil(address, listedAt + 1)
    const state: MultiplierState = { value: first, schedule: null, since: BEGINNING, isKnown }
    /** The same with the changes that holes leave open. */
    const openState = { ...state }
    const listChanges = this.#listChanges.filter((change) => change.address === address && !this.#wasAhead(change))
    for (let number = Math.min(...chain.blocksByNumber.keys()); number <= chain.head; number += 1) {
      const block = chain.block(number)
      if (!block || !this.#isSettled(block)) return
      for (const read of expectedLogsOf(block.logs).values()) {
        if (read.log.content.address !== address) continue
        for (const each of [state, openState]) applyDueSchedule(each, block.timestamp)
        const isReceived = number > listedAt && !this.#completeness.isInHole(number)
        if (movementOf(read.log) && isReceived) this.#check(read, state, openState.value, listChanges)
        else if (!read.isPart) for (const each of [state, openState]) applyChange(each, read.log, isReceived)
      }
      if (this.#completeness.isInHole(number)) this.#leaveHole(address, number, state, openState)
    }
  }

  /** Applies the open changes of a block in a hole, unless the next log tells whether they happened. */
  #leaveHole(address: string, number: number, state: MultiplierState, openState: MultiplierState): void {
    const logs = openMultiplierChanges(this.#context, this.#lifecycles, address, number)
    // The open change may have ended the schedule, so what holds until the schedule is due is not known.
    if (logs.length > 0 && state.schedule) state.isKnown = false
    if (this.#isToldBehind(address, number)) assign(openState, state)
    else
      for (const log of logs) {
        applyDueSchedule(openState, log.timestamp)
        applyChange(openState, log, true)
      }
  }

  /** Whether the next change after a block in a hole is read and contains the previous value, without another hole before it. */
  #isToldBehind(address: string, hole: number): boolean {
    for (let number = hole + 1; !this.#completeness.isInHole(number); number += 1) {
      const block = this.#context.chain.block(number)
      if (!block || !this.#isSettled(block)) return false
      for (const { log, isPart } of expectedLogsOf(block.logs).values()) {
        const { tokenEvent } = log.content
        if (log.content.address !== address || isPart) continue
        if (tokenEvent?.event === 'UIMultiplierUpdated') return true
        if (tokenEvent?.event === 'MultiplierUpdated') return false
      }
    }
    return false
  }

  #isSettled({ canonicalFrom }: SimulatedBlock): boolean {
    return canonicalFrom <= this.#context.clock.elapsedMs - PUBLISH_TIMEOUT_MS
  }

  #check({ log }: ExpectedLog, state: MultiplierState, openValue: bigint, listChanges: readonly ListChange[]): void {
    const { value, since, isKnown } = state
    const { violation } = this.#context
    const isDoubtful = ({ from, until }: ListChange) =>
      !isBefore({ block: log.block, logIndex: log.logIndex }, from) && isBefore(since, until)
    const lifecycle = this.#lifecycles.all.get(log.key)
    if (!isKnown || !lifecycle || listChanges.some(isDoubtful)) {
      this.count.passed += 1
      return
    }
    this.count.checked += 1
    if (!isValued(lifecycle.lastPublished)) return
    const { multiplier } = lifecycle.lastPublished
    if (multiplier !== wadText(value) && multiplier !== wadText(openValue) && !lifecycle.isForgotten)
      violation('I15', `${log.key} has multiplier ${multiplier}, not ${wadText(value)} (${lifecycle.position})`)
  }

  /** Whether any chain there ever was contains a multiplier log of the token up to a block. */
  #hasChangeUntil(address: string, last: number): boolean {
    const { chain } = this.#context
    const isMultiplierLog = ({ content }: ExpectedLog['log']) =>
      content.address === address && content.tokenEvent !== undefined && content.tokenEvent.event.includes('ultiplier')
    const sealed = [...chain.blocksByNumber].some(
      ([number, blocks]) => number <= last && blocks.some((one) => one.logs.some(isMultiplierLog)),
    )
    return sealed || [...chain.announced.values()].flat().some((log) => log.block <= last && isMultiplierLog(log))
  }

  /** Whether the first readable log after the list's change sets the same value: then the list was only early. */
  #wasAhead({ address, to, from }: ListChange): boolean {
    const { chain } = this.#context
    for (let number = from.block; number <= chain.head; number += 1) {
      if (this.#completeness.isInHole(number)) continue
      for (const { log, isPart } of expectedLogsOf(chain.block(number)?.logs ?? []).values()) {
        const { tokenEvent } = log.content
        if (log.content.address !== address || isPart || isBefore({ block: number, logIndex: log.logIndex }, from)) continue
        if (tokenEvent?.event === 'UIMultiplierUpdated' && tokenEvent.at > log.timestamp) return false
        if (tokenEvent?.event === 'UIMultiplierUpdateCancelled') return false
        if (tokenEvent?.event === 'UIMultiplierUpdated' || tokenEvent?.event === 'MultiplierUpdated')
          return to !== null && Number(wadText(tokenEvent.to)) === Number(to)
      }
    }
    return false
  }
}

const assign = (state: MultiplierState, changes: Partial<MultiplierState>): void => void Object.assign(state, changes)

/** A schedule takes effect in the first block whose time has reached it. */
function applyDueSchedule(state: MultiplierState, timestamp: number): void {
  const { schedule } = state
  if (!schedule || schedule.at > timestamp) return
  assign(state, { value: schedule.to, since: schedule.since, isKnown: schedule.isReceived, schedule: null })
}

function applyChange(state: MultiplierState, log: PlacedLog, isReceived: boolean): void {
  const { tokenEvent } = log.content
  const since = { block: log.block, logIndex: log.logIndex }
  switch (tokenEvent?.event) {
    case 'MultiplierUpdated':
      return assign(state, { value: tokenEvent.to, since, isKnown: isReceived, schedule: null })
    case 'UIMultiplierUpdated':
      if (tokenEvent.at <= log.timestamp) return assign(state, { value: tokenEvent.to, since, isKnown: isReceived, schedule: null })
      return assign(state, {
        schedule: { to: tokenEvent.to, at: tokenEvent.at, since, isReceived },
        isKnown: state.isKnown && isReceived,
      })
    case 'UIMultiplierUpdateCancelled':
      return assign(state, { schedule: null, isKnown: state.isKnown && isReceived })
    default:
  }
}
