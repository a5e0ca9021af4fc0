import { setTimeout as pause } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { isNightly } from '../support/test-length.ts'
import { openDevnet } from '../support/test-stack.ts'
import { DevnetTraffic, type TrafficSettings } from './devnet-traffic.ts'
import { ForkedWorker } from './forked-worker.ts'
import { MonitoredRelay } from './monitored-relay.ts'
import type { NonReaderCommand, NonReaderReply } from './non-readers-process.ts'

/** Longer than it all takes; reaching it is a failure, never a pause. */
vi.setConfig({ testTimeout: 300_000 })

const READERS = isNightly ? 200 : 80
const NON_READERS = READERS
/** Phases without those who never read and phases with them, in turn; the first pair warms up. */
const ROUNDS = isNightly ? 13 : 5
/** Two blocks, so that each phase holds as many seals as any other. */
const PHASE_FLASHES = 20
/** The default of the bound, in bytes. */
const BACKLOG_BOUND = 262_144
/** What one of them may cost beside its backlog. */
const SPARE_BYTES = 65_536
/** Nobody may be slower by more than this share, in the median flashblock. */
const SLOWER_BOUND = 0.2
/** The flashblock in which all of them are shown out may take so many times as long; there are few of those to measure. */
const DISCONNECT_SLOWDOWN_BOUND = 2

const TRAFFIC: TrafficSettings = {
  flashblockMs: 100,
  transfersPerFlash: 4,
  logsPerFlash: 1,
  logBytes: 100,
  flashesPerBlock: 10,
  reorgEveryBlocks: Number.POSITIVE_INFINITY,
}
/** What fills them quickly, and what one flashblock of it is on the wire at least. */
const FILLING: TrafficSettings = { ...TRAFFIC, transfersPerFlash: 0, logsPerFlash: 4, logBytes: 8_000 }
const FILLING_BYTES = FILLING.logsPerFlash * 2 * FILLING.logBytes
/** Whoever never reads is there for most of a phase: so far they are from being shown out when it begins. */
const REMAINING_BYTES = 200_000
/** Before this flashblock of a phase comes what shows them out. */
const DISCONNECT_FLASH = 15
/** So many of them wake up as soon as they are shown out, in time to read all that was left for them. */
const WAKING_CLIENTS = 30
/** So much fills all that the relay keeps at hand, so that nothing of it grows later. */
const OPENING_BYTES = 64 * 2 ** 20
/** More than a kernel takes for one of them. */
const FILLING_BOUND = 64 * 2 ** 20

const everything = 'symbols=*&types=transfer,log&snapshot=false'
const transfers = 'symbols=*&types=transfer'

it(`${NON_READERS} who never read are shown out each, and ${READERS} who do notice nothing`, async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await MonitoredRelay.open(test, devnet)
  const clients = new ForkedWorker<NonReaderCommand, NonReaderReply>(
    test,
    new URL('./non-readers-process.ts', import.meta.url),
  )
  const market = new DevnetTraffic(test, devnet, TRAFFIC)
  const filler = new DevnetTraffic(test, devnet, FILLING)
  const disconnectedCount = async () => (await relay.metric('shown_out_total')).get('') ?? 0
  const listenerCount = async () =>
    [...(await relay.metric('listeners')).values()].reduce((sum, count) => sum + count, 0)
  const addNonReaders = async (listeners: number) => {
    await clients.command({ do: 'mute', port: relay.port, listeners, query: everything })
    await relay.until(async () => (await listenerCount()) === READERS + listeners)
  }
  /** Tells so much that nobody reads it, at the relay's pace, or until so many are shown out; how many bytes it was. */
  const fill = async (bytes: number, until = Number.POSITIVE_INFINITY) => {
    let sent = 0
    for (; sent < bytes && (await disconnectedCount()) < until; sent += FILLING_BYTES) filler.produceFlashblock()
    return sent
  }
  let [peakBytes, grownBytes] = [0, 0]
  /** The p99 of each of its flashblocks. */
  const phase = async () => {
    const p99sMs: number[] = []
    await clients.command({ do: 'look' })
    for (let flashNumber = 0; flashNumber < PHASE_FLASHES; flashNumber += 1) {
      if (flashNumber === DISCONNECT_FLASH) await fill(BACKLOG_BOUND)
      market.produceFlashblock()
      await pause(TRAFFIC.flashblockMs)
      peakBytes = Math.max(peakBytes, relay.residentBytes)
      const { transfers, p99Ms } = await clients.command({ do: 'look' })
      // What takes longer than a flashblock is seen with the next.
      p99sMs.push(transfers > 0 ? p99Ms : TRAFFIC.flashblockMs)
    }
    return p99sMs
  }

  await clients.command({ do: 'listen', port: relay.port, listeners: READERS, query: transfers })
  await fill(OPENING_BYTES)
  // What the kernel takes for somebody who never reads: one tries it.
  await addNonReaders(1)
  const fillBytes = await fill(FILLING_BOUND, 1)
  expect(fillBytes).toBeLessThan(FILLING_BOUND)
  await clients.command({ do: 'wake' })
  const [phasesWithout, phasesWith]: [number[][], number[][]] = [[], []]
  let [disconnected, disconnectedWhileMeasured] = [1, 0]
  for (let round = 0; round < ROUNDS; round += 1) {
    // As much is told before a phase without them, so that the two differ in nothing else.
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
    await clients.command({ do: 'wake' })
    await relay.until(async () => (await listenerCount()) === READERS)
    process.stdout.write(
      `p99 ${formatPhase(phasesWithout.at(-1))} without, ${formatPhase(phasesWith.at(-1))} with ${NON_READERS} who never read; ` +
        `${disconnected - 1} were shown out so far, ${disconnectedWhileMeasured} of them while it was measured; ` +
        `${(relay.residentBytes / 2 ** 20).toFixed(0)} MiB, ${(peakBytes / 2 ** 20).toFixed(0)} MiB at most\n`,
    )
  }
  await addNonReaders(WAKING_CLIENTS)
  await fill(2 * fillBytes, disconnected + WAKING_CLIENTS)
  const { lastMessages } = await clients.command({ do: 'wake' })
  const { faults, received } = await clients.command({ do: 'leave' })
  await relay.waitForNoListeners()

  const [alone, beside] = [median(phasesWithout.slice(1).flat()), median(phasesWith.slice(1).flat())]
  const [disconnectAlone, disconnectBeside] = [
    median(phasesWithout.slice(1).map(slowestDisconnectOf)),
    median(phasesWith.slice(1).map(slowestDisconnectOf)),
  ]
  const readReasons = lastMessages.filter(({ reason }) => reason !== null)
  process.stdout.write(
    `p99 of ${READERS} readers, who heard ${received}, in the median flashblock: ${alone.toFixed(1)} ms alone, ` +
      `${beside.toFixed(1)} ms beside ${NON_READERS} who never read; where these are shown out ` +
      `${disconnectAlone.toFixed(1)} ms and ${disconnectBeside.toFixed(1)} ms; the kernel took about ` +
      `${((fillBytes - BACKLOG_BOUND) / 2 ** 20).toFixed(1)} MiB for each; ${readReasons.length} of ${WAKING_CLIENTS} still read why\n`,
  )
  expect(faults).toEqual([])
  expect(disconnectedWhileMeasured).toBeGreaterThan(0)
  expect(readReasons).not.toEqual([])
  for (const { reason, bye } of readReasons) expect(reason).toBe(`4202 too_slow ${JSON.parse(bye ?? '{}').id}`)
  expect(grownBytes).toBeLessThan(NON_READERS * (BACKLOG_BOUND + SPARE_BYTES))
  expect(beside / alone).toBeLessThan(1 + SLOWER_BOUND)
  expect(disconnectBeside / disconnectAlone).toBeLessThan(DISCONNECT_SLOWDOWN_BOUND)
  expect(relay.errorLines).toEqual([])
})

/** Of the flashblocks of a phase the slower one of those in which who never reads is shown out. */
const slowestDisconnectOf = (p99sMs: readonly number[]): number =>
  Math.max(...p99sMs.slice(DISCONNECT_FLASH, DISCONNECT_FLASH + 2))

const formatPhase = (p99sMs: readonly number[] = []): string =>
  `${median(p99sMs).toFixed(1)} ms (at most ${Math.max(...p99sMs).toFixed(1)} ms)`

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
