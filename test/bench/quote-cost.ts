import { setTimeout as pause } from 'node:timers/promises'
import { startDevnet } from '../../src/devnet/devnet.ts'
import { openRelay } from '../support/in-process-relay.ts'
import { serveNode } from '../support/loopback-server.ts'
import { listenNdjson } from '../support/test-listener.ts'
import { formatNumber, print } from './result-table.ts'

const SWAPS = 200
/** What is published of a swap before it is sealed, and of its seal. */
const SWAPS_PER_BLOCK = 10
const REFRESH_MS = 15_000

/** What quotes cost the upstream: a swap in a random pool at a time, each after the quote of the one before. */
export async function measureQuoteCost(): Promise<void> {
  const devnet = await startDevnet({ pace: 'manual', calls: true })
  const counts = { batches: 0, questions: 0, largest: 0, inFlight: 0, mostInFlight: 0 }
  const cleanups: (() => unknown)[] = []
  const countedUrl = await serveNode(
    (cleanup: () => unknown) => cleanups.push(cleanup),
    devnet.rpcUrl,
    (body, response) => {
      const request = JSON.parse(body)
      if (!Array.isArray(request)) return
      counts.batches += 1
      counts.questions += request.length
      counts.largest = Math.max(counts.largest, request.length)
      counts.inFlight += 1
      counts.mostInFlight = Math.max(counts.mostInFlight, counts.inFlight)
      response.on('close', () => {
        counts.inFlight -= 1
      })
    },
  )
  const { poolsText: POOLS, quoteTokens: QUOTE_TOKENS, pools } = devnet
  const relay = await openRelay(devnet, {
    ...{ POOLS, QUOTE_TOKENS, UPSTREAM_RPC_URL: countedUrl, STOCKS_REFRESH: `${REFRESH_MS}ms` },
  })
  const listener = await listenNdjson(`${relay.url}/v1/stream?symbols=*&types=quote,seal&snapshot=false&since=start`)
  const quotes = () => listener.messagesOf('quote').length
  await listener.until(() => new Set(listener.messagesOf('quote').map(({ venue }) => venue.pool)).size === pools.length)
  const traded = pools.filter(({ liquidity }) => liquidity > 0n)
  const before = { ...counts, quotes: quotes() }
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
  const { batches, questions, largest, mostInFlight } = counts
  listener.close()
  await relay.stop()
  await devnet.stop()
  for (const cleanUp of cleanups) cleanUp()
  const perSwap = (count: number) => formatNumber(count / SWAPS, 1)
  print()
  print(`quotes: ${devnet.tokens.length} tokens, ${pools.length} pools, ${SWAPS} swaps one at a time, ${SWAPS_PER_BLOCK} per block`)
  print(
    `  per pre-confirmed swap and its seal: ${perSwap(batches - before.batches)} batches with ${perSwap(questions - before.questions)} questions; ${mostInFlight} batch in flight at most`,
  )
  print(`  all pools every ${REFRESH_MS / 1_000} s are one batch: ${largest} questions for the first time, then fewer`)
}
