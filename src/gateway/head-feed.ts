import { z } from 'zod'
import { BoundedMap } from '../bounded-map.ts'
import { HexWord } from '../chain/logs/log-schema.ts'
import type { ChainEvent } from '../chain/source/source.ts'

/** Heads that were missed and are told all the same; of more, the newest. */
const GAP_BOUND_BLOCKS = 128
/** Heads that are remembered, to see where a chain parts from the one that was told. */
const SENT_BOUND_BLOCKS = 256
/** So often in a row a block is asked for that the node does not have yet, after each thing that is heard. */
const RETRIES_BOUND = 20
/** Steps of one walk: one that goes to and fro, since nodes disagree, is left for the next head. */
const STEPS_BOUND = 512

const HeaderFields = z.looseObject({ number: z.string(), hash: HexWord, parentHash: HexWord })

/** What a block has and its header has not. */
const bodyFields: ReadonlySet<string> = new Set(['transactions', 'uncles', 'withdrawals', 'size'])

type Options = {
  /** Whether anybody listens: for nobody, nothing is asked. */
  readonly hasListeners: () => boolean
  /** The sealed block of a number, as the node has it; null while it has none. */
  readonly readBlock: (number: number) => Promise<unknown>
  readonly publish: (header: string) => void
  /** Resolves a moment later. */
  readonly delay: () => Promise<unknown>
}

/** The headers of sealed blocks, without holes; where the chain goes back, so do they. */
export class HeadFeed {
  readonly #options: Options
  readonly #sentHashes = new BoundedMap<number, string>(SENT_BOUND_BLOCKS)
  #lastSent: number | null = null
  #target: number | null = null
  #isRunning = false
  #retries = 0
  /** Whether something was heard since the last step, or that step led on. */
  #hasWork = false

  constructor(options: Options) {
    this.#options = options
  }

  receive(event: ChainEvent): void {
    if (event.type === 'head' && event.sealed !== null) this.#target = event.sealed
    else if (event.type === 'sealed') for (const { number, hash } of event.blocks) this.#receiveSettled(number, hash)
    else return
    if (this.#options.hasListeners()) void this.#run()
    else this.#skipToTarget()
  }

  /** Nobody listens: whoever comes next hears from then on. */
  #skipToTarget(): void {
    this.#lastSent = this.#target
    this.#sentHashes.clear()
  }

  /** A block was settled; if it is not the one that was told, all from there on is told anew. */
  #receiveSettled(number: number, hash: string): void {
    const sentHash = this.#sentHashes.get(number)
    if (sentHash === undefined || sentHash === hash) return
    this.#target = Math.max(number, this.#target ?? 0)
    this.#rollBackTo(number)
  }

  #rollBackTo(number: number): void {
    this.#lastSent = number - 1
  }

  async #run(): Promise<void> {
    this.#hasWork = true
    this.#retries = 0
    if (this.#isRunning) return
    this.#isRunning = true
    try {
      for (let step = 0; step < STEPS_BOUND && this.#hasWork; step += 1) {
        this.#hasWork = false
        // What is heard while it walks is one more reason to go on.
        if (await this.#sendNext()) this.#hasWork = true
      }
    } catch {
      // The node does not answer now: the next thing that is heard of the chain begins again.
    } finally {
      this.#isRunning = false
    }
  }

  /** Whoever answers may be a moment behind whoever told of the head. */
  async #waitToRetry(): Promise<boolean> {
    if (this.#retries >= RETRIES_BOUND) return false
    this.#retries += 1
    await this.#options.delay()
    return this.#options.hasListeners()
  }

  /** Tells the next head, or goes back by one; false where there is nothing to do. */
  async #sendNext(): Promise<boolean> {
    const target = this.#target
    // Whoever was there before any head begins with the first.
    this.#lastSent ??= target === null ? null : target - 1
    if (target === null || this.#lastSent === null || this.#lastSent >= target) return false
    const lastSent = this.#lastSent
    const number = Math.max(lastSent + 1, target - GAP_BOUND_BLOCKS + 1)
    const header = HeaderFields.safeParse(await this.#options.readBlock(number))
    // The chain may have gone back while the node thought.
    if (this.#lastSent !== lastSent) return true
    if (!header.success || Number(header.data.number) !== number) return this.#waitToRetry()
    // Told already: whoever answers has not gone back yet, or need not.
    if (this.#sentHashes.get(number) === header.data.hash) {
      this.#lastSent = number
      return false
    }
    const sentParentHash = this.#sentHashes.get(number - 1)
    if (sentParentHash !== undefined && header.data.parentHash !== sentParentHash) {
      this.#rollBackTo(number - 1)
      return true
    }
    this.#retries = 0
    this.#lastSent = number
    for (const later of this.#sentHashes.keys()) if (later > number) this.#sentHashes.delete(later)
    this.#sentHashes.set(number, header.data.hash)
    this.#options.publish(
      JSON.stringify(Object.fromEntries(Object.entries(header.data).filter(([name]) => !bodyFields.has(name)))),
    )
    return true
  }
}
