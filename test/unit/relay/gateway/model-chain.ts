import type { Hex } from '../../../../src/lib/hex.ts'
import type { ChainEvent } from '../../../../src/relay/chain/source/source.ts'
import { word } from '../chain/node-json.ts'
import { chainEvents } from './shared-answers-fixture.ts'

/** One state of the chain: the hash of each sealed block by its number, and the block being built. */
type ModelState = {
  readonly blocks: readonly Hex[]
  /** How often the pre-confirmed part grew. */
  readonly buildCount: number
  readonly safe: number
}

/** A call to the node. */
export type ModelRequest =
  | readonly ['eth_blockNumber']
  | readonly ['eth_getBlockByNumber', string, false]
  | readonly ['eth_getBalance', Hex, string]
  | readonly ['eth_getLogs', Filter]
type Filter = { readonly fromBlock: string; readonly toBlock: string } | { readonly blockHash: string }

/** The node's answer to an unknown block hash. */
export const UNKNOWN = Symbol('unknown')

const FIRST_HEAD = 99

/** A chain that seals, builds and reorganises, with every state that it ever had. */
export class ModelChain {
  readonly states: ModelState[]
  /** Its events, each with the index of the state that it announces. */
  readonly events: { readonly state: number; readonly event: ChainEvent }[] = []
  #hashCount = FIRST_HEAD + 1
  /** The highest announced head, as a source tracks it. */
  #announcedHead = FIRST_HEAD

  constructor() {
    this.states = [{ blocks: Array.from({ length: FIRST_HEAD + 1 }, (_, n) => word(n)), buildCount: 0, safe: 10 }]
    this.#emit(
      chainEvents.connected,
      chainEvents.head(FIRST_HEAD, word(FIRST_HEAD)),
      ...this.#sealedEvents(FIRST_HEAD - 9),
      chainEvents.finality('safe', 10),
    )
  }

  /** The index of the current state. */
  get currentState(): number {
    return this.states.length - 1
  }

  get #current(): ModelState {
    return this.states.at(-1) ?? { blocks: [], buildCount: 0, safe: 0 }
  }

  get #head(): number {
    return this.#current.blocks.length - 1
  }

  /** The hash of a block, this many states ago. */
  hash(number: number, statesAgo: number): Hex {
    const { blocks } = this.states.at(-1 - statesAgo) ?? this.#current
    return blocks[Math.min(number, blocks.length - 1)] ?? word(0)
  }

  /** The pre-confirmed part grows. No event announces what concerns no listed token. */
  build(isQuiet: boolean): void {
    this.#pushState({ buildCount: this.#current.buildCount + 1 })
    if (!isQuiet) this.#emit(chainEvents.log(this.#head + 1))
  }

  seal(): void {
    this.#pushState({ blocks: [...this.#current.blocks, this.#newHash()], buildCount: 0 })
    this.#emit(...this.#headEvents(), ...this.#sealedEvents(this.#head))
  }

  /** Replaces the newest blocks with this many others. */
  reorganise(depth: number, replacementCount: number): void {
    const from = this.#head - depth + 1
    const replacements = Array.from({ length: replacementCount }, () => this.#newHash())
    this.#pushState({ blocks: [...this.#current.blocks.slice(0, from), ...replacements], buildCount: 0 })
    this.#announcedHead = Math.min(this.#announcedHead, this.#head)
    this.#emit(chainEvents.reorg(from), ...this.#headEvents(), ...this.#sealedEvents(from))
  }

  /** The source loses the chain, or is connected again. */
  lose(): void {
    this.events.push({ state: 0, event: chainEvents.disconnected })
  }

  regain(): void {
    this.events.push({ state: 0, event: chainEvents.connected })
  }

  finalise(): void {
    this.#pushState({ safe: Math.min(this.#current.safe + 1, this.#head) })
    this.#emit(chainEvents.finality('safe', this.#current.safe))
  }

  /** What the node answers in a state, by default the current one. */
  answer(request: ModelRequest, state = this.currentState): unknown {
    const { blocks, buildCount, safe } = this.states[state] ?? this.#current
    const head = blocks.length - 1
    const tags = { latest: head, safe, finalized: safe - 5, earliest: 0, pending: head + 1 }
    const blockNumberOf = (at: string) => new Map(Object.entries(tags)).get(at) ?? Number(at)
    const contentOf = (at: string): string | null => {
      if (at === 'pending') return `${buildCount} upon ${blocks.at(-1)}`
      if (at.length === 66) return blocks.some((hash) => hash === at) ? at : null
      return blocks[blockNumberOf(at)] ?? null
    }
    switch (request[0]) {
      case 'eth_blockNumber':
        return head
      case 'eth_getBlockByNumber':
        return contentOf(request[1])
      case 'eth_getBalance': {
        const at = request[2]
        const content = contentOf(at)
        // The load balancer before the nodes makes up an answer for a number above the head.
        return content === null ? (at.length === 66 ? UNKNOWN : '0x0') : isEmpty(content) ? '0x0' : content
      }
      case 'eth_getLogs': {
        const filter = request[1]
        if ('blockHash' in filter) {
          const content = contentOf(filter.blockHash)
          return content === null ? UNKNOWN : isEmpty(content) ? [] : [content]
        }
        const sealed = blocks.slice(blockNumberOf(filter.fromBlock), blockNumberOf(filter.toBlock) + 1)
        const building = filter.toBlock === 'pending' && buildCount > 0 ? [contentOf('pending')] : []
        return [...sealed.filter((hash) => !isEmpty(hash)), ...building]
      }
    }
  }

  #newHash(): Hex {
    this.#hashCount += 1
    return word(this.#hashCount)
  }

  #pushState(change: Partial<ModelState>): void {
    this.states.push({ ...this.#current, ...change })
  }

  #emit(...events: readonly ChainEvent[]): void {
    for (const one of events) this.events.push({ state: this.currentState, event: one })
  }

  /** A head is announced if it is higher than the one announced before. */
  #headEvents(): readonly ChainEvent[] {
    if (this.#head <= this.#announcedHead) return []
    this.#announcedHead = this.#head
    return [chainEvents.head(this.#head, this.#current.blocks.at(-1))]
  }

  #sealedEvents(from: number): readonly ChainEvent[] {
    return this.#current.blocks.slice(from).map((hash, at) => chainEvents.sealed(from + at, hash))
  }
}

/** One block of three is empty. */
const isEmpty = (hash: string): boolean => hash.startsWith('0x') && Number(BigInt(hash) % 3n) === 0
