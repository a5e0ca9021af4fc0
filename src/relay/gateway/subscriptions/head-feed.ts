import { z } from 'zod'
import { BoundedMap } from '../../../lib/bounded-map.ts'
import { HexWord } from '../../chain/rpc/header.ts'
import type { ChainEvent } from '../../chain/source/source.ts'

/** Missed heads that are still sent; if there are more, the newest. */
const GAP_BOUND_BLOCKS = 128
/** Sent heads that are remembered, to find where a new chain forks off. */
const SENT_BOUND_BLOCKS = 256
/** How often in a row a block is requested that the node does not have yet, per chain event. */
const RETRIES_BOUND = 20
/** Steps per chain event. Nodes that disagree could send it back and forth for ever. */
const STEPS_BOUND = 512

const HeaderFields = z.looseObject({ number: z.string(), hash: HexWord, parentHash: HexWord })

/** Fields of a block that its header lacks. */
const bodyFields: ReadonlySet<string> = new Set(['transactions', 'uncles', 'withdrawals', 'size'])

type Options = {
  /** Whether any client subscribes. Without one, no block is requested. */
  readonly hasListeners: () => boolean
  /** The sealed block of a number, as the node has it; null while it has none. */
  readonly readBlock: (number: number) => Promise<unknown>
  readonly publish: (header: string) => void
  /** Resolves a moment later. */
  readonly delay: () => Promise<unknown>
}

/** Sends the headers of sealed blocks without holes. After a reorganisation it sends the new ones from the fork on. */
export class HeadFeed {
  readonly #options: Options
  readonly #sentHashes = new BoundedMap<number, string>(SENT_BOUND_BLOCKS)
  #lastSent: number | null = null
  #target: number | null = null
  #isRunning = false
  #retries = 0
  /** Whether an event arrived since the last step, or that step needs another. */
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

  /** Without subscribers, the next one begins with the next head. */
  #skipToTarget(): void {
    this.#lastSent = this.#target
    this.#sentHashes.clear()
  }

  /** If a settled block differs from the one sent, everything from it on is sent again. */
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
        if (await this.#sendNext()) this.#hasWork = true
      }
    } catch {
      // The node does not answer now. The next chain event tries again.
    } finally {
      this.#isRunning = false
    }
  }

  /** The node that answers may lag behind the one that announced the head. */
  async #waitToRetry(): Promise<boolean> {
    if (this.#retries >= RETRIES_BOUND) return false
    this.#retries += 1
    await this.#options.delay()
    return this.#options.hasListeners()
  }

  /** Sends the next head, or goes back by one; false where there is nothing to do. */
  async #sendNext(): Promise<boolean> {
    const target = this.#target
    // Subscribers that came before any head begin with the first one.
    this.#lastSent ??= target === null ? null : target - 1
    if (target === null || this.#lastSent === null || this.#lastSent >= target) return false
    const lastSent = this.#lastSent
    const number = Math.max(lastSent + 1, target - GAP_BOUND_BLOCKS + 1)
    const header = HeaderFields.safeParse(await this.#options.readBlock(number))
    // The chain may have gone back during the request.
    if (this.#lastSent !== lastSent) return true
    if (!header.success || Number(header.data.number) !== number) return this.#waitToRetry()
    // Sent already: the answering node has not reorganised yet, or need not.
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
    this.#options.publish(JSON.stringify(Object.fromEntries(Object.entries(header.data).filter(([name]) => !bodyFields.has(name)))))
    return true
  }
}
