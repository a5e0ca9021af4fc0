/** The chain that the relay serves: set by the operator, by the tape, or by the first endpoint that answers. */
export class ChainIdentity {
  #id: number | null
  readonly #expectedBy: string

  /** `expectedBy` names the source of the id, for the operator who reads the mismatch. */
  constructor(id: number | null, expectedBy: string) {
    this.#id = id
    this.#expectedBy = expectedBy
  }

  get id(): number | null {
    return this.#id
  }

  /** What is wrong with an endpoint of this chain; null if it may be used. */
  findMismatch(chainId: number): string | null {
    this.#id ??= chainId
    return chainId === this.#id
      ? null
      : `it is of chain ${chainId}, but ${this.#expectedBy || 'the first endpoint'} says ${this.#id}`
  }
}
