import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { SourceName } from '../../src/protocol/fields.ts'
import { Health, Readiness, ServiceStatus } from '../../src/protocol/service-status.ts'
import type { Update } from '../../src/protocol/updates.ts'
import { openEmbeddedTape } from '../../src/relay/tape/embedded-tape.ts'
import { openRelayBeforeList, type TestRelay } from '../support/in-process-relay.ts'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../support/test-listener.ts'
import {
  fetchDocumented,
  listenToAll,
  openDevnet,
  openRelayFor,
  openTestStack,
  tapeUpdatesOf,
  transfer,
} from '../support/test-stack.ts'
import { transferAt } from '../unit/relay/edge/fact-drafts.ts'
import { RpcTestClient } from './gateway/rpc-test-client.ts'
import { openStackWithListener, waitForSource } from './listeners.ts'

const HOUR_MS = 3_600_000
/** How many digits of a time name its hour. */
const HOUR_DIGITS = '2026-11-20T14'.length
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

/** The score without its seconds, which the tape alone determines. */
const countsOf = ({ score }: ServiceStatus) => score?.map(({ seconds: _, ...counts }) => counts)

/** Seconds in each source over all hours. */
function secondsOf({ score }: ServiceStatus) {
  const sum = { pendingLogs: 0, poll: 0, sealed: 0, down: 0 }
  for (const { seconds } of score ?? []) {
    for (const name of SourceName.options) sum[name] += seconds[name]
  }
  return sum
}

/** The tape up to its end, as a listener receives it. */
async function receivedUntil(end: string, listener: TestListener): Promise<readonly Update[]> {
  const isEnd = ({ id }: Update) => id === end
  await listener.until(() => tapeUpdatesOf(listener).some(isEnd), 'the end of the tape')
  return tapeUpdatesOf(listener).slice(0, tapeUpdatesOf(listener).findIndex(isEnd) + 1)
}

/** Compares the score with that of a client that has received everything so far. */
async function expectMatchingScore(stack: HasRelay, listener: TestListener): Promise<ServiceStatus> {
  const status = await statusOf(stack)
  const received = await receivedUntil(status.tape.end, listener)
  expect(countsOf(status)).toEqual(status.score?.map(({ hour }) => countHour(hour, received)))
  return status
}

function countHour(hour: string, received: readonly Update[]) {
  const during = received.filter(({ time }) => time.slice(0, HOUR_DIGITS) === hour.slice(0, HOUR_DIGITS))
  const number = (holds: (update: Update) => boolean) => during.filter(holds).length
  const leads = during.flatMap((update) => leadsOf(update, received)).toSorted((a, b) => a - b)
  return {
    hour,
    published: number((update) => 'stage' in update && update.stage === 'preconfirmed'),
    sealed: leads.length,
    late: number((update) => lateAgeMs(update) <= 60_000),
    backfilled: number((update) => lateAgeMs(update) > 60_000),
    retracted: number(({ type }) => type === 'retract'),
    amended: number(({ type }) => type === 'amend'),
    lead_ms: { p50: nearest(leads, 50), p95: nearest(leads, 95) },
  }
}

/** How much older than a late message its block is; not a number if it is not late. */
const lateAgeMs = (update: Update): number =>
  'late' in update && update.late === true ? Date.parse(update.time) - Date.parse(update.block?.timestamp ?? '') : Number.NaN

const nearest = (leads: readonly number[], percent: number) => leads[Math.ceil((percent * leads.length) / 100) - 1] ?? null

/** For each key that a seal is the first to list, how long before it was published. */
function leadsOf(seal: Update, received: readonly Update[]): readonly number[] {
  if (seal.type !== 'seal') return []
  const before = received.slice(0, received.indexOf(seal))
  return seal.keys.flatMap((key) => {
    const publishing = before.findLast((update) => update.type === 'transfer' && update.key === key)
    if (publishing?.type !== 'transfer' || publishing.stage !== 'preconfirmed') return []
    const since = before.slice(before.indexOf(publishing))
    const isOver = since.some((update) => update.type === 'seal' && update.keys.includes(key))
    return isOver ? [] : [Date.parse(seal.time) - Date.parse(publishing.time)]
  })
}

/** A folder for a tape, deleted after the test. */
function createTempFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'stocktape-status-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
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
    const { headers, json } = await fetchDocumented(`${relay.url}/v1/tokenized-stocks`)
    const { tokens } = json as { tokens: readonly unknown[] }
    expect(status.stocks.count).toBe(tokens.length)
    expect(status.stocks.age_s).toBe(Number(headers.get('age')))
    expect(Date.now() - Date.parse(status.stocks.read_at ?? '')).toBeLessThan(5_000)
  })

  it('allows every origin, is not cached and is read-only', async () => {
    const { relay } = await openTestStack()
    const url = `${relay.url}/v1/status`
    const got = await fetchDocumented(url, { headers: { origin: 'https://example.com' } })
    expect(got.headers.get('access-control-allow-origin')).toBe('*')
    expect(got.headers.get('cache-control')).toBe('no-store')
    expect(got.headers.get('content-type')).toBe('application/json')
    const head = await fetchDocumented(url, { method: 'HEAD' })
    expect([head.status, head.text]).toEqual([200, ''])
    const posted = await fetchDocumented(url, { method: 'POST', body: '{}' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
  })

  it('needs a key where the relay has keys', async () => {
    const { relay } = await openTestStack({ API_KEYS: 'one' })
    expect((await fetchDocumented(`${relay.url}/v1/status`)).status).toBe(401)
    expect((await fetchDocumented(`${relay.url}/v1/status?key=one`)).status).toBe(200)
  })

  it('exists before there is a list', async () => {
    const devnet = await openDevnet()
    const relay = await openRelayBeforeList(devnet, { STOCKS_API_URL: 'http://127.0.0.1:1' })
    onTestFinished(() => relay.stop())
    const status = await statusOf({ relay })
    expect(status.stocks).toEqual({ read_at: null, age_s: null, count: null })
    expect(status).toMatchObject({ source: 'down', reason: 'no_list', demo: false, started_at: null, lag_ms: null })
    expect(countsOf(status)).toMatchObject([{ published: 0, sealed: 0, lead_ms: { p50: null, p95: null } }])
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

  it('has the lag of the head behind the clock', async () => {
    const behindMs = 60_000
    const devnet = await openDevnet({ pace: 'manual', now: () => Date.now() - behindMs })
    const relay = await openRelayFor(devnet)
    const listener = await listenToAll({ relay }, 'start')
    await waitForSource(listener, 'pendingLogs')
    for (let block = 0; block < 2; block += 1) {
      transfer({ devnet })
      devnet.seal()
      await listener.until(() => listener.messagesOf('seal').length === block + 1)
      const sealedAt = Date.parse(listener.messagesOf('seal').at(-1)?.block.timestamp ?? '')
      const [from, { lag_ms }, to] = [Date.now(), await statusOf({ relay }), Date.now()]
      expect(lag_ms).toBeGreaterThanOrEqual(from - sealedAt)
      expect(lag_ms).toBeLessThanOrEqual(to - sealedAt)
    }
  })
})

describe('the score', () => {
  it('is the count of a client that received everything', async () => {
    const { stack, devnet, listener } = await openStackWithListener({}, 'start')
    for (let block = 1; block <= 3; block += 1) {
      transfer(stack, 'AAPLc', 2)
      transfer(stack, 'TSLAc', block)
      await listener.until(() => listener.messagesOf('transfer').length === 2 * block + (block * (block + 1)) / 2)
      devnet.seal()
      await listener.until(() => listener.messagesOf('seal').length === 2 * block)
    }
    const status = await expectMatchingScore(stack, listener)
    expect(status.score?.reduce((sum, { sealed }) => sum + sealed, 0)).toBe(12)
  })

  it('separates retracted, amended and late updates from the others, also in a reorganisation', async () => {
    const { stack, devnet, listener } = await openStackWithListener({}, 'start')
    const changed = devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    const reorganised = devnet.transfer({ symbol: 'AAPLc', raw: 2n })
    const dropped = devnet.transfer({ symbol: 'TSLAc', raw: 3n })
    const [log] = devnet.makeFlashblock()
    if (!log) throw new Error('no log')
    await listener.until(() => listener.messagesOf('transfer').length === 3)
    devnet.faults.lostFlashes = 1
    transfer(stack, 'NVDAc')
    devnet.faults.drop(dropped)
    devnet.faults.change(changed, [{ address: log.address, topics: log.topics, data: `0x${'7'.padStart(64, '0')}` }])
    devnet.seal()
    const sealsOf = (name: string) => listener.messagesOf('seal').filter(({ symbol }) => symbol === name)
    await listener.until(() => sealsOf('NVDAc').length === 1)
    devnet.reorg(1, [reorganised])
    await listener.waitFor('retract', ({ reason }) => reason === 'reorg')
    const { hash } = devnet.chain.head
    await listener.until(() => sealsOf('NVDAc').at(-1)?.block.hash === hash)
    await expectMatchingScore(stack, listener)
    const [retracts, amends] = [listener.messagesOf('retract').length, listener.messagesOf('amend').length]
    expect([retracts >= 2, amends >= 1, sealsOf('AAPLc').length]).toEqual([true, true, 2])
  })

  it('has the seconds in each source', async () => {
    const from = performance.now()
    const { stack, devnet, listener } = await openStackWithListener({}, 'start')
    /** Once a source is published, its seconds grow and no others. */
    const expectGrowth = async (name: SourceName) => {
      await waitForSource(listener, name)
      const before = await statusOf(stack)
      const { source: now, reason, started_at } = listener.messagesOf('status').at(-1) ?? {}
      expect(before).toMatchObject({ source: now, reason, started_at })
      const was = secondsOf(before)
      const is = secondsOf(await until(stack, (status) => secondsOf(status)[name] > was[name]))
      expect(is).toEqual({ ...was, [name]: is[name] })
      return is
    }
    await expectGrowth('pendingLogs')
    devnet.faults.dropSockets()
    await expectGrowth('poll')
    devnet.faults.sockets = undefined
    const { pendingLogs, poll, sealed, down } = await expectGrowth('pendingLogs')
    expect(pendingLogs + poll + sealed + down).toBeLessThanOrEqual((performance.now() - from) / 1_000)
  })

  it('continues after a restart on the same tape', async () => {
    const devnet = await openDevnet()
    const dir = createTempFolder()
    const round = async (relay: TestRelay, nth: number) => {
      const listener = await listenToAll({ relay }, 'start')
      await waitForSource(listener, 'pendingLogs')
      transfer({ devnet }, 'AAPLc', 3)
      await listener.until(() => listener.messagesOf('transfer').length === 3 * nth)
      devnet.seal()
      await listener.until(() => listener.messagesOf('seal').length === nth)
      return expectMatchingScore({ relay }, listener)
    }
    const first = await openRelayFor(devnet, { DATA_DIR: dir })
    const before = await round(first, 1)
    await first.stop()
    const second = await openRelayFor(devnet, { DATA_DIR: dir })
    const after = await statusOf({ relay: second })
    expect(countsOf(after)?.slice(0, before.score?.length)).toEqual(countsOf(before))
    const [was, is] = [secondsOf(before), secondsOf(after)]
    expect(is.pendingLogs).toBeGreaterThan(was.pendingLogs)
    expect({ ...is, pendingLogs: 0 }).toEqual({ ...was, pendingLogs: 0 })
    await round(second, 2)
  })

  it('covers a long tape as soon as it is read', async () => {
    const dir = createTempFolder()
    const options = { dataDir: dir, tapeRetentionMs: HOUR_MS, tapeMaxMessages: 10_000, now: Date.now, random: Math.random }
    const tape = openEmbeddedTape(options)
    const time = new Date().toISOString()
    await tape.append(Array.from({ length: 3_000 }, (_, index) => ({ ...transferAt({ index }), time })))
    await tape.close()
    const relay = await openRelayFor(await openDevnet(), { DATA_DIR: dir })
    const { score } = await until({ relay }, (status) => status.score !== null)
    expect(score?.[0]).toMatchObject({ published: 3_000, sealed: 0 })
  })
})
