import { WORD_CHARS } from '../../../lib/hex.ts'
import { parseShallowJson } from '../../../lib/json.ts'
import { nextTurn } from '../../../lib/turns.ts'

/** Bytes that are parsed, or searched, in one turn of the event loop: each takes one to three milliseconds. */
const PARSED_BYTES_PER_TURN = 128 * 1_024
const SEARCHED_BYTES_PER_TURN = 1_024 * 1_024
const BETWEEN_ITEMS = '},{'
const HASH_NAME = '"blockHash"'
const [LIST_START, LIST_END] = [Buffer.from('['), Buffer.from(']')]
const QUOTE = '"'.charCodeAt(0)

/** A long list of an answer in the node's bytes. Parsed at once, it would delay live listeners. */
export class LongList {
  readonly #text: Buffer
  readonly #parseWhole: () => unknown
  readonly #partBytes: number

  /** `parseWhole` parses the answer where its list cannot be cut. */
  constructor(text: Buffer, parseWhole: () => unknown, partBytes = PARSED_BYTES_PER_TURN) {
    this.#text = text
    this.#parseWhole = parseWhole
    this.#partBytes = partBytes
  }

  /** The items in order, some in each turn of the event loop. What is no list is yielded as it is. */
  async *parts(): AsyncGenerator<unknown> {
    const end = this.#text.length - 1
    let parsed = 0
    for (let from = 1; from < end; await nextTurn()) {
      const between = this.#text.indexOf(BETWEEN_ITEMS, from + this.#partBytes)
      const to = between < 0 ? end : between + 1
      const part = parseShallowJson(Buffer.concat([LIST_START, this.#text.subarray(from, to), LIST_END]))
      // If all parts up to here are lists, each of them ends where an item ends. If not, the cut is inside an item.
      if (!Array.isArray(part)) return yield this.#itemsFrom(parsed)
      yield part
      parsed += part.length
      from = to + 1
    }
  }

  /** How many items name each block hash. */
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
