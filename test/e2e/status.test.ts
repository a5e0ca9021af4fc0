import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Health, Readiness, ServiceStatus } from '../../src/protocol/service-status.ts'
import type { Update } from '../../src/protocol/updates.ts'
import { openRelayBeforeList, type TestRelay } from '../support/in-process-relay.ts'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../support/test-listener.ts'
import { fetchDocumented, listenToAll, openDevnet, openTestStack, tapeUpdatesOf, transfer } from '../support/test-stack.ts'
import { RpcTestClient } from './gateway/rpc-test-client.ts'
import { openStackWithListener } from './listeners.ts'

/** More requests than any wait takes. */
const ATTEMPTS_BOUND = 1_000

type HasRelay = { readonly relay: TestRelay }

/** The status, which must have exactly the fields of its schema in their order. */
async function statusOf({ relay }: HasRelay): Promise<ServiceStatus> {
  const { status, text, json } = await fetchDocumented(`${relay.url}/v1/status`)
  expect(status).toBe(200)
  const read = ServiceStatus.parse(json)
  expect(JSON.stringify(read)).toBe(text)
  return read
}

/** The hello of a new listener. */
async function fetchHello({ relay }: HasRelay) {
  const listener = await listenToAll({ relay })
  listener.close()
  return listener.waitFor('hello')
}

/** Reads the status until a condition holds. */
async function until(stack: HasRelay, holds: (status: ServiceStatus) => boolean | Promise<boolean>): Promise<ServiceStatus> {
  for (let attempts = 0; attempts < ATTEMPTS_BOUND; attempts += 1) {
    const status = await statusOf(stack)
    if (await holds(status)) return status
  }
  throw new Error('waited in vain for a status')
}

/** What the score counts, and the seconds of pendingLogs, over all hours. */
function sumsOf({ score }: ServiceStatus) {
  const sum = { published: 0, sealed: 0, pendingLogs: 0 }
  for (const { published, sealed, seconds } of score ?? []) {
    sum.published += published
    sum.sealed += sealed
    sum.pendingLogs += seconds.pendingLogs
  }
  return sum
}

/** The tape up to its end, as a listener receives it. */
async function receivedUntil(end: string, listener: TestListener): Promise<readonly Update[]> {
  const isEnd = ({ id }: Update) => id === end
  await listener.until(() => tapeUpdatesOf(listener).some(isEnd), 'the end of the tape')
  return tapeUpdatesOf(listener).slice(0, tapeUpdatesOf(listener).findIndex(isEnd) + 1)
}

describe('the status of the service', () => {
  it('has every field', async () => {
    const { stack, devnet, relay, listener } = await openStackWithListener({}, 'start')
    transfer(stack)
    devnet.seal()
    await listener.waitFor('seal')
    let hello = await fetchHello(stack)
    // They are read again if an update was published between the two reads.
    const status = await until(stack, async ({ tape, head }) => {
      hello = await fetchHello(stack)
      return tape.end === hello.end && isDeepStrictEqual(head, hello.head)
    })
    const lastStatus = await receivedUntil(status.tape.end, listener).then((received) =>
      received.findLast(({ type }) => type === 'status'),
    )
    if (lastStatus?.type !== 'status') throw new Error('the source was not published')
    expect(status).toMatchObject({
      ...{ chain_id: devnet.chainId, source: lastStatus.source, reason: lastStatus.reason, started_at: lastStatus.started_at },
      tape: { epoch: hello.end.split('.')[0], oldest: hello.oldest },
    })
    expect(status.head.sealed).toBe(devnet.chain.head.number)
    expect((await fetchDocumented(`${relay.url}/v1/status`)).headers.get('cache-control')).toBe('no-store')
    const { headers, json } = await fetchDocumented(`${relay.url}/v1/tokenized-stocks`)
    const { tokens } = json as { tokens: readonly unknown[] }
    expect(status.stocks.count).toBe(tokens.length)
    await until(stack, (later) => {
      const { published, sealed, pendingLogs } = sumsOf(later)
      return published === 1 && sealed === 1 && pendingLogs > sumsOf(status).pendingLogs
    })
    expect(status.stocks.age_s).toBe(Number(headers.get('age')))
    expect(Date.now() - Date.parse(status.stocks.read_at ?? '')).toBeLessThan(5_000)
  })

  it('exists before there is a list', async () => {
    const devnet = await openDevnet()
    const relay = await openRelayBeforeList(devnet, { STOCKS_API_URL: 'http://127.0.0.1:1' })
    onTestFinished(() => relay.stop())
    const status = await statusOf({ relay })
    expect(status.stocks).toEqual({ read_at: null, age_s: null, count: null })
    expect(status).toMatchObject({ source: 'down', reason: 'no_list', demo: false, started_at: null, lag_ms: null })
    expect(status.score).toMatchObject([{ published: 0, sealed: 0, lead_ms: { p50: null, p95: null } }])
    expect(Health.parse((await fetchDocumented(`${relay.url}/healthz`)).json)).toEqual({ status: 'ok' })
    expect(Readiness.parse((await fetchDocumented(`${relay.url}/readyz`)).json).reasons).not.toEqual([])
  })

  it('counts connections by transport', async () => {
    const stack = await openTestStack()
    const { relay } = stack
    const stream = `${relay.url}/v1/stream/AAPLc`
    const listeners = [
      ...(await Promise.all([listenWs(relay.wsUrl), listenWs(`${relay.wsUrl}?symbols=*`)])),
      ...(await Promise.all([listenSse(stream), listenSse(`${stream}?events=named`), listenSse(stream)])),
      await listenNdjson(stream),
    ]
    const abort = new AbortController()
    onTestFinished(() => abort.abort())
    await fetch(`${relay.url}/v1/tail/AAPLc`, { signal: abort.signal })
    const rpc = await RpcTestClient.open(stack)
    expect((await statusOf(stack)).clients).toEqual({ ws: 2, sse: 3, ndjson: 1, text: 1, rpc: 1 })
    for (const listener of listeners.slice(1)) listener.close()
    rpc.rawSocket.socket.close()
    abort.abort()
    const { clients } = await until(
      stack,
      ({ clients: { ws, sse, ndjson, text, rpc: lines } }) => ws + sse + ndjson + text + lines <= 1,
    )
    expect(clients).toEqual({ ws: 1, sse: 0, ndjson: 0, text: 0, rpc: 0 })
    listeners[0]?.close()
  })
})
