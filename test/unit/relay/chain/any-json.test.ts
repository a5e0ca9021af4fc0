import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BatchRequest } from '../../../../src/relay/chain/rpc/endpoint-pool.ts'
import { UpstreamError } from '../../../../src/relay/chain/rpc/upstream-error.ts'
import { openLive } from './link/fake-socket-node.ts'
import { apple, blockHash, header, pendingLog, sealedLog, word, words } from './node-json.ts'
import { openEndpoint, openEndpointPool } from './rpc/fake-endpoint.ts'

const HEAD = 1_000

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
})

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)
