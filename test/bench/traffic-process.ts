import { startDevnet } from '../../src/devnet/devnet.ts'
import { LightNode } from './light-node.ts'
import { FIRST_NUMBER, nowMicros, timeAsAddress } from './message-stamp.ts'
import { connectFeed } from './peer-feed.ts'
import { serveCommands } from './pinned-processes.ts'
import { encodeMessages, type FeedFormat, type Sample, sealMessage, transferMessage } from './sample-messages.ts'

/** The source of the work, in a process of its own: a chain for the relay, the same messages for its peers. */

export type TrafficCommand =
  /** A chain whose transfers are spread over this many tokens; where `isLight`, it can push many logs a second. */
  | { readonly do: 'chain'; readonly tokens: number; readonly isLight: boolean }
  /** Waits until a relay follows the chain. */
  | { readonly do: 'waitForSubscription' }
  | { readonly do: 'feed'; readonly port: number; readonly format: FeedFormat; readonly sample: Sample }
  /** Bursts of transfers at an interval, sealed block by block; endless where `bursts` is null. */
  | {
      readonly do: 'work'
      readonly burst: number
      readonly everyMs: number
      readonly bursts: number | null
      readonly blockMs?: number
    }
  /** Ends endless work. */
  | { readonly do: 'stopWork' }
  | { readonly do: 'seal' }
  /** The first token of a light chain gets another NAV. */
  | { readonly do: 'changeList'; readonly firstNav: number }

export type TrafficReply =
  | {
      readonly done: 'chain'
      readonly rpcUrl: string
      readonly wsUrl: string
      readonly url: string
      readonly symbols: readonly string[]
    }
  | { readonly done: 'waitForSubscription' }
  | { readonly done: 'feed' }
  /** The last number that was used. */
  | { readonly done: 'work'; readonly to: number }
  | { readonly done: 'stopWork' }
  | { readonly done: 'seal' | 'changeList' }

/** A block is sealed as often as on Base. */
const BLOCK_MS = 2_000

/** Makes bursts of transfers out of numbers, and seals them. */
type TrafficMaker = { readonly make: (from: number, count: number) => void; readonly seal: () => void }

let waitForSubscription = async (): Promise<void> => {}
let changeList = (_firstNav: number): void => {}
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
  waitForSubscription = () => chain.until(() => chain.subscriptions().pendingLogs === 1)
  return { done: 'chain', rpcUrl: chain.rpcUrl, wsUrl: chain.wsUrl, url: chain.url, symbols }
}

async function openLightChain(tokens: number): Promise<TrafficReply> {
  const node = new LightNode(tokens)
  await node.open()
  maker = { make: (from, count) => node.push(from, count), seal: () => node.seal() }
  waitForSubscription = () => node.subscribed
  changeList = (firstNav) => {
    node.chain.firstNav = firstNav
  }
  const { url } = node
  return { done: 'chain', rpcUrl: url, wsUrl: url.replace('http', 'ws'), url, symbols: node.chain.symbols }
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

async function sendBursts({
  burst,
  everyMs,
  bursts,
  blockMs = BLOCK_MS,
}: Extract<TrafficCommand, { do: 'work' }>): Promise<TrafficReply> {
  const from = performance.now()
  const perBlock = blockMs / everyMs
  isResting = false
  for (let made = 0; made !== bursts && !isResting; made += 1) {
    maker?.make(last + 1, burst)
    last += burst
    // Halfway through a block's bursts, so that a measurement of whole blocks contains as many seals as blocks.
    if (made % perBlock === Math.floor(perBlock / 2)) maker?.seal()
    const dueMs = from + (made + 1) * everyMs - performance.now()
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs)))
  }
  return { done: 'work', to: last }
}

serveCommands<TrafficCommand, TrafficReply>(async (command) => {
  switch (command.do) {
    case 'chain':
      return command.isLight ? openLightChain(command.tokens) : openChain(command.tokens)
    case 'waitForSubscription':
      await waitForSubscription()
      return { done: 'waitForSubscription' }
    case 'feed':
      return openPeerFeed(command)
    case 'work':
      return sendBursts(command)
    case 'stopWork':
      isResting = true
      return { done: 'stopWork' }
    case 'changeList':
      changeList(command.firstNav)
      return { done: 'changeList' }
    case 'seal':
      maker?.seal()
      return { done: 'seal' }
  }
})
