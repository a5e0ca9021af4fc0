import { once } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { apiKey } from '../../support/api-keys.ts'
import { fetchDocumented, openTestStack, type TestStack } from '../../support/test-stack.ts'
import { highLimits, request } from './node-and-gateway.ts'
import { RpcTestClient, transferAmounts } from './rpc-test-client.ts'

/** The HTTP answer to a handshake that the relay refuses. */
async function handshakeRefusal({ relay }: TestStack, headers: Record<string, string> = {}, query = '') {
  const socket = new WebSocket(`${relay.url.replace('http', 'ws')}/rpc${query}`, { headers })
  onTestFinished(() => socket.terminate())
  // A socket that closes before it opens emits an error.
  socket.on('error', () => {})
  const [, response] = await once(socket, 'unexpected-response')
  let body = ''
  for await (const chunk of response) body += chunk
  return { status: response.statusCode, retry: response.headers['retry-after'], record: JSON.parse(body) }
}

const metricsOf = async ({ relay }: TestStack): Promise<string> => (await fetchDocumented(`${relay.url}/metrics`)).text
const connectionCount = async (stack: TestStack): Promise<number> =>
  Number(/stocktape_listeners\{transport="rpc"\} (\d+)/.exec(await metricsOf(stack))?.[1] ?? 0)

const paramsOf: Record<string, readonly unknown[]> = {
  eth_getLogs: [{ fromBlock: 'latest' }],
  eth_getBlockByNumber: ['latest', true],
}
const codeOf = ({ error }: { readonly error?: { readonly code: number } | undefined }) => error?.code ?? 0
/** Codes of answers, 0 for a result. */
const codes = (results: number, errors: number) => [...Array(results).fill(0), ...Array(errors).fill(-32005)]

/** Calls a method many times, in one batch or in messages of their own; the codes of the answers. */
async function callRepeatedly(client: RpcTestClient, times: number, { batch = false, method = 'eth_chainId' } = {}) {
  const requests = Array.from({ length: times }, () => client.request(method, ...(paramsOf[method] ?? [])))
  for (const message of batch ? [requests] : requests) client.rawSocket.send(JSON.stringify(message))
  return (await Promise.all(requests.map(({ id }) => client.answer(id)))).map(codeOf)
}

async function post({ relay }: TestStack, count: number, method = 'eth_chainId') {
  const requests = Array.from({ length: count }, (_, id) => request(method, paramsOf[method], id))
  const body = JSON.stringify(count === 1 ? requests[0] : requests)
  const response = await fetch(`${relay.url}/rpc`, { method: 'POST', body })
  const answers: { id: number; error?: { code: number } }[] = [(await response.json()) as never].flat()
  expect(answers.map(({ id }) => id)).toEqual(requests.map(({ id }) => id))
  const retry = Number(response.headers.get('retry-after'))
  return { status: response.status, retry, codes: answers.map(codeOf) }
}

it('a small MAX_BACKLOG prevents no answer', async () => {
  const stack = await openTestStack({ ...highLimits, MAX_BACKLOG: '16KiB' })
  const client = await RpcTestClient.open(stack)
  expect(await callRepeatedly(client, 200, { method: 'eth_getBlockByNumber' })).toHaveLength(200)
})

describe('the rate', () => {
  it.each([false, true])('counts each request over WebSocket, in one batch: %s', async (batch) => {
    const client = await RpcTestClient.open(await openTestStack({ RPC_RATE: '1' }))
    if (batch) expect(await callRepeatedly(client, 60, { batch })).toEqual(codes(60, 0))
    expect(await callRepeatedly(client, batch ? 45 : 105, { batch })).toEqual(codes(batch ? 40 : 100, 5))
    expect((await client.call('eth_subscribe', 'pendingLogs')).error).toMatchObject({ code: -32005 })
    expect(client.rawSocket.closeCode).toBeNull()
  })

  it('refuses a whole body over HTTP with Retry-After, and counts none of it', async () => {
    const stack = await openTestStack({ RPC_RATE: '1' })
    expect(await post(stack, 60)).toEqual({ status: 200, retry: 0, codes: codes(60, 0) })
    // Five more than the bucket has, at one a second.
    expect(await post(stack, 45)).toEqual({ status: 429, retry: 5, codes: codes(0, 45) })
    expect(await post(stack, 40)).toEqual({ status: 200, retry: 0, codes: codes(40, 0) })
    expect(await post(stack, 1)).toEqual({ status: 429, retry: 1, codes: codes(0, 1) })
  })

  it('of eth_getLogs is a fifth, over both transports', async () => {
    const stack = await openTestStack({ RPC_RATE: '1' })
    const client = await RpcTestClient.open(stack)
    expect(await callRepeatedly(client, 21, { method: 'eth_getLogs', batch: true })).toEqual(codes(20, 1))
    expect(await post(stack, 1, 'eth_getLogs')).toEqual({ status: 429, retry: 5, codes: [-32005] })
    expect((await client.call('eth_chainId')).error).toBeUndefined()
  })

  it('is separate for each address', async () => {
    const stack = await openTestStack({ RPC_RATE: '1', TRUSTED_PROXIES: '127.0.0.0/8' })
    for (const address of ['203.0.113.7', '203.0.113.8']) {
      const client = await RpcTestClient.open(stack, { headers: { 'x-forwarded-for': address } })
      expect(await callRepeatedly(client, 101), address).toEqual(codes(100, 1))
    }
  })

  it('closes a client that exceeds it all the time', async () => {
    const client = await RpcTestClient.open(await openTestStack({ RPC_RATE: '1' }))
    for (let time = 0; time < 1_300 && client.rawSocket.closeCode === null; time += 1) {
      client.send('eth_chainId')
      if (time % 100 === 0) await new Promise(setImmediate)
    }
    expect(await client.closed).toEqual({ code: 4101, reason: 'too_many_messages' })
  })
})

describe('a connection', () => {
  it('needs a key where there are keys, in a header or the URL', async () => {
    const stack = await openTestStack({ API_KEYS: apiKey })
    const unauthorized = { status: 401, record: { code: 401, details: [{ '@type': 'stocktape/unauthorized' }] } }
    expect(await handshakeRefusal(stack)).toMatchObject(unauthorized)
    expect(await handshakeRefusal(stack, { authorization: 'Bearer wrong' })).toMatchObject(unauthorized)
    expect(await handshakeRefusal(stack, {}, '?key=wrong')).toMatchObject(unauthorized)
    for (const options of [{ headers: { authorization: `Bearer ${apiKey}` } }, { query: `?key=${apiKey}` }])
      await (await RpcTestClient.open(stack, options)).subscribe('pendingLogs')
    expect((await fetch(`${stack.relay.url}/rpc`, { method: 'POST', body: '{}' })).status).toBe(401)
  })

  it('needs an allowed origin, or none as programs have', async () => {
    const stack = await openTestStack({ ORIGINS: 'https://trade.example' })
    expect(await handshakeRefusal(stack, { origin: 'https://other.example' })).toMatchObject({
      status: 403,
      record: { code: 403, details: [{ '@type': 'stocktape/forbidden' }] },
    })
    await RpcTestClient.open(stack, { headers: { origin: 'https://trade.example' } })
    await RpcTestClient.open(stack)
  })

  it.each([
    [{ MAX_CLIENTS_PER_ADDRESS: '2' }, 429, 'too_many_connections'],
    [{ MAX_CLIENTS: '2' }, 503, 'full'],
  ] as const)('is refused in plain HTTP over %o, until another closes', async (settings, status, type) => {
    const stack = await openTestStack(settings)
    const clients = [await RpcTestClient.open(stack), await RpcTestClient.open(stack)]
    expect(await handshakeRefusal(stack)).toMatchObject({
      status,
      retry: expect.stringMatching(/^\d+$/),
      record: { code: status, details: [{ '@type': `stocktape/${type}` }] },
    })
    expect(await connectionCount(stack)).toBe(2)
    clients[0]?.rawSocket.socket.terminate()
    while ((await connectionCount(stack)) > 1);
    await RpcTestClient.open(stack)
  })

  it('is closed after two pings, one each HEARTBEAT, without a pong', async () => {
    const stack = await openTestStack({ ...highLimits, HEARTBEAT: '100ms' })
    const [quiet, dead] = [await RpcTestClient.open(stack), await RpcTestClient.open(stack, { autoPong: false })]
    let pings = 0
    dead.rawSocket.socket.on('ping', () => {
      pings += 1
    })
    expect(await dead.closed).toEqual({ code: 4201, reason: 'no_pong' })
    expect(pings).toBe(2)
    await quiet.flush()
    expect(quiet.rawSocket.closeCode).toBeNull()
  })

  it('that does not read is disconnected as slow, and others are not affected', async () => {
    const stack = await openTestStack({ ...highLimits, MAX_BACKLOG: '64KiB' })
    const { devnet } = stack
    const [slow, other] = [await RpcTestClient.open(stack), await RpcTestClient.open(stack)]
    const [, received] = [await slow.subscribe('pendingLogs'), await other.subscribe('pendingLogs')]
    slow.rawSocket.socket.pause()
    const address = devnet.list.addressOf('AAPLc')
    const isDisconnected = async () => /stocktape_disconnects_total\{[^}]*reason="too_slow"[^}]*\} 1\b/.test(await metricsOf(stack))
    let count = 0
    while (count < 200 && !(await isDisconnected())) {
      devnet.emit({ address, topics: [], data: `0x${'5a'.repeat(100_000)}` })
      devnet.makeFlashblock()
      count += 1
      await received.waitForResults(count)
    }
    expect(await isDisconnected()).toBe(true)
    slow.rawSocket.socket.resume()
    expect(await slow.closed).toEqual({ code: 4202, reason: 'too_slow' })
    transferAmounts(stack, 1)
    await received.waitForResults(count + 1)
    expect(await connectionCount(stack)).toBe(1)
  })
})
