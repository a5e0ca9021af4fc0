import type { Heard } from '../../../src/chain/source/source.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { word } from '../chain/node-json.ts'
import { heard } from './answers-fixture.ts'

/** The chain as it is at one moment: the hash of each sealed block by its number, and what is being built upon it. */
type State = {
  readonly blocks: readonly Hex[]
  /** How often what is pre-confirmed grew. */
  readonly built: number
  readonly safe: number
}

/** A question, as it is asked of the node. */
export type Asking =
  | readonly ['eth_blockNumber']
  | readonly ['eth_getBlockByNumber', string, false]
  | readonly ['eth_getBalance', Hex, string]
  | readonly ['eth_getLogs', Filter]
type Filter = { readonly fromBlock: string; readonly toBlock: string } | { readonly blockHash: string }

/** What the node says where it does not know a block's hash. */
export const UNKNOWN = Symbol('unknown')

const FIRST_HEAD = 99

/** A chain that seals, builds and reorganises, and every state that it ever was in. */
export class Chain {
  readonly states: State[]
  /** What there is to hear of it, each with the number of the state that it tells of. */
  readonly news: { readonly state: number; readonly heard: Heard }[] = []
  #hashes = FIRST_HEAD + 1
  /** The highest head that was told of, as a source knows it. */
  #told = FIRST_HEAD

  constructor() {
    this.states = [{ blocks: Array.from({ length: FIRST_HEAD + 1 }, (_, n) => word(n)), built: 0, safe: 10 }]
    this.#say(
      heard.hearing,
      heard.head(FIRST_HEAD, word(FIRST_HEAD)),
      ...this.#settled(FIRST_HEAD - 9),
      heard.finality('safe', 10),
    )
  }

  /** The number of the present state. */
  get present(): number {
    return this.states.length - 1
  }

  get #now(): State {
    return this.states.at(-1) ?? { blocks: [], built: 0, safe: 0 }
  }

  get #head(): number {
    return this.#now.blocks.length - 1
  }

  /** The hash of a block in a state so many before the present one. */
  hash(number: number, ago: number): Hex {
    const { blocks } = this.states.at(-1 - ago) ?? this.#now
    return blocks[Math.min(number, blocks.length - 1)] ?? word(0)
  }

  /** More is pre-confirmed; of what concerns no listed token nobody is told. */
  build(quiet: boolean): void {
    this.#move({ built: this.#now.built + 1 })
    if (!quiet) this.#say(heard.log(this.#head + 1))
  }

  seal(): void {
    this.#move({ blocks: [...this.#now.blocks, this.#fresh()], built: 0 })
    this.#say(...this.#headed(), ...this.#settled(this.#head))
  }

  /** Replaces the newest blocks with so many others. */
  reorganise(depth: number, others: number): void {
    const from = this.#head - depth + 1
    const fresh = Array.from({ length: others }, () => this.#fresh())
    this.#move({ blocks: [...this.#now.blocks.slice(0, from), ...fresh], built: 0 })
    this.#told = Math.min(this.#told, this.#head)
    this.#say(heard.doubted(from), ...this.#headed(), ...this.#settled(from))
  }

  /** Whoever listens to the chain loses it, or hears of it again. */
  lose(): void {
    this.news.push({ state: 0, heard: heard.deaf })
  }

  regain(): void {
    this.news.push({ state: 0, heard: heard.hearing })
  }

  finalise(): void {
    this.#move({ safe: Math.min(this.#now.safe + 1, this.#head) })
    this.#say(heard.finality('safe', this.#now.safe))
  }

  /** What the node answers in a state, the present one where none is named. */
  answer(question: Asking, state = this.present): unknown {
    const { blocks, built, safe } = this.states[state] ?? this.#now
    const head = blocks.length - 1
    const tags = { latest: head, safe, finalized: safe - 5, earliest: 0, pending: head + 1 }
    const place = (at: string) => new Map(Object.entries(tags)).get(at) ?? Number(at)
    const held = (at: string): string | null => {
      if (at === 'pending') return `${built} upon ${blocks.at(-1)}`
      if (at.length === 66) return blocks.some((hash) => hash === at) ? at : null
      return blocks[place(at)] ?? null
    }
    switch (question[0]) {
      case 'eth_blockNumber':
        return head
      case 'eth_getBlockByNumber':
        return held(question[1])
      case 'eth_getBalance': {
        const at = question[2]
        const said = held(at)
        // Whoever stands before the nodes makes up an answer for a number above the head.
        return said === null ? (at.length === 66 ? UNKNOWN : '0x0') : isEmpty(said) ? '0x0' : said
      }
      case 'eth_getLogs': {
        const filter = question[1]
        if ('blockHash' in filter) {
          const said = held(filter.blockHash)
          return said === null ? UNKNOWN : isEmpty(said) ? [] : [said]
        }
        const sealed = blocks.slice(place(filter.fromBlock), place(filter.toBlock) + 1)
        const building = filter.toBlock === 'pending' && built > 0 ? [held('pending')] : []
        return [...sealed.filter((hash) => !isEmpty(hash)), ...building]
      }
    }
  }

  #fresh(): Hex {
    this.#hashes += 1
    return word(this.#hashes)
  }

  #move(change: Partial<State>): void {
    this.states.push({ ...this.#now, ...change })
  }

  #say(...news: readonly Heard[]): void {
    for (const one of news) this.news.push({ state: this.present, heard: one })
  }

  /** A head is told where it is higher than what was told of this chain. */
  #headed(): readonly Heard[] {
    if (this.#head <= this.#told) return []
    this.#told = this.#head
    return [heard.head(this.#head, this.#now.blocks.at(-1))]
  }

  #settled(from: number): readonly Heard[] {
    return this.#now.blocks.slice(from).map((hash, at) => heard.sealed(from + at, hash))
  }
}

/** Of three blocks one holds nothing. */
const isEmpty = (hash: string): boolean => hash.startsWith('0x') && Number(BigInt(hash) % 3n) === 0
