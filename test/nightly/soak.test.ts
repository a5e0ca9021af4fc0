import { setTimeout as pause } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { isNightly } from '../support/test-length.ts'
import { openDevnet } from '../support/test-stack.ts'
import type { CrowdCommand, CrowdReport } from './crowd-process.ts'
import { DevnetTraffic, type TrafficSettings } from './devnet-traffic.ts'
import { MonitoredRelay, openWorker } from './monitored-relay.ts'

/**
 * A crowd of random clients on a full tape with steady traffic. What each client received is compared with the tape again
 * and again; the memory early and late in the soak, and what is left once all clients are gone, must not grow.
 */

const MINUTE_MS = 60_000
const SOAK_MS = Number(process.env.SOAK_MINUTES ?? (isNightly ? 30 : 0.4)) * MINUTE_MS
const CLIENTS = Number(process.env.SOAK_CLIENTS ?? (isNightly ? 1_000 : 400))
/** Everything but the crowd: filling the tape, the warm-up, the last audit. */
const AROUND_MS = 4 * MINUTE_MS

/** Longer than the test takes. Reaching it is a failure. */
vi.setConfig({ testTimeout: 2 * SOAK_MS + AROUND_MS })

/** The first crowd fills what grows once and stays. */
const WARM_UP_MS = isNightly ? 20_000 : 7_000
/** Between two summaries. Each has the delays of the event loop in this time. */
const WINDOW_MS = isNightly ? 20_000 : 4_000
/** Audits come every so many windows: earlier than the tape deletes what they compare. */
const AUDIT_WINDOWS = 3
const EARLY_MS = SOAK_MS / 3
/**
 * Less than the soak publishes, so that the tape deletes as much as it gets. Only age deletes retracts: without it they
 * would fill the tape.
 */
const TAPE = isNightly ? { TAPE_MAX_MESSAGES: '60000', TAPE_RETENTION: '8m' } : { TAPE_MAX_MESSAGES: '16000', TAPE_RETENTION: '8m' }
/** The flashblock interval while no client is connected. */
const FLASH_INTERVAL_MS = 10
/** How long stopping may take: the default. */
const DRAIN_MS = 10_000
/** The least of so many measurements counts, because clients that stall hold memory for a while. */
const [SAMPLES, SAMPLE_INTERVAL_MS] = [3, 1_500]
/** How much more heap the relay may use late than early, both after a collection; the resident memory as a share. */
const HEAP_GROWTH_BYTES = (isNightly ? 5 : 8) * 2 ** 20
const RESIDENT_GROWTH = isNightly ? 0.1 : 0.25
/** What the whole soak may leave behind once the clients are gone. Its code is compiled, and its tables have grown. */
const LEFT_BEHIND_BYTES = 12 * 2 ** 20
/** The event loop's delay in nine of ten windows, for 99 of 100 turns. */
const LOOP_DELAY_MS = 20
/** Sockets and timers that are not of clients: to the upstream, and from this test. */
const RESOURCES_MARGIN = 6

/** The ingest remembers 1,024 blocks: these are as many in nine minutes, so by the first measurement it knows no others. */
const TRAFFIC: TrafficSettings = {
  flashblockMs: 250,
  transfersPerFlash: 10,
  logsPerFlash: 2,
  logBytes: 1_500,
  flashesPerBlock: 2,
  reorgEveryBlocks: 16,
}
/** Fills the tape, with a block in each flashblock that is as large as those of the soak. Retracts would stay on it until they are old. */
const OPENING: TrafficSettings = {
  ...TRAFFIC,
  transfersPerFlash: TRAFFIC.transfersPerFlash * TRAFFIC.flashesPerBlock,
  logsPerFlash: TRAFFIC.logsPerFlash * TRAFFIC.flashesPerBlock,
  flashesPerBlock: 1,
  reorgEveryBlocks: Number.POSITIVE_INFINITY,
}
/** The ingest keeps the facts of the newest 1,024 blocks, so before there are as many its memory grows. */
const OPENING_BLOCKS = isNightly ? 1_100 : 0
/** One of this many pre-confirmed transactions is not sealed. */
const DROP_EVERY = 97

const mebibytes = (bytes: number) => Number((bytes / 2 ** 20).toFixed(1))

it(`${CLIENTS} random clients receive exactly the tape for ${SOAK_MS / 1_000} s, and nothing in the relay grows`, async (test) => {
  const seed = process.env.CROWD_SEED ?? String(Date.now())
  const print = (what: object) => process.stdout.write(`${new Date().toISOString()} ${JSON.stringify(what)}\n`)
  print({ CROWD_SEED: seed, SOAK_MS, CLIENTS })
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await MonitoredRelay.open(test, devnet, TAPE)
  const crowd = openWorker<CrowdCommand, CrowdReport>(test, './crowd-process.ts')
  const traffic = new DevnetTraffic(test, devnet, TRAFFIC)
  const choices = { symbols: devnet.tokens.map(({ symbol }) => symbol), account: devnet.custodian }
  const enter = (name: string) =>
    crowd.command({ do: 'enter', seed: `${seed} ${name}`, port: relay.port, clients: CLIENTS, choices })
  const leave = async () => {
    await crowd.command({ do: 'leave' })
    await relay.waitForNoListeners()
  }
  let comparedCount = 0
  const differences = new Set<string>()
  const audit = async () => {
    const { faults, compared } = await crowd.command({ do: 'audit' })
    for (const fault of faults) differences.add(fault)
    comparedCount += compared
    print({ compared, faults })
  }
  /** After a collection: the least of some samples. */
  const measure = async (at: string) => {
    const samples = []
    for (let sample = 0; sample < SAMPLES; sample += 1) {
      if (sample > 0) await pause(SAMPLE_INTERVAL_MS)
      samples.push({ ...(await relay.retained()), resident: relay.residentBytes, descriptors: relay.descriptors })
    }
    const least = samples.reduce((least, sample) => (sample.bytes < least.bytes ? sample : least))
    print({ at, ...least, bytes: mebibytes(least.bytes), resident: mebibytes(least.resident) })
    await relay.loopDelayMs()
    return least
  }
  const loopDelays: number[] = []

  const keptSince = async () => (await fetch(`${relay.url}/v1/events?limit=1`)).headers.get('x-kept-since')
  const opening = new DevnetTraffic(test, devnet, OPENING)
  while (opening.flashes < OPENING_BLOCKS || /\.0$/.test((await keptSince()) ?? '.0')) {
    opening.produceFlashblock()
    await pause(FLASH_INTERVAL_MS)
  }
  devnet.faults.dropEvery = DROP_EVERY
  traffic.start()
  await enter('warm-up')
  await pause(WARM_UP_MS)
  await leave()
  await audit()
  const before = await measure('before')

  await enter('soak')
  const begun = performance.now()
  let early: Awaited<ReturnType<typeof measure>> | null = null
  for (let window = 1; performance.now() - begun < SOAK_MS; window += 1) {
    await pause(WINDOW_MS)
    loopDelays.push(await relay.loopDelayMs())
    if (window % AUDIT_WINDOWS === 0) await audit()
    if (performance.now() - begun >= EARLY_MS) early ??= await measure('early')
  }
  const late = await measure('late')
  await leave()
  await audit()
  traffic.stop()
  await relay.until(() => relay.descriptors <= before.descriptors + RESOURCES_MARGIN)
  const after = await measure('after')
  print({ loopDelays: loopDelays.map(Math.round) })

  expect([...differences]).toEqual([])
  expect(comparedCount).toBeGreaterThan(CLIENTS)
  expect(mebibytes(late.bytes - (early?.bytes ?? 0))).toBeLessThan(mebibytes(HEAP_GROWTH_BYTES))
  expect(late.resident / (early?.resident ?? 1)).toBeLessThan(1 + RESIDENT_GROWTH)
  expect(mebibytes(after.bytes - before.bytes)).toBeLessThan(mebibytes(LEFT_BEHIND_BYTES))
  expect(after.sockets - before.sockets).toBeLessThan(RESOURCES_MARGIN)
  for (const [kind, count] of Object.entries(after.resources)) {
    expect(count - (before.resources[kind] ?? 0), kind).toBeLessThan(RESOURCES_MARGIN)
  }
  if (isNightly) expect(loopDelays.filter((delayMs) => delayMs >= LOOP_DELAY_MS).length).toBeLessThanOrEqual(loopDelays.length / 10)
  const signalledAt = performance.now()
  relay.signal('SIGTERM')
  expect(await relay.waitForExit()).toBe(0)
  expect(performance.now() - signalledAt).toBeLessThan(DRAIN_MS)
  expect(relay.errorLines).toEqual([])
})
