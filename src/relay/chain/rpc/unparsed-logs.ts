import { WORD_CHARS } from '../../../lib/hex.ts'
import { parseShallowJson } from '../../../lib/safe-json.ts'
import { nextTurn } from '../../../lib/turns.ts'

/** Bytes to parse in one turn of the event loop, which takes one to three milliseconds. */
const PARSED_BYTES_PER_TURN = 128 * 1_024
/** Bytes to search in one turn of the event loop, which takes one to three milliseconds. */
const SEARCHED_BYTES_PER_TURN = 1_024 * 1_024
const BETWEEN_ITEMS = '},{'
const HASH_NAME = '"blockHash"'
const [LIST_START, LIST_END] = [Buffer.from('['), Buffer.from(']')]
const QUOTE = '"'.charCodeAt(0)

/** A long list in the node's bytes. Parsing it at once would delay live listeners. */
export class UnparsedLogs {
  readonly #text: Buffer
  readonly #parseWhole: () => unknown
  readonly #partBytes: number

  /** `parseWhole` parses the whole answer, in case the list cannot be cut into parts. */
  constructor(text: Buffer, parseWhole: () => unknown, partBytes = PARSED_BYTES_PER_TURN) {
    this.#text = text
    this.#parseWhole = parseWhole
    this.#partBytes = partBytes
  }

  /** Yields the list in parts, one in each turn of the event loop. An answer that is not a list is yielded as a whole. */
  async *parts(): AsyncGenerator<unknown> {
    const end = this.#text.length - 1
    let parsed = 0
    for (let from = 1; from < end; await nextTurn()) {
      const between = this.#text.indexOf(BETWEEN_ITEMS, from + this.#partBytes)
      const to = between < 0 ? end : between + 1
      const part = parseShallowJson(Buffer.concat([LIST_START, this.#text.subarray(from, to), LIST_END]))
      // The cut is inside of an item, so this part is not a list. All parts before it are complete.
      if (!Array.isArray(part)) return yield this.#itemsFrom(parsed)
      yield part
      parsed += part.length
      from = to + 1
    }
  }

  async countByBlockHash(): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>()
    let turnEnd = SEARCHED_BYTES_PER_TURN
    for (let at = this.#text.indexOf(HASH_NAME); at >= 0; at = this.#text.indexOf(HASH_NAME, at + HASH_NAME.length)) {
      const from = this.#text.indexOf(QUOTE, at + HASH_NAME.length) + 1
      const hash = this.#text.toString('latin1', from, from + WORD_CHARS).toLowerCase()
      counts.set(hash, (counts.get(hash) ?? 0) + 1)
      if (at < turnEnd) continue
      turnEnd = at + SEARCHED_BYTES_PER_TURN
      await nextTurn()
    }
    return counts
  }

  #itemsFrom(index: number): unknown {
    const whole = this.#parseWhole()
    return Array.isArray(whole) ? whole.slice(index) : whole
  }
}
