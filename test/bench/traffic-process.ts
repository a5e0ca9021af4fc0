import { type Devnet, startDevnet } from '../../src/devnet/devnet.ts'
import { FIRST_NUMBER, nowMicros, timeAsAddress } from './message-stamp.ts'
import { connectFeed } from './peer-feed.ts'
import { serveCommands } from './pinned-processes.ts'
import { encodeMessages, type FeedFormat, type Sample, sealMessage, transferMessage } from './sample-messages.ts'

/** Where the work comes from, in a process of its own: a chain for the relay, the same messages for its peers. */

export type TrafficCommand =
  /** A chain whose transfers are spread over so many tokens. */
  | { readonly do: 'chain'; readonly tokens: number }
  /** Waits until a relay hears the chain. */
  | { readonly do: 'subscribed' }
  | { readonly do: 'feed'; readonly port: number; readonly format: FeedFormat; readonly sample: Sample }
  /** Bursts of transfers, one every so often; without an end unless it says how many. */
  | { readonly do: 'work'; readonly burst: number; readonly everyMs: number; readonly bursts: number | null }
  /** Ends work that has no end. */
  | { readonly do: 'rest' }

export type TrafficReply =
  | {
      readonly done: 'chain'
      readonly rpcUrl: string
      readonly wsUrl: string
      readonly url: string
      readonly symbols: readonly string[]
    }
  | { readonly done: 'subscribed' }
  | { readonly done: 'feed' }
  /** The last number that was given. */
  | { readonly done: 'work'; readonly to: number }
  | { readonly done: 'rest' }

/** A block is sealed as often as on Base. */
const BLOCK_MS = 2_000

/** Whoever makes bursts of transfers out of numbers, and seals what was made. */
type TrafficMaker = { readonly make: (from: number, count: number) => void; readonly seal: () => void }

let devnet: Devnet | null = null
let maker: TrafficMaker | null = null
let last = FIRST_NUMBER - 1
let isResting = false

async function openChain(count: number): Promise<TrafficReply> {
  const chain = await startDevnet({ pace: 'manual', blockMs: BLOCK_MS })
  const known = chain.tokens.map(({ symbol }) => symbol)
  const extraSymbols = Array.from({ length: Math.max(0, count - known.length) }, (_, at) => `X${at + 10}c`)
  for (const [at, symbol] of extraSymbols.entries()) chain.list.add(listRecord(symbol, at))
  const symbols = [...known, ...extraSymbols].slice(0, count)
  maker = {
    make: (from, transfers) => {
      for (let number = from; number < from + transfers; number += 1) {
        const symbol = symbols[(number - FIRST_NUMBER) % symbols.length]
        chain.transfer({ ...(symbol !== undefined && { symbol }), raw: BigInt(number), to: timeAsAddress(nowMicros()) })
      }
      chain.makeFlashblock()
    },
    seal: () => void chain.seal(),
  }
  devnet = chain
  return { done: 'chain', rpcUrl: chain.rpcUrl, wsUrl: chain.wsUrl, url: chain.url, symbols }
}

const listRecord = (symbol: string, at: number) => ({
  contract_address: `0xb2${String(at).padStart(38, '0')}`,
  symbol,
  name: `Example ${symbol}`,
  decimals: 8,
  total_supply: 10_000,
  multiplier: 1,
  nav_price: 100,
  nav_price_updated_at: new Date().toISOString(),
})

async function openPeerFeed(command: Extract<TrafficCommand, { do: 'feed' }>): Promise<TrafficReply> {
  const { port, format, sample } = command
  const send = await connectFeed(port)
  let unsealed = 0
  maker = {
    make: (from, count) => {
      unsealed += count
      const transfers = Array.from({ length: count }, (_, at) => transferMessage(sample, from + at))
      send(encodeMessages(transfers, format, sample))
    },
    seal: () => {
      send(encodeMessages([sealMessage(sample, unsealed)], format, sample))
      unsealed = 0
    },
  }
  return { done: 'feed' }
}

async function sendBursts({ burst, everyMs, bursts }: Extract<TrafficCommand, { do: 'work' }>): Promise<TrafficReply> {
  const from = performance.now()
  const perBlock = BLOCK_MS / everyMs
  isResting = false
  for (let made = 0; made !== bursts && !isResting; made += 1) {
    maker?.make(last + 1, burst)
    last += burst
    // In the middle, so that a measurement of whole blocks holds as many seals as blocks.
    if (made % perBlock === Math.floor(perBlock / 2)) maker?.seal()
    const dueMs = from + (made + 1) * everyMs - performance.now()
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs)))
  }
  return { done: 'work', to: last }
}

serveCommands<TrafficCommand, TrafficReply>(async (command) => {
  switch (command.do) {
    case 'chain':
      return openChain(command.tokens)
    case 'subscribed':
      await devnet?.until(() => devnet?.subscriptions().pendingLogs === 1)
      return { done: 'subscribed' }
    case 'feed':
      return openPeerFeed(command)
    case 'work':
      return sendBursts(command)
    case 'rest':
      isResting = true
      return { done: 'rest' }
  }
})
