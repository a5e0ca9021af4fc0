import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { ANSWER_BOUND_BYTES } from '../../../../src/relay/chain/rpc/endpoint-pool.ts'
import { classify } from '../../../../src/relay/chain/rpc/upstream-error.ts'
import { answerBody, type Caller, type Reply } from '../../../../src/relay/gateway/answer-rpc-body.ts'
import { RateLimiter } from '../../../../src/relay/gateway/rate-limiter.ts'
import { errorCodes, RpcError } from '../../../../src/relay/gateway/rpc-error.ts'
import { openAnswers } from './shared-answers-fixture.ts'

/** A result up to this size needs no reservation. */
const SMALL_BYTES = 65_536

const ADDRESS = `0x${'a1'.repeat(20)}`
const balance = (id?: unknown, at = 'latest') => ({ jsonrpc: '2.0', id, method: 'eth_getBalance', params: [ADDRESS, at] })
const code = (id: unknown, at: string) => ({ ...balance(id, at), method: 'eth_getCode' })
const subscribe = (id?: unknown) => ({ jsonrpc: '2.0', id, method: 'eth_subscribe', params: ['newHeads'] })

/** A caller that is allowed everything unless the test says otherwise. */
const callerOf = (given: Partial<Caller> = {}): Caller => ({
  client: 'somebody',
  takeRate: (methods) => methods.map(() => true),
  isLocal: () => false,
  runLocal: () => 'null',
  reserve: () => true,
  hasHttpStatus: true,
  ...given,
})

/** Sends a body to the gateway over a node that the test answers by hand. */
function openBatch(given: Partial<Caller> = {}) {
  const fixture = openAnswers({ chainId: 7 })
  const replies: Reply[] = []
  const caller = callerOf(given)
  const send = (body: unknown): Promise<void> =>
    answerBody(typeof body === 'string' ? body : JSON.stringify(body), fixture, caller, (one) => replies.push(one))
  const json = () => replies.map(({ status, chunks }) => ({ status, body: JSON.parse(String(Buffer.concat(chunks)) || 'null') }))
  return { ...fixture, send, json, replies }
}

const chain = (id?: unknown) => ({ jsonrpc: '2.0', id, method: 'eth_chainId' })
const result = (id: unknown, value: unknown) => ({ jsonrpc: '2.0', id, result: value })
const error = (id: unknown, number: number) => ({ ...{ jsonrpc: '2.0', id }, error: { code: number, message: expect.any(String) } })

describe('a reply', () => {
  it('is written once, when everything is answered', async () => {
    const { send, upstreamCalls, json } = openBatch()
    const done = send([balance(1), chain(2), balance(3, 'pending')])
    await yieldToEventLoop()
    await upstreamCalls[1]?.succeed('0x3')
    expect(json()).toEqual([])
    await upstreamCalls[0]?.succeed('0x1')
    await done
    expect(json()).toEqual([{ status: 200, body: [result(1, '0x1'), result(2, '0x7'), result(3, '0x3')] }])
  })

  it('contains the bytes of the node as they came', async () => {
    const { send, upstreamCalls, replies } = openBatch()
    const done = send(balance('a'))
    await yieldToEventLoop()
    await upstreamCalls[0]?.succeed({ odd: ['\u00e9', 1.5] })
    await done
    expect(String(Buffer.concat(replies[0]?.chunks ?? []))).toBe('{"jsonrpc":"2.0","id":"a","result":{"odd":["é",1.5]}}')
  })

  it('is empty if nothing needs an answer', async () => {
    for (const body of [chain(), [chain(), balance()], { ...chain(), method: 'nothing' }]) {
      const { send, replies, upstreamCalls } = openBatch()
      await send(body)
      expect(replies).toEqual([{ status: 200, chunks: [], reservedBytes: 0 }])
      expect(upstreamCalls).toEqual([])
    }
  })

  it('reports an internal failure without its message', async () => {
    const { send, upstreamCalls, json } = openBatch()
    const done = send(balance(1))
    await yieldToEventLoop()
    await upstreamCalls[0]?.fail(new TypeError('secret is not a function'))
    await done
    expect(json()).toEqual([{ status: 200, body: error(1, -32603) }])
    expect(JSON.stringify(json())).not.toContain('secret')
  })
})

describe('an error with a status', () => {
  const forbidden = classify(new Response('', { status: 403 }), { code: -32601, message: 'rpc method is not whitelisted' })
  const refused = async (body: unknown, given: Partial<Caller> = {}) => {
    const { send, upstreamCalls, json } = openBatch(given)
    const done = send(body)
    await yieldToEventLoop()
    await upstreamCalls[0]?.fail(forbidden)
    await done
    return json()
  }

  it('sets the status of an HTTP answer to one request', async () => {
    expect(await refused(balance(1))).toEqual([{ status: 403, body: error(1, -32601) }])
  })

  it('is reported by code within a batch, and without HTTP', async () => {
    expect(await refused([balance(1)])).toEqual([{ status: 200, body: [error(1, errorCodes.methodNotFound)] }])
    expect(await refused(balance(1), { hasHttpStatus: false })).toMatchObject([{ body: error(1, errorCodes.methodNotFound) }])
  })
})

describe('the rate', () => {
  it('counts each request by its method, invalid ones too', async () => {
    const counted: (readonly string[])[] = []
    const { send } = openBatch({
      takeRate: (methods) => {
        counted.push(methods)
        return methods.map(() => true)
      },
    })
    for (const body of [chain(1), [chain(1), 3, chain(), { ...chain(2), method: 'nothing' }], '{', '[]']) await send(body)
    expect(counted).toEqual([['eth_chainId'], ['eth_chainId', '', 'eth_chainId', 'nothing'], [''], ['']])
  })

  it.each([
    ['allows a batch of 100 in many bytes', { requests: 100, bytes: 40_000, before: 0 }, 200],
    ['allows a batch of 100 once', { requests: 100, bytes: 40_000, before: 1 }, 429],
    ['counts a long request by its bytes', { requests: 1, bytes: 400_000, before: 76 }, 200],
    ['counts a long request not as one', { requests: 1, bytes: 400_000, before: 77 }, 429],
    ['counts text that is no JSON by its bytes', { requests: 0, bytes: 400_000, before: 77 }, 429],
  ])('%s', async (_, { requests, bytes, before }, status) => {
    const rates = new RateLimiter(50)
    const takeRate: Caller['takeRate'] = (methods, prepaid) => {
      const isAllowed = rates.take('somebody', methods, 0, prepaid)
      return methods.map(() => isAllowed)
    }
    takeRate(Array.from({ length: before }, () => ''))
    const { send, json } = openBatch({ takeRate })
    await send(JSON.stringify(Array.from({ length: requests }, (_, id) => chain(id))).padEnd(bytes, requests > 0 ? ' ' : '['))
    expect(json()).toMatchObject([{ status }])
  })

  it('refuses a whole body with 429 and forwards nothing', async () => {
    const { send, json, upstreamCalls } = openBatch({ takeRate: (methods) => methods.map(() => false) })
    for (const body of [balance(1), [balance(1), balance(2)], '{']) await send(body)
    expect(json()).toEqual([
      { status: 429, body: error(1, errorCodes.limitExceeded) },
      { status: 429, body: [error(1, errorCodes.limitExceeded), error(2, errorCodes.limitExceeded)] },
      { status: 429, body: error(null, errorCodes.limitExceeded) },
    ])
    expect(upstreamCalls).toEqual([])
  })

  it('refuses the one request that exceeds it and answers the others', async () => {
    const { send, json } = openBatch({ takeRate: (methods) => methods.map((_, at) => at !== 1), hasHttpStatus: false })
    await send([chain(1), chain(2), chain(3)])
    expect(json()[0]?.body).toEqual([result(1, '0x7'), error(2, errorCodes.limitExceeded), result(3, '0x7')])
  })
})

describe('long answers', () => {
  const long = (bytes: number): string => 'x'.repeat(bytes - 2)

  it('need a reservation above a bound', async () => {
    const held: number[] = []
    const { send, upstreamCalls, replies } = openBatch({ reserve: (bytes) => held.push(bytes) > 0 })
    const done = send([balance(1), code(2, 'latest')])
    await yieldToEventLoop()
    await upstreamCalls[0]?.succeed(long(SMALL_BYTES - 1_000))
    await upstreamCalls[1]?.succeed(long(SMALL_BYTES + 1))
    await done
    expect(held).toEqual([SMALL_BYTES + 1])
    expect(replies[0]?.reservedBytes).toBe(SMALL_BYTES + 1)
  })

  it('include many short ones together', async () => {
    for (const hasRoom of [true, false]) {
      const held: number[] = []
      const { send, upstreamCalls, replies, json } = openBatch({ reserve: (bytes) => held.push(bytes) > 0 && hasRoom })
      const done = send([balance(1), code(2, 'latest')])
      await yieldToEventLoop()
      for (const { succeed } of upstreamCalls) await succeed(long(SMALL_BYTES))
      await done
      expect(held).toEqual([expect.any(Number)])
      expect(held[0]).toBeGreaterThan(2 * SMALL_BYTES)
      expect(replies[0]?.reservedBytes).toBe(hasRoom ? held[0] : 0)
      expect(json()[0]?.status).toBe(hasRoom ? 200 : 503)
    }
  })

  it('are refused without room', async () => {
    const { send, upstreamCalls, json } = openBatch({ reserve: () => false })
    const done = send(balance(1))
    await yieldToEventLoop()
    await upstreamCalls[0]?.succeed(long(SMALL_BYTES + 1))
    await done
    expect(json()).toEqual([{ status: 503, body: error(1, errorCodes.limitExceeded) }])
  })

  it('of one batch are bounded together: one that does not fit is refused', async () => {
    const { send, upstreamCalls, json } = openBatch()
    const done = send([balance(1), code(2, 'latest'), chain(3)])
    await yieldToEventLoop()
    await upstreamCalls[0]?.succeed(long(ANSWER_BOUND_BYTES))
    await upstreamCalls[1]?.succeed(long(SMALL_BYTES + 1))
    await done
    expect(json()[0]?.body.slice(1)).toMatchObject([error(2, errorCodes.serverError), { id: 3, result: '0x7' }])
    expect(json()[0]?.body[0].result.length).toBe(ANSWER_BOUND_BYTES - 2)
  })
})

describe('a local call', () => {
  const local = (carried: unknown[], answer: () => string): Partial<Caller> => ({
    hasHttpStatus: false,
    isLocal: (method) => method.startsWith('eth_sub') || method.startsWith('eth_unsub'),
    runLocal: (method, params) => {
      carried.push([method, params])
      return answer()
    },
  })

  it('runs in the step that writes its answer', async () => {
    const carried: unknown[] = []
    let writtenAt = -1
    const fixture = openAnswers({ chainId: 7 })
    const caller = callerOf(local(carried, () => '"0xabc"'))
    const body = JSON.stringify([subscribe(1), balance(2)])
    const done = answerBody(body, fixture, caller, () => {
      writtenAt = carried.length
    })
    await yieldToEventLoop()
    expect(carried).toEqual([])
    await fixture.upstreamCalls[0]?.succeed('0x1')
    await done
    expect(carried).toEqual([['eth_subscribe', ['newHeads']]])
    expect(writtenAt).toBe(1)
  })

  it('does not run as a notification if only its id would be of use', async () => {
    const carried: unknown[] = []
    const { send, replies } = openBatch(local(carried, () => '"0xabc"'))
    await send(subscribe())
    expect(carried).toEqual([])
    await send({ ...subscribe(), method: 'eth_unsubscribe', params: ['0xabc'] })
    expect(carried).toEqual([['eth_unsubscribe', ['0xabc']]])
    expect(replies.map(({ chunks }) => chunks)).toEqual([[], []])
  })

  it('does not run over the rate', async () => {
    const carried: unknown[] = []
    const { send, json } = openBatch({ ...local(carried, () => '1'), takeRate: (methods) => methods.map(() => false) })
    await send(subscribe(1))
    expect(carried).toEqual([])
    expect(json()[0]?.body).toEqual(error(1, errorCodes.limitExceeded))
  })

  it('is refused with its own error', async () => {
    const failing = (failure: Error) =>
      openBatch(
        local([], () => {
          throw failure
        }),
      )
    const known = failing(new RpcError(errorCodes.invalidParams, 'not like this'))
    await known.send(subscribe(1))
    expect(known.json()[0]?.body).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: errorCodes.invalidParams, message: 'not like this' },
    })
    const unknown = failing(new Error('secret'))
    await unknown.send([subscribe(1), chain(2)])
    expect(unknown.json()[0]?.body).toEqual([error(1, errorCodes.internalError), result(2, '0x7')])
  })
})

describe('an error', () => {
  it('includes its data if it has some', () => {
    expect(JSON.parse(new RpcError(3, 'reverted', 200, '0x12').json)).toEqual({ code: 3, message: 'reverted', data: '0x12' })
    expect(JSON.parse(new RpcError(3, 'reverted', 200, null).json)).toEqual({ code: 3, message: 'reverted', data: null })
    expect(new RpcError(3, 'a "quoted" word').json).toBe('{"code":3,"message":"a \\"quoted\\" word"}')
  })
})
