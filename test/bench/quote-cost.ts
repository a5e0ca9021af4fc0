import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { type Devnet, startDevnet } from '../../src/devnet/devnet.ts'
import { openRelay } from '../support/in-process-relay.ts'
import { listenNdjson } from '../support/test-listener.ts'
import { formatNumber, print } from './result-table.ts'

const SWAPS = 200
/** What is published of a swap before it is sealed, and of its seal. */
const SWAPS_PER_BLOCK = 10
const REFRESH_MS = 15_000

type Counts = { batches: number; questions: number; largest: number; inFlight: number; mostInFlight: number }

/** What quotes cost the upstream: a swap in a random pool at a time, each after the quote of the one before. */
export async function measureQuoteCost(): Promise<void> {
  const devnet = await startDevnet({ pace: 'manual', calls: true })
  const counting = await openCountingNode(devnet)
  const { poolsText: POOLS, quoteTokens: QUOTE_TOKENS, pools } = devnet
  const relay = await openRelay(devnet, {
    ...{ POOLS, QUOTE_TOKENS, UPSTREAM_RPC_URL: counting.url, STOCKS_REFRESH: `${REFRESH_MS}ms` },
  })
  const listener = await listenNdjson(`${relay.url}/v1/stream?symbols=*&types=quote,seal&snapshot=false&since=start`)
  const quotes = () => listener.messagesOf('quote').length
  await listener.until(() => new Set(listener.messagesOf('quote').map(({ venue }) => venue.pool)).size === pools.length)
  const traded = pools.filter(({ liquidity }) => liquidity > 0n)
  const before = { ...counting.counts, quotes: quotes() }
  for (let swap = 0; swap < SWAPS; swap += 1) {
    const pool = traded[swap % traded.length]
    if (!pool) continue
    const seen = quotes()
    devnet.swap(pool.symbol, { kind: pool.kind, price: String(pool.averagePrice * (1 + (swap + 1) / 10_000)) })
    devnet.makeFlashblock()
    // A thin pool has no price that could change.
    if (pool.symbol !== 'SNDKc') await listener.until(() => quotes() > seen)
    if (swap % SWAPS_PER_BLOCK === SWAPS_PER_BLOCK - 1) {
      const sealed = devnet.seal().number
      await listener.until(() => listener.messagesOf('seal').some(({ block }) => block.number >= sealed))
    }
  }
  await pause(200)
  const { batches, questions, largest, mostInFlight } = counting.counts
  listener.close()
  await relay.stop()
  await devnet.stop()
  counting.close()
  const perSwap = (count: number) => formatNumber(count / SWAPS, 1)
  print()
  print(`quotes: ${devnet.tokens.length} tokens, ${pools.length} pools, ${SWAPS} swaps one at a time, ${SWAPS_PER_BLOCK} per block`)
  print(
    `  per pre-confirmed swap and its seal: ${perSwap(batches - before.batches)} batches with ${perSwap(questions - before.questions)} questions; ${mostInFlight} batch in flight at most`,
  )
  print(`  all pools every ${REFRESH_MS / 1_000} s are one batch: ${largest} questions for the first time, then fewer`)
}

/** The devnet's node, and a count of what comes to it in batches. */
async function openCountingNode(devnet: Devnet) {
  const counts: Counts = { batches: 0, questions: 0, largest: 0, inFlight: 0, mostInFlight: 0 }
  const server = createServer(async (incoming, outgoing) => {
    const body = Buffer.concat(await Array.fromAsync(incoming))
    const request = JSON.parse(body.toString())
    const isBatch = Array.isArray(request)
    if (isBatch) {
      counts.batches += 1
      counts.questions += request.length
      counts.largest = Math.max(counts.largest, request.length)
      counts.inFlight += 1
      counts.mostInFlight = Math.max(counts.mostInFlight, counts.inFlight)
    }
    const answer = await fetch(devnet.rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const text = await answer.text()
    if (isBatch) counts.inFlight -= 1
    outgoing.setHeader('content-type', 'application/json').writeHead(answer.status).end(text)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, counts, close }
}
