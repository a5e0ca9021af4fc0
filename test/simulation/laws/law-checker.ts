import type { Entry } from '../../../src/tape/tape.ts'
import { Settlings } from './block-settlement.ts'
import { Ending } from './completeness.ts'
import { Watermarks } from './finality-watermarks.ts'
import type { Law, Scene } from './law.ts'
import { Tokens } from './listed-tokens.ts'
import { Schedules } from './multiplier-schedules.ts'
import { Factors } from './multiplier-values.ts'
import { Navs } from './nav-values.ts'
import { Wires } from './rpc-notifications.ts'
import { Standing } from './source-status.ts'
import { Numbering } from './update-numbering.ts'

/** Holds what is written against the truth, turn by turn and at the end. */
export class Checker implements Law {
  readonly settlings: Settlings
  readonly tokens: Tokens
  readonly standing: Standing
  readonly ending: Ending
  readonly factors: Factors
  readonly wires: Wires
  readonly #laws: readonly Law[]

  constructor(scene: Scene) {
    this.settlings = new Settlings(scene)
    this.tokens = new Tokens(scene)
    this.standing = new Standing(scene, this.settlings.lives, this.tokens)
    this.ending = new Ending(scene, this.settlings, this.tokens)
    this.factors = new Factors(scene, this.settlings.lives, this.tokens, this.ending)
    this.wires = new Wires(scene, this.tokens, this.ending)
    this.#laws = [
      new Numbering(scene),
      // Asks what was known of a key before the turn, so it stands before the lives.
      this.standing,
      this.settlings,
      this.tokens,
      new Navs(scene),
      new Watermarks(scene),
      this.ending,
      this.factors,
      new Schedules(scene, this.tokens, this.ending),
      this.wires,
    ]
  }

  turn(entries: readonly Entry[]): void {
    for (const law of this.#laws) law.turn?.(entries)
  }

  moment(): void {
    for (const law of this.#laws) law.moment?.()
  }

  born(): void {
    for (const law of this.#laws) law.born?.()
  }

  end(recovered: boolean): void {
    for (const law of this.#laws) law.end?.(recovered)
  }
}
