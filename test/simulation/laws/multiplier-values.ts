import type { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/tape/tape.ts'
import { firstBooks } from '../contract-state.ts'
import type { Block } from '../simulated-block.ts'
import type { Ending } from './completeness.ts'
import { movementOf, type Reading, readingsOf, wadText } from './expected-logs.ts'
import type { Lives } from './key-lifecycles.ts'
import type { Law, Scene } from './law.ts'
import type { Tokens } from './listed-tokens.ts'
import { isFact, isMovement } from './published-facts.ts'

type Place = { readonly block: number; readonly logIndex: number }

/** The list said another multiplier; what the relay had heard by then lies between these two. */
type Witness = { readonly address: string; readonly to: string | null; readonly from: Place; readonly until: Place }

/** What the chain's logs say the multiplier of a token is at a place; `since`: of which log, if any, that follows. */
type Standing = {
  value: bigint
  schedule: { readonly to: bigint; readonly at: number; readonly since: Place; readonly heard: boolean } | null
  since: Place
  /** Whether the relay can know it by logs. */
  known: boolean
}

const WHOLE_BLOCK = Number.MAX_SAFE_INTEGER
const BEGINNING: Place = { block: -1, logIndex: 0 }
/** What was sealed just now is not looked at yet. */
const TELL_BOUND_MS = 5_000

const isBefore = (one: Place, other: Place): boolean =>
  one.block < other.block || (one.block === other.block && one.logIndex < other.logIndex)

/**
 * I15: at last every movement stands on the tape with the multiplier that the logs before it in the sealed chain make, and
 * with its shares. Not looked at: what no log that could be heard determines (before the first of them where the chain
 * was not quiet until then, and after one in a hole), and what follows a place at which the list said something else.
 */
export class Factors implements Law {
  readonly #scene: Scene
  readonly #lives: Lives
  readonly #tokens: Tokens
  readonly #ending: Ending
  readonly #witnesses: Witness[] = []
  #told: Place = BEGINNING
  #highest = 0
  /** How many movements were held against the chain, and how many could not be. */
  readonly count = { checked: 0, passed: 0 }

  constructor(scene: Scene, lives: Lives, tokens: Tokens, ending: Ending) {
    this.#scene = scene
    this.#lives = lives
    this.#tokens = tokens
    this.#ending = ending
    scene.chain.deeds.subscribe(() => {
      this.#highest = Math.max(this.#highest, scene.chain.head + 1)
    })
  }

  turn(entries: readonly Entry[]): void {
    for (const { update } of entries) {
      if (isFact(update)) this.#reach({ block: update.block.number, logIndex: update.tx.log_index })
      else if (update.type === 'seal') this.#reach({ block: update.block.number, logIndex: WHOLE_BLOCK })
      else if (update.type === 'multiplier' && update.source === 'list') this.#witness(update)
    }
  }

  end(recovered: boolean): void {
    if (!recovered) return
    for (const [address, since] of this.#tokens.since) this.#walk(address, since)
  }

  #reach(place: Place): void {
    if (isBefore(this.#told, place)) this.#told = place
  }

  #witness({ address, to }: Extract<Update, { type: 'multiplier' }>): void {
    const until = { block: Math.max(this.#highest, this.#scene.chain.head + 1), logIndex: WHOLE_BLOCK }
    this.#witnesses.push({ address, to, from: this.#told, until })
  }

  #walk(address: string, listedAt: number): void {
    const { chain, clock } = this.#scene
    const first = firstBooks.get(address as Block['hash'])?.multiplier ?? 0n
    const standing: Standing = {
      ...{ value: first, schedule: null, since: BEGINNING },
      known: !this.#spokeUntil(address, listedAt + 1),
    }
    const witnesses = this.#witnesses.filter((one) => one.address === address && !this.#foresaw(one))
    for (let number = Math.min(...chain.numbers.keys()); number <= chain.head; number += 1) {
      const block = chain.block(number)
      if (!block || block.since > clock.frame - TELL_BOUND_MS) return
      if (block.logs.length === 0) continue
      for (const read of readingsOf(block.logs).values()) {
        if (read.log.content.address !== address) continue
        mature(standing, block.timestamp)
        const heard = number > listedAt && !this.#ending.holds(number)
        if (movementOf(read.log) && heard) this.#check(read, standing, witnesses)
        else if (!read.isPart) change(standing, read, heard)
      }
    }
  }

  #check({ log }: Reading, { value, since, known }: Standing, witnesses: readonly Witness[]): void {
    const { broken } = this.#scene
    const isDoubtful = ({ from, until }: Witness) =>
      !isBefore({ block: log.block, logIndex: log.logIndex }, from) && isBefore(since, until)
    const life = this.#lives.all.get(log.key)
    if (!known || !life || witnesses.some(isDoubtful)) {
      this.count.passed += 1
      return
    }
    this.count.checked += 1
    if (!isMovement(life.told)) return
    const { multiplier } = life.told
    if (multiplier !== wadText(value))
      broken('I15', `${log.key} stands with multiplier ${multiplier}, not ${wadText(value)} (${life.position})`)
  }

  /** Whether any chain there ever was said something of a token's multiplier up to a block. */
  #spokeUntil(address: string, last: number): boolean {
    const { chain } = this.#scene
    const speaks = ({ content }: Reading['log']) =>
      content.address === address && content.means !== undefined && content.means.event.includes('ultiplier')
    const sealed = [...chain.numbers].some(
      ([number, blocks]) => number <= last && blocks.some((one) => one.logs.some(speaks)),
    )
    return sealed || [...chain.announced.values()].flat().some((log) => log.block <= last && speaks(log))
  }

  /** Whether the first log after it said the same: then it was only early, and is taken back. */
  #foresaw({ address, to, from }: Witness): boolean {
    const { chain } = this.#scene
    for (let number = from.block; number <= chain.head; number += 1) {
      for (const { log, isPart } of readingsOf(chain.block(number)?.logs ?? []).values()) {
        const { means } = log.content
        if (log.content.address !== address || isPart || isBefore({ block: number, logIndex: log.logIndex }, from))
          continue
        if (means?.event === 'UIMultiplierUpdated' && means.at > log.timestamp) return false
        if (means?.event === 'UIMultiplierUpdateCancelled') return false
        if (means?.event === 'UIMultiplierUpdated' || means?.event === 'MultiplierUpdated')
          return to !== null && Number(wadText(means.to)) === Number(to)
      }
    }
    return false
  }
}

/** A schedule counts from the block whose own time has reached it. */
function mature(standing: Standing, timestamp: number): void {
  const { schedule } = standing
  if (!schedule || schedule.at > timestamp) return
  Object.assign(standing, { value: schedule.to, since: schedule.since, known: schedule.heard, schedule: null })
}

function change(standing: Standing, { log }: Reading, heard: boolean): void {
  const { means } = log.content
  const since = { block: log.block, logIndex: log.logIndex }
  switch (means?.event) {
    case 'MultiplierUpdated':
      return void Object.assign(standing, { value: means.to, since, known: heard, schedule: null })
    case 'UIMultiplierUpdated':
      if (means.at <= log.timestamp)
        return void Object.assign(standing, { value: means.to, since, known: heard, schedule: null })
      return void Object.assign(standing, {
        schedule: { to: means.to, at: means.at, since, heard },
        known: standing.known && heard,
      })
    case 'UIMultiplierUpdateCancelled':
      return void Object.assign(standing, { schedule: null, known: standing.known && heard })
    default:
  }
}
