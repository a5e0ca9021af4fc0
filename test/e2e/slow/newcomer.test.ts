import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Program } from '../../support/child-program.ts'
import { type Ear, listenNdjson, listenSse, listenWs } from '../../support/test-listener.ts'
import { freshClone } from './repository-clone.ts'

/** A newcomer with nothing but a clone and the README: its two commands, and then a listener on each carrier. */

const WITHIN_MS = 10_000

let clone: string
let relay: Program
let ears: readonly Ear[] = []

beforeAll(() => {
  clone = freshClone()
  const readme = readFileSync(join(clone, 'README.md'), 'utf8')
  expect(readme).toContain('npm ci\nnpm start\n')
  execFileSync('npm', ['ci'], { cwd: clone, stdio: 'pipe' })
})

afterAll(async () => {
  for (const ear of ears) ear.close()
  await relay?.kill()
  rmSync(clone, { recursive: true })
})

it('two commands, and transfers are heard within ten seconds, in the same bytes on every carrier', async () => {
  const startedAt = performance.now()
  relay = new Program(['npm', 'start', '--', '--port', '0'], { cwd: clone, env: process.env })
  const host = new URL(await relay.url()).host
  ears = await Promise.all([
    listenSse(`http://${host}/v1/stream/AAPLc`),
    listenNdjson(`http://${host}/v1/stream/AAPLc?format=ndjson`),
    listenWs(`ws://${host}/v1/ws?symbols=*`),
  ])
  const [sse, ndjson, ws] = ears
  if (!sse || !ndjson || !ws) throw new Error('three ears were opened')
  for (const ear of ears) await ear.hear('live')
  const transfer = await sse.hear('transfer', ({ id }) => [ndjson, ws].every((ear) => textOf(ear, id) !== undefined))
  expect(performance.now() - startedAt).toBeLessThan(WITHIN_MS)
  expect(sse.messages.slice(0, 4).map(({ type }) => type)).toEqual(['hello', 'subscribed', 'snapshot', 'live'])
  expect(await sse.hear('hello')).toMatchObject({ demo: true, protocol: 'stocktape.v1' })
  expect(transfer.amount).not.toBeNull()
  expect(Number(transfer.reference_value)).toBeCloseTo(Number(transfer.amount) * Number(transfer.nav.price), 1)
  for (const ear of [ndjson, ws]) expect(textOf(ear, transfer.id)).toBe(textOf(sse, transfer.id))
})

it('an interrupt to the whole group ends it with exit code 0', async () => {
  relay.signal('SIGINT')
  expect(await relay.exit()).toBe(0)
})

const textOf = (ear: Ear, id: string) =>
  ear.heard.find(({ message }) => message.type === 'transfer' && message.id === id)?.text
