import { once } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { fetchDocumented, openTestStack, type TestStack } from '../../support/test-stack.ts'
import { highLimits, RpcTestClient, transferAmounts } from './rpc-test-client.ts'

/** What a handshake is answered with where it does not become a WebSocket. */
async function handshakeRefusal({ relay }: TestStack, headers: Record<string, string> = {}, query = '') {
  const socket = new WebSocket(`${relay.url.replace('http', 'ws')}/rpc${query}`, { headers })
  onTestFinished(() => socket.terminate())
  // What is torn down before it opened reports an error.
  socket.on('error', () => {})
  const [, response] = await once(socket, 'unexpected-response')
  let body = ''
  for await (const chunk of response) body += chunk
  return { status: response.statusCode, retry: response.headers['retry-after'], record: JSON.parse(body) }
}

const listenerCount = async ({ relay }: TestStack): Promise<number> =>
  Number(
    /stocktape_listeners\{carrier="rpc"\} (\d+)/.exec((await fetchDocumented(`${relay.url}/metrics`)).text)?.[1] ?? 0,
  )

/** Calls so often in one message, or in one each; the codes of the answers, 0 for a result. */
async function callRepeatedly(listener: RpcTestClient, times: number, { batch = false, method = 'eth_chainId' } = {}) {
  const requests = Array.from({ length: times }, () => listener.request(method, ...(paramsOf[method] ?? [])))
  if (batch) listener.rawSocket.send(JSON.stringify(requests))
  else for (const request of requests) listener.rawSocket.send(JSON.stringify(request))
  const answers = await Promise.all(requests.map(({ id }) => listener.answer(id)))
  return answers.map(({ error }) => error?.code ?? 0)
}
const filter = { fromBlock: 'latest' }
const paramsOf: Record<string, readonly unknown[]> = {
  eth_getLogs: [filter],
  eth_getBlockByNumber: ['latest', true],
}
const codes = (results: number, errors: number) => [...Array(results).fill(0), ...Array(errors).fill(-32005)]

async function post({ relay }: TestStack, requests: number, method = 'eth_chainId') {
  const params = method === 'eth_getLogs' ? [filter] : []
  const body = Array.from({ length: requests }, (_, id) => ({ jsonrpc: '2.0', id, method, params }))
  const response = await fetch(`${relay.url}/rpc`, {
    method: 'POST',
    body: JSON.stringify(requests === 1 ? body[0] : body),
  })
  const answers: { error?: { code: number } }[] = [(await response.json()) as never].flat()
  return {
    status: response.status,
    retry: Number(response.headers.get('retry-after')),
    codes: answers.map(({ error }) => error?.code ?? 0),
  }
}

it('a small BACKLOG_BOUND_BYTES keeps nobody from being answered', async () => {
  const stack = await openTestStack({ ...highLimits, BACKLOG_BOUND_BYTES: '16384' })
  const listener = await RpcTestClient.open(stack)
  expect(await callRepeatedly(listener, 200, { method: 'eth_getBlockByNumber' })).toHaveLength(200)
})

describe('the rate', () => {
  it.each([false, true])('is kept element by element over WebSocket, in one batch: %s', async (batch) => {
    const stack = await openTestStack({ RPC_RATE: '10' })
    const listener = await RpcTestClient.open(stack)
    expect(await callRepeatedly(listener, 15, { batch })).toEqual(codes(10, 5))
    expect((await listener.call('eth_subscribe', 'pendingLogs')).error).toMatchObject({ code: -32005 })
    expect(listener.rawSocket.closeCode).toBeNull()
  })

  it('refuses all of a body over HTTP, says when to come back, and counts none of it', async () => {
    const stack = await openTestStack({ RPC_RATE: '10' })
    expect(await post(stack, 11)).toEqual({ status: 429, retry: 1, codes: codes(0, 11) })
    expect(await post(stack, 10)).toEqual({ status: 200, retry: 0, codes: codes(10, 0) })
    expect(await post(stack, 1)).toEqual({ status: 429, retry: 1, codes: codes(0, 1) })
  })

  it('of eth_getLogs is a fifth of it, by either way', async () => {
    const stack = await openTestStack({ RPC_RATE: '10' })
    const listener = await RpcTestClient.open(stack)
    expect(await callRepeatedly(listener, 3, { method: 'eth_getLogs', batch: true })).toEqual(codes(2, 1))
    expect(await post(stack, 1, 'eth_getLogs')).toEqual({ status: 429, retry: 1, codes: [-32005] })
    expect((await listener.call('eth_chainId')).error).toBeUndefined()
  })

  it('is each address’s own', async () => {
    const stack = await openTestStack({ RPC_RATE: '5', TRUSTED_PROXIES: '127.0.0.0/8' })
    const [one, other] = [
      await RpcTestClient.open(stack, { headers: { 'x-forwarded-for': '203.0.113.7' } }),
      await RpcTestClient.open(stack, { headers: { 'x-forwarded-for': '203.0.113.8' } }),
    ]
    expect(await callRepeatedly(one, 6)).toEqual(codes(5, 1))
    expect(await callRepeatedly(other, 5)).toEqual(codes(5, 0))
  })

  it('closes whoever goes on and on above it', async () => {
    const stack = await openTestStack({ RPC_RATE: '1' })
    const listener = await RpcTestClient.open(stack)
    for (let time = 0; time < 1_100 && listener.rawSocket.closeCode === null; time += 1) {
      listener.send('eth_chainId')
      if (time % 100 === 0) await new Promise(setImmediate)
    }
    expect(await listener.closed).toEqual({ code: 4101, reason: 'too_many_messages' })
  })
})

describe('who may come in', () => {
  it('is up to the keys, by header or by URL', async () => {
    const stack = await openTestStack({ API_KEYS: 'k-0123456789' })
    const forbidden = { status: 401, record: { code: 401, details: [{ '@type': 'stocktape/unauthorized' }] } }
    expect(await handshakeRefusal(stack)).toMatchObject(forbidden)
    expect(await handshakeRefusal(stack, { authorization: 'Bearer wrong' })).toMatchObject(forbidden)
    expect(await handshakeRefusal(stack, {}, '?key=wrong')).toMatchObject(forbidden)
    const listeners = [
      await RpcTestClient.open(stack, { headers: { authorization: 'Bearer k-0123456789' } }),
      await RpcTestClient.open(stack, { query: '?key=k-0123456789' }),
    ]
    for (const listener of listeners) await listener.subscribe('pendingLogs')
    expect((await fetch(`${stack.relay.url}/rpc`, { method: 'POST', body: '{}' })).status).toBe(401)
  })

  it('is up to the origins, which programs have none of', async () => {
    const stack = await openTestStack({ ORIGINS: 'https://trade.example' })
    expect(await handshakeRefusal(stack, { origin: 'https://other.example' })).toMatchObject({
      status: 403,
      record: { code: 403, details: [{ '@type': 'stocktape/forbidden' }] },
    })
    await RpcTestClient.open(stack, { headers: { origin: 'https://trade.example' } })
    await RpcTestClient.open(stack)
  })

  it.each([
    [{ CLIENTS_PER_ADDRESS_BOUND: '2' }, 429, 'too_many_connections'],
    [{ CLIENTS_BOUND: '2' }, 503, 'full'],
  ] as const)('is bounded by %o, said in plain HTTP, until one leaves', async (settings, status, word) => {
    const stack = await openTestStack(settings)
    const listeners = [await RpcTestClient.open(stack), await RpcTestClient.open(stack)]
    expect(await handshakeRefusal(stack)).toMatchObject({
      status,
      retry: expect.stringMatching(/^\d+$/),
      record: { code: status, details: [{ '@type': `stocktape/${word}` }] },
    })
    listeners[0]?.rawSocket.socket.terminate()
    while ((await listenerCount(stack)) > 1);
    await RpcTestClient.open(stack)
  })

  it('is counted in the metrics while it stays', async () => {
    const stack = await openTestStack(highLimits)
    const listeners = await Promise.all([1, 2, 3].map(() => RpcTestClient.open(stack)))
    expect(await listenerCount(stack)).toBe(3)
    for (const listener of listeners) listener.rawSocket.socket.close()
    while ((await listenerCount(stack)) > 0);
  })
})

describe('a sign of life', () => {
  it('is asked for every HEARTBEAT_MS, and whoever gives none twice is closed', async () => {
    const stack = await openTestStack({ ...highLimits, HEARTBEAT_MS: '100' })
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

  it('that a client asks for is given', async () => {
    const stack = await openTestStack(highLimits)
    const { rawSocket } = await RpcTestClient.open(stack)
    rawSocket.socket.ping('are you there')
    const [data] = await once(rawSocket.socket, 'pong')
    expect(String(data)).toBe('are you there')
  })
})

describe('a relay that stops', () => {
  it('sends its clients away, to come back', async () => {
    const stack = await openTestStack(highLimits)
    const listener = await RpcTestClient.open(stack)
    await listener.subscribe('pendingLogs')
    const stopped = stack.relay.stop()
    expect(await listener.closed).toEqual({ code: 4200, reason: 'going_away' })
    await stopped
  })
})

describe('a client that does not read', () => {
  it('is shown out, told that it was too slow, and the others notice nothing', async () => {
    const stack = await openTestStack({ ...highLimits, BACKLOG_BOUND_BYTES: '65536' })
    const { devnet, relay } = stack
    const [slow, other] = [await RpcTestClient.open(stack), await RpcTestClient.open(stack)]
    const [, published] = [await slow.subscribe('pendingLogs'), await other.subscribe('pendingLogs')]
    slow.rawSocket.socket.pause()
    const address = devnet.list.addressOf('AAPLc')
    const isShownOut = async () =>
      /stocktape_\w*shown_out\w* 1\b/.test((await fetchDocumented(`${relay.url}/metrics`)).text)
    let said = 0
    while (said < 200 && !(await isShownOut())) {
      devnet.emit({ address, topics: [], data: `0x${'5a'.repeat(100_000)}` })
      devnet.makeFlashblock()
      said += 1
      await published.waitForResults(said)
    }
    expect(await isShownOut()).toBe(true)
    slow.rawSocket.socket.resume()
    expect(await slow.closed).toEqual({ code: 4202, reason: 'too_slow' })
    transferAmounts(stack, 1)
    await published.waitForResults(said + 1)
    expect(await listenerCount(stack)).toBe(1)
  })
})
