import { LightNode } from './light-node.ts'
import { FIRST_NUMBER } from './message-stamp.ts'
import { connectFeed } from './peer-feed.ts'
import { serveCommands } from './pinned-processes.ts'
import { encodeMessages, type FeedFormat, type Sample, sealMessage, transferMessage } from './sample-messages.ts'

/** The source of the work, in a process of its own: a chain for the relay, the same messages for its peers. */

export type TrafficCommand =
  /** A chain whose transfers are spread over this many tokens. */
  | { readonly do: 'chain'; readonly tokens: number }
  /** Waits until a relay follows the chain. */
  | { readonly do: 'waitForSubscription' }
  | { readonly do: 'feed'; readonly port: number; readonly format: FeedFormat; readonly sample: Sample }
  /** Bursts of transfers at an interval, sealed block by block; endless where `bursts` is null. */
  | ({ readonly do: 'work' } & TrafficWork)
  /** Ends endless work. */
  | { readonly do: 'stopWork' }
  | { readonly do: 'seal' }
  /** The first token gets another NAV. */
  | { readonly do: 'changeList'; readonly firstNav: number }

type TrafficWork = { readonly burst: number; readonly everyMs: number; readonly bursts: number | null; readonly blockMs?: number }

export type TrafficReply =
  | { readonly done: 'chain'; readonly url: string; readonly wsUrl: string; readonly symbols: readonly string[] }
  /** The last number that was used. */
  | { readonly done: 'work'; readonly to: number }
  | { readonly done: 'waitForSubscription' | 'feed' | 'stopWork' | 'seal' | 'changeList' }

/** A block is sealed as often as on Base. */
const BLOCK_MS = 2_000

/** Makes bursts of transfers out of numbers, and seals them. */
type TrafficMaker = { push(from: number, count: number): void; seal(): void }

let node: LightNode | null = null
let maker: TrafficMaker | null = null
let last = FIRST_NUMBER - 1
let isResting = false

async function openChain(tokens: number): Promise<TrafficReply> {
  node = new LightNode(tokens)
  await node.open()
  maker = node
  return { done: 'chain', url: node.url, wsUrl: node.url.replace('http', 'ws'), symbols: node.chain.symbols }
}

async function openPeerFeed({ port, format, sample }: Extract<TrafficCommand, { do: 'feed' }>): Promise<void> {
  const send = await connectFeed(port)
  let unsealed = 0
  maker = {
    push: (from, count) => {
      unsealed += count
      const transfers = Array.from({ length: count }, (_, at) => transferMessage(sample, from + at))
      send(encodeMessages(transfers, format, sample))
    },
    seal: () => {
      send(encodeMessages([sealMessage(sample, unsealed)], format, sample))
      unsealed = 0
    },
  }
}

async function sendBursts({ burst, everyMs, bursts, blockMs = BLOCK_MS }: TrafficWork): Promise<TrafficReply> {
  const from = performance.now()
  const perBlock = blockMs / everyMs
  isResting = false
  for (let made = 0; made !== bursts && !isResting; made += 1) {
    maker?.push(last + 1, burst)
    last += burst
    // Halfway through a block's bursts, so that a measurement of whole blocks contains as many seals as blocks.
    if (made % perBlock === Math.floor(perBlock / 2)) maker?.seal()
    const dueMs = from + (made + 1) * everyMs - performance.now()
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs)))
  }
  return { done: 'work', to: last }
}

serveCommands<TrafficCommand, TrafficReply>(async (command) => {
  if (command.do === 'chain') return openChain(command.tokens)
  if (command.do === 'work') return sendBursts(command)
  if (command.do === 'waitForSubscription') await node?.subscribed
  else if (command.do === 'feed') await openPeerFeed(command)
  else if (command.do === 'stopWork') isResting = true
  else if (command.do === 'seal') maker?.seal()
  else if (node) node.chain.firstNav = command.firstNav
  return { done: command.do }
})
