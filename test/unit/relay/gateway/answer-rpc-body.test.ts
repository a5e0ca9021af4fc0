import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { ANSWER_BOUND_BYTES } from '../../../../src/relay/chain/rpc/endpoint-pool.ts'
import { classify } from '../../../../src/relay/chain/rpc/upstream-error.ts'
import { RateLimiter } from '../../../../src/relay/edge/limits/rate-limiter.ts'
import type { Caller } from '../../../../src/relay/gateway/answer-rpc-body.ts'
import { errorCodes, RpcError } from '../../../../src/relay/gateway/rpc-error.ts'
import { BATCH_BOUND } from '../../../../src/relay/gateway/rpc-request-parser.ts'
import { openBody, type UpstreamCall } from './shared-answers-fixture.ts'

/** A result up to this size needs no reservation. */
const SMALL_BYTES = 65_536

const ADDRESS = `0x${'a1'.repeat(20)}`
const balance = (id?: unknown) => ({ jsonrpc: '2.0', id, method: 'eth_getBalance', params: [ADDRESS, 'latest'] })
const code = (id: unknown) => ({ ...balance(id), method: 'eth_getCode' })
const chain = (id?: unknown) => ({ jsonrpc: '2.0', id, method: 'eth_chainId' })
const subscribe = (id?: unknown) => ({ jsonrpc: '2.0', id, method: 'eth_subscribe', params: ['newHeads'] })
const result = (id: unknown, value: unknown) => ({ jsonrpc: '2.0', id, result: value })
const error = (id: unknown, number: number) => ({ ...{ jsonrpc: '2.0', id }, error: { code: number, message: expect.any(String) } })

/** The replies to a body whose calls the node answers one after another. */
async function repliesTo(body: unknown, answers: readonly ((call: UpstreamCall) => unknown)[], given: Partial<Caller> = {}) {
  const { send, upstreamCalls, json, replies } = openBody(given)
  const done = send(body)
  await yieldToEventLoop()
  for (const [at, answer] of answers.entries()) if (upstreamCalls[at]) await answer(upstreamCalls[at])
  await done
  return { json: json(), reservedBytes: replies[0]?.reservedBytes, text: String(Buffer.concat(replies[0]?.chunks ?? [])) }
}
const fails = (failure: Error) => (call: UpstreamCall) => call.fail(failure)
const answers = (value: unknown) => (call: UpstreamCall) => call.succeed(value)

describe('a reply', () => {
  it('is written once, when everything is answered', async () => {
    const { send, upstreamCalls, json } = openBody()
    const done = send([balance(1), chain(2), code(3)])
    await yieldToEventLoop()
    await upstreamCalls[1]?.succeed('0x3')
    expect(json()).toEqual([])
    await upstreamCalls[0]?.succeed('0x1')
    await done
    expect(json()).toEqual([{ status: 200, body: [result(1, '0x1'), result(2, '0x7'), result(3, '0x3')] }])
  })

  it('contains the bytes of the node as they came', async () => {
    const { text } = await repliesTo(balance('a'), [answers({ odd: ['\u00e9', 1.5] })])
    expect(text).toBe('{"jsonrpc":"2.0","id":"a","result":{"odd":["é",1.5]}}')
  })

  it('reports an internal failure without its message', async () => {
    const { json, text } = await repliesTo(balance(1), [fails(new TypeError('secret is not a function'))])
    expect(json).toEqual([{ status: 200, body: error(1, -32603) }])
    expect(text).not.toContain('secret')
  })

  const socket = { hasHttpStatus: false }
  it.each<[string, number, Partial<Caller>, unknown, unknown, number?]>([
    ['its own status, to one request over HTTP', 403, {}, balance(1), error(1, -32601)],
    ['200 for a batch', 200, {}, [balance(1)], [error(1, -32601)]],
    // The code of a provider says nothing without the status.
    ['a code for it, in place of one of a provider, over a WebSocket', 403, socket, balance(1), error(1, -32601), -9],
    ['the code of a provider beside its status', 403, {}, balance(1), error(1, -9), -9],
  ])('that reports a refusal has %s', async (_, status, given, body, expected, number = -32601) => {
    const forbidden = classify(new Response('', { status: 403 }), { code: number, message: 'rpc method is not whitelisted' })
    expect((await repliesTo(body, [fails(forbidden)], given)).json).toEqual([{ status, body: expected }])
  })
})

describe('the rate', () => {
  const refusesAll: Partial<Caller> = { takeRate: (methods) => methods.map(() => false) }

  it('counts each request by its method, invalid ones too', async () => {
    const counted: (readonly string[])[] = []
    const { send } = openBody({
      takeRate: (methods) => {
        counted.push(methods)
        return methods.map(() => true)
      },
    })
    for (const body of [chain(1), [chain(1), 3, chain(), { ...chain(2), method: 'nothing' }], '{', '[]', [1, 2]]) await send(body)
    expect(counted).toEqual([['eth_chainId'], ['eth_chainId', '', 'eth_chainId', 'nothing'], [''], [''], ['']])
  })

  it.each([
    ['allows a batch of 100 in many bytes', { requests: 100, bytes: 40_000, before: 0 }, 200],
    ['allows a batch of 100 once', { requests: 100, bytes: 40_000, before: 1 }, 429],
    ['counts a long request by its bytes', { requests: 1, bytes: 400_000, before: 76 }, 200],
    ['counts a long request not as one', { requests: 1, bytes: 400_000, before: 77 }, 429],
    ['counts text that is no JSON by its bytes', { requests: 0, bytes: 400_000, before: 77 }, 429],
  ])('%s', async (_, { requests, bytes, before }, status) => {
    const rates = new RateLimiter({ perSecond: 50, atOnce: BATCH_BOUND })
    const takeRate: Caller['takeRate'] = (methods, prepaid) => {
      const isAllowed = rates.take('somebody', methods, 0, prepaid) === 0
      return methods.map(() => isAllowed)
    }
    takeRate(Array.from({ length: before }, () => ''))
    const { send, json } = openBody({ takeRate })
    await send(JSON.stringify(Array.from({ length: requests }, (_, id) => chain(id))).padEnd(bytes, requests > 0 ? ' ' : '['))
    expect(json()).toMatchObject([{ status }])
  })

  it('refuses a whole body with 429 and forwards nothing', async () => {
    const { send, json, upstreamCalls } = openBody(refusesAll)
    for (const body of [balance(1), [balance(1), balance(2)], '{', balance()]) await send(body)
    const refused = (id: unknown) => error(id, errorCodes.limitExceeded)
    const expected = [refused(1), [refused(1), refused(2)], refused(null), refused(null)]
    expect(json()).toEqual(expected.map((body) => ({ status: 429, body })))
    expect(upstreamCalls).toEqual([])
  })

  it('refuses the one request that exceeds it and answers the others', async () => {
    const { send, json } = openBody({ takeRate: (methods) => methods.map((_, at) => at !== 1), hasHttpStatus: false })
    await send([chain(1), chain(2), chain(3)])
    expect(json()[0]?.body).toEqual([result(1, '0x7'), error(2, errorCodes.limitExceeded), result(3, '0x7')])
  })
})

describe('long answers', () => {
  const long = (bytes: number) => answers('x'.repeat(bytes - 2))
  const tooMany = (id: unknown) => error(id, errorCodes.limitExceeded)
  const envelopes = '[{"jsonrpc":"2.0","id":1,"result":},{"jsonrpc":"2.0","id":2,"result":}]'.length

  it.each([
    {
      rule: 'need a reservation above a bound',
      lengths: [SMALL_BYTES - 1_000, SMALL_BYTES + 1],
      reserved: [SMALL_BYTES + 1],
      withoutRoom: { status: 200, body: [{ id: 1, result: expect.any(String) }, tooMany(2)] },
    },
    {
      rule: 'include many short ones together',
      lengths: [SMALL_BYTES, SMALL_BYTES],
      reserved: [2 * SMALL_BYTES + envelopes],
      withoutRoom: { status: 503, body: tooMany(null) },
    },
  ])('$rule', async ({ lengths, reserved, withoutRoom }) => {
    for (const hasRoom of [true, false]) {
      const held: number[] = []
      const reserve = (bytes: number) => held.push(bytes) > 0 && hasRoom
      const { json, reservedBytes } = await repliesTo([balance(1), code(2)], lengths.map(long), { reserve })
      expect([held, reservedBytes]).toEqual([reserved, hasRoom ? reserved[0] : 0])
      const whole = { status: 200, body: [1, 2].map((id) => ({ id, result: expect.any(String) })) }
      expect(json).toMatchObject([hasRoom ? whole : withoutRoom])
    }
  })

  it('are refused with 503 without room, alone', async () => {
    const { json } = await repliesTo(balance(1), [long(SMALL_BYTES + 1)], { reserve: () => false })
    expect(json).toEqual([{ status: 503, body: tooMany(1) }])
  })

  it('of one batch are bounded together: one that does not fit is refused', async () => {
    const { json } = await repliesTo([balance(1), code(2), chain(3)], [long(ANSWER_BOUND_BYTES), long(SMALL_BYTES + 1)])
    expect(json[0]?.body.slice(1)).toMatchObject([error(2, errorCodes.serverError), { id: 3, result: '0x7' }])
    expect(json[0]?.body[0].result.length).toBe(ANSWER_BOUND_BYTES - 2)
  })
})

describe('a local call', () => {
  const local = (answer: () => string) => {
    const carried: unknown[] = []
    const given: Partial<Caller> = {
      hasHttpStatus: false,
      isLocal: (method) => /^eth_(un)?subscribe$/.test(method),
      runLocal: (method, params) => {
        carried.push([method, params])
        return answer()
      },
    }
    return { carried, given }
  }
  const throws = (failure: Error) => () => {
    throw failure
  }

  it('runs in the step that writes its answer', async () => {
    const { carried, given } = local(() => '"0xabc"')
    const { send, json, upstreamCalls } = openBody(given)
    const done = send([subscribe(1), balance(2)])
    await yieldToEventLoop()
    expect(carried).toEqual([])
    void upstreamCalls[0]?.succeed('0x1')
    // Whoever looks at each microtask never sees the one without the other.
    for (let tick = 0; tick < 50; tick += 1) {
      await Promise.resolve()
      expect(json()).toHaveLength(carried.length)
    }
    await done
    expect(carried).toEqual([['eth_subscribe', ['newHeads']]])
    expect(json()[0]?.body).toEqual([result(1, '0xabc'), result(2, '0x1')])
  })

  it('does not run as a notification if only its id would be of use', async () => {
    const { carried, given } = local(() => '"0xabc"')
    const { send, texts } = openBody(given)
    await send(subscribe())
    await send({ ...subscribe(), method: 'eth_unsubscribe', params: ['0xabc'] })
    expect(carried).toEqual([['eth_unsubscribe', ['0xabc']]])
    expect(texts()).toEqual(['', ''])
  })

  it('does not run over the rate', async () => {
    const { carried, given } = local(() => '1')
    const { json } = await repliesTo(subscribe(1), [], { ...given, takeRate: (methods) => methods.map(() => false) })
    expect(carried).toEqual([])
    expect(json[0]?.body).toEqual(error(1, errorCodes.limitExceeded))
  })

  it('is refused with its own error', async () => {
    const { given } = local(throws(new RpcError(errorCodes.invalidParams, 'not like this')))
    const { json } = await repliesTo([subscribe(1), chain(2)], [], given)
    const refusal = { jsonrpc: '2.0', id: 1, error: { code: errorCodes.invalidParams, message: 'not like this' } }
    expect(json[0]?.body).toEqual([refusal, result(2, '0x7')])
  })
})
