import type { Devnet } from '../../src/devnet/devnet.ts'
import { FIRST_NUMBER, nowMicros, timeAsAddress } from '../bench/message-stamp.ts'
import type { TestLifecycle } from '../e2e/slow/deployed-relay.ts'

/** What happens on the chain, and how fast. */
export type TrafficSettings = {
  readonly flashblockMs: number
  readonly transfersPerFlash: number
  /** Logs without a known event, for clients that select all types; each with this many bytes of data. */
  readonly logsPerFlash: number
  readonly logBytes: number
  readonly flashesPerBlock: number
  /** A reorganisation follows one of this many blocks. */
  readonly reorgEveryBlocks: number
}

const TOPIC = `0x${'77'.repeat(32)}` as const

/** Keeps the chain busy. Each transfer contains its creation time; each flashblock ends with logs of unknown events. */
export class DevnetTraffic {
  readonly #devnet: Devnet
  readonly #settings: TrafficSettings
  readonly #symbols: readonly string[]
  #flashes = 0
  #blocks = 0
  #transfers = 0
  #timer: NodeJS.Timeout | null = null

  constructor(test: TestLifecycle, devnet: Devnet, settings: TrafficSettings) {
    this.#devnet = devnet
    this.#settings = settings
    this.#symbols = devnet.tokens.map(({ symbol }) => symbol)
    test.onTestFinished(() => this.stop())
  }

  /** Flashblocks produced so far. */
  get flashes(): number {
    return this.#flashes
  }

  start(): void {
    const begun = performance.now()
    const before = this.#flashes
    const next = () => {
      this.produceFlashblock()
      const dueMs = begun + (this.#flashes - before) * this.#settings.flashblockMs
      this.#timer = setTimeout(next, Math.max(0, dueMs - performance.now()))
    }
    next()
  }

  stop(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = null
  }

  produceFlashblock(): void {
    const { transfersPerFlash, logsPerFlash, logBytes, flashesPerBlock } = this.#settings
    const to = timeAsAddress(nowMicros())
    for (let at = 0; at < transfersPerFlash; at += 1) {
      this.#transfers += 1
      this.#devnet.transfer({ symbol: this.#symbol(this.#transfers), to, raw: BigInt(FIRST_NUMBER + this.#transfers) })
    }
    for (let at = 0; at < logsPerFlash; at += 1) {
      const address = this.#devnet.list.addressOf(this.#symbol(this.#flashes + at))
      this.#devnet.emit({ address, topics: [TOPIC], data: `0x${'5a'.repeat(logBytes)}` })
    }
    this.#devnet.makeFlashblock()
    this.#flashes += 1
    if (this.#flashes % flashesPerBlock === 0) this.#seal()
  }

  #seal(): void {
    this.#devnet.seal()
    this.#blocks += 1
    if (this.#blocks % this.#settings.reorgEveryBlocks !== 0) return
    const depth = 1 + ((this.#blocks / this.#settings.reorgEveryBlocks) % 2)
    const hashes = new Set(this.#devnet.chain.head.logs.map(({ transactionHash }) => transactionHash))
    const [lost, later] = [[...hashes].slice(0, 3), [...hashes].slice(3, 5)]
    this.#devnet.reorg(depth, lost, later)
  }

  #symbol(at: number): string {
    return this.#symbols[at % this.#symbols.length] ?? ''
  }
}
