import { setTimeout as pause } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { isNightly } from '../support/test-length.ts'
import { openDevnet } from '../support/test-stack.ts'
import type { CrowdCommand, CrowdReport } from './crowd-process.ts'
import { DevnetTraffic, type TrafficSettings } from './devnet-traffic.ts'
import { ForkedWorker } from './forked-worker.ts'
import { MonitoredRelay } from './monitored-relay.ts'

/** Longer than the test takes. Reaching it is a failure. */
vi.setConfig({ testTimeout: 600_000 })

const CLIENTS = isNightly ? 1_000 : 400
/** The first crowd fills what grows once and stays. Only what the second leaves behind is measured. */
const WARM_UP_MS = isNightly ? 20_000 : 7_000
const CROWD_MS = isNightly ? 120_000 : 15_000
const SUMMARY_MS = isNightly ? 20_000 : 15_000
/** Enough to fill everything that the relay keeps of the newest updates. */
const OPENING_FLASHES = 450
/** The flashblock interval while no client is connected. */
const FLASH_INTERVAL_MS = 10
/** How long stopping may take: the default. */
const DRAIN_MS = 10_000
/**
 * What a crowd may leave behind, beyond what the same traffic leaves without listeners: heap, and resident memory,
 * which the garbage collector returns when it likes.
 */
const RETAINED_MARGIN_BYTES = 24 * 2 ** 20
const RESIDENT_MARGIN_BYTES = 96 * 2 ** 20
/** Sockets that are not listeners: to the upstream, and from this test. */
const SOCKETS_MARGIN = 20

const TRAFFIC: TrafficSettings = {
  flashblockMs: 250,
  transfersPerFlash: 10,
  logsPerFlash: 2,
  logBytes: 12_000,
  flashesPerBlock: 8,
  reorgEveryBlocks: 4,
}
/** One of this many pre-confirmed transactions is not sealed. */
const DROP_EVERY = 29

it(`${CLIENTS} random listeners receive exactly the tape for ${CROWD_MS / 1_000} s, and leave nothing behind in the relay`, async (test) => {
  const seed = process.env.CROWD_SEED ?? String(Date.now())
  process.stdout.write(`CROWD_SEED=${seed}\n`)
  const devnet = await openDevnet({ pace: 'manual' }, test)
  devnet.faults.dropEvery = DROP_EVERY
  const relay = await MonitoredRelay.open(test, devnet)
  const crowd = new ForkedWorker<CrowdCommand, CrowdReport>(test, new URL('./crowd-process.ts', import.meta.url))
  const traffic = new DevnetTraffic(test, devnet, TRAFFIC)
  const choices = { symbols: devnet.tokens.map(({ symbol }) => symbol), party: devnet.custodian }
  const cpu = { relay: relay.cpuSeconds, traffic: process.cpuUsage(), at: performance.now() }
  const printSummary = async () => {
    const { received, latency, load, endings } = await crowd.command({ do: 'summarize' })
    const listeners = [...(await relay.metric('listeners')).values()].reduce((sum, count) => sum + count, 0)
    const seconds = (performance.now() - cpu.at) / 1_000
    const { user, system } = process.cpuUsage(cpu.traffic)
    const loads = [(relay.cpuSeconds - cpu.relay) / seconds, load, (user + system) / 1e6 / seconds]
    Object.assign(cpu, { relay: relay.cpuSeconds, traffic: process.cpuUsage(), at: performance.now() })
    process.stdout.write(
      `${listeners} listeners, ${received} messages received; ${latency.transfers} transfers in ${latency.p50Ms.toFixed(1)} ms (p50), ` +
        `${latency.p99Ms.toFixed(1)} ms (p99), ${latency.maxMs.toFixed(0)} ms (max); share of a core: ` +
        `relay, crowd, traffic ${loads.map((share) => `${Math.round(100 * share)} %`).join(', ')}; ` +
        `${(relay.residentBytes / 2 ** 20).toFixed(0)} MiB; ${(await relay.metric('shown_out_total')).get('')} disconnected as slow; ${JSON.stringify(endings)}\n`,
    )
  }
  const runCrowd = async (name: string, ms: number) => {
    await crowd.command({ do: 'enter', seed: `${seed} ${name}`, port: relay.port, clients: CLIENTS, choices })
    for (let left = ms; left > 0; left -= SUMMARY_MS) {
      await pause(Math.min(left, SUMMARY_MS))
      await printSummary()
    }
    await crowd.command({ do: 'leave' })
    await relay.waitForNoListeners()
  }

  const produce = async (flashes: number) => {
    for (let flash = 0; flash < flashes; flash += 1) {
      traffic.produceFlashblock()
      await pause(FLASH_INTERVAL_MS)
    }
  }
  const measure = async () => {
    const { bytes, sockets } = await relay.retained()
    return { held: bytes, sockets, resident: relay.residentBytes }
  }

  await produce(OPENING_FLASHES)
  traffic.start()
  await runCrowd('warm-up', WARM_UP_MS)
  const before = await measure()
  const { descriptors } = relay
  const flashes = traffic.flashes
  await runCrowd('crowd', CROWD_MS)
  traffic.stop()
  const after = await measure()
  await relay.until(() => relay.descriptors <= descriptors)
  await produce(traffic.flashes - flashes)
  const withoutListeners = await measure()
  const { faults, faultCount, ...comparison } = await crowd.command({ do: 'compare' })
  const leftBehind = (of: 'held' | 'resident') => after[of] - before[of] - Math.max(0, withoutListeners[of] - after[of])
  process.stdout.write(`${JSON.stringify({ ...comparison, faultCount, before, after, withoutListeners, descriptors })}\n`)

  expect(faults).toEqual([])
  expect(comparison.compared).toBeGreaterThan(CLIENTS)
  expect(after.sockets - before.sockets).toBeLessThan(SOCKETS_MARGIN)
  expect(leftBehind('held')).toBeLessThan(RETAINED_MARGIN_BYTES)
  expect(leftBehind('resident')).toBeLessThan(RESIDENT_MARGIN_BYTES)
  const signalledAt = performance.now()
  relay.signal('SIGTERM')
  expect(await relay.waitForExit()).toBe(0)
  expect(performance.now() - signalledAt).toBeLessThan(DRAIN_MS)
  expect(relay.errorLines).toEqual([])
})
