import fc from 'fast-check'
import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { readFeed } from '../../../../src/relay/chain/contracts/feed-contract.ts'
import { readFrozen, readToken } from '../../../../src/relay/chain/contracts/token-contract.ts'
import type { LinkSignal } from '../../../../src/relay/chain/link/subscription-socket.ts'
import { PoolReader } from '../../../../src/relay/chain/pools/pool-reader.ts'
import { ChainReader } from '../../../../src/relay/chain/rpc/chain-reader.ts'
import type { BatchRequest, RequestFn } from '../../../../src/relay/chain/rpc/endpoint-pool.ts'
import { UpstreamError } from '../../../../src/relay/chain/rpc/upstream-error.ts'
import { advanceClock } from '../../../support/virtual-time.ts'
import { openLive } from './link/fake-socket-node.ts'
import { apple, blockHash, header, keyOf, pendingLog, sealedLog, word, words } from './node-json.ts'
import { openEndpoint, openEndpointPool } from './rpc/fake-endpoint.ts'
import { HEAD, liveSignal, openSource, pendingLogSignal, sealedLogSignal } from './source/source-fixture.ts'

/** JSON of any form, and hex of any length, which is more often nearly right. */
const anyJson = fc.oneof(
  fc.jsonValue(),
  fc.stringMatching(/^0x[0-9a-fA-F]{0,70}$/),
  fc.constantFrom(word(5), words(0x20, 2 ** 40), words(0x20, 1, 7), '0x', null),
)

/** An object that is right but for a few fields, which are any JSON or missing. */
const spoilt = (right: Record<string, unknown>): fc.Arbitrary<unknown> =>
  fc
    .record(Object.fromEntries(Object.keys(right).map((name) => [name, fc.option(anyJson, { freq: 3 })])), { requiredKeys: [] })
    .map((changes) => ({ ...right, ...changes }))

const nodeBlock = spoilt(header(HEAD + 1))
const nodeLog = fc.oneof(spoilt(pendingLog({ block: HEAD + 1 })), spoilt(sealedLog({ block: HEAD })))
const anyAnswer = fc.oneof(anyJson, nodeBlock, fc.array(fc.oneof(nodeLog, anyJson), { maxLength: 4 }))

/** Resolves if the read has a result or fails as the upstream's fault. Every other failure is one of ours. */
async function expectResultOrUpstreamError(read: Promise<unknown>): Promise<UpstreamError | null> {
  const failure = await read.then(
    () => null,
    (error: unknown) => error,
  )
  if (failure === null) return null
  expect(failure).toBeInstanceOf(UpstreamError)
  return failure as UpstreamError
}

/** Answers each request with the next of these values, and with the last one from then on. */
function requestFrom(answers: readonly unknown[]): RequestFn {
  let count = 0
  return async () => {
    const answer = answers[Math.min(count, answers.length - 1)]
    count += 1
    return answer
  }
}

describe('any JSON', () => {
  it('as a message of the socket is a signal or counted, and the link stays', async () => {
    const { node, link } = await openLive()
    const notification = fc
      .tuple(fc.constantFrom('0x1', '0x2', '0x99'), anyAnswer)
      .map(([subscription, result]) => ({ jsonrpc: '2.0', method: 'eth_subscription', params: { subscription, result } }))
    const message = fc.oneof(
      fc.string(),
      fc.json(),
      notification.map((one) => JSON.stringify(one)),
      notification.chain(spoilt).map((one) => JSON.stringify(one)),
      spoilt({ jsonrpc: '2.0', id: 3, result: '0x2', error: { code: -1, message: 'no' } }).map((one) => JSON.stringify(one)),
    )
    let index = 0
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 20 }), async (messages) => {
        for (const text of messages) node.send(text)
        link.signals.length = 0
        index += 1
        const log = pendingLog({ block: 5, index })
        node.notify('0x2', log)
        await link.waitUntil(() => link.signals.at(-1)?.type === 'down' || link.logs().some((one) => isSame(one, log)))
        expect(link.signalsOfType('down')).toEqual([])
      }),
    )
  })

  it('as pushes and answers leaves a source that settles the next blocks', async () => {
    const push = fc.oneof(
      anyAnswer.map((header): LinkSignal => ({ type: 'head', header })),
      anyAnswer.map((log) => pendingLogSignal(log)),
      anyAnswer.map((log) => sealedLogSignal(log)),
    )
    const step = fc.record({
      pushes: fc.array(push, { maxLength: 4 }),
      answers: fc.array(anyAnswer, { minLength: 1, maxLength: 4 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), async (steps) => {
        const { chain, emit, head, advance, sealedBlocks, seal } = openSource()
        await emit({ type: 'heads_live' }, liveSignal(), head())
        await advance(400)
        for (const { pushes, answers } of steps) {
          let count = 0
          chain.override = () => {
            count += 1
            return count % 2 === 0 ? answers[(count / 2) % answers.length] : undefined
          }
          chain.head += 1
          await emit(...pushes, head())
          await advance(500)
        }
        chain.override = () => undefined
        await seal(1)
        await advance(60_000)
        const last = sealedBlocks().findLast(({ number }) => number === chain.head)
        expect(last?.logs.map(({ key }) => key)).toEqual([keyOf({ block: chain.head })])
      }),
    )
  })

  it('as the body of an answer is a result or an error of the upstream', async () => {
    const right = { jsonrpc: '2.0', id: 2, result: '0x64' }
    const body = fc.oneof(
      fc.string(),
      fc.json(),
      spoilt(right).map((one) => JSON.stringify(one)),
      spoilt({ ...right, error: { code: -32_000, message: 'header not found' } }).map((one) => JSON.stringify(one)),
      fc.array(spoilt(right), { maxLength: 4 }).map((many) => JSON.stringify(many)),
    )
    const status = fc.constantFrom(200, 200, 200, 204, 400, 403, 429, 500, 503)
    const blockNumber: BatchRequest = { method: 'eth_blockNumber', params: [] }
    let next = { status: 200, body: '' }
    const node = await openEndpoint((_, response) => void response.writeHead(next.status).end(next.body))
    await fc.assert(
      fc.asyncProperty(status, body, fc.boolean(), async (code, text, isOfChain) => {
        next = { status: code, body: text }
        node.chain = isOfChain ? (_, response) => void response.writeHead(code).end(text) : 84_532
        const open = () => openEndpointPool([node.url]).rpc
        for (const read of [
          () => open().request('eth_blockNumber', []),
          () => open().requestRaw('eth_blockNumber', []),
          () => open().request('eth_getLogs', [{ address: [apple], blockHash: blockHash(5) }]),
          () => open().requestBatch([blockNumber, blockNumber]),
        ]) {
          const failure = await expectResultOrUpstreamError(read())
          // A throw while an answer is read would look like one that never came.
          if (code === 200) expect(failure?.kind).not.toBe('unreachable')
        }
      }),
    )
  })

  it('as a result is what the readers of blocks, contracts and feeds return or refuse', async () => {
    const proxy: Hex = `0x${'fe'.repeat(20)}`
    await fc.assert(
      fc.asyncProperty(fc.array(anyAnswer, { minLength: 1, maxLength: 6 }), async (answers) => {
        const blocks = () => new ChainReader(requestFrom(answers))
        const { signal } = new AbortController()
        await expectResultOrUpstreamError(blocks().header('pending'))
        await expectResultOrUpstreamError(blocks().header(5))
        await expectResultOrUpstreamError(blocks().logsByHash({ number: HEAD, hash: blockHash(HEAD) }, [{ addresses: [apple] }]))
        await expectResultOrUpstreamError(blocks().logsInRange(HEAD, 'pending', [{ addresses: [apple] }]))
        await expectResultOrUpstreamError(blocks().logsIfCountsDiffer(new Map(), HEAD, HEAD + 1, [{ addresses: [apple] }], signal))
        await expectResultOrUpstreamError(readToken(requestFrom(answers), apple, { number: HEAD, hash: blockHash(HEAD) }))
        await expectResultOrUpstreamError(readFeed(requestFrom(answers), proxy))
        await expectResultOrUpstreamError(readFrozen(requestFrom(answers), proxy, apple))
      }),
      { numRuns: 500 },
    )
  })

  it('as a result is a reading of a pool, or none', async () => {
    const currency = { symbol: 'USDC', address: `0x${'cc'.repeat(20)}` as Hex, decimals: 6 }
    const common = { token: apple, currency, manager: null, id: `0x${'13'.repeat(20)}` as Hex }
    const pools = [
      { ...common, kind: 'uniswap_v3' as const },
      { ...common, kind: 'slipstream' as const },
      { ...common, kind: 'uniswap_v4' as const, id: word(0x14), manager: `0x${'44'.repeat(20)}` as Hex },
    ]
    const answers = fc.array(fc.oneof(anyJson, fc.constant(word(12n * 2n ** 96n))), { minLength: 1, maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(answers, fc.boolean(), async (results, hasHeaders) => {
        const clock = new VirtualTimeScheduler(undefined, 0)
        const requestBatch = async (requests: readonly { readonly method: string }[]) =>
          requests.map(({ method }, index) => ({
            ok: true as const,
            result: hasHeaders && method === 'eth_getBlockByNumber' ? header(HEAD) : results[index % results.length],
          }))
        const read = new PoolReader({ requestBatch, clock }).read(pools, 'latest', new AbortController().signal)
        await advanceClock(clock, 3_000)
        const readings = await read
        expect([...readings.pools.keys()]).toEqual(pools)
        for (const { kind } of readings.pools.values()) expect(['read', 'unreadable']).toContain(kind)
      }),
    )
  })
})

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)
