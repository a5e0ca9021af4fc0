import { FIRST_NUMBER, nowMicros, timeAsAddress } from './message-stamp.ts'

/**
 * A chain of transfers whose logs are written from their numbers and never stored: a log costs a few microseconds, so that
 * one core pushes more of them than a relay can take.
 */

const FIRST_BLOCK = 0x1000000
/** How far the safe and the finalized block are behind, as on Base. Blocks before the first one are empty. */
const SAFE_DEPTH_BLOCKS = 60
const FINALIZED_DEPTH_BLOCKS = 450

const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const BLOOM = `0x${'0'.repeat(512)}`

/** Transfers that were made together: their numbers follow each other. */
type Burst = { readonly from: number; readonly count: number; readonly micros: number; readonly firstIndex: number }
type LightBlock = { readonly number: number; readonly bursts: Burst[]; logs: number; timestamp: number }
type LogFilter = {
  readonly address?: string | readonly string[]
  readonly blockHash?: string
  readonly fromBlock?: string
  readonly toBlock?: string
}

const hex = (value: number): string => `0x${value.toString(16)}`
const word = (text: string): string => `0x${text.padStart(64, '0')}`
const hashOf = (block: number): string => `0xb10c${String(block).padStart(60, '0')}`
const numberOfHash = (hash: string): number => Number(hash.slice(6))
const addressOf = (token: number): string => `0xb2${String(token).padStart(38, '0')}`
const seconds = (): number => Math.floor(Date.now() / 1_000)
const SENDER = word('ab'.repeat(20))
/** A pending log has a hash of zeros, as some nodes send it. */
const PENDING_HASH = word('')

export class LightChain {
  readonly symbols: readonly string[]
  readonly #addresses: readonly string[]
  readonly #blocks: LightBlock[] = [emptyBlock(FIRST_BLOCK)]
  readonly #startedAt = seconds()
  /** The NAV of the first token. */
  firstNav = 100

  constructor(tokens: number) {
    this.#addresses = Array.from({ length: tokens }, (_, token) => addressOf(token))
    this.symbols = this.#addresses.map((_, token) => `X${token + 10}c`)
  }

  /** The answer of the Read API. */
  get list(): string {
    const navTime = new Date(this.#startedAt * 1_000).toISOString()
    return JSON.stringify({
      tokens: this.symbols.map((symbol, token) => ({
        contract_address: addressOf(token),
        ...{ symbol, name: `Example ${symbol}`, decimals: 8, total_supply: 10_000, multiplier: 1 },
        ...{ nav_price: token === 0 ? this.firstNav : 100, nav_price_updated_at: navTime },
      })),
    })
  }

  /** Adds transfers to the pending block. Returns their logs. */
  push(from: number, count: number): readonly string[] {
    const block = this.#pending
    const burst = { from, count, micros: nowMicros(), firstIndex: block.logs }
    block.bursts.push(burst)
    block.logs += count
    return this.#logsOf(block.number, PENDING_HASH, burst, () => true)
  }

  /** Seals the pending block. Returns its header. */
  seal(): object | null {
    const sealed = this.#pending
    sealed.timestamp = seconds()
    this.#blocks.push(emptyBlock(sealed.number + 1))
    return this.#header(sealed.number)
  }

  /** The result of a request as JSON; undefined where this node lacks the method. */
  answer(method: string, params: readonly unknown[]): string | undefined {
    if (method === 'eth_chainId') return '"0x2105"'
    if (method === 'eth_getBalance') return '"0x8ac7230489e80000"'
    if (method === 'eth_getBlockByNumber') return JSON.stringify(this.#header(this.#numberOf(params[0])))
    if (method === 'eth_getBlockByHash') return JSON.stringify(this.#header(numberOfHash(String(params[0]))))
    return method === 'eth_getLogs' ? `[${this.#logs(params[0] as LogFilter)}]` : undefined
  }

  get #pending(): LightBlock {
    return this.#blocks.at(-1) ?? emptyBlock(FIRST_BLOCK)
  }

  #numberOf(tag: unknown): number {
    const pending = this.#pending.number
    const depths: Readonly<Record<string, number>> = {
      ...{ pending: 0, latest: 1, safe: 1 + SAFE_DEPTH_BLOCKS, finalized: 1 + FINALIZED_DEPTH_BLOCKS },
    }
    const depth = depths[String(tag)]
    return depth === undefined ? Number(tag) : pending - depth
  }

  #header(number: number): object | null {
    const pending = this.#pending.number
    if (!(number <= pending)) return null
    const block = this.#blocks[number - FIRST_BLOCK]
    return {
      ...{ number: hex(number), hash: number === pending ? null : hashOf(number), parentHash: hashOf(number - 1) },
      timestamp: hex(block?.timestamp ?? this.#startedAt + number - FIRST_BLOCK),
      ...{ gasUsed: hex(block?.logs ?? 0), gasLimit: '0x11e1a300', logsBloom: BLOOM, transactions: [] },
    }
  }

  #logs({ address, blockHash, fromBlock, toBlock }: LogFilter): readonly string[] {
    const from = blockHash === undefined ? this.#numberOf(fromBlock) : numberOfHash(blockHash)
    const to = blockHash === undefined ? this.#numberOf(toBlock) : from
    const wanted = new Set([address ?? this.#addresses].flat().map((one) => one.toLowerCase()))
    const blocks = this.#blocks.slice(Math.max(0, from - FIRST_BLOCK), Math.max(0, to - FIRST_BLOCK + 1))
    return blocks.flatMap(({ number, bursts }) => {
      const hash = number === this.#pending.number ? PENDING_HASH : hashOf(number)
      return bursts.flatMap((burst) => this.#logsOf(number, hash, burst, (one) => wanted.has(one)))
    })
  }

  /** The logs of the wanted contracts among those of a burst. */
  #logsOf(block: number, hash: string, burst: Burst, isWanted: (address: string) => boolean): readonly string[] {
    const to = word(timeAsAddress(burst.micros).slice(2))
    const logs: string[] = []
    for (let at = 0; at < burst.count; at += 1) {
      const number = burst.from + at
      const address = this.#addresses[(number - FIRST_NUMBER) % this.#addresses.length] ?? ''
      if (!isWanted(address)) continue
      const index = hex(burst.firstIndex + at)
      logs.push(
        `{"address":"${address}","topics":["${TRANSFER_TOPIC}","${SENDER}","${to}"],"data":"${word(number.toString(16))}",` +
          `"blockHash":"${hash}","blockNumber":"${hex(block)}","transactionHash":"${word(String(number))}",` +
          `"transactionIndex":"${index}","logIndex":"${index}","removed":false}`,
      )
    }
    return logs
  }
}

function emptyBlock(number: number): LightBlock {
  return { number, bursts: [], logs: 0, timestamp: seconds() }
}
