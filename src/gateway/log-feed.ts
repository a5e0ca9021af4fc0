import type { Log } from '../chain/logs/log-schema.ts'
import type { Owed, SealedBlock } from '../chain/sealed/block-logs.ts'
import { LATELY_BLOCKS } from '../chain/sealed/recent-blocks.ts'
import type { Heard } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'
import { saysSame, textOfLog } from './log-json.ts'
import { Notice, type Subscribers, type Subscription } from './subscriber-index.ts'

/** What the logs that are remembered may hold; beyond it what is pre-confirmed is told when it is sealed. */
const LOGS_BOUND_BYTES = 32 * 2 ** 20
/** No block is pre-confirmed so far above the newest settled one. */
const AHEAD_BOUND_BLOCKS = 100_000
/** Doubts that are remembered by where they begin. */
const DOUBTS_BOUND = 64
/** What a log takes beside its data. */
const LOG_BYTES = 1_024

/** A log that was told, as which one of all that were told, and with which hash: null while it was pre-confirmed. */
type Told = { readonly log: Log; readonly n: number; readonly hash: Hex | null }

/** What was told of a block: to those who hear what is pre-confirmed, and to those who hear what is sealed. */
type Block = {
  readonly pending: Map<string, Told>
  readonly sealed: Map<string, Told>
  /** The hash that it was sealed under last, and how often the chain had been doubted by then. */
  hash: Hex | null
  doubts: number
}

type Options = {
  readonly subscribers: Subscribers
  /** Whose logs are told. */
  readonly lists: (address: Hex) => boolean
}

/**
 * The logs as a node sends them, and as none does: each once, in the order in which they were heard, and once more with
 * `removed: true` when it turns out that one is not so.
 */
export class Wire implements Owed {
  readonly sealedBefore = []
  readonly #options: Options
  readonly #blocks = new Map<number, Block>()
  #bytes = 0
  /** How many were told. */
  #told = 0
  /** From where on somebody said that what was sealed may be no more; the newest doubts, and how many there were. */
  readonly #reaches: number[] = []
  #doubts = 0
  /** Whether what is told now is caught up. */
  #isLate = false
  /** Up to here nothing can be pre-confirmed any more. */
  #newest: number | null = null
  /** The first head that was heard of: what was sealed before it is nobody's news. */
  #first: number | null = null
  #head: number | null = null

  constructor(options: Options) {
    this.#options = options
  }

  /** From where on somebody hears who begins to listen now. */
  get now(): Pick<Subscription, 'since' | 'head' | 'before'> {
    return { since: this.#told, head: this.#head, before: null }
  }

  at(number: number) {
    return [...(this.#blocks.get(number)?.pending.values() ?? [])].map(({ log }) => ({
      key: log.key,
      address: log.address,
      tx: log.transactionHash,
    }))
  }

  toldBetween(from: number, to: number): readonly number[] {
    const told = [...this.#blocks].filter(([number, { pending }]) => number >= from && number <= to && pending.size > 0)
    return told.map(([number]) => number).sort((a, b) => a - b)
  }

  hear(heard: Heard): void {
    switch (heard.type) {
      case 'log':
        return this.#preconfirmed(heard.log)
      case 'head':
        if (heard.sealed === null) return
        this.#first ??= heard.sealed
        this.#head = Math.max(heard.sealed, this.#head ?? 0)
        return
      case 'cursor':
        this.#newest = heard.cursor.number
        return
      case 'doubted':
        this.#doubts += 1
        this.#reaches.push(heard.from)
        if (this.#reaches.length > DOUBTS_BOUND) this.#reaches.shift()
        if (this.#head !== null) this.#head = Math.min(this.#head, heard.from - 1)
        return this.#options.subscribers.wentBack(heard.from, this.#told)
      case 'sealed':
        this.#newest = heard.newest
        for (const block of heard.blocks) this.#settle(block)
        return this.#forget()
      default:
    }
  }

  #preconfirmed(log: Log): void {
    const { key, address, blockNumber } = log
    const ahead = blockNumber - (this.#newest ?? blockNumber - 1)
    if (ahead <= 0 || ahead > AHEAD_BOUND_BLOCKS) return
    if (!this.#options.lists(address) || this.#blocks.get(blockNumber)?.pending.has(key)) return
    if (this.#bytes >= LOGS_BOUND_BYTES) return
    this.#tell('pending', blockNumber, { log, n: this.#told, hash: null })
  }

  #settle(block: SealedBlock): void {
    const { number, hash } = block
    this.#isLate = block.via === 'backfill'
    const asked = new Set(block.asked)
    const ours = block.logs.filter(({ address }) => this.#options.lists(address))
    const fresh = new Map(block.logs.map((log) => [log.key, log]))
    const known = this.#blocks.get(number)
    if (known?.hash && known.hash !== hash) this.#takeBack(number)
    for (const told of [...(known?.pending.values() ?? [])].filter(({ log }) => asked.has(log.address))) {
      const now = fresh.get(told.log.key)
      if (!now || !saysSame(now, told.log)) this.#remove('pending', number, told)
    }
    for (const log of ours) {
      for (const kind of ['pending', 'sealed'] as const) {
        if (!this.#blocks.get(number)?.[kind].has(log.key)) this.#tell(kind, number, { log, n: this.#told, hash })
      }
    }
    const settled = this.#blocks.get(number)
    if (settled) Object.assign(settled, { hash, doubts: this.#doubts })
    this.#isLate = false
  }

  /**
   * The blocks from this one on are no more; what was told of them as sealed was not so. Those that were settled since the
   * chain was doubted stand: the newest are settled first, and what lies deeper beside them.
   */
  #takeBack(from: number): void {
    const later = [...this.#blocks]
      .filter(([number, { doubts }]) => number === from || (number > from && this.#isDoubted(number, doubts)))
      .sort(([a], [b]) => a - b)
    for (const [number, { sealed }] of later) for (const told of sealed.values()) this.#remove('sealed', number, told)
  }

  /** Whether a block was doubted since there were so many doubts. Of those that are forgotten, all reached it. */
  #isDoubted(number: number, since: number): boolean {
    const forgotten = this.#doubts - this.#reaches.length
    return since < forgotten || this.#reaches.slice(since - forgotten).some((from) => from <= number)
  }

  #tell(kind: 'pending' | 'sealed', number: number, told: Told): void {
    const block = this.#blocks.get(number) ?? { pending: new Map(), sealed: new Map(), hash: null, doubts: 0 }
    this.#blocks.set(number, block)
    block[kind].set(told.log.key, told)
    this.#told += 1
    this.#bytes += bytesOf(told)
    this.#say(kind, number, told, false)
  }

  #remove(kind: 'pending' | 'sealed', number: number, told: Told): void {
    this.#blocks.get(number)?.[kind].delete(told.log.key)
    this.#bytes -= bytesOf(told)
    this.#say(kind, number, told, true)
  }

  /** Says it to those who were there when it was told, and whose news it was. */
  #say(kind: 'pending' | 'sealed', number: number, { log, n, hash }: Told, removed: boolean): void {
    const notice = new Notice(textOfLog(log, { blockHash: hash, removed }), this.#isLate)
    this.#options.subscribers.tellLog(
      kind === 'pending' ? 'pendingLogs' : 'logs',
      log,
      notice,
      (one) => one.since <= n && (hash === null || number > (headOf(one, n) ?? this.#first ?? -1)),
    )
  }

  /** Forgets what no reorganisation reaches, and what there is no room for; what is not settled yet is never forgotten. */
  #forget(): void {
    const newest = this.#newest ?? 0
    for (const [number, block] of this.#blocks) {
      const crowded = this.#bytes > LOGS_BOUND_BYTES / 2
      if (number > newest || (number >= newest - LATELY_BLOCKS && !crowded)) continue
      for (const told of [...block.pending.values(), ...block.sealed.values()]) this.#bytes -= bytesOf(told)
      this.#blocks.delete(number)
    }
  }
}

/** The head of a subscription as it was when something was told. */
const headOf = ({ head, before }: Subscription, n: number): number | null =>
  before !== null && n < before.told ? before.head : head

const bytesOf = ({ log }: Told): number => LOG_BYTES + log.data.length
