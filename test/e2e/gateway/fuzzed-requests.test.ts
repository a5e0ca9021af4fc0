import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { methods } from '../../../src/protocol/json-rpc-methods.ts'
import { quantity } from './node-and-gateway.ts'
import {
  bodyText,
  expectNoUpstreamRequests,
  parseAnswer,
  parseAnswers,
  post,
  quietStackForFile,
  RawRpcSocket,
  rpcTransports,
} from './raw-rpc-requests.ts'

const stack = quietStackForFile()
expectNoUpstreamRequests(stack)

const RUNS = 400
const knownErrorCodes = new Set([-32700, -32600, -32601, -32602])
/** Methods whose parameters are never valid by chance. */
const knownMethods = Object.keys(methods).filter((name) => name !== 'eth_blockNumber' && name !== 'eth_getBlockReceipts')

const nearlyValidRequests = fc.record(
  {
    jsonrpc: fc.oneof({ weight: 6, arbitrary: fc.constant('2.0') }, fc.constantFrom('1.0', 2, null)),
    method: fc.oneof(fc.constantFrom(...knownMethods, 'eth_subscribe', '__proto__'), fc.string(), fc.jsonValue()),
    params: fc.oneof(fc.jsonValue(), fc.array(fc.jsonValue()), fc.array(fc.constantFrom('latest', '0x1', 1, {}))),
    id: fc.oneof(fc.string({ unit: 'binary' }), fc.integer(), fc.double(), fc.constant(null), fc.jsonValue()),
  },
  { requiredKeys: [] },
)
const bodies = {
  'any text': fc.string({ unit: 'binary', maxLength: 300 }),
  'any JSON': fc.json(),
  'a request that is nearly valid': nearlyValidRequests.map((body) => JSON.stringify(body)),
  'a batch of such requests': fc.array(nearlyValidRequests, { maxLength: 60 }).map(bodyText),
  'a damaged request': fc
    .tuple(fc.constantFrom('eth_getBalance', 'eth_chainId'), fc.nat(80), fc.string({ minLength: 1, maxLength: 3 }))
    .map(([method, at, replacement]) => {
      const intact = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: ['0x12', 'latest'] })
      return intact.slice(0, at) + replacement + intact.slice(at + 1)
    }),
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function parseJson(body: string | Uint8Array): { readonly json: unknown } | null {
  try {
    return { json: JSON.parse(typeof body === 'string' ? body : strictUtf8.decode(body)) }
  } catch {
    return null
  }
}

const isNotification = (json: unknown): boolean =>
  typeof json === 'object' &&
  json !== null &&
  !Array.isArray(json) &&
  !('id' in json) &&
  'jsonrpc' in json &&
  json.jsonrpc === '2.0' &&
  'method' in json &&
  typeof json.method === 'string' &&
  (!('params' in json) || typeof json.params === 'object')

/** How many answers a body gets, by the JSON-RPC specification alone. */
function expectedAnswers(body: string | Uint8Array): { readonly batch: boolean; readonly count: number } {
  const parsed = parseJson(body)
  if (!parsed) return { batch: false, count: 1 }
  const { json } = parsed
  if (!Array.isArray(json)) return { batch: false, count: isNotification(json) ? 0 : 1 }
  if (json.length === 0 || json.length > 50) return { batch: false, count: 1 }
  return { batch: true, count: json.filter((element) => !isNotification(element)).length }
}

function expectMatchingAnswer(body: string | Uint8Array, text: string | null): void {
  const { batch, count } = expectedAnswers(body)
  const answers = text === null ? [] : batch ? parseAnswers(text) : [parseAnswer(text)]
  expect(answers.length).toBe(count)
  for (const { error, result } of answers) {
    if (error) expect(knownErrorCodes).toContain(error.code)
    // The chain id is all that the relay can answer here without the node.
    else expect(result).toBe(quantity(stack().devnet.chainId))
  }
}

describe.each(rpcTransports)('without a request to the node, over %s', (_, open) => {
  it.each(Object.entries(bodies))('the relay answers %s as JSON-RPC specifies', async (__, arbitrary) => {
    const { replyTo } = await open(stack())
    const property = fc.asyncProperty(arbitrary, async (body) => expectMatchingAnswer(body, await replyTo(body)))
    await fc.assert(property, { numRuns: RUNS })
  })
})

it('the relay answers any bytes, over HTTP and as binary messages, without a request to the node', async () => {
  const socket = await RawRpcSocket.open(stack())
  const property = fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), async (bytes) => {
    const body = new Uint8Array(bytes)
    const { status, text } = await post(stack(), body)
    expect(status).toBe(200)
    expectMatchingAnswer(body, text)
    const [first = null, ...others] = await socket.answersTo(body, { binary: true })
    expectMatchingAnswer(body, first)
    expect(others).toEqual([])
  })
  await fc.assert(property, { numRuns: RUNS })
})
