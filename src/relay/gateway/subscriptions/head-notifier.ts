import { z } from 'zod'
import { BoundedMap } from '../../../lib/bounded-map.ts'
import { HexWord } from '../../chain/rpc/block-header.ts'
import type { ChainEvent } from '../../chain/source/source.ts'

/** Limit of missed heads to send. If there are more, only the newest ones are sent. */
const GAP_BOUND_BLOCKS = 128
/** Number of sent heads to remember, to find the fork of a new branch. */
const SENT_BOUND_BLOCKS = 256
/** Limit of repeated requests, per chain event, for a block that the node does not have yet. */
const RETRIES_BOUND = 20
/** Limit of steps per chain event. Without it, nodes that disagree could cause an endless loop. */
const STEPS_BOUND = 512

const HeaderFields = z.looseObject({ number: z.string(), hash: HexWord, parentHash: HexWord })

const bodyFields: ReadonlySet<string> = new Set(['transactions', 'uncles', 'withdrawals', 'size'])

type Options = {
  /** Whether heads have a subscriber. Without one, no block is requested. */
  readonly hasListeners: () => boolean
  /** Returns the node's sealed block of this number; null if the node does not have it yet. */
  readonly readBlock: (number: number) => Promise<unknown>
  readonly publish: (header: string) => void
  readonly delay: () => Promise<unknown>
}

/** Sends the headers of sealed blocks without holes. After a reorganisation it sends the new ones after the fork. */
export class HeadNotifier {
  readonly #options: Options
  readonly #sentHashes = new BoundedMap<number, string>(SENT_BOUND_BLOCKS)
  #lastSent: number | null = null
  #target: number | null = null
  #isRunning = false
  #retries = 0
  /** Whether an event arrived since the last step, or the last step needs another one. */
  #hasWork = false

  constructor(options: Options) {
    this.#options = options
  }

  receive(event: ChainEvent): void {
    if (event.type === 'head' && event.sealed !== null) this.#target = event.sealed
    else if (event.type === 'sealed') for (const { number, hash } of event.blocks) this.#receiveSettled(number, hash)
    else return
    if (this.#options.hasListeners()) return void this.#run()
    // There is no subscriber now. The next one begins with the next head.
    this.#lastSent = this.#target
    this.#sentHashes.clear()
  }

  /** If a settled block differs from the sent one, sends it and all later ones again. */
  #receiveSettled(number: number, hash: string): void {
    const sentHash = this.#sentHashes.get(number)
    if (sentHash === undefined || sentHash === hash) return
    this.#target = Math.max(number, this.#target ?? 0)
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
      // The node does not answer now. The next chain event retries.
    } finally {
      this.#isRunning = false
    }
  }

  /** Waits before a request is repeated: the node that answers may lag behind the one that announced the head. */
  async #waitToRetry(): Promise<boolean> {
    if (this.#retries >= RETRIES_BOUND) return false
    this.#retries += 1
    await this.#options.delay()
    return this.#options.hasListeners()
  }

  /** Sends the next head, or steps back by one block to find the fork. Returns false if there is nothing to do. */
  async #sendNext(): Promise<boolean> {
    const target = this.#target
    // Clients that subscribed before any head was known begin with the first head.
    this.#lastSent ??= target === null ? null : target - 1
    if (target === null || this.#lastSent === null || this.#lastSent >= target) return false
    const lastSent = this.#lastSent
    const number = Math.max(lastSent + 1, target - GAP_BOUND_BLOCKS + 1)
    const header = HeaderFields.safeParse(await this.#options.readBlock(number))
    // Settling may have found a reorg during the request.
    if (this.#lastSent !== lastSent) return true
    if (!header.success || Number(header.data.number) !== number) return this.#waitToRetry()
    // This block is already sent: the node that answers is not on the new branch, or not yet.
    if (this.#sentHashes.get(number) === header.data.hash) {
      this.#lastSent = number
      return false
    }
    const sentParentHash = this.#sentHashes.get(number - 1)
    if (sentParentHash !== undefined && header.data.parentHash !== sentParentHash) {
      this.#lastSent = number - 2
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
