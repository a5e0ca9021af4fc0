import { seededRandom } from '../../src/devnet/life/seeded-random.ts'
import { FIRST_NUMBER, nowMicros, timeAsAddress } from './message-stamp.ts'

/**
 * A chain of transfers whose logs are written from their numbers and never stored: a log costs less than a microsecond,
 * so that one core pushes more of them than a relay can take. Every text has a fixed width, so a log is a copy of a
 * template with a few digits changed.
 */

/** Hex quantities have no leading zeros: these first numbers have as many digits as all that follow. */
const FIRST_BLOCK = 0x1000000
const FIRST_INDEX = 0x10000
const INDEX_DIGITS = 5
const NUMBER_DIGITS = 10
/** How far the safe and the finalized block are behind, as on Base, and which blocks exist before the first one. */
const SAFE_DEPTH_BLOCKS = 60
const FINALIZED_DEPTH_BLOCKS = 450

const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const ZERO_WORD = `0x${'0'.repeat(64)}`
const BLOOM = `0x${'0'.repeat(512)}`
const COMMA = 0x2c

/** Transfers that were made together: their numbers follow each other. */
type Burst = { readonly from: number; readonly count: number; readonly micros: number; readonly firstIndex: number }
type LightBlock = { readonly number: number; readonly bursts: Burst[]; logs: number; timestamp: number }

const hex = (value: number): string => `0x${value.toString(16)}`
const hashOf = (number: number): string => `0xb10c${String(number).padStart(60, '0')}`
const addressOf = (token: number): string => `0xb2${String(token).padStart(38, '0')}`
const seconds = (): number => Math.floor(Date.now() / 1_000)

const template = (hash: string): Buffer =>
  Buffer.from(
    JSON.stringify({
      address: addressOf(0),
      topics: [TRANSFER_TOPIC, ZERO_WORD, `0x${timeAsAddress(0).slice(2).padStart(64, '0')}`],
      data: ZERO_WORD,
      blockHash: hash,
      blockNumber: hex(FIRST_BLOCK),
      transactionHash: ZERO_WORD,
      transactionIndex: hex(FIRST_INDEX),
      logIndex: hex(FIRST_INDEX),
      removed: false,
    }),
  )

/** A pending log has a hash of zeros, as some nodes send it. */
const row = template(ZERO_WORD)
const endOf = (field: string, chars: number): number => row.indexOf(`"${field}":"`) + field.length + 4 + chars
/** Digits for senders and transaction hashes, so that messages compress no better than real ones. */
const randomDigits = Buffer.from(randomHex())
const HASH_RANDOM_DIGITS = 64 - NUMBER_DIGITS
const ADDRESS_DIGITS = 40
/** Where the digits of each field end. */
const ends = {
  address: endOf('address', 42),
  from: row.indexOf('"],"data"') - 69,
  to: row.indexOf('"],"data"'),
  data: endOf('data', 66),
  blockHash: endOf('blockHash', 66),
  blockNumber: endOf('blockNumber', 9),
  transactionHash: endOf('transactionHash', 66),
  transactionIndex: endOf('transactionIndex', 2 + INDEX_DIGITS),
  logIndex: endOf('logIndex', 2 + INDEX_DIGITS),
} as const

export class LightChain {
  readonly symbols: readonly string[]
  readonly #tokens: readonly Buffer[]
  readonly #tokenByAddress: ReadonlyMap<string, number>
  readonly #blocks: LightBlock[] = []
  readonly #startedAt = seconds()
  /** The NAV of the first token. */
  firstNav = 100

  constructor(tokens: number) {
    const all = Array.from({ length: tokens }, (_, token) => token)
    this.symbols = all.map((token) => `X${token + 10}c`)
    this.#tokens = all.map((token) => Buffer.from(addressOf(token)))
    this.#tokenByAddress = new Map(all.map((token) => [addressOf(token), token]))
    this.#blocks.push(this.#emptyBlock(FIRST_BLOCK))
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

  /** Adds transfers to the pending block. Returns each as a notification in its own WebSocket frame, all in one buffer. */
  push(from: number, count: number, subscription: string | null): Buffer {
    const block = this.#pending
    const burst = { from, count, micros: nowMicros(), firstIndex: FIRST_INDEX + block.logs }
    block.bursts.push(burst)
    block.logs += count
    if (subscription === null) return Buffer.alloc(0)
    const frame = frameAround(subscription)
    const frames = Buffer.allocUnsafe(count * frame.bytes.length)
    this.#prepareRow(frame.bytes, frame.rowAt, block.number, burst)
    for (let at = 0; at < count; at += 1) {
      frame.bytes.copy(frames, at * frame.bytes.length)
      this.#writeLog(frames, at * frame.bytes.length + frame.rowAt, burst, at)
    }
    return frames
  }

  /** Seals the pending block. Returns its header. */
  seal(): object | null {
    const sealed = this.#pending
    sealed.timestamp = Math.max(seconds(), this.#startedAt)
    this.#blocks.push(this.#emptyBlock(sealed.number + 1))
    return this.#header(sealed.number)
  }

  /** The result of a request as JSON; undefined where this node lacks the method. */
  answer(method: string, params: readonly unknown[]): string | Buffer | undefined {
    switch (method) {
      case 'eth_chainId':
        return '"0x2105"'
      case 'eth_getBlockByNumber':
        return JSON.stringify(this.#header(this.#numberOf(params[0])))
      case 'eth_getBlockByHash':
        return JSON.stringify(this.#header(Number(String(params[0]).slice(6))))
      case 'eth_getLogs':
        return this.#logs(params[0] as LogFilter)
      default:
        return undefined
    }
  }

  get #pending(): LightBlock {
    return this.#blocks.at(-1) ?? this.#emptyBlock(FIRST_BLOCK)
  }

  #emptyBlock(number: number): LightBlock {
    return { number, bursts: [], logs: 0, timestamp: seconds() }
  }

  #numberOf(tag: unknown): number {
    const pending = this.#pending.number
    if (tag === 'pending') return pending
    if (tag === 'safe') return pending - 1 - SAFE_DEPTH_BLOCKS
    if (tag === 'finalized') return pending - 1 - FINALIZED_DEPTH_BLOCKS
    return tag === 'latest' ? pending - 1 : Number(tag)
  }

  /** Blocks before the first one are empty. */
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

  #logs({ address, blockHash, fromBlock, toBlock }: LogFilter): Buffer {
    const from = blockHash === undefined ? this.#numberOf(fromBlock) : Number(blockHash.slice(6))
    const to = blockHash === undefined ? this.#numberOf(toBlock) : from
    const blocks = this.#blocks.slice(Math.max(0, from - FIRST_BLOCK), Math.max(0, to - FIRST_BLOCK + 1))
    const wanted = this.#tokens.map(() => address === undefined)
    for (const one of [address ?? []].flat()) wanted[this.#tokenByAddress.get(one.toLowerCase()) ?? wanted.length] = true
    const bytes = Buffer.allocUnsafe(2 + blocks.reduce((sum, { logs }) => sum + logs, 0) * (row.length + 1))
    let at = bytes.write('[')
    for (const block of blocks) at = this.#writeBlock(bytes, at, block, wanted)
    if (at > 1) at -= 1
    return bytes.subarray(0, at + bytes.write(']', at))
  }

  /** Writes the logs of the wanted tokens, each with a comma. Returns where they end. */
  #writeBlock(bytes: Buffer, from: number, { number, bursts }: LightBlock, wanted: readonly boolean[]): number {
    const sealed = template(number === this.#pending.number ? ZERO_WORD : hashOf(number))
    let end = from
    for (const burst of bursts) {
      this.#prepareRow(sealed, 0, number, burst)
      for (let at = 0; at < burst.count; at += 1) {
        if (!wanted[(burst.from + at - FIRST_NUMBER) % this.#tokens.length]) continue
        sealed.copy(bytes, end)
        this.#writeLog(bytes, end, burst, at)
        bytes[end + row.length] = COMMA
        end += row.length + 1
      }
    }
    return end
  }

  /** Writes what all logs of a burst have in common. */
  #prepareRow(bytes: Buffer, rowAt: number, number: number, { micros }: Burst): void {
    writeDigits(bytes, rowAt + ends.to, micros, 16, 10)
    writeDigits(bytes, rowAt + ends.blockNumber, number, 7, 16)
  }

  #writeLog(bytes: Buffer, rowAt: number, { from, firstIndex }: Burst, at: number): void {
    const number = from + at
    this.#tokens[(number - FIRST_NUMBER) % this.#tokens.length]?.copy(bytes, rowAt + ends.address - 42)
    const drawn = (number * (HASH_RANDOM_DIGITS + ADDRESS_DIGITS)) % (randomDigits.length - HASH_RANDOM_DIGITS - ADDRESS_DIGITS)
    const hashAt = drawn + ADDRESS_DIGITS
    randomDigits.copy(bytes, rowAt + ends.from - ADDRESS_DIGITS, drawn, hashAt)
    randomDigits.copy(bytes, rowAt + ends.transactionHash - 64, hashAt, hashAt + HASH_RANDOM_DIGITS)
    writeDigits(bytes, rowAt + ends.data, number, NUMBER_DIGITS, 16)
    writeDigits(bytes, rowAt + ends.transactionHash, number, NUMBER_DIGITS, 10)
    writeDigits(bytes, rowAt + ends.transactionIndex, firstIndex + at, INDEX_DIGITS, 16)
    writeDigits(bytes, rowAt + ends.logIndex, firstIndex + at, INDEX_DIGITS, 16)
  }
}

type LogFilter = {
  readonly address?: string | readonly string[]
  readonly blockHash?: string
  readonly fromBlock?: string
  readonly toBlock?: string
}

/** The number of the transfer with this key. */
export const numberOfKey = (key: string): number => Number(key.slice(key.lastIndexOf('-') - NUMBER_DIGITS, key.lastIndexOf('-')))

const DIGITS = Buffer.from('0123456789abcdef')

function writeDigits(bytes: Buffer, end: number, value: number, digits: number, base: number): void {
  let left = value
  for (let at = end - 1; at >= end - digits; at -= 1) {
    const rest = Math.floor(left / base)
    bytes[at] = DIGITS[left - rest * base] ?? 0
    left = rest
  }
}

function randomHex(): string {
  const random = seededRandom('light chain')
  return Array.from({ length: 2 ** 17 }, () => Math.floor(random() * 16).toString(16)).join('')
}

/** The frame of a notification with an empty log, and where the log begins. */
function frameAround(subscription: string): { readonly bytes: Buffer; readonly rowAt: number } {
  const before = `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${subscription}","result":`
  const payload = Buffer.concat([Buffer.from(before), row, Buffer.from('}}')])
  const header = Buffer.from([0x81, 126, payload.length >> 8, payload.length & 0xff])
  return { bytes: Buffer.concat([header, payload]), rowAt: header.length + before.length }
}
