import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished, vi } from 'vitest'
import { ServiceStatus } from '../../../src/protocol/service-status.ts'
import { type ChildProgram, spawnRelay } from '../../support/child-program.ts'
import { FaultyMachine, hasFaketime } from '../../support/faulty-machine.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { openDevnet, transfer } from '../../support/test-stack.ts'
import { TEST_TIMEOUT_MS } from './deployed-relay.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const HOUR_MS = 3_600_000
/** Back and forth by an hour, and a day ahead for a moment. */
const STEPS_MS = [-HOUR_MS, HOUR_MS, HOUR_MS, -HOUR_MS, 25 * HOUR_MS, -25 * HOUR_MS]
/** What a published time may differ from the wall clock. */
const TOLERANCE_MS = 60_000
const settableDate = fileURLToPath(new URL('settable-date.ts', import.meta.url))

/** The settings of a relay whose clock can be set, and how the clock is set in the running process: the next step, and all of them. */
type Clock = {
  readonly settings: Record<string, string>
  readonly step: (relay: ChildProgram, steps: number, offMs: number) => Promise<unknown>
}

const clocks: Readonly<Record<string, () => Clock | Promise<Clock>>> = {
  'in JavaScript': () => ({
    settings: { CLOCK_STEPS_MS: STEPS_MS.join(','), NODE_OPTIONS: `--import ${settableDate}` },
    step: (relay, steps) => {
      relay.signal('SIGUSR2')
      return relay.waitForOutput('stdout', new RegExp(`(the wall clock is -?\\d+ ms off\\n){${steps}}`))
    },
  }),
  'for the whole process': async () => {
    const machine = await FaultyMachine.open({ onTestFinished })
    const settings = { ...machine.env, FAKETIME_NO_CACHE: '1' }
    return { settings, step: async (_relay, _steps, offMs) => machine.setClock(offMs / 1_000) }
  },
}

const cases: readonly (readonly ['pendingLogs' | 'poll', string])[] = [
  ['pendingLogs', 'in JavaScript'],
  ['poll', 'in JavaScript'],
  ...(hasFaketime ? ([['pendingLogs', 'for the whole process']] as const) : []),
]

it.each(cases)('a relay whose source is %s works on when its wall clock is set %s', async (source, place) => {
  const devnet = await openDevnet({ pace: 'manual' }, { onTestFinished })
  const clock = await clocks[place]?.()
  const relay = spawnRelay(
    { onTestFinished },
    {
      PORT: '0',
      DATA_DIR: ':memory:',
      UPSTREAM_RPC_URL: devnet.rpcUrl,
      ...(source === 'pendingLogs' && { UPSTREAM_WS_URL: devnet.wsUrl }),
      STOCKS_API_URL: devnet.url,
      STOCKS_REFRESH: '100ms',
      ...clock?.settings,
    },
  )
  const url = await relay.listeningUrl()
  const readStatus = async () => ServiceStatus.parse(await (await fetch(`${url}/v1/status`)).json())
  await vi.waitUntil(async () => (await readStatus()).source === source, TEST_TIMEOUT_MS)
  const listener = await listenNdjson(`${url}/v1/stream?symbols=*&heartbeat=1`)
  onTestFinished(() => listener.close())
  const { id: start } = await listener.waitFor('live')
  const countReplayed = async (since: string) => {
    const resumed = await listenNdjson(`${url}/v1/stream?symbols=*&types=transfer&snapshot=false&since=${since}`)
    await resumed.waitFor('live')
    resumed.close()
    return resumed.messagesOf('transfer').length
  }
  let offMs = 0
  for (const [index, stepMs] of STEPS_MS.entries()) {
    offMs += stepMs
    await clock?.step(relay, index + 1, offMs)
    const heartbeats = listener.messagesOf('heartbeat').length
    transfer({ devnet }, 'AAPLc', 1, BigInt(index + 1) * 10n ** 8n)
    const { time, ingest } = await listener.waitFor('transfer', ({ amount }) => amount === String(index + 1))
    expect(Math.abs(Date.parse(time) - Date.now() - offMs), `time after ${stepMs}`).toBeLessThan(TOLERANCE_MS)
    expect(Math.abs(Date.parse(ingest.received_at) - Date.parse(time)), `received_at after ${stepMs}`).toBeLessThan(TOLERANCE_MS)
    const { number } = devnet.seal()
    await listener.waitFor('seal', ({ block }) => block.number === number)
    await listener.until(() => listener.messagesOf('heartbeat').length > heartbeats, 'a heartbeat')
    for (const since of [start, 'start', '10m'])
      expect(await countReplayed(since), `since=${since} after ${stepMs}`).toBe(index + 1)
    const status = await readStatus()
    expect(status).toMatchObject({ source, reason: 'ok' })
    expect(status.stocks.age_s).toBeLessThan(10)
  }
})
