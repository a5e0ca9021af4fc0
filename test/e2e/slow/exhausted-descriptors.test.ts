import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { expect, it, vi } from 'vitest'
import { startDevnet } from '../../../src/devnet/devnet.ts'
import { createTempFolder, spawnRelay } from '../../support/child-program.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { transfer } from '../../support/test-stack.ts'
import { TEST_TIMEOUT_MS } from './deployed-relay.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** How many more descriptors the relay may open, and how many connections want one. */
const [FREE_DESCRIPTORS, BURST] = [4, 40]
const MANY_DESCRIPTORS = 1_000

it('a relay without free descriptors serves the clients that it has, and takes new ones when there are descriptors again', async (test) => {
  const devnet = await startDevnet({ pace: 'manual' })
  test.onTestFinished(() => devnet.stop())
  const relay = spawnRelay(test, {
    ...{ PORT: '0', DATA_DIR: await createTempFolder(test), STOCKS_API_URL: devnet.url },
    ...{ UPSTREAM_RPC_URL: devnet.rpcUrl, UPSTREAM_WS_URL: devnet.wsUrl },
  })
  const url = await relay.listeningUrl()
  const descriptors = () => readdirSync(`/proc/${relay.pid}/fd`).length
  const bound = (most: number) => execFileSync('prlimit', ['--pid', String(relay.pid), `--nofile=${most}:`])
  const listener = await listenNdjson(`${url}/v1/stream?symbols=*`)
  test.onTestFinished(() => listener.close())
  await listener.waitFor('live')
  await devnet.until(() => devnet.subscriptions().pendingLogs > 0)

  const most = descriptors() + FREE_DESCRIPTORS
  bound(most)
  const sockets: readonly Socket[] = Array.from({ length: BURST }, () => {
    const socket = connect(Number(new URL(url).port), new URL(url).hostname)
    return socket.on('error', () => {}).on('connect', () => void socket.write('GET /healthz HTTP/1.1\r\n'))
  })
  test.onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  // Those that got no descriptor are closed, or wait.
  await vi.waitUntil(() => descriptors() >= most - 1, TEST_TIMEOUT_MS)
  transfer({ devnet }, 'AAPLc', 1, 100_000_000n)
  const { number } = devnet.seal()
  await listener.waitFor('seal', ({ block }) => block.number === number)

  bound(MANY_DESCRIPTORS)
  for (const socket of sockets) socket.destroy()
  const { hostname, port } = new URL(url)
  const late = connect(Number(port), hostname)
  test.onTestFinished(() => void late.destroy())
  late.write('GET /healthz HTTP/1.1\r\nhost: relay\r\nconnection: close\r\n\r\n')
  const [answer] = await once(late, 'data')
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /)
  transfer({ devnet }, 'AAPLc', 1, 200_000_000n)
  await listener.waitFor('transfer', ({ amount }) => amount === '2')
  expect(listener.messagesOf('gap')).toEqual([])
})
