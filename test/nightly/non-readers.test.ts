import { setTimeout as pause } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { median } from '../bench/percentiles.ts'
import { isNightly } from '../support/test-length.ts'
import { openDevnet } from '../support/test-stack.ts'
import { DevnetTraffic, type TrafficSettings } from './devnet-traffic.ts'
import { MonitoredRelay, openWorker } from './monitored-relay.ts'
import type { NonReaderCommand, NonReaderReply } from './non-readers-process.ts'

/** Longer than the test takes. Reaching it is a failure. */
vi.setConfig({ testTimeout: 300_000 })

const READERS = 200
const NON_READERS = 200
/** Pairs of a phase without non-readers and a phase with them. The first pair warms up. Only the long form has enough to compare their latencies. */
const ROUNDS = isNightly ? 13 : 2
/** Two blocks, so that every phase has the same number of seals. */
const PHASE_FLASHES = 20
/** At this backlog a client is disconnected at once: 16 times the bound. */
const BACKLOG_BOUND = 262_144
/** Nobody is disconnected by time, so that the phases with and without non-readers have the same traffic. */
const BY_BYTES_ALONE = { MAX_BACKLOG: `${BACKLOG_BOUND / 16}B`, BACKLOG_PATIENCE: '1h' }
/** What a non-reader may cost beyond its backlog. */
const SPARE_BYTES = 65_536
/** Readers may be slower by at most this share, in the median round. */
const SLOWER_BOUND = 0.2
/** What slows readers slows all flashblocks of a phase. A busy machine delays some: the p99 that this share does not exceed counts. */
const UNDISTURBED_SHARE = 0.25
/** How many times as long a flashblock may take that disconnects all non-readers. Few of those are measured. */
const DISCONNECT_SLOWDOWN_BOUND = 2

const TRAFFIC: TrafficSettings = {
  flashblockMs: 100,
  transfersPerFlash: 4,
  logsPerFlash: 1,
  logBytes: 100,
  flashesPerBlock: 10,
  reorgEveryBlocks: Number.POSITIVE_INFINITY,
}
/** Fills backlogs quickly; below, what one of its flashblocks is on the wire at least. */
const FILLING: TrafficSettings = { ...TRAFFIC, transfersPerFlash: 0, logsPerFlash: 4, logBytes: 8_000 }
const FILLING_BYTES = FILLING.logsPerFlash * 2 * FILLING.logBytes
/** What the default bounds let all non-readers hold, which wait for the same updates. One alone may have a backlog of 16 MiB. */
const HELD_BOUND = 134_217_728
/** How far non-readers are from being disconnected when a phase begins, so that they stay for most of it. */
const REMAINING_BYTES = 200_000
/** Before this flashblock of a phase comes the traffic that disconnects them. */
const DISCONNECT_FLASH = 15
/** Clients that start to read as soon as they are disconnected, in time to read everything left for them. */
const WAKING_CLIENTS = 30
/** Enough to fill everything that the relay keeps, so that nothing of it grows later. */
const OPENING_BYTES = 64 * 2 ** 20
/** More than the kernel buffers for one connection. */
const FILLING_BOUND = 64 * 2 ** 20

/** How many clients were disconnected as too slow, over every transport. */
const disconnectedBy = (relay: MonitoredRelay) => relay.metricSum('disconnects_total', 'reason="too_slow"')

const everything = 'symbols=*&types=transfer,log&snapshot=false'
const transfers = 'symbols=*&types=transfer'

it(`${NON_READERS} clients that never read are disconnected as slow, and ${READERS} readers do not notice`, async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await MonitoredRelay.open(test, devnet, BY_BYTES_ALONE)
  const clients = openWorker<NonReaderCommand, NonReaderReply>(test, './non-readers-process.ts', {})
  relay.pin()
  const traffic = new DevnetTraffic(test, devnet, TRAFFIC)
  const filler = new DevnetTraffic(test, devnet, FILLING)
  const disconnectedCount = () => disconnectedBy(relay)
  const listenerCount = () => relay.metricSum('listeners')
  const addNonReaders = async (listeners: number) => {
    await clients.command({ do: 'addNonReaders', port: relay.port, listeners, query: everything })
    await relay.until(async () => (await listenerCount()) === READERS + listeners)
  }
  /** Publishes this many bytes at the relay's pace, or until this number of clients is disconnected. Returns the bytes published. */
  const fill = async (bytes: number, until = Number.POSITIVE_INFINITY) => {
    let sent = 0
    for (; sent < bytes && (await disconnectedCount()) < until; sent += FILLING_BYTES) filler.produceFlashblock()
    return sent
  }
  let [peakBytes, grownBytes] = [0, 0]
  /** The p99 of each flashblock of a phase. */
  const phase = async () => {
    const p99sMs: number[] = []
    await clients.command({ do: 'summarize' })
    for (let flashNumber = 0; flashNumber < PHASE_FLASHES; flashNumber += 1) {
      if (flashNumber === DISCONNECT_FLASH) await fill(BACKLOG_BOUND)
      traffic.produceFlashblock()
      await pause(TRAFFIC.flashblockMs)
      peakBytes = Math.max(peakBytes, relay.residentBytes)
      const { transfers, p99Ms } = await clients.command({ do: 'summarize' })
      // A transfer that takes longer than a flashblock counts in the next one.
      p99sMs.push(transfers > 0 ? p99Ms : TRAFFIC.flashblockMs)
    }
    return p99sMs
  }

  await clients.command({ do: 'listen', port: relay.port, listeners: READERS, query: transfers })
  await fill(OPENING_BYTES)
  // One client measures how much the kernel buffers for a connection that is not read.
  await addNonReaders(1)
  const fillBytes = await fill(FILLING_BOUND, 1)
  expect(fillBytes).toBeLessThan(FILLING_BOUND)
  await clients.command({ do: 'readRemaining' })
  const [phasesWithout, phasesWith]: [number[][], number[][]] = [[], []]
  let [disconnected, disconnectedWhileMeasured] = [1, 0]
  for (let round = 0; round < ROUNDS; round += 1) {
    // The same traffic precedes a phase without non-readers, so that the two differ in nothing else.
    await fill(fillBytes - REMAINING_BYTES)
    phasesWithout.push(await phase())
    const restingBytes = relay.residentBytes
    peakBytes = 0
    await addNonReaders(NON_READERS)
    await fill(fillBytes - REMAINING_BYTES)
    const before = await disconnectedCount()
    phasesWith.push(await phase())
    disconnectedWhileMeasured += (await disconnectedCount()) - before
    disconnected += NON_READERS
    expect(await fill(fillBytes, disconnected)).toBeLessThan(fillBytes)
    expect(await disconnectedCount()).toBe(disconnected)
    if (round > 0) grownBytes = Math.max(grownBytes, peakBytes - restingBytes)
    await clients.command({ do: 'readRemaining' })
    await relay.until(async () => (await listenerCount()) === READERS)
  }
  await addNonReaders(WAKING_CLIENTS)
  await fill(2 * fillBytes, disconnected + WAKING_CLIENTS)
  const { lastMessages } = await clients.command({ do: 'readRemaining' })
  const { faults } = await clients.command({ do: 'leave' })
  await relay.waitForNoListeners()

  const [alone, beside] = [phasesWithout, phasesWith].map((phases) => phases.slice(1).map(undisturbedOf)) as [number[], number[]]
  const slowdown = median(beside.map((p99Ms, round) => p99Ms / (alone[round] ?? Number.NaN)))
  const [disconnectAlone = 0, disconnectBeside = 0] = [phasesWithout, phasesWith].map((phases) =>
    median(phases.slice(1).map(slowestDisconnectOf)),
  )
  const readReasons = lastMessages.filter(({ reason }) => reason !== null)
  process.stdout.write(
    `p99 of readers beside non-readers: ${slowdown.toFixed(2)} times that alone, in flashblocks that disconnect them ` +
      `${(disconnectBeside / disconnectAlone).toFixed(2)} times; the relay grew by ${(grownBytes / 2 ** 20).toFixed(0)} MiB at most\n`,
  )
  expect(faults).toEqual([])
  expect(disconnectedWhileMeasured).toBeGreaterThan(0)
  expect(readReasons).not.toEqual([])
  for (const { reason, bye } of readReasons) expect(reason).toBe(`4202 too_slow ${JSON.parse(bye ?? '{}').id}`)
  expect(grownBytes).toBeLessThan(NON_READERS * (BACKLOG_BOUND + SPARE_BYTES))
  if (isNightly) {
    expect(slowdown).toBeLessThan(1 + SLOWER_BOUND)
    expect(disconnectBeside / disconnectAlone).toBeLessThan(DISCONNECT_SLOWDOWN_BOUND)
  }
  expect(relay.errorLines).toEqual([])
})

it(`${NON_READERS} clients that never read hold less than ${HELD_BOUND / 2 ** 20} MiB together`, async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await MonitoredRelay.open(test, devnet)
  const clients = openWorker<NonReaderCommand, NonReaderReply>(test, './non-readers-process.ts')
  const filler = new DevnetTraffic(test, devnet, FILLING)
  // Everything that the relay keeps anyway is full before, so that only backlogs grow.
  for (let sent = 0; sent < OPENING_BYTES; sent += FILLING_BYTES) {
    filler.produceFlashblock()
    await relay.metricSum('updates_total')
  }
  const restingBytes = relay.residentBytes
  await clients.command({ do: 'addNonReaders', port: relay.port, listeners: NON_READERS, query: everything })
  await relay.until(async () => (await relay.metricSum('listeners')) === NON_READERS)
  let [peakBytes, peakHeldBytes] = [0, 0]
  while ((await disconnectedBy(relay)) < NON_READERS) {
    filler.produceFlashblock()
    peakBytes = Math.max(peakBytes, relay.residentBytes)
    peakHeldBytes = Math.max(peakHeldBytes, await relay.metricSum('backlog_held_bytes'))
  }
  expect(peakHeldBytes).toBeGreaterThan(0)
  expect(peakBytes - restingBytes).toBeLessThan(HELD_BOUND)
  await clients.command({ do: 'readRemaining' })
  await relay.waitForNoListeners()
  await relay.until(async () => (await relay.metricSum('backlog_held_bytes')) === 0)
})

const undisturbedOf = (p99sMs: readonly number[]): number =>
  p99sMs.toSorted((a, b) => a - b)[Math.floor(UNDISTURBED_SHARE * p99sMs.length)] ?? Number.NaN

/** The slower of the two flashblocks in which the relay disconnects the non-readers. */
const slowestDisconnectOf = (p99sMs: readonly number[]): number => Math.max(...p99sMs.slice(DISCONNECT_FLASH, DISCONNECT_FLASH + 2))
