/** Which chain all of this is about: told by the operator, by the tape, or by the first endpoint that answers. */
export class ChainIdentity {
  #id: number | null
  readonly #because: string

  /** `because` says who expects this chain, for whoever has to mend it. */
  constructor(id: number | null, because: string) {
    this.#id = id
    this.#because = because
  }

  get id(): number | null {
    return this.#id
  }

  /** Null if an endpoint of chain `said` may be listened to, else what is wrong with it. */
  objection(said: number): string | null {
    this.#id ??= said
    return said === this.#id
      ? null
      : `it is of chain ${said}, but ${this.#because || 'the first endpoint'} says ${this.#id}`
  }
}
