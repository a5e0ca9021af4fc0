import { Subject } from 'rxjs'

/** The chain that the relay serves. The operator, the tape or the first endpoint that answers sets it. */
export class ChainIdentity {
  #id: number | null
  readonly #expectedBy: string
  /** The URLs whose last chain id was that of another chain. */
  readonly #wrongUrls = new Set<string>()
  #isConfirmed = false
  /** Notified whenever a URL answers with another chain: the nodes behind other connections may have changed too. */
  readonly wrongFound = new Subject<void>()
  readonly #onWrongUrl: () => void

  /** `expectedBy` names the setting or the tape that gives the id, for the operator who reads about a mismatch. */
  constructor(id: number | null, expectedBy: string, onWrongUrl: () => void = () => {}) {
    this.#id = id
    this.#expectedBy = expectedBy
    this.#onWrongUrl = onWrongUrl
  }

  get id(): number | null {
    return this.#id
  }

  get isConfirmed(): boolean {
    return this.#isConfirmed
  }

  isWrong(urls: readonly string[]): boolean {
    return urls.length > 0 && urls.every((url) => this.#wrongUrls.has(url))
  }

  /** Records an endpoint's answer. Returns the reason not to use the endpoint, or null. */
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

  /** Returns the reason not to use an endpoint of this chain, or null. Without an expected chain, this one becomes it. */
  findMismatch(chainId: number): string | null {
    this.#id ??= chainId
    return chainId === this.#id
      ? null
      : `it is of chain ${chainId}, but ${this.#expectedBy || 'the first endpoint'} says ${this.#id}`
  }
}
