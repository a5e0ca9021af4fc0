/** Which chain all of this is about: told by the operator, by the tape, or by the first endpoint that answers. */
export class ChainIdentity {
  #id: number | null
  readonly #expectedBy: string

  /** `because` says who expects this chain, for whoever has to mend it. */
  constructor(id: number | null, expectedBy: string) {
    this.#id = id
    this.#expectedBy = expectedBy
  }

  get id(): number | null {
    return this.#id
  }

  /** Null if an endpoint of chain `said` may be listened to, else what is wrong with it. */
  findMismatch(chainId: number): string | null {
    this.#id ??= chainId
    return chainId === this.#id
      ? null
      : `it is of chain ${chainId}, but ${this.#expectedBy || 'the first endpoint'} says ${this.#id}`
  }
}
