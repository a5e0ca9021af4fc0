import { execFileSync } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, type TestContext } from 'vitest'
import { startDevnet } from '../../../src/devnet/devnet.ts'
import { createTempFolder, spawnRelay } from '../../support/child-program.ts'

/** Several megabytes of logs: more than the write-ahead log keeps. */
const [LOGS, LOG_BYTES] = [200, 16_384]

/** Relays on one tape, whose disk refuses to flush anything while `isBroken`. */
async function openFailingDisk(test: TestContext) {
  const devnet = await startDevnet({ pace: 'manual' })
  test.onTestFinished(() => devnet.stop())
  const folder = await createTempFolder(test)
  const [library, mark] = [join(folder, 'failing-fsync.so'), join(folder, 'broken')]
  execFileSync('cc', ['-shared', '-fPIC', '-o', library, fileURLToPath(new URL('failing-fsync.c', import.meta.url))])
  const settings = {
    PORT: '0',
    DATA_DIR: join(folder, 'data'),
    UPSTREAM_RPC_URL: devnet.rpcUrl,
    UPSTREAM_WS_URL: devnet.wsUrl,
    STOCKS_API_URL: devnet.url,
    LD_PRELOAD: library,
    FSYNC_FAILS_WITH: mark,
    LOG_LEVEL: 'error',
  }
  return { devnet, start: () => spawnRelay(test, settings), break: () => writeFile(mark, ''), repair: () => rm(mark) }
}

const clearLine = /the tape cannot be flushed to the disk \(disk I\/O error\): repair the disk/
const linesOf = (text: string) => text.trim().split('\n')

it('a disk that does not flush ends the relay with one clear line, and the next start too', async (test) => {
  const disk = await openFailingDisk(test)
  const relay = disk.start()
  await relay.listeningUrl()
  await disk.devnet.until(() => disk.devnet.subscriptions().pendingLogs > 0)
  await disk.break()
  const address = disk.devnet.tokens[0]?.address ?? '0x'
  for (let nth = 0; nth < LOGS; nth += 1) {
    disk.devnet.emit({ address, topics: [`0x${'12'.repeat(32)}`], data: `0x${'00'.repeat(LOG_BYTES)}` })
  }
  disk.devnet.makeFlashblock()
  expect(await relay.waitForExit()).toBe(1)
  expect(linesOf(relay.stderr)).toEqual([expect.stringMatching(clearLine)])
  const next = disk.start()
  expect(await next.waitForExit()).toBe(2)
  expect(linesOf(next.stderr)).toEqual([expect.stringMatching(clearLine)])
  await disk.repair()
  await disk.start().listeningUrl()
})

it('a disk that does not flush any more makes a stop fail', async (test) => {
  const disk = await openFailingDisk(test)
  const relay = disk.start()
  await relay.listeningUrl()
  await disk.break()
  relay.signal('SIGTERM')
  expect(await relay.waitForExit()).toBe(1)
  expect(linesOf(relay.stderr)).toEqual([expect.stringMatching(clearLine)])
})
