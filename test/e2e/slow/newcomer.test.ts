import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { loadBoard } from '../../support/board-page.ts'
import { ChildProgram, upstreamOf } from '../../support/child-program.ts'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../../support/test-listener.ts'
import { openDevnet } from '../../support/test-stack.ts'
import { cloneRepository } from './repository-clone.ts'

/** The two commands of the README in a fresh clone, and then a listener over each transport. */

const WITHIN_MS = 10_000

let clone: string
let printedByCi: string
let relay: ChildProgram
let listeners: readonly TestListener[] = []

beforeAll(() => {
  clone = cloneRepository()
  const readme = readFileSync(join(clone, 'README.md'), 'utf8')
  expect(readme).toContain('npm ci\nnpm start\n')
  printedByCi = execFileSync('sh', ['-c', 'npm ci 2>&1'], { cwd: clone, encoding: 'utf8' })
})

afterAll(async () => {
  for (const listener of listeners) listener.close()
  await relay?.kill()
  rmSync(clone, { recursive: true })
})

it('npm ci warns of nothing, whatever Node is outside', () => {
  expect(printedByCi).toMatch(/added \d+ packages/)
  expect(printedByCi).not.toMatch(/warn|error/i)
})

it('after two commands transfers arrive within ten seconds, with the same bytes over every transport', async () => {
  const startedAt = performance.now()
  relay = new ChildProgram(['npm', 'start', '--', '--port', '0'], { cwd: clone, env: process.env })
  const host = new URL(await relay.listeningUrl()).host
  listeners = await Promise.all([
    listenSse(`http://${host}/v1/stream/AAPLc`),
    listenNdjson(`http://${host}/v1/stream/AAPLc?format=ndjson`),
    listenWs(`ws://${host}/v1/ws?symbols=*`),
  ])
  const [sse, ndjson, ws] = listeners
  if (!sse || !ndjson || !ws) throw new Error('three listeners were opened')
  for (const listener of listeners) await listener.waitFor('live')
  const transfer = await sse.waitFor('transfer', ({ id }) => [ndjson, ws].every((listener) => textOf(listener, id) !== undefined))
  expect(performance.now() - startedAt).toBeLessThan(WITHIN_MS)
  expect(sse.messages.slice(0, 4).map(({ type }) => type)).toEqual(['hello', 'subscribed', 'snapshot', 'live'])
  expect(await sse.waitFor('hello')).toMatchObject({ demo: true, protocol: 'stocktape.v1' })
  expect(transfer.amount).not.toBeNull()
  expect(Number(transfer.reference_value)).toBeCloseTo(Number(transfer.amount) * Number(transfer.nav.price), 1)
  for (const listener of [ndjson, ws]) expect(textOf(listener, transfer.id)).toBe(textOf(sse, transfer.id))
  expect(relay.stdout).not.toContain('Open http')
  expect(await loadBoard(`http://${host}`)).toContain('pendingLogs')
})

it('an interrupt to the process group ends the relay with exit code 0', async () => {
  relay.signal('SIGINT')
  expect(await relay.waitForExit()).toBe(0)
})

it('the built-in chain left no folder, so a real chain afterwards finds no tape of it', async ({ onTestFinished }) => {
  expect(existsSync(join(clone, 'data'))).toBe(false)
  const devnet = await openDevnet({}, { onTestFinished })
  relay = new ChildProgram(['npm', 'start', '--', '--port', '0'], { cwd: clone, env: { ...process.env, ...upstreamOf(devnet) } })
  const host = new URL(await relay.listeningUrl()).host
  const listener = await listenNdjson(`http://${host}/v1/stream/AAPLc?format=ndjson`)
  onTestFinished(() => listener.close())
  expect(await listener.waitFor('hello')).toMatchObject({ demo: false })
  await listener.waitFor('transfer')
  const ready = await fetch(`http://${host}/readyz`)
  expect([ready.status, await ready.json()]).toEqual([200, { status: 'ready', reasons: [], demo: false }])
  expect(existsSync(join(clone, 'data/tape.sqlite'))).toBe(true)
})

const textOf = (listener: TestListener, id: string) =>
  listener.received.find(({ message }) => message.type === 'transfer' && message.id === id)?.text
