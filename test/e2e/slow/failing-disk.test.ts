import { execFileSync } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, type TestContext, vi } from 'vitest'
import { type ChildProgram, createTempFolder, spawnRelay, upstreamOf } from '../../support/child-program.ts'
import { needPrograms } from '../../support/debian-programs.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { openDevnet, transfer } from '../../support/test-stack.ts'

needPrograms('cc')

/** Several megabytes of logs: more than the write-ahead log keeps. */
const [LOGS, LOG_BYTES] = [200, 16_384]
/** More connections than the counts of the processes have room for in what their file already has. */
const LISTENERS = 100
const WAIT = { timeout: 20_000, interval: 100 }

/** Relays on one tape, whose disk refuses to flush or to write while it is broken. */
async function openFailingDisk(test: TestContext) {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const folder = await createTempFolder(test)
  const [library, mark, dir] = [join(folder, 'failing-disk.so'), join(folder, 'broken'), join(folder, 'data')]
  execFileSync('cc', ['-shared', '-fPIC', '-o', library, fileURLToPath(new URL('failing-disk.c', import.meta.url))])
  const settings = {
    PORT: '0',
    DATA_DIR: dir,
    ...upstreamOf(devnet),
    LD_PRELOAD: library,
    DISK_FAILS_WITH: mark,
    DISK_FAILS_UNDER: dir,
  }
  return {
    ...{ devnet, dir },
    start: (more: Record<string, string> = {}) => spawnRelay(test, { ...settings, ...more }),
    break: (what: 'flush' | 'write') => writeFile(mark, what),
    repair: () => rm(mark),
  }
}

const loss = /^the tape cannot be written to the disk \(disk I\/O error\): \d+ updates are in memory only$/
const stopFailed = { kind: 'stop_failed', detail: { reason: expect.stringMatching(loss) } }

/** What the log says of the tape. The other lines are about the upstream. */
const tapeLinesOf = ({ log }: ChildProgram) => log.filter(({ kind }) => /^tape_|^stop_failed/.test(kind))

it('a disk that does not flush is noticed: the relay goes on in memory, and a stop says what is lost', async (test) => {
  const disk = await openFailingDisk(test)
  const relay = disk.start()
  const url = await relay.listeningUrl()
  await disk.devnet.until(() => disk.devnet.subscriptions().pendingLogs > 0)
  await disk.break('flush')
  const address = disk.devnet.tokens[0]?.address ?? '0x'
  for (let nth = 0; nth < LOGS; nth += 1) {
    disk.devnet.emit({ address, topics: [`0x${'12'.repeat(32)}`], data: `0x${'00'.repeat(LOG_BYTES)}` })
  }
  disk.devnet.makeFlashblock()
  await relay.waitForOutput('stderr', /tape_unflushed/)
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
  relay.signal('SIGTERM')
  expect(await relay.waitForExit()).toBe(1)
  expect(tapeLinesOf(relay)).toMatchObject([{ kind: 'tape_unflushed' }, stopFailed])
  const next = disk.start()
  await next.listeningUrl()
  expect(tapeLinesOf(next)).toMatchObject([{ kind: 'tape_unflushed' }])
  await next.kill()
  await disk.repair()
  const repaired = disk.start()
  await repaired.listeningUrl()
  expect(tapeLinesOf(repaired)).toEqual([])
})

it('a disk that does not flush any more makes a stop fail', async (test) => {
  const disk = await openFailingDisk(test)
  const relay = disk.start()
  await relay.listeningUrl()
  await disk.break('flush')
  relay.signal('SIGTERM')
  expect(await relay.waitForExit()).toBe(1)
  expect(tapeLinesOf(relay)).toMatchObject([{ kind: 'tape_unflushed' }, stopFailed])
})

it('an I/O error at a commit loses nothing: the tape is written once the disk works again', async (test) => {
  const disk = await openFailingDisk(test)
  const relay = disk.start()
  const url = await relay.listeningUrl()
  await disk.devnet.until(() => disk.devnet.subscriptions().pendingLogs > 0)
  await disk.break('write')
  transfer(disk, 'AAPLc', 5)
  await relay.waitForOutput('stderr', /tape_unwritable/)
  const historyOf = async (at: string) => (await (await fetch(`${at}/v1/events?types=transfer`)).json()) as { events: unknown[] }
  const inMemory = await vi.waitFor(async () => {
    const history = await historyOf(url)
    expect(history.events).toHaveLength(5)
    return history.events
  }, WAIT)
  await disk.repair()
  await vi.waitFor(() => {
    disk.devnet.seal()
    expect(tapeLinesOf(relay)).toMatchObject([{ kind: 'tape_unwritable' }, { kind: 'tape_writable' }])
  }, WAIT)
  await relay.kill()
  const next = disk.start()
  expect((await historyOf(await next.listeningUrl())).events.slice(0, 5)).toEqual(inMemory)
})

it('where several processes serve, an I/O error ends none of them', async (test) => {
  const disk = await openFailingDisk(test)
  const relay = disk.start({ WORKERS: '2' })
  const url = await relay.listeningUrl()
  await disk.devnet.until(() => disk.devnet.subscriptions().pendingLogs > 0)
  await disk.break('write')
  transfer(disk)
  await relay.waitForOutput('stderr', /tape_unwritable/)
  const listeners = await Promise.all(Array.from({ length: LISTENERS }, () => listenNdjson(`${url}/v1/stream/AAPLc`)))
  for (const listener of listeners) await listener.waitFor('live')
  transfer(disk)
  for (const listener of listeners) {
    await listener.waitFor('transfer')
    listener.close()
  }
  await vi.waitFor(
    async () => expect(await (await fetch(`${url}/v1/status`)).json()).toMatchObject({ clients: { ndjson: 0 } }),
    WAIT,
  )
  expect(relay.stderr).not.toContain('worker_ended')
})
