import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { ANSWER_BOUND_BYTES } from '../../../src/chain/rpc/client.ts'
import { classify } from '../../../src/chain/rpc/error.ts'
import { type Caller, type Reply, reply } from '../../../src/gateway/rpc-batch.ts'
import { codes, Fault } from '../../../src/gateway/rpc-error.ts'
import { answering } from './answers-fixture.ts'

/** A result up to this needs no room of its own. */
const SMALL_BYTES = 65_536

const ADDRESS = `0x${'a1'.repeat(20)}`
const balance = (id?: unknown, at = 'latest') => ({
  jsonrpc: '2.0',
  id,
  method: 'eth_getBalance',
  params: [ADDRESS, at],
})
const code = (id: unknown, at: string) => ({ ...balance(id, at), method: 'eth_getCode' })
const subscribe = (id?: unknown) => ({ jsonrpc: '2.0', id, method: 'eth_subscribe', params: ['newHeads'] })

/** One who asks; nothing stands in its way unless the test says so. */
const callerOf = (given: Partial<Caller> = {}): Caller => ({
  who: 'somebody',
  counts: (asked) => asked.map(() => true),
  isLocal: () => false,
  carryOut: () => 'null',
  holds: () => true,
  hasStatus: true,
  ...given,
})

/** Says a body to a service over a node that answers by hand. */
function opened(given: Partial<Caller> = {}) {
  const service = answering({ chainId: 7 })
  const replies: Reply[] = []
  const caller = callerOf(given)
  const say = (body: unknown): Promise<void> =>
    reply(typeof body === 'string' ? body : JSON.stringify(body), service, caller, (one) => replies.push(one))
  const json = () =>
    replies.map(({ status, pieces }) => ({ status, said: JSON.parse(String(Buffer.concat(pieces)) || 'null') }))
  return { ...service, say, json, replies }
}

const chain = (id?: unknown) => ({ jsonrpc: '2.0', id, method: 'eth_chainId' })
const result = (id: unknown, value: unknown) => ({ jsonrpc: '2.0', id, result: value })
const error = (id: unknown, number: number) => ({
  ...{ jsonrpc: '2.0', id },
  error: { code: number, message: expect.any(String) },
})

describe('a reply', () => {
  it('is written once, when everything is answered', async () => {
    const { say, passed, json } = opened()
    const said = say([balance(1), chain(2), balance(3, 'pending')])
    await nextTurn()
    await passed[1]?.give('0x3')
    expect(json()).toEqual([])
    await passed[0]?.give('0x1')
    await said
    expect(json()).toEqual([{ status: 200, said: [result(1, '0x1'), result(2, '0x7'), result(3, '0x3')] }])
  })

  it('holds the bytes of the node as they came', async () => {
    const { say, passed, replies } = opened()
    const said = say(balance('a'))
    await nextTurn()
    await passed[0]?.give({ odd: ['\u00e9', 1.5] })
    await said
    expect(String(Buffer.concat(replies[0]?.pieces ?? []))).toBe(
      '{"jsonrpc":"2.0","id":"a","result":{"odd":["é",1.5]}}',
    )
  })

  it('has no pieces where nothing is said', async () => {
    for (const body of [chain(), [chain(), balance()], { ...chain(), method: 'nothing' }]) {
      const { say, replies, passed } = opened()
      await say(body)
      expect(replies).toEqual([{ status: 200, pieces: [], held: 0 }])
      expect(passed).toEqual([])
    }
  })

  it('tells of a failure on this side without its words', async () => {
    const { say, passed, json } = opened()
    const said = say(balance(1))
    await nextTurn()
    await passed[0]?.fail(new TypeError('secret is not a function'))
    await said
    expect(json()).toEqual([{ status: 200, said: error(1, -32603) }])
    expect(JSON.stringify(json())).not.toContain('secret')
  })
})

describe('a refusal with a status', () => {
  const forbidden = classify(new Response('', { status: 403 }), {
    code: -32601,
    message: 'rpc method is not whitelisted',
  })
  const refused = async (body: unknown, given: Partial<Caller> = {}) => {
    const { say, passed, json } = opened(given)
    const said = say(body)
    await nextTurn()
    await passed[0]?.fail(forbidden)
    await said
    return json()
  }

  it('gives it to an HTTP answer to one request', async () => {
    expect(await refused(balance(1))).toEqual([{ status: 403, said: error(1, -32601) }])
  })

  it('is an error by code within a batch, and where there is no status', async () => {
    expect(await refused([balance(1)])).toEqual([{ status: 200, said: [error(1, codes.method)] }])
    expect(await refused(balance(1), { hasStatus: false })).toMatchObject([{ said: error(1, codes.method) }])
  })
})

describe('the rate', () => {
  it('counts each request by its method, and what is none too', async () => {
    const counted: (readonly string[])[] = []
    const { say } = opened({
      counts: (methods) => {
        counted.push(methods)
        return methods.map(() => true)
      },
    })
    for (const body of [chain(1), [chain(1), 3, chain(), { ...chain(2), method: 'nothing' }], '{', '[]'])
      await say(body)
    expect(counted).toEqual([['eth_chainId'], ['eth_chainId', '', 'eth_chainId', 'nothing'], [''], ['']])
  })

  it('refuses a whole body with 429, and asks nothing', async () => {
    const { say, json, passed } = opened({ counts: (methods) => methods.map(() => false) })
    for (const body of [balance(1), [balance(1), balance(2)], '{']) await say(body)
    expect(json()).toEqual([
      { status: 429, said: error(1, codes.limit) },
      { status: 429, said: [error(1, codes.limit), error(2, codes.limit)] },
      { status: 429, said: error(null, codes.limit) },
    ])
    expect(passed).toEqual([])
  })

  it('refuses the one request that is too many, and answers the others', async () => {
    const { say, json } = opened({ counts: (methods) => methods.map((_, at) => at !== 1), hasStatus: false })
    await say([chain(1), chain(2), chain(3)])
    expect(json()[0]?.said).toEqual([result(1, '0x7'), error(2, codes.limit), result(3, '0x7')])
  })
})

describe('long answers', () => {
  const long = (bytes: number): string => 'x'.repeat(bytes - 2)

  it('need room of their own above a bound', async () => {
    const held: number[] = []
    const { say, passed, replies } = opened({ holds: (bytes) => held.push(bytes) > 0 })
    const said = say([balance(1), code(2, 'latest')])
    await nextTurn()
    await passed[0]?.give(long(SMALL_BYTES - 1_000))
    await passed[1]?.give(long(SMALL_BYTES + 1))
    await said
    expect(held).toEqual([SMALL_BYTES + 1])
    expect(replies[0]?.held).toBe(SMALL_BYTES + 1)
  })

  it('are long as well where many that are short come together', async () => {
    for (const hasRoom of [true, false]) {
      const held: number[] = []
      const { say, passed, replies, json } = opened({ holds: (bytes) => held.push(bytes) > 0 && hasRoom })
      const said = say([balance(1), code(2, 'latest')])
      await nextTurn()
      for (const { give } of passed) await give(long(SMALL_BYTES))
      await said
      expect(held).toEqual([expect.any(Number)])
      expect(held[0]).toBeGreaterThan(2 * SMALL_BYTES)
      expect(replies[0]?.held).toBe(hasRoom ? held[0] : 0)
      expect(json()[0]?.status).toBe(hasRoom ? 200 : 503)
    }
  })

  it('are refused where there is no room', async () => {
    const { say, passed, json } = opened({ holds: () => false })
    const said = say(balance(1))
    await nextTurn()
    await passed[0]?.give(long(SMALL_BYTES + 1))
    await said
    expect(json()).toEqual([{ status: 503, said: error(1, codes.limit) }])
  })

  it('of one batch are bounded in all: a long one that does not fit beside those that came is refused', async () => {
    const { say, passed, json } = opened()
    const said = say([balance(1), code(2, 'latest'), chain(3)])
    await nextTurn()
    await passed[0]?.give(long(ANSWER_BOUND_BYTES))
    await passed[1]?.give(long(SMALL_BYTES + 1))
    await said
    expect(json()[0]?.said.slice(1)).toMatchObject([error(2, codes.server), { id: 3, result: '0x7' }])
    expect(json()[0]?.said[0].result.length).toBe(ANSWER_BOUND_BYTES - 2)
  })
})

describe('what is carried out on the spot', () => {
  const local = (carried: unknown[], answer: () => string): Partial<Caller> => ({
    hasStatus: false,
    isLocal: (method) => method.startsWith('eth_sub') || method.startsWith('eth_unsub'),
    carryOut: (method, params) => {
      carried.push([method, params])
      return answer()
    },
  })

  it('is carried out in the step in which its answer is written', async () => {
    const carried: unknown[] = []
    let writtenAt = -1
    const service = answering({ chainId: 7 })
    const caller = callerOf(local(carried, () => '"0xabc"'))
    const body = JSON.stringify([subscribe(1), balance(2)])
    const said = reply(body, service, caller, () => {
      writtenAt = carried.length
    })
    await nextTurn()
    expect(carried).toEqual([])
    await service.passed[0]?.give('0x1')
    await said
    expect(carried).toEqual([['eth_subscribe', ['newHeads']]])
    expect(writtenAt).toBe(1)
  })

  it('is not carried out for nobody, where only its id would be of use', async () => {
    const carried: unknown[] = []
    const { say, replies } = opened(local(carried, () => '"0xabc"'))
    await say(subscribe())
    expect(carried).toEqual([])
    await say({ ...subscribe(), method: 'eth_unsubscribe', params: ['0xabc'] })
    expect(carried).toEqual([['eth_unsubscribe', ['0xabc']]])
    expect(replies.map(({ pieces }) => pieces)).toEqual([[], []])
  })

  it('is not carried out over the rate', async () => {
    const carried: unknown[] = []
    const { say, json } = opened({ ...local(carried, () => '1'), counts: (methods) => methods.map(() => false) })
    await say(subscribe(1))
    expect(carried).toEqual([])
    expect(json()[0]?.said).toEqual(error(1, codes.limit))
  })

  it('is refused in its own words', async () => {
    const failing = (failure: Error) =>
      opened(
        local([], () => {
          throw failure
        }),
      )
    const known = failing(new Fault(codes.params, 'not like this'))
    await known.say(subscribe(1))
    expect(known.json()[0]?.said).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: codes.params, message: 'not like this' },
    })
    const unknown = failing(new Error('secret'))
    await unknown.say([subscribe(1), chain(2)])
    expect(unknown.json()[0]?.said).toEqual([error(1, codes.internal), result(2, '0x7')])
  })
})

describe('a fault', () => {
  it('is written with its data, where it has some', () => {
    expect(JSON.parse(new Fault(3, 'reverted', 200, '0x12').text)).toEqual({
      code: 3,
      message: 'reverted',
      data: '0x12',
    })
    expect(JSON.parse(new Fault(3, 'reverted', 200, null).text)).toEqual({ code: 3, message: 'reverted', data: null })
    expect(new Fault(3, 'a "quoted" word').text).toBe('{"code":3,"message":"a \\"quoted\\" word"}')
  })
})
