import { numberOfKey } from './light-chain.ts'
import { FIRST_NUMBER, stampNumber } from './message-stamp.ts'

/** What one listener saw of every pushed log. All are zero where each was published once and sealed once. */
export type AuditResult = {
  readonly unpublished: number
  readonly repeated: number
  readonly unsealed: number
  readonly sealedTwice: number
  /** Retractions, amendments, gaps and holes: the chain gave no reason for any. */
  readonly corrections: number
}

const SEAL = Buffer.from('{"type":"seal"')
const CORRECTIONS = ['retract', 'amend', 'gap', 'hole'].map((type) => Buffer.from(`{"type":"${type}"`))
const CAPACITY = 2 ** 22

/** Follows the whole stream of one listener: each log must be published once and listed in one seal. */
export class PublicationAudit {
  readonly #published = new Uint8Array(CAPACITY)
  readonly #sealed = new Uint8Array(CAPACITY)
  #sealedCount = 0
  #corrections = 0

  /** `stampedAt`: where the stamp is, or negative. */
  read(bytes: Buffer, from: number, to: number, stampedAt: number): void {
    if (begins(bytes, from, SEAL)) {
      const seal: { keys: readonly string[] } = JSON.parse(bytes.toString('utf8', from, to))
      for (const key of seal.keys) this.#count(this.#sealed, numberOfKey(key))
      this.#sealedCount += seal.keys.length
    } else if (CORRECTIONS.some((mark) => begins(bytes, from, mark))) this.#corrections += 1
    else if (stampedAt >= 0) this.#count(this.#published, stampNumber(bytes, stampedAt))
  }

  /** How many logs the seals have listed. */
  get sealedCount(): number {
    return this.#sealedCount
  }

  report(from: number, to: number): AuditResult {
    const result = { unpublished: 0, repeated: 0, unsealed: 0, sealedTwice: 0, corrections: this.#corrections }
    for (let number = from; number <= to; number += 1) {
      const published = this.#published[number - FIRST_NUMBER] ?? 0
      const sealed = this.#sealed[number - FIRST_NUMBER] ?? 0
      if (published === 0) result.unpublished += 1
      if (published > 1) result.repeated += 1
      if (sealed === 0) result.unsealed += 1
      if (sealed > 1) result.sealedTwice += 1
    }
    return result
  }

  #count(counts: Uint8Array, number: number): void {
    const at = number - FIRST_NUMBER
    if (!(at >= 0 && at < CAPACITY)) throw new Error(`no transfer has the number ${number}`)
    counts[at] = (counts[at] ?? 0) + 1
  }
}

const begins = (bytes: Buffer, from: number, mark: Buffer): boolean =>
  bytes.compare(mark, 0, mark.length, from, from + mark.length) === 0
