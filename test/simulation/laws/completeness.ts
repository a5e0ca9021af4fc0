import type { Update } from '../../../src/protocol/updates.ts'
import { type Entry, noteNames } from '../../../src/tape/tape.ts'
import type { Block } from '../simulated-block.ts'
import { NOON } from '../virtual-clock.ts'
import type { Settlings } from './block-settlement.ts'
import { readingsOf } from './expected-logs.ts'
import type { Life } from './key-lifecycles.ts'
import type { Law, Scene } from './law.ts'
import type { Tokens } from './listed-tokens.ts'

type Hole = Extract<Update, { type: 'hole' }>

/** P2: what could be read is told within this. */
const TELL_BOUND_MS = 5_000
/** After trouble it may take so long until all is well. */
const RECOVERY_MS = 60_000
/** A hole for age may be told so much later than the bound would have it, in chain time. */
const AGE_SLACK_MS = 15_000

/** I5 and I6: while all is well, and once it is well again, the tape says of every sealed log what the chain says, and no key is open. */
export class Ending implements Law {
  readonly #scene: Scene
  readonly #settlings: Settlings
  readonly #tokens: Tokens
  readonly holes: Hole[] = []
  /** Up to here blocks have been looked at. */
  #checked: number

  constructor(scene: Scene, settlings: Settlings, tokens: Tokens) {
    this.#scene = scene
    this.#settlings = settlings
    this.#tokens = tokens
    this.#checked = scene.chain.head
  }

  turn(entries: readonly Entry[]): void {
    for (const { update } of entries) {
      if (update.type !== 'hole') continue
      this.#doubt(update)
      this.holes.push(update)
    }
  }

  /** While nothing has gone wrong for a while, no block waits. */
  moment(): void {
    const { chain, clock, weather } = this.#scene
    if (!weather.calm(RECOVERY_MS)) {
      this.#checked = chain.head
      return
    }
    for (let number = this.#checked + 1; ; number += 1) {
      const block = chain.block(number)
      if (!block || block.since > clock.frame - TELL_BOUND_MS) return
      this.#checked = number
      this.#told(block)
      for (const life of this.#settlings.lives.aliveIn(number)) this.#over(life)
    }
  }

  end(recovered: boolean): void {
    if (!recovered) return
    const { broken, chain, clock, tape } = this.#scene
    const from = Math.min(...this.#tokens.since.values())
    for (let number = from + 1; number <= chain.head; number += 1) {
      const block = chain.block(number)
      if (!block || block.since > clock.frame - TELL_BOUND_MS) break
      this.#told(block)
    }
    let open = 0
    for (const life of this.#settlings.lives.all.values()) {
      this.#over(life)
      if (life.state === 'open') open += 1
    }
    const noted = tape().notes(noteNames.open).size
    if (noted !== open) broken('I9', `${noted} open keys are kept beside the tape, ${open} are open`)
  }

  #told(block: Block): void {
    const { broken } = this.#scene
    const { lives, seals } = this.#settlings
    if (this.holds(block.number)) return
    for (const [key, { log, saying, isPart }] of readingsOf(block.logs)) {
      const { content } = log
      const since = this.#tokens.since.get(content.address)
      if (since === undefined || block.number <= since || isPart) continue
      const life = lives.all.get(key)
      if (life?.state !== 'sealed') broken('I5', `${key} is sealed on the chain and ${life?.state ?? 'never told'}`)
      else if (life.hash !== block.hash) broken('I5', `${key} is sealed by ${life.hash}, not ${block.hash}`)
      else if (life.saying !== saying) broken('I5', `${key} says ${life.saying}`)
      const seal = seals.get(`${block.number} ${content.address}`)
      if (seal?.block.hash !== block.hash) broken('I5', `block ${block.number} has no seal of ${content.address}`)
    }
  }

  #over({ key, number, state, hash }: Life): void {
    const { broken, chain, clock } = this.#scene
    const block = chain.block(number)
    const settled = block && block.since <= clock.frame - TELL_BOUND_MS
    if (state === 'open' && settled && !this.#isGone(number)) broken('I6', `${key} is open though its block is sealed`)
    if (state !== 'sealed' || hash === null || !settled) return
    if (hash !== block.hash && !this.#isGone(number)) broken('I6', `${key} stays sealed by ${hash}`)
  }

  /** Whether a hole was told where a block is. */
  holds(number: number): boolean {
    return this.holes.some(({ blocks }) => blocks.from <= number && number <= blocks.to)
  }

  /** What nobody keeps any more cannot be settled. */
  #isGone(number: number): boolean {
    return this.holes.some(
      ({ blocks, reason }) => blocks.from <= number && number <= blocks.to && reason !== 'backfill_bound',
    )
  }

  /** A hole is told only where something could not be read, or lies too far back. */
  #doubt({ id, blocks, reason }: Hole): void {
    const { broken, chain, clock, settings, weather } = this.#scene
    const last = chain.numbers.get(blocks.to)?.at(-1)
    const oldest = NOON + clock.frame - settings.backfillBoundMs + AGE_SLACK_MS
    const tooOld = last !== undefined && last.timestamp * 1_000 <= oldest
    const unreadable = weather.lately('gone', 60_000) || weather.lately('crowded', 60_000)
    if (blocks.from > blocks.to) broken('I5', `${id} is a hole from ${blocks.from} to ${blocks.to}`)
    if (!tooOld && !unreadable) broken('I5', `${id}: blocks ${blocks.from} to ${blocks.to} could be read (${reason})`)
  }
}
