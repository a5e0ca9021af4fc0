import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type Devnet, startDevnet } from '../../../src/devnet/devnet.ts'
import { connect } from '../../../src/sdk/client/connect.ts'
import type { StreamOptions } from '../../../src/sdk/client/options.ts'
import { comparePositions } from '../../../src/sdk/client/position-order.ts'
import type { StreamItem } from '../../../src/sdk/client/stream-item.ts'
import type { TransportName } from '../../../src/sdk/client/stream-state.ts'
import { ChildProgram, createTempFolder } from '../../support/child-program.ts'
import { LossyProxy } from '../../support/lossy-proxy.ts'
import { DeployedRelay, TEST_TIMEOUT_MS, type TestLifecycle } from './deployed-relay.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** The SDK over a real relay, through a proxy that loses one message in a hundred while heartbeats go on. */

const SEED = 1
/** What each reader loses at least before its connection is cut. */
const LOSSES = 2
const WAIT = { timeout: 20_000 }
const client = fileURLToPath(new URL('../../../src/sdk/client/index.ts', import.meta.url))

let devnet: Devnet

beforeAll(async () => {
  devnet = await startDevnet({ pace: 'clock', flashblockMs: 50, blockMs: 400, transactionsPerFlashblock: 6 })
})

afterAll(() => devnet?.stop())

const isUpTo = (id: string, position: string | null): boolean => position !== null && (comparePositions(id, position) ?? 1) <= 0

/** What a program received, and the end of what it is known to have. */
type Reading = { readonly items: StreamItem[]; readonly position: () => string | null }

/** Reads through the proxy from the start of the tape. */
function read(test: TestLifecycle, url: string, transport: TransportName, options: StreamOptions): Reading {
  const stream = connect(url, { transport, heartbeatS: 1 }).updates('*', { since: 'start', snapshot: false, ...options })
  const items: StreamItem[] = []
  const reading = (async () => {
    for await (const item of stream) items.push(item)
  })()
  test.onTestFinished(async () => {
    await stream.close()
    await reading
  })
  return { items, position: () => stream.position }
}

/** What a listener receives that never leaves, up to a position. */
async function sentUpTo(url: string, parameters: string, last: string): Promise<string[]> {
  const ids: string[] = []
  for (let after: string | null = ''; after !== null; ) {
    const response = await fetch(`${url}/v1/events?${parameters}&through=${last}&limit=1000${after && `&after=${after}`}`)
    const { events, next } = (await response.json()) as { events: { id: string }[]; next: string | null }
    ids.push(...events.map(({ id }) => id))
    after = next
  }
  return ids
}

const idsOf = (items: readonly StreamItem[]) =>
  items.flatMap(({ type, id }) => (type === 'gap' || type === 'snapshot' || !id ? [] : [id]))

const isInMissedGap = (items: readonly StreamItem[], id: string) =>
  items.some((item) => item.type === 'gap' && item.reason === 'missed' && isUpTo(id, item.through) && !isUpTo(id, item.after))

const selections: readonly [name: string, options: StreamOptions, parameters: string][] = [
  ['types', { types: ['transfer', 'seal'] }, 'types=transfer,seal'],
  ['a value filter', { minValue: 1 }, 'min_value=1'],
  ['the sealed view', { stage: 'sealed' }, 'stage=sealed'],
]

const readers = (['websocket', 'sse'] as const).flatMap((transport) =>
  selections
    .slice(0, transport === 'sse' ? 2 : undefined)
    .flatMap(([name, options, parameters]) =>
      [false, true].map((fill) => ({
        ...{ name: `${name} over ${transport}${fill ? ', filled' : ''}`, transport, parameters, fill },
        options: { ...options, fill },
      })),
    ),
)

it('every lost message is in a gap, or filled, whatever is selected, over every transport, cut and kill', async (test) => {
  const relay = await DeployedRelay.open(test, devnet)
  const readings = await Promise.all(
    readers.map(async ({ transport, options, ...reader }, index) => {
      const proxy = await LossyProxy.open(test, relay.url, SEED + index)
      return { ...reader, proxy, ...read(test, proxy.url, transport, options) }
    }),
  )
  const allReceive = async () => {
    const last = await relay.waitForNewPosition()
    // A heartbeat proves that nothing is missing before it.
    const isProven = ({ proxy: { heartbeat }, position }: (typeof readings)[number]) =>
      isUpTo(last, heartbeat) && isUpTo(heartbeat, position())
    const late = () => readings.filter((reading) => !isProven(reading)).map(({ name }) => name)
    await vi.waitFor(() => expect(late()).toEqual([]), WAIT)
    return last
  }
  await vi.waitFor(() => expect(readings.filter(({ proxy }) => proxy.lost.length < LOSSES)).toHaveLength(0), WAIT)
  await allReceive()
  for (const { proxy } of readings) proxy.cut()
  await allReceive()
  await relay.restart('SIGKILL')
  const last = await allReceive()
  await allReceive()

  for (const { name, fill, parameters, items } of readings) {
    const sent = await sentUpTo(relay.url, `symbols=*&${parameters}`, last)
    const ids = idsOf(items)
    const received = new Set(ids)
    const missing = sent.filter((id) => !received.has(id))
    const unsaid = missing.filter((id) => !isInMissedGap(items, id))
    const gaps = items.filter(({ type }) => type === 'gap')
    expect({ name, unsaid, repeated: ids.length - received.size }).toEqual({ name, unsaid: [], repeated: 0 })
    if (fill) expect({ name, missing, gaps }).toEqual({ name, missing: [], gaps: [] })
    else expect([missing.length > 0, gaps.length > 0], name).toEqual([true, true])
  }
})

it('a program that is killed again and again handles every message', async (test) => {
  const relay = await DeployedRelay.open(test, devnet)
  const folder = await createTempFolder(test)
  const [handled, program] = [join(folder, 'handled'), join(folder, 'program.ts')]
  writeFileSync(handled, '')
  writeFileSync(
    program,
    `import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
    import { connect } from ${JSON.stringify(client)}
    const file = ${JSON.stringify(join(folder, 'position'))}
    const store = {
      load: () => (existsSync(file) ? readFileSync(file, 'utf8') : null),
      save: (position) => (writeFileSync(file + '.new', position), renameSync(file + '.new', file)),
    }
    for await (const item of connect(${JSON.stringify(relay.url)}).updates('*', { store, since: 'start' })) {
      appendFileSync(${JSON.stringify(handled)}, item.type + ' ' + item.id + '\\n')
      console.log(item.id)
    }`,
  )
  const run = async (lines: number) => {
    const bot = new ChildProgram([process.execPath, program], { cwd: folder, env: {} })
    await bot.waitForOutput('stdout', new RegExp(`(?:.+\\n){${lines}}`))
    await bot.kill()
  }
  for (const lines of [1, 5, 100, 2]) await run(lines)
  await relay.restart('SIGKILL')
  // The program prints no update of a type that it did not select.
  const last = await relay.waitForNewPosition('symbols=*')
  const bot = new ChildProgram([process.execPath, program], { cwd: folder, env: {} })
  await bot.waitForOutput('stdout', new RegExp(last))
  await bot.kill()
  const lines = readFileSync(handled, 'utf8').trim().split('\n')
  const seen = new Set(lines.map((line) => line.split(' ')[1]))
  const sent = await sentUpTo(relay.url, 'symbols=*', last)
  expect(lines.filter((line) => line.startsWith('gap'))).toEqual([])
  expect(sent.filter((id) => !seen.has(id))).toEqual([])
  const { snapshots } = await connect(relay.url).snapshots()
  expect(lines.filter((line) => line.startsWith('snapshot')).length).toBeGreaterThanOrEqual(snapshots.length)
})
