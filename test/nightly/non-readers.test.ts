import { setTimeout as pause } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { openDevnet } from '../support/test-stack.ts'
import { Market, type Traffic } from './devnet-traffic.ts'
import { Child } from './forked-worker.ts'
import { Watched } from './monitored-relay.ts'
import type { UnreadOrder, UnreadReport } from './non-readers-process.ts'

/** Longer than it all takes; reaching it is a failure, never a pause. */
vi.setConfig({ testTimeout: 300_000 })

const READERS = 200
const UNREAD = 200
/** Phases without those who never read and phases with them, in turn; the first pair warms up. */
const ROUNDS = 13
/** Two blocks, so that each phase holds as many seals as any other. */
const PHASE_FLASHES = 20
/** The default of the bound, in bytes. */
const BACKLOG_BOUND = 262_144
/** What one of them may cost beside its backlog. */
const SPARE_BYTES = 65_536
/** Nobody may be slower by more than this share, in the median flashblock. */
const SLOWER_BOUND = 0.2
/** The flashblock in which all of them are shown out may take so many times as long; there are few of those to measure. */
const STRAW_BOUND = 2

const TRAFFIC: Traffic = {
  flashMs: 100,
  transfersPerFlash: 4,
  logsPerFlash: 1,
  logBytes: 100,
  flashesPerBlock: 10,
  reorgEveryBlocks: Number.POSITIVE_INFINITY,
}
/** What fills them quickly, and what one flashblock of it is on the wire at least. */
const FILLING: Traffic = { ...TRAFFIC, transfersPerFlash: 0, logsPerFlash: 4, logBytes: 8_000 }
const FILLING_BYTES = FILLING.logsPerFlash * 2 * FILLING.logBytes
/** Whoever never reads is there for most of a phase: so far they are from being shown out when it begins. */
const LEFT_BYTES = 200_000
/** Before this flashblock of a phase comes what shows them out. */
const LAST_STRAW = 15
/** So many of them wake up as soon as they are shown out, in time to read all that was left for them. */
const WAKING = 30
/** So much fills all that the relay keeps at hand, so that nothing of it grows later. */
const OPENING_BYTES = 64 * 2 ** 20
/** More than a kernel takes for one of them. */
const FILLING_BOUND = 64 * 2 ** 20

const everything = 'symbols=*&types=transfer,log&snapshot=false'
const transfers = 'symbols=*&types=transfer'

it(`${UNREAD} who never read are shown out each, and ${READERS} who do notice nothing`, async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await Watched.open(test, devnet)
  const people = new Child<UnreadOrder, UnreadReport>(test, new URL('./non-readers-process.ts', import.meta.url))
  const market = new Market(test, devnet, TRAFFIC)
  const filler = new Market(test, devnet, FILLING)
  const shownOut = async () => (await relay.metric('shown_out_total')).get('') ?? 0
  const listening = async () => [...(await relay.metric('listeners')).values()].reduce((sum, count) => sum + count, 0)
  const come = async (listeners: number) => {
    await people.order({ do: 'mute', port: relay.port, listeners, query: everything })
    await relay.until(async () => (await listening()) === READERS + listeners)
  }
  /** Tells so much that nobody reads it, at the relay's pace, or until so many are shown out; how many bytes it was. */
  const fill = async (bytes: number, until = Number.POSITIVE_INFINITY) => {
    let told = 0
    for (; told < bytes && (await shownOut()) < until; told += FILLING_BYTES) filler.flash()
    return told
  }
  let [peakBytes, grownBytes] = [0, 0]
  /** The p99 of each of its flashblocks. */
  const phase = async () => {
    const p99sMs: number[] = []
    await people.order({ do: 'look' })
    for (let flash = 0; flash < PHASE_FLASHES; flash += 1) {
      if (flash === LAST_STRAW) await fill(BACKLOG_BOUND)
      market.flash()
      await pause(TRAFFIC.flashMs)
      peakBytes = Math.max(peakBytes, relay.residentBytes)
      const { transfers, p99Ms } = await people.order({ do: 'look' })
      // What takes longer than a flashblock is seen with the next.
      p99sMs.push(transfers > 0 ? p99Ms : TRAFFIC.flashMs)
    }
    return p99sMs
  }

  await people.order({ do: 'listen', port: relay.port, listeners: READERS, query: transfers })
  await fill(OPENING_BYTES)
  // What the kernel takes for somebody who never reads: one tries it.
  await come(1)
  const enough = await fill(FILLING_BOUND, 1)
  expect(enough).toBeLessThan(FILLING_BOUND)
  await people.order({ do: 'wake' })
  const [without, within]: [number[][], number[][]] = [[], []]
  let [gone, during] = [1, 0]
  for (let round = 0; round < ROUNDS; round += 1) {
    // As much is told before a phase without them, so that the two differ in nothing else.
    await fill(enough - LEFT_BYTES)
    without.push(await phase())
    const restingBytes = relay.residentBytes
    peakBytes = 0
    await come(UNREAD)
    await fill(enough - LEFT_BYTES)
    const before = await shownOut()
    within.push(await phase())
    during += (await shownOut()) - before
    gone += UNREAD
    expect(await fill(enough, gone)).toBeLessThan(enough)
    expect(await shownOut()).toBe(gone)
    if (round > 0) grownBytes = Math.max(grownBytes, peakBytes - restingBytes)
    await people.order({ do: 'wake' })
    await relay.until(async () => (await listening()) === READERS)
    process.stdout.write(
      `p99 ${said(without.at(-1))} without, ${said(within.at(-1))} with ${UNREAD} who never read; ` +
        `${gone - 1} were shown out so far, ${during} of them while it was measured; ` +
        `${(relay.residentBytes / 2 ** 20).toFixed(0)} MiB, ${(peakBytes / 2 ** 20).toFixed(0)} MiB at most\n`,
    )
  }
  await come(WAKING)
  await fill(2 * enough, gone + WAKING)
  const { words } = await people.order({ do: 'wake' })
  const { faults, heard } = await people.order({ do: 'leave' })
  await relay.deserted()

  const [alone, beside] = [median(without.slice(1).flat()), median(within.slice(1).flat())]
  const [straw, strawBeside] = [median(without.slice(1).map(shownOutIn)), median(within.slice(1).map(shownOutIn))]
  const last = words.filter(({ reason }) => reason !== null)
  process.stdout.write(
    `p99 of ${READERS} readers, who heard ${heard}, in the median flashblock: ${alone.toFixed(1)} ms alone, ` +
      `${beside.toFixed(1)} ms beside ${UNREAD} who never read; where these are shown out ` +
      `${straw.toFixed(1)} ms and ${strawBeside.toFixed(1)} ms; the kernel took about ` +
      `${((enough - BACKLOG_BOUND) / 2 ** 20).toFixed(1)} MiB for each; ${last.length} of ${WAKING} still read why\n`,
  )
  expect(faults).toEqual([])
  expect(during).toBeGreaterThan(0)
  expect(last).not.toEqual([])
  for (const { reason, bye } of last) expect(reason).toBe(`4202 too_slow ${JSON.parse(bye ?? '{}').id}`)
  expect(grownBytes).toBeLessThan(UNREAD * (BACKLOG_BOUND + SPARE_BYTES))
  expect(beside / alone).toBeLessThan(1 + SLOWER_BOUND)
  expect(strawBeside / straw).toBeLessThan(STRAW_BOUND)
  expect(relay.errors).toEqual([])
})

/** Of the flashblocks of a phase the slower one of those in which who never reads is shown out. */
const shownOutIn = (p99sMs: readonly number[]): number => Math.max(...p99sMs.slice(LAST_STRAW, LAST_STRAW + 2))

const said = (p99sMs: readonly number[] = []): string =>
  `${median(p99sMs).toFixed(1)} ms (at most ${Math.max(...p99sMs).toFixed(1)} ms)`

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
