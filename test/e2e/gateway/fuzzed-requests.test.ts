import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { methods } from '../../../src/chain/rpc/methods.ts'
import {
  type Answer,
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
/** What may be said to what is no good request. */
const knownErrorCodes = new Set([-32700, -32600, -32601, -32602])
/** Those that are never asked rightly by chance. */
const knownMethods = Object.keys(methods).filter(
  (name) => name !== 'eth_blockNumber' && name !== 'eth_getBlockReceipts',
)

const id = fc.oneof(fc.string({ unit: 'binary' }), fc.integer(), fc.double(), fc.constant(null), fc.jsonValue())
const params = fc.oneof(fc.jsonValue(), fc.array(fc.jsonValue()), fc.array(fc.constantFrom('latest', '0x1', 1, {})))
/** What is a request, or nearly one. */
const nearlyValidRequests = fc.record(
  {
    jsonrpc: fc.oneof({ weight: 6, arbitrary: fc.constant('2.0') }, fc.constantFrom('1.0', 2, null)),
    method: fc.oneof(fc.constantFrom(...knownMethods, 'eth_subscribe', '__proto__'), fc.string(), fc.jsonValue()),
    params,
    id,
  },
  { requiredKeys: [] },
)
const bodies = {
  'any text': fc.string({ unit: 'binary', maxLength: 300 }),
  'any JSON': fc.json(),
  'what is nearly a request': nearlyValidRequests.map((one) => JSON.stringify(one)),
  'a batch of what are nearly requests': fc
    .array(nearlyValidRequests, { maxLength: 60 })
    .map((some) => JSON.stringify(some)),
  'a good request that was damaged': fc
    .tuple(fc.constantFrom('eth_getBalance', 'eth_chainId'), fc.nat(80), fc.string({ minLength: 1, maxLength: 3 }))
    .map(([method, at, with_]) => {
      const whole = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: ['0x12', 'latest'] })
      return whole.slice(0, at) + with_ + whole.slice(at + 1)
    }),
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The JSON that a body is; nothing where it is none. */
function parseJson(body: string | Uint8Array): { readonly json: unknown } | null {
  try {
    return { json: JSON.parse(typeof body === 'string' ? body : strictUtf8.decode(body)) }
  } catch {
    return null
  }
}

/** Whether nothing may be answered: a request without an id is one that nobody waits for. */
const isNotification = (one: unknown): boolean =>
  typeof one === 'object' &&
  one !== null &&
  !Array.isArray(one) &&
  !('id' in one) &&
  'jsonrpc' in one &&
  one.jsonrpc === '2.0' &&
  'method' in one &&
  typeof one.method === 'string' &&
  (!('params' in one) || typeof one.params === 'object')

/** How many answers a body gets, by the JSON-RPC specification alone. */
function expectedAnswers(body: string | Uint8Array): { readonly batch: boolean; readonly count: number } {
  const read = parseJson(body)
  if (!read) return { batch: false, count: 1 }
  const { json } = read
  if (!Array.isArray(json)) return { batch: false, count: isNotification(json) ? 0 : 1 }
  if (json.length === 0 || json.length > 50) return { batch: false, count: 1 }
  return { batch: true, count: json.filter((one) => !isNotification(one)).length }
}

function expectMatchingAnswer(body: string | Uint8Array, text: string | null): void {
  const { batch, count } = expectedAnswers(body)
  const answers: readonly Answer[] = text === null ? [] : batch ? parseAnswers(text) : [parseAnswer(text)]
  expect(answers.length).toBe(count)
  for (const { error, result } of answers) {
    if (error) expect(knownErrorCodes).toContain(error.code)
    // Of all that is asked here, the chain alone is known without the node.
    else expect(result).toBe(`0x${stack().devnet.chainId.toString(16)}`)
  }
}

describe.each(Object.entries(bodies))('%s', (_, arbitrary) => {
  it.each(rpcTransports)(
    'gets answers as JSON-RPC has them, and nothing is asked of the node, over %s',
    async (__, open) => {
      const { replyTo } = await open(stack())
      const property = fc.asyncProperty(arbitrary, async (body) => expectMatchingAnswer(body, await replyTo(body)))
      await fc.assert(property, { numRuns: RUNS })
    },
  )
})

it('any bytes get an answer, over HTTP and as binary messages, and nothing is asked of the node', async () => {
  const line = await RawRpcSocket.open(stack())
  const property = fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), async (given) => {
    const body = new Uint8Array(given)
    const { status, text } = await post(stack(), body)
    expect(status).toBe(200)
    expectMatchingAnswer(body, text)
    const [first = null, ...others] = await line.answersTo(body, { binary: true })
    expectMatchingAnswer(body, first)
    expect(others).toEqual([])
  })
  await fc.assert(property, { numRuns: RUNS })
})
