import { setTimeout as pause } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { isNightly } from '../support/test-length.ts'
import { openDevnet } from '../support/test-stack.ts'
import type { CrowdCommand, CrowdReport } from './crowd-process.ts'
import { DevnetTraffic, type TrafficSettings } from './devnet-traffic.ts'
import { ForkedWorker } from './forked-worker.ts'
import { MonitoredRelay } from './monitored-relay.ts'

/** Longer than it all takes; reaching it is a failure, never a pause. */
vi.setConfig({ testTimeout: 600_000 })

const CLIENTS = isNightly ? 1_000 : 400
/** A first crowd fills whatever a crowd fills for good; what the second leaves behind is measured. */
const WARM_UP_MS = isNightly ? 20_000 : 8_000
const CROWD_MS = isNightly ? 120_000 : 20_000
const SUMMARY_MS = isNightly ? 20_000 : 10_000
/** So much fills all that the relay keeps at hand of the newest. */
const OPENING_FLASHES = 450
/** How fast the chain runs while nobody listens. */
const FLASH_INTERVAL_MS = 10
/** How long stopping may take: the default. */
const DRAIN_MS = 10_000
/**
 * What a crowd may leave behind beside what as much traffic leaves behind that nobody hears; held, and resident, which is
 * the collector's to give back.
 */
const RETAINED_MARGIN_BYTES = 24 * 2 ** 20
const RESIDENT_MARGIN_BYTES = 96 * 2 ** 20
/** Sockets that have nothing to do with listeners: to the upstream, and of whoever looks at it from here. */
const SOCKETS_MARGIN = 20

const TRAFFIC: TrafficSettings = {
  flashblockMs: 250,
  transfersPerFlash: 10,
  logsPerFlash: 2,
  logBytes: 12_000,
  flashesPerBlock: 8,
  reorgEveryBlocks: 4,
}
/** Every so many-th pre-confirmed transaction is not sealed. */
const DROP_EVERY = 29

it(`${CLIENTS} listeners at random for ${CROWD_MS / 1_000} s hear what the tape says, and leave nothing behind`, async (test) => {
  const seed = process.env.CROWD_SEED ?? String(Date.now())
  process.stdout.write(`CROWD_SEED=${seed}\n`)
  const devnet = await openDevnet({ pace: 'manual' }, test)
  devnet.faults.dropEvery = DROP_EVERY
  const relay = await MonitoredRelay.open(test, devnet)
  const crowd = new ForkedWorker<CrowdCommand, CrowdReport>(test, new URL('./crowd-process.ts', import.meta.url))
  const market = new DevnetTraffic(test, devnet, TRAFFIC)
  const choices = { symbols: devnet.tokens.map(({ symbol }) => symbol), party: devnet.custodian }
  const cpu = { relay: relay.cpuSeconds, market: process.cpuUsage(), at: performance.now() }
  const check = async () => {
    const { received, latency, load, endings } = await crowd.command({ do: 'look' })
    const listeners = [...(await relay.metric('listeners')).values()].reduce((sum, count) => sum + count, 0)
    const seconds = (performance.now() - cpu.at) / 1_000
    const { user, system } = process.cpuUsage(cpu.market)
    const loads = [(relay.cpuSeconds - cpu.relay) / seconds, load, (user + system) / 1e6 / seconds]
    Object.assign(cpu, { relay: relay.cpuSeconds, market: process.cpuUsage(), at: performance.now() })
    process.stdout.write(
      `${listeners} listen, ${received} heard; ${latency.transfers} transfers in ${latency.p50Ms.toFixed(1)} ms (p50), ` +
        `${latency.p99Ms.toFixed(1)} ms (p99), ${latency.maxMs.toFixed(0)} ms (max); of a core: ` +
        `relay, crowd, market ${loads.map((one) => `${Math.round(100 * one)} %`).join(', ')}; ` +
        `${(relay.residentBytes / 2 ** 20).toFixed(0)} MiB; ${(await relay.metric('shown_out_total')).get('')} shown out; ${JSON.stringify(endings)}\n`,
    )
  }
  const stay = async (name: string, ms: number) => {
    await crowd.command({ do: 'enter', seed: `${seed} ${name}`, port: relay.port, clients: CLIENTS, choices })
    for (let left = ms; left > 0; left -= SUMMARY_MS) {
      await pause(Math.min(left, SUMMARY_MS))
      await check()
    }
    await crowd.command({ do: 'leave' })
    await relay.waitForNoListeners()
  }

  const tell = async (flashes: number) => {
    for (let flash = 0; flash < flashes; flash += 1) {
      market.produceFlashblock()
      await pause(FLASH_INTERVAL_MS)
    }
  }
  const weigh = async () => {
    const { bytes, sockets } = await relay.retained()
    return { held: bytes, sockets, resident: relay.residentBytes }
  }

  await tell(OPENING_FLASHES)
  market.start()
  await stay('warm-up', WARM_UP_MS)
  const before = await weigh()
  const { descriptors } = relay
  const flashes = market.flashes
  await stay('crowd', CROWD_MS)
  market.stop()
  const after = await weigh()
  await relay.until(() => relay.descriptors <= descriptors)
  await tell(market.flashes - flashes)
  const unheard = await weigh()
  const { faults, faultCount, ...judged } = await crowd.command({ do: 'judge' })
  const left = (of: 'held' | 'resident') => after[of] - before[of] - Math.max(0, unheard[of] - after[of])
  process.stdout.write(
    `${JSON.stringify({ ...judged, faultsInAll: faultCount, before, after, unheard, descriptors })}\n`,
  )

  expect(faults).toEqual([])
  expect(judged.compared).toBeGreaterThan(CLIENTS)
  expect(after.sockets - before.sockets).toBeLessThan(SOCKETS_MARGIN)
  expect(left('held')).toBeLessThan(RETAINED_MARGIN_BYTES)
  expect(left('resident')).toBeLessThan(RESIDENT_MARGIN_BYTES)
  const signalledAt = performance.now()
  relay.signal('SIGTERM')
  expect(await relay.waitForExit()).toBe(0)
  expect(performance.now() - signalledAt).toBeLessThan(DRAIN_MS)
  expect(relay.errorLines).toEqual([])
})
