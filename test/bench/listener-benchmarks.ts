import { settledBytes, type Work, withLoad } from './listener-load.ts'
import type { StreamKind } from './listeners-process.ts'
import { type MeasuredServer, openPeer, openRelay, type PeerName } from './measured-servers.ts'
import type { Report } from './results.ts'
import type { Sample } from './sample-messages.ts'

/** Servers that give work to many listeners. */

type Scenario = { readonly kind: StreamKind; readonly work: Work; readonly listeners?: number; readonly peers: readonly PeerName[] }

/** A flashblock of twenty transfers every 200 ms, for two blocks. */
const BURSTS: Work = { burst: 20, everyMs: 200, bursts: 20 }
const scenarios = {
  ws: { kind: 'ws', work: BURSTS, peers: ['C floor', 'naive ws'] },
  sse: { kind: 'sse', work: BURSTS, peers: ['C floor', 'bare Node'] },
  /** So that there is nothing to batch. */
  lone: { kind: 'ws', work: { burst: 1, everyMs: 200, bursts: 20 }, peers: ['C floor', 'naive ws'] },
  latency: { kind: 'ws', work: { burst: 1, everyMs: 20, bursts: 500 }, listeners: 100, peers: ['C floor'] },
} as const satisfies Readonly<Record<string, Scenario>>

/** A slow peer gets only what it can deliver in a few seconds. The cost per message is the same. */
const FEW_BURSTS = 2

const isSlow = (peer: PeerName | null, { work }: Scenario): boolean => peer !== null && peer !== 'C floor' && work.burst > 1

/** Measures a relay, or a peer. */
const measureFanOut = async (
  part: keyof typeof scenarios,
  peer: PeerName | null,
  opening: Promise<MeasuredServer>,
  listeners: number,
  report: Report,
): Promise<void> => {
  const scenario: Scenario = scenarios[part]
  const { bursts } = scenario.work
  const [warmUp, measured] = isSlow(peer, scenario) ? [1, FEW_BURSTS] : [bursts / 2, bursts]
  await withLoad(opening, async (load) => {
    await load.join(scenario.kind, scenario.listeners ?? listeners)
    await load.deliver({ ...scenario.work, bursts: warmUp })
    report(part, peer ?? 'relay', await load.deliver({ ...scenario.work, bursts: measured }))
  })
}

/** Memory and processor time per idle listener: the growth of the server's memory, and what it took to connect all. */
const measureIdle = (row: string, kind: StreamKind, opening: Promise<MeasuredServer>, listeners: number, report: Report) =>
  withLoad(opening, async (load, server) => {
    const baseBytes = await settledBytes(server)
    const cpuBefore = server.server.cpuSeconds()
    await load.join(kind, listeners)
    const connectUs = ((server.server.cpuSeconds() - cpuBefore) * 1e6) / listeners
    const bytesEach = ((await settledBytes(server)) - baseBytes) / listeners
    report('memory', `${kind}, ${row}`, {
      ...{ 'KiB each': bytesEach / 1_024, 'MiB without': baseBytes / 2 ** 20, 'connect µs': connectUs },
    })
  })

/** All measurements of a relay, or of the peers, for one part. */
export async function measureListeners(
  part: keyof typeof scenarios | 'memory',
  {
    dir,
    sample,
    listeners,
    hasFloor,
  }: {
    /** The source of the relay; null where the peers are measured. */
    readonly dir: string | null
    readonly sample: Sample
    readonly listeners: number
    readonly hasFloor: boolean
  },
  report: Report,
): Promise<void> {
  if (part === 'memory') {
    const peers = { ws: 'naive ws', sse: 'bare Node' } as const
    for (const kind of ['ws', 'sse'] as const) {
      const opening = dir === null ? openPeer(peers[kind], kind, sample) : openRelay({ dir })
      await measureIdle(dir === null ? peers[kind] : 'relay', kind, opening, listeners, report)
    }
    return
  }
  if (dir !== null) return measureFanOut(part, null, openRelay({ dir }), listeners, report)
  for (const peer of scenarios[part].peers) {
    if (peer !== 'C floor' || hasFloor)
      await measureFanOut(part, peer, openPeer(peer, scenarios[part].kind, sample), listeners, report)
  }
}
