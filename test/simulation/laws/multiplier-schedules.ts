import type { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/tape/tape.ts'
import type { Placed } from '../simulated-block.ts'
import type { Ending } from './completeness.ts'
import { readingsOf, wadText } from './expected-logs.ts'
import type { Law, Scene } from './law.ts'
import type { Tokens } from './listed-tokens.ts'
import { type Amended, type Fact, isFact, isMovement } from './published-facts.ts'

type Told = Extract<Update, { type: 'multiplier' }>

/** A change to come as it stands on the tape. */
type Schedule = {
  readonly address: string
  readonly to: string
  readonly at: string
  /** Whether a change that stands after it in the chain was told before it, or the list said something meanwhile. */
  overtaken: boolean
  rung: boolean
}

const TELL_BOUND_MS = 5_000

/**
 * I16: what was scheduled is told as effective once, when the chain's own time has reached it, and before any movement that
 * uses it. I18: whoever takes back what was said of a multiplier, a pause or a record says what holds again.
 */
export class Schedules implements Law {
  readonly #scene: Scene
  readonly #tokens: Tokens
  readonly #ending: Ending
  readonly #standing = new Map<string, Schedule>()
  /** Where each change by a log stands, in the chain's order; kept when it is taken back. */
  readonly #heard = new Map<string, { readonly address: string; readonly block: number; readonly logIndex: number }>()
  /** What has been in force of each token, by whoever's word. */
  readonly #forced = new Map<string, Set<string>>()
  #chainTime = 0

  constructor(scene: Scene, tokens: Tokens, ending: Ending) {
    this.#scene = scene
    this.#tokens = tokens
    this.#ending = ending
  }

  turn(entries: readonly Entry[]): void {
    const { chain } = this.#scene
    const head = chain.block(chain.head)
    this.#chainTime = Math.max(this.#chainTime, head?.timestamp ?? 0, chain.building.timestamp)
    for (const { update } of entries) {
      if (update.type === 'multiplier' && update.source !== 'log') this.#effective(update)
      if (isFact(update)) this.#fact(update.id, update)
      else if (update.type === 'amend') this.#fact(update.id, update.update as Amended)
      else if (update.type === 'retract') this.#retracted(update)
    }
  }

  end(recovered: boolean): void {
    const { chain, clock, settings } = this.#scene
    // Where a node does not say when a block that is being built will be, a change may be heard before its time.
    if (!recovered || settings.traits.includes('timeless')) return
    for (const [address, listedAt] of this.#tokens.since) {
      let waiting: Placed | null = null
      for (let number = listedAt + 1; number <= chain.head; number += 1) {
        const block = chain.block(number)
        if (!block || block.since > clock.frame - TELL_BOUND_MS) break
        if (waiting && maturesAt(waiting) <= block.timestamp) {
          this.#ripe(waiting)
          waiting = null
        }
        for (const { log, isPart } of readingsOf(block.logs).values()) {
          if (log.content.address !== address || isPart || this.#ending.holds(number)) continue
          const { means } = log.content
          if (means?.event === 'UIMultiplierUpdated') waiting = means.at > log.timestamp ? log : null
          else if (means?.event === 'MultiplierUpdated' || means?.event === 'UIMultiplierUpdateCancelled')
            waiting = null
        }
      }
    }
  }

  /** A schedule that has matured on the sealed chain was told so, unless somebody had said the same before. */
  #ripe({ key, content }: Placed): void {
    const { broken } = this.#scene
    const schedule = this.#standing.get(key)
    if (!schedule || schedule.rung || schedule.overtaken) return
    const listed = [...(this.#forced.get(content.address) ?? [])].some((value) => Number(value) === Number(schedule.to))
    if (!listed) broken('I16', `${key} took effect at ${schedule.at}, and nobody said so`)
  }

  #effective({ id, address, from, to, effective_at, source }: Told): void {
    const { broken } = this.#scene
    this.#force(address, from, to)
    if (source === 'list') {
      for (const one of this.#standing.values()) if (one.address === address) one.overtaken = true
    }
    if (source !== 'clock') return
    const rings = (one: Schedule) => one.address === address && one.to === to && one.at === effective_at
    const found = [...this.#standing.values()].filter(rings)
    const schedule = found.find(({ rung }) => !rung)
    if (schedule) schedule.rung = true
    else broken('I16', `${id}: ${to} is effective ${found.length > 0 ? 'again' : 'though nobody scheduled it'}`)
    const at = Date.parse(effective_at ?? '') / 1_000
    if (!(at <= this.#chainTime)) broken('I16', `${id} is effective at ${at}, and the chain is at ${this.#chainTime}`)
  }

  #fact(id: string, fact: Amended | Fact): void {
    const { broken } = this.#scene
    const told = fact as Fact
    if (isMovement(told)) {
      const { multiplier, address, key } = told
      if (multiplier === null || !this.#isToCome(address, multiplier)) return
      return broken('I16', `${id}: ${key} has multiplier ${multiplier} before anybody said that it is in force`)
    }
    if (told.type !== 'multiplier') return
    const { key, address, phase, from, to, effective_at } = told
    const place = { address, block: told.block.number, logIndex: told.tx.log_index }
    this.#force(address, from, phase === 'effective' ? to : null)
    if (phase !== 'scheduled') this.#standing.delete(key)
    else {
      const known = this.#standing.get(key)
      const same = known?.to === to && known?.at === effective_at
      const overtaken = [...this.#heard.values()].some((one) => one.address === address && isAfter(one, place))
      if (!same) this.#standing.set(key, { address, to: to ?? '', at: effective_at ?? '', overtaken, rung: false })
    }
    this.#heard.set(key, place)
  }

  #retracted({ id, key, of, by, now, address }: Extract<Update, { type: 'retract' }>): void {
    const { broken, chain } = this.#scene
    this.#standing.delete(key)
    if (of === 'multiplier' && typeof now === 'string') this.#force(address, now, null)
    const kind = { multiplier: 'string', pause: 'object', token: 'object' }[of as string] ?? null
    if (kind === null) {
      if (now !== null) broken('I18', `${id} says what holds again of a ${of}`)
      return
    }
    const isArray = Array.isArray(now)
    if (now === null || typeof now !== kind || isArray !== (of === 'pause'))
      return broken('I18', `${id} takes back a ${of} and does not say what holds again`)
    if (of !== 'multiplier' || by !== null) return
    const all = [
      ...chain.announced.values(),
      ...[...chain.numbers.values()].flatMap((blocks) => blocks.map(({ logs }) => logs)),
    ]
    const others = all.flat().some((log) => log.key !== key && log.content.address === address && saysOf(log) === now)
    const its = all.flat().some((log) => log.key === key && saysOf(log) === now)
    if (its && !others && !this.#isListed(address, String(now)))
      broken('I18', `${id} says that ${now} holds, which it takes back`)
  }

  #force(address: string, ...values: readonly (string | null)[]): void {
    const forced = this.#forced.get(address) ?? new Set()
    for (const value of values) if (value !== null) forced.add(value)
    this.#forced.set(address, forced)
  }

  /** Whether a value has been scheduled, and nobody said yet that it is in force. */
  #isToCome(address: string, multiplier: string): boolean {
    const scheduled = [...this.#standing.values()].some((one) => one.address === address && one.to === multiplier)
    return scheduled && !this.#forced.get(address)?.has(multiplier) && !this.#isListed(address, multiplier)
  }

  #isListed(address: string, multiplier: string): boolean {
    const { list } = this.#scene
    return list.served.some(({ records }) =>
      records.some((one) => one.contract_address === address && String(one.multiplier) === multiplier),
    )
  }
}

type At = { readonly block: number; readonly logIndex: number }
const isAfter = (one: At, other: At): boolean =>
  one.block > other.block || (one.block === other.block && one.logIndex > other.logIndex)

function maturesAt({ content: { means } }: Placed): number {
  return means?.event === 'UIMultiplierUpdated' ? means.at : Number.POSITIVE_INFINITY
}

/** The multiplier that a log names. */
function saysOf({ content: { means } }: Placed): string | null {
  return means?.event === 'UIMultiplierUpdated' || means?.event === 'MultiplierUpdated' ? wadText(means.to) : null
}
