import { Subject } from 'rxjs'

/** The chain that the relay serves: set by the operator, by the tape, or by the first endpoint that answers. */
export class ChainIdentity {
  #id: number | null
  readonly #expectedBy: string
  /** The URLs whose last answer was another chain, and whether any URL was ever of this one. */
  readonly #wrongUrls = new Set<string>()
  #isConfirmed = false
  /** Notified whenever a URL answers with another chain: what else is open may have changed too. */
  readonly wrongFound = new Subject<void>()
  readonly #onWrongUrl: () => void

  /** `expectedBy` names the source of the id, for the operator who reads the mismatch. */
  constructor(id: number | null, expectedBy: string, onWrongUrl: () => void = () => {}) {
    this.#id = id
    this.#expectedBy = expectedBy
    this.#onWrongUrl = onWrongUrl
  }

  get id(): number | null {
    return this.#id
  }

  /** Whether an endpoint has answered with this chain since the start. */
  get isConfirmed(): boolean {
    return this.#isConfirmed
  }

  /** Whether every one of these URLs is of another chain. */
  isWrong(urls: readonly string[]): boolean {
    return urls.length > 0 && urls.every((url) => this.#wrongUrls.has(url))
  }

  /** Remembers what an endpoint answered. Returns what is wrong with it; null if it may be used. */
  checkUrl(url: string, chainId: number): string | null {
    const mismatch = this.findMismatch(chainId)
    if (mismatch === null) {
      this.#isConfirmed = true
      this.#wrongUrls.delete(url)
    } else {
      this.#wrongUrls.add(url)
      this.#onWrongUrl()
      this.wrongFound.next()
    }
    return mismatch
  }

  /** What is wrong with an endpoint of this chain; null if it may be used. */
  findMismatch(chainId: number): string | null {
    this.#id ??= chainId
    return chainId === this.#id
      ? null
      : `it is of chain ${chainId}, but ${this.#expectedBy || 'the first endpoint'} says ${this.#id}`
  }
}
