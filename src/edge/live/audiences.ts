import type { Options } from '../../protocol/selection.ts'
import { hasValueFilter, nameOfOptions, nameOfTokens, type Selection } from '../select/compiled-selection.ts'
import type { Frame } from '../select/frame.ts'
import { hearing } from '../select/match.ts'
import { Audience, type Company } from './audience.ts'
import { HeardTurn, Turn } from './batch.ts'
import type { Listener } from './listener.ts'
import { Scratch } from './write-buffer.ts'

/** Everybody who hears the tape live, those with the same selection together. */
export class Audiences {
  readonly #companies = new Map<string, Company>()
  readonly #seats = new Map<Listener, Audience>()
  readonly #scratch = new Scratch()
  #filtered = 0

  has(listener: Listener): boolean {
    return this.#seats.has(listener)
  }

  /** Puts a listener where its selection belongs. */
  seat(listener: Listener): void {
    const { options, tokens } = listener
    const company = this.#company(options)
    const name = nameOfTokens(tokens)
    let audience = company.audiences.get(name)
    if (audience && this.#seats.get(listener) === audience) return
    if (!audience) {
      audience = new Audience(company, name, tokens)
      company.audiences.set(name, audience)
      if (company.filtered) this.#filtered += 1
    }
    audience.add(listener)
    this.unseat(listener)
    this.#seats.set(listener, audience)
  }

  unseat(listener: Listener): void {
    const audience = this.#seats.get(listener)
    if (!audience) return
    const { company } = audience
    this.#seats.delete(listener)
    audience.remove(listener)
    if (audience.size > 0) return
    company.audiences.delete(audience.name)
    if (company.filtered) this.#filtered -= 1
    if (company.audiences.size === 0) this.#companies.delete(company.name)
  }

  /** How many selections with value filters there would be if this listener, or a new one, had this one. */
  filteredWith({ tokens, options }: Selection, listener?: Listener): number {
    const there = this.#companies.get(nameOfOptions(options))?.audiences.has(nameOfTokens(tokens)) ?? false
    if (there || !hasValueFilter(options)) return this.#filtered
    const left = listener && this.#seats.get(listener)
    return this.#filtered + (left?.company.filtered && left.size === 1 ? 0 : 1)
  }

  /** Gives each audience its part, and each listener that may be written to one write. */
  deliver(frames: readonly Frame[], end: number, mayWrite: (listener: Listener) => boolean): void {
    const turn = new Turn(frames)
    for (const { hear, audiences } of this.#companies.values()) {
      const heard = new HeardTurn(turn, hear)
      for (const audience of audiences.values()) audience.deliver(heard, end, mayWrite, this.#scratch)
    }
  }

  #company(options: Options): Company {
    const name = nameOfOptions(options)
    let company = this.#companies.get(name)
    if (!company) {
      const hear = hearing({ tokens: null, options })
      company = { name, filtered: hasValueFilter(options), hear, audiences: new Map() }
      this.#companies.set(name, company)
    }
    return company
  }
}
