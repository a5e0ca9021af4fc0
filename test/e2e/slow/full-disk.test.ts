import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, type TestContext, vi } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { ServiceStatus } from '../../../src/protocol/service-status.ts'
import { createTempFolder, spawnRelay } from '../../support/child-program.ts'
import { listenNdjson, listenWs, type TestListener } from '../../support/test-listener.ts'
import { openDevnet, tapeUpdatesOf, transfer } from '../../support/test-stack.ts'
import { DeployedRelay } from './deployed-relay.ts'

const WAIT = { timeout: 20_000, interval: 50 }

/** Whether this user may mount a file system: a small one is the only disk that can be filled. */
const mayMount = ((): boolean => {
  try {
    execFileSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt'], { stdio: 'pipe' })
    return true
  } catch {
    process.stderr.write('SKIPPED: tests of a full disk, because this user may not mount one\n')
    return false
  }
})()

/** A relay whose tape has a disk of 8 MB, and its chain. */
async function openOnSmallDisk(test: TestContext) {
  const disk = await createTempFolder(test)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk])
  test.onTestFinished(() => void execFileSync('umount', ['--lazy', disk]))
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const dir = join(disk, 'data')
  mkdirSync(dir)
  const relay = await DeployedRelay.open(test, devnet, { DATA_DIR: dir, FINALITY_POLL: '1h' })
  await devnet.until(() => devnet.subscriptions().pendingLogs > 0)
  const filler = join(disk, 'filler')
  const fill = () => {
    const file = openSync(filler, 'w')
    const part = Buffer.alloc(4_096)
    try {
      for (;;) writeSync(file, part)
    } catch (failure) {
      expect(failure).toMatchObject({ code: 'ENOSPC' })
    } finally {
      closeSync(file)
    }
  }
  return { devnet, relay, fill, free: () => rmSync(filler) }
}

async function listen(test: TestContext, { url }: DeployedRelay, since = 'now'): Promise<TestListener> {
  const listener = await listenNdjson(`${url}/v1/stream?symbols=*&types=transfer&snapshot=false&since=${since}`)
  test.onTestFinished(() => listener.close())
  await listener.waitFor('live')
  return listener
}

const isDurable = async ({ url }: DeployedRelay): Promise<boolean> =>
  ServiceStatus.parse(await (await fetch(`${url}/v1/status`)).json()).tape.durable

/** Makes transfers until the relay says that its disk takes no more. */
async function transferUntilNotDurable(devnet: Devnet, relay: DeployedRelay, listener: TestListener): Promise<void> {
  await vi.waitFor(async () => {
    const before = tapeUpdatesOf(listener).length
    transfer({ devnet }, 'AAPLc', 20)
    await listener.until(() => tapeUpdatesOf(listener).length >= before + 20, '20 transfers')
    expect(await isDurable(relay)).toBe(false)
  }, WAIT)
}

const idsOf = (listener: TestListener) => tapeUpdatesOf(listener).map(({ id }) => id)
/** What the log says of the tape. */
const tapeLinesOf = ({ log }: DeployedRelay) => log.flatMap(({ kind }) => (kind.startsWith('tape_') ? [kind] : []))

it.runIf(mayMount)('a start on a read-only disk ends with one clear line', async (test) => {
  const disk = await createTempFolder(test)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'tmpfs', disk])
  test.onTestFinished(() => void execFileSync('umount', ['--lazy', disk]))
  const relay = spawnRelay(test, { PORT: '0', DATA_DIR: join(disk, 'data') })
  expect(await relay.waitForExit()).toBe(2)
  const reason = /^DATA_DIR \S+ cannot hold the tape \(EROFS: .*\): name a folder that this user may write to$/
  expect(relay.log.at(-1)).toMatchObject({ kind: 'cannot_start', detail: { reason: expect.stringMatching(reason) } })
})

describe.runIf(mayMount)('a full disk', () => {
  it('delays nothing and loses nothing: updates are in memory until there is room', async (test) => {
    const { devnet, relay, fill, free } = await openOnSmallDisk(test)
    const listener = await listen(test, relay)
    fill()
    await transferUntilNotDurable(devnet, relay, listener)
    const socket = await listenWs(`${relay.wsUrl}/v1/ws?symbols=AAPLc`)
    await socket.waitFor('hello', ({ durable }) => durable === false)
    socket.close()
    expect((await fetch(`${relay.url}/readyz`)).status).toBe(200)
    expect(await (await fetch(`${relay.url}/metrics`)).text()).toContain('stocktape_tape_durable 0')
    const replayed = await listen(test, relay, 'start')
    expect(idsOf(replayed)).toEqual(idsOf(listener))
    free()
    await vi.waitFor(async () => {
      transfer({ devnet })
      expect(await isDurable(relay)).toBe(true)
    }, WAIT)
    const last = idsOf(listener).at(-1) ?? ''
    expect(tapeLinesOf(relay)).toEqual(['tape_unwritable', 'tape_writable'])
    await relay.restart('SIGKILL')
    const afterKill = await listen(test, relay, 'start')
    expect(idsOf(afterKill).slice(0, idsOf(listener).length)).toEqual(idsOf(listener))
    expect((await listen(test, relay, last)).messagesOf('gap')).toEqual([])
  })

  it('does not stop a start: no position is given twice, and what was lost is a gap', async (test) => {
    const { devnet, relay, fill } = await openOnSmallDisk(test)
    const listener = await listen(test, relay)
    fill()
    await transferUntilNotDurable(devnet, relay, listener)
    const lost = idsOf(listener).at(-1) ?? ''
    await relay.restart('SIGKILL')
    await devnet.until(() => devnet.subscriptions().pendingLogs > 0)
    const resumed = await listen(test, relay, lost)
    expect(resumed.messagesOf('gap')).toMatchObject([{ reason: 'expired', after: lost }])
    transfer({ devnet })
    await resumed.until(() => tapeUpdatesOf(resumed).length > 0, 'a transfer')
    const known = new Set(idsOf(listener))
    expect(idsOf(resumed).filter((id) => known.has(id) && id > (resumed.messagesOf('gap')[0]?.id ?? ''))).toEqual([])
    expect(tapeLinesOf(relay)).toEqual(['tape_unwritable'])
  })
})
