import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, type TestContext } from 'vitest'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { createTempFolder, freePort, spawnRelay, startCommand, upstreamOf } from '../support/child-program.ts'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../support/test-listener.ts'
import { fetchDocumented, movementKeysOf, openDevnet, sequenceOf, tapeUpdatesOf, transfer } from '../support/test-stack.ts'

/** Settings of a relay on a devnet. */
const relaySettings = (chain: Pick<Devnet, 'rpcUrl' | 'wsUrl' | 'url'>, DATA_DIR: string) => ({
  ...{ PORT: '0', DATA_DIR, ...upstreamOf(chain) },
  ...{ STOCKS_REFRESH: '100ms', PENDING_POLL: '20ms', SILENCE: '300ms', DRAIN: '1s' },
})

const stocktape = (...args: readonly string[]) => promisify(execFile)(startCommand[0], [...startCommand.slice(1), ...args])

const listen = async (test: TestContext, url: string, query: string, lastEventId = ''): Promise<TestListener> => {
  const listener = await listenSse(`${url}/v1/stream?symbols=*&snapshot=false${query}`, { 'last-event-id': lastEventId })
  test.onTestFinished(() => listener.close())
  await listener.waitFor('live')
  return listener
}

describe.concurrent('a relay that restarts on its tape', () => {
  it('continues after kill -9 without a gap or a repetition, and backfills the blocks in between', async (test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    const settings = relaySettings(devnet, await createTempFolder(test))
    const first = spawnRelay(test, settings)
    const firstUrl = await first.listeningUrl()
    const before = await listen(test, firstUrl, '&since=start')
    await before.until(() => before.messagesOf('status').at(-1)?.source === 'pendingLogs')
    transfer({ devnet }, 'AAPLc', 2, 1n)
    devnet.seal()
    transfer({ devnet }, 'AAPLc', 2, 3n)
    await before.until(() => movementKeysOf(before).length === 4)
    const middle = before.messagesOf('transfer')[1]?.id ?? ''
    const last = tapeUpdatesOf(before).at(-1)?.id ?? ''
    await first.kill()
    await before.closed
    devnet.seal()
    transfer({ devnet }, 'TSLAc', 2, 5n)
    devnet.seal()
    transfer({ devnet }, 'TSLAc', 1, 7n)
    const second = spawnRelay(test, settings)
    const url = await second.listeningUrl()
    const after = await listen(test, url, '', last)
    await after.until(() => movementKeysOf(after).length === 3)
    transfer({ devnet }, 'NVDAc', 1, 8n)
    await after.until(() => movementKeysOf(after).length === 4)
    expect(after.messagesOf('gap')).toEqual([])
    // New updates do not wait for the backfill.
    const published = [...before.messagesOf('transfer'), ...after.messagesOf('transfer')]
    expect(published.map(({ raw }) => raw).toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map(String))
    expect(
      after
        .messagesOf('transfer')
        .map(({ raw, stage, late }) => `${raw} ${stage} ${late}`)
        .toSorted(),
    ).toEqual(['5 sealed true', '6 sealed true', '7 preconfirmed false', '8 preconfirmed false'])
    const backfilled = after.messagesOf('transfer').filter(({ ingest }) => ingest.source === 'backfill')
    expect(backfilled.map(({ raw }) => raw).toSorted()).toEqual(['5', '6'])
    // Keys that were open before the end are closed.
    const [third, fourth] = before.messagesOf('transfer').slice(2)
    await after.waitFor('seal', ({ keys }) => keys.join() === [third?.key, fourth?.key].join())
    expect(sequenceOf(tapeUpdatesOf(after)[0]?.id)).toBeGreaterThan(sequenceOf(last))
    expect((await after.waitFor('live')).id.split('.')[0]).toBe(last.split('.')[0])
    expect(after.messagesOf('token')).toEqual([])
    // A client that resumes from further back gets the same bytes as before the end.
    const again = await listen(test, url, '', middle)
    const texts = (listener: TestListener) => listener.received.flatMap(({ message, text }) => ('prev' in message ? [text] : []))
    const since = texts(before).slice(tapeUpdatesOf(before).findIndex(({ id }) => id === middle) + 1)
    await again.until(() => movementKeysOf(again).length === 6)
    expect(texts(again).slice(0, since.length)).toEqual(since)
  })

  it('continues after SIGTERM, which sends every listener a bye, and repeats nothing', async (test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    const settings = relaySettings(devnet, await createTempFolder(test))
    const first = spawnRelay(test, settings)
    const url = await first.listeningUrl()
    const sse = await listen(test, url, '&since=start')
    const ws = await listenWs(`${url.replace('http', 'ws')}/v1/ws?symbols=AAPLc`)
    await ws.waitFor('live')
    await sse.until(() => sse.messagesOf('status').at(-1)?.source === 'pendingLogs')
    transfer({ devnet }, 'AAPLc', 1, 1n)
    const { id } = await ws.waitFor('transfer')
    await sse.waitFor('transfer')
    // A signal to the process group reaches the process twice: twice within a second counts once.
    first.signal('SIGTERM')
    first.signal('SIGTERM')
    first.signal('SIGINT')
    expect(await first.waitForExit()).toBe(0)
    expect(await sse.closed).toMatchObject({ reason: 'ended' })
    const newest = tapeUpdatesOf(sse).at(-1)?.id ?? ''
    expect(sse.messagesOf('bye')).toEqual([{ type: 'bye', id: newest, reason: 'going_away', retry_ms: expect.any(Number) }])
    expect(await ws.closed).toEqual({ code: 4200, reason: `going_away ${newest}` })
    const second = spawnRelay(test, settings)
    const after = await listen(test, await second.listeningUrl(), '', id)
    transfer({ devnet }, 'AAPLc', 1, 2n)
    await after.until(() => movementKeysOf(after).length === 1)
    expect(after.messagesOf('transfer').map(({ raw }) => raw)).toEqual(['2'])
    expect(sequenceOf(tapeUpdatesOf(after)[0]?.id)).toBeGreaterThan(sequenceOf(id))
    second.signal('SIGINT')
    expect(await second.waitForExit()).toBe(0)
    // The source may change while the relay stops.
    expect(second.log.at(-1)).toMatchObject({ kind: 'stopped' })
    expect(second.log.filter(({ kind }) => kind === 'stopping' || kind === 'stopped')).toMatchObject([
      { kind: 'stopping', detail: { signal: 'SIGINT' } },
      { kind: 'stopped', detail: { clients_disconnected: 1 } },
    ])
  })
})

describe.concurrent('a relay whose tape lost its newest updates', () => {
  const query = 'symbols=*&types=transfer&snapshot=false'

  it.for<readonly [string, (dir: string, backup: string) => Promise<unknown>]>([
    ['a power loss', (dir) => rm(join(dir, 'tape.sqlite-wal'))],
    ['the restore of a backup', (dir, backup) => stocktape('restore', backup, '--data-dir', dir, '--force')],
  ])('gives no position twice, and resumes there with a gap: %s', async ([_, loseUpdates], test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    const root = await createTempFolder(test)
    const [dir, image, backup] = [join(root, 'tape'), join(root, 'image'), join(root, 'backup')]
    const first = spawnRelay(test, relaySettings(devnet, dir))
    const publish = async (url: string, raw: bigint) => {
      const listener = await listen(test, url, '&types=transfer')
      transfer({ devnet }, 'AAPLc', 1, raw)
      return (await listener.waitFor('transfer')).id
    }
    const kept = await publish(await first.listeningUrl(), 1n)
    await stocktape('backup', backup, '--data-dir', dir)
    first.signal('SIGTERM')
    await first.waitForExit()
    const second = spawnRelay(test, relaySettings(devnet, dir))
    const lost = await publish(await second.listeningUrl(), 2n)
    await cp(dir, image, { recursive: true, filter: (path) => basename(path) !== 'control' })
    await second.kill()
    await loseUpdates(image, backup)
    const third = spawnRelay(test, relaySettings(devnet, image))
    const url = await third.listeningUrl()
    const again = await publish(url, 3n)
    expect(again.split('.')[0]).toBe(lost.split('.')[0])
    expect(sequenceOf(again)).toBeGreaterThan(sequenceOf(lost))
    const resumeAll = (since: string) =>
      Promise.all([
        listenSse(`${url}/v1/stream?${query}`, { 'last-event-id': since }),
        listenNdjson(`${url}/v1/stream?${query}&since=${since}`),
        listenWs(`${url.replace('http', 'ws')}/v1/ws?${query}&since=${since}`),
      ])
    for (const listener of await resumeAll(lost)) {
      const gap = await listener.waitFor('gap')
      expect(gap).toMatchObject({ reason: 'expired', after: lost, id: gap.through })
      expect(sequenceOf(gap.through)).toBeGreaterThanOrEqual(sequenceOf(kept))
      expect(sequenceOf(gap.through)).toBeLessThan(sequenceOf(lost))
      await listener.waitFor('transfer', ({ id }) => id === again)
      listener.close()
    }
    for (const listener of await resumeAll(kept)) {
      expect(await listener.waitFor('subscribed')).toMatchObject({ resume: 'full' })
      await listener.waitFor('transfer', ({ id }) => id === again)
      listener.close()
    }
  })
})

describe.concurrent('a start that fails', () => {
  it('because of invalid settings logs a line for each and exits with 2', async (test) => {
    const relay = spawnRelay(test, { PORT: 'http', TAPE_MAX_MESSAGES: 'many' }, ['--stocks-api-url', 'ftp://list'])
    expect(await relay.waitForExit()).toBe(2)
    expect(relay.stdout).toBe('')
    expect(relay.stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^stocktape: PORT .*"http"/),
      expect.stringMatching(/^stocktape: STOCKS_API_URL .*"ftp:/),
      expect.stringMatching(/^stocktape: TAPE_MAX_MESSAGES .*"many"/),
    ])
  })

  it('because the port is in use, or DATA_DIR is not writable, logs one line and exits with 2', async (test) => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    test.onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const file = join(await createTempFolder(test), 'file')
    await writeFile(file, '')
    for (const [settings, line] of [
      [{ PORT: String(port), DATA_DIR: ':memory:' }, `^port ${port} .*in use`],
      [{ PORT: '0', DATA_DIR: join(file, 'data') }, '^DATA_DIR .*file'],
    ] as const) {
      const relay = spawnRelay(test, settings)
      expect(await relay.waitForExit()).toBe(2)
      const end = { level: 'fatal', kind: 'cannot_start', detail: { reason: expect.stringMatching(line) } }
      expect(relay.log.slice(1)).toMatchObject([end])
    }
  })

  it('because another relay locks DATA_DIR logs one line and exits with 2, and the other continues', async (test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    const settings = relaySettings(devnet, await createTempFolder(test))
    const url = await spawnRelay(test, settings).listeningUrl()
    const second = spawnRelay(test, settings)
    expect(await second.waitForExit()).toBe(2)
    expect(second.log.at(-1)).toMatchObject({
      kind: 'cannot_start',
      detail: { reason: expect.stringMatching(/^DATA_DIR .*in use/) },
    })
    expect((await fetchDocumented(`${url}/healthz`)).status).toBe(200)
  })
})

describe.concurrent('a start', () => {
  it('without an upstream retries and logs it, and serves once there is one', async (test) => {
    const [port, upstreamPort] = [await freePort(), await freePort()]
    const upstream = `127.0.0.1:${upstreamPort}`
    const where = { rpcUrl: `http://${upstream}/rpc`, wsUrl: `ws://${upstream}/`, url: `http://${upstream}` }
    const relay = spawnRelay(test, { ...relaySettings(where, await createTempFolder(test)), PORT: String(port) })
    await relay.waitForOutput('stderr', /list_unreadable/)
    const url = `http://127.0.0.1:${port}`
    expect((await fetchDocumented(`${url}/healthz`)).status).toBe(200)
    const unready = await fetchDocumented(`${url}/readyz`)
    expect(unready.status).toBe(503)
    expect(JSON.stringify(unready.json)).toMatch(/list/)
    expect((await fetchDocumented(`${url}/v1/stream/AAPLc`)).status).toBe(503)
    const devnet = await openDevnet({ pace: 'manual', port: upstreamPort }, test)
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    const listener = await listen(test, url, '&since=start')
    transfer({ devnet })
    await listener.waitFor('transfer')
    await listener.until(() => listener.messagesOf('status').at(-1)?.source === 'pendingLogs')
    expect((await fetchDocumented(`${url}/readyz`)).status).toBe(200)
  })

  it('on the tape of another chain than the upstream ends with exit code 2', async (test) => {
    const dir = await createTempFolder(test)
    const devnet = await openDevnet({ pace: 'manual' }, test)
    const first = spawnRelay(test, relaySettings(devnet, dir))
    const listener = await listen(test, await first.listeningUrl(), '&since=start')
    await listener.until(() => listener.messagesOf('status').at(-1)?.source === 'pendingLogs')
    await first.kill()
    const second = spawnRelay(test, relaySettings(await openDevnet({ pace: 'manual', chainId: 7 }, test), dir))
    expect(await second.waitForExit()).toBe(2)
    expect(second.stderr).toContain(`holds the tape of chain ${devnet.chainId}, and every upstream URL is of another chain`)
  })

  it('without settings runs the built-in chain, and prints nothing to standard output', async (test) => {
    const relay = spawnRelay(test, {}, ['--port', '0', '--data-dir', await createTempFolder(test)])
    const all = await listen(test, await relay.listeningUrl(), '')
    expect(await all.waitFor('hello')).toMatchObject({ demo: true })
    await all.until(() => movementKeysOf(all).length > 0)
    relay.signal('SIGTERM')
    expect([await relay.waitForExit(), relay.stdout]).toEqual([0, ''])
  })
})
