import { z } from 'zod'
import { HexWord } from '../chain/logs/log-schema.ts'
import type { Heard } from '../chain/source/source.ts'

/** Heads that were missed and are told all the same; of more, the newest. */
const GAP_BOUND_BLOCKS = 128
/** Heads that are remembered, to see where a chain parts from the one that was told. */
const SENT_BOUND = 256
/** So often in a row a block is asked for that the node does not have yet, after each thing that is heard. */
const RETRIES_BOUND = 20
/** Steps of one walk: one that goes to and fro, since nodes disagree, is left for the next head. */
const STEPS_BOUND = 512

const Place = z.looseObject({ number: z.string(), hash: HexWord, parentHash: HexWord })

/** What a block has and its header has not. */
const contents: ReadonlySet<string> = new Set(['transactions', 'uncles', 'withdrawals', 'size'])

type Options = {
  /** Whether anybody listens: for nobody, nothing is asked. */
  readonly listens: () => boolean
  /** The sealed block of a number, as the node has it; null while it has none. */
  readonly block: (number: number) => Promise<unknown>
  readonly tell: (header: string) => void
  /** Resolves a moment later. */
  readonly rest: () => Promise<unknown>
}

/** The headers of sealed blocks, without holes; where the chain goes back, so do they. */
export class Heads {
  readonly #options: Options
  readonly #sent = new Map<number, string>()
  #last: number | null = null
  #goal: number | null = null
  #walking = false
  #retries = 0
  /** Whether something was heard since the last step, or that step led on. */
  #news = false

  constructor(options: Options) {
    this.#options = options
  }

  hear(heard: Heard): void {
    if (heard.type === 'head' && heard.sealed !== null) this.#goal = heard.sealed
    else if (heard.type === 'sealed') for (const { number, hash } of heard.blocks) this.#settled(number, hash)
    else return
    if (this.#options.listens()) void this.#walk()
    else this.#rest()
  }

  /** Nobody listens: whoever comes next hears from then on. */
  #rest(): void {
    this.#last = this.#goal
    this.#sent.clear()
  }

  /** A block was settled; if it is not the one that was told, all from there on is told anew. */
  #settled(number: number, hash: string): void {
    const told = this.#sent.get(number)
    if (told === undefined || told === hash) return
    this.#goal = Math.max(number, this.#goal ?? 0)
    this.#goBack(number)
  }

  #goBack(number: number): void {
    this.#last = number - 1
  }

  async #walk(): Promise<void> {
    this.#news = true
    this.#retries = 0
    if (this.#walking) return
    this.#walking = true
    try {
      for (let step = 0; step < STEPS_BOUND && this.#news; step += 1) {
        this.#news = false
        // What is heard while it walks is one more reason to go on.
        if (await this.#step()) this.#news = true
      }
    } catch {
      // The node does not answer now: the next thing that is heard of the chain begins again.
    } finally {
      this.#walking = false
    }
  }

  /** Whoever answers may be a moment behind whoever told of the head. */
  async #waits(): Promise<boolean> {
    if (this.#retries >= RETRIES_BOUND) return false
    this.#retries += 1
    await this.#options.rest()
    return this.#options.listens()
  }

  /** Tells the next head, or goes back by one; false where there is nothing to do. */
  async #step(): Promise<boolean> {
    const goal = this.#goal
    // Whoever was there before any head begins with the first.
    this.#last ??= goal === null ? null : goal - 1
    if (goal === null || this.#last === null || this.#last >= goal) return false
    const last = this.#last
    const number = Math.max(last + 1, goal - GAP_BOUND_BLOCKS + 1)
    const read = Place.safeParse(await this.#options.block(number))
    // The chain may have gone back while the node thought.
    if (this.#last !== last) return true
    if (!read.success || Number(read.data.number) !== number) return this.#waits()
    // Told already: whoever answers has not gone back yet, or need not.
    if (this.#sent.get(number) === read.data.hash) {
      this.#last = number
      return false
    }
    const before = this.#sent.get(number - 1)
    if (before !== undefined && read.data.parentHash !== before) {
      this.#goBack(number - 1)
      return true
    }
    this.#retries = 0
    this.#last = number
    for (const later of this.#sent.keys()) if (later > number) this.#sent.delete(later)
    this.#sent.set(number, read.data.hash)
    const [oldest] = this.#sent.keys()
    if (this.#sent.size > SENT_BOUND && oldest !== undefined) this.#sent.delete(oldest)
    this.#options.tell(
      JSON.stringify(Object.fromEntries(Object.entries(read.data).filter(([name]) => !contents.has(name)))),
    )
    return true
  }
}
