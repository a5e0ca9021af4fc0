import { seededRandom } from '../../src/devnet/life/seeded-random.ts'
import { type Figures, type Joined, type ListenerGroup, ListenerLoad, settledBytes, type Work } from './listener-load.ts'
import type { Selection, StreamKind } from './listeners-process.ts'
import { type MeasuredServer, openPeer, openRelay, type ServerName } from './measured-servers.ts'
import { filesBound, RESERVED_FILES } from './pinned-processes.ts'
import type { Sample } from './sample-messages.ts'

/** The benchmarks, one round of each part. */

export type BenchmarkSettings = {
  readonly listeners: number
  readonly sample: Sample
  readonly peers: ReadonlySet<ServerName>
  /** The folder of the measured relay's source. */
  readonly dir: string
}
/** A server and its work, under a name that all rounds share. */
export type ReportFigures = (name: string, figures: Figures) => void

/** A flashblock of twenty transfers every 200 ms, for two blocks. */
const BURSTS: Work = { burst: 20, everyMs: 200, bursts: 20 }
/** One transfer every 200 ms, so that there is nothing to batch. */
const SINGLE_TRANSFERS: Work = { burst: 1, everyMs: 200, bursts: 20 }
const TOKENS = 50
const TOKENS_EACH = 5
/** Spread over fifty tokens, so that five of them get twenty transfers. */
const MIXED_BURSTS: Work = { burst: (BURSTS.burst * TOKENS) / TOKENS_EACH, everyMs: 200, bursts: 20 }

/** A slow peer gets only what it can deliver in a few seconds. The cost per message is the same. */
const peerLimits: Readonly<Partial<Record<ServerName, { readonly warmUp: number; readonly bursts: number }>>> = {
  'naive ws': { warmUp: 1, bursts: 2 },
  'hono streamSSE': { warmUp: 1, bursts: 1 },
}
const WARM_UP_BURSTS = 10

/** Concurrent joins where joining is not measured, and where it is. */
const CONCURRENT_JOINS = 200
const RUSH_JOINS = 500
/** Listeners that are connected before others join, and how often they get a transfer. */
const STEADY_LISTENERS = 100
const STEADY_INTERVAL_MS = 100

const CAPACITY_BOUND = 20_000

const query = (symbols: string) => `symbols=${symbols}&types=transfer&snapshot=false`
const pathOf = (kind: StreamKind, symbols: string) => `${kind === 'ws' ? '/v1/ws' : '/v1/stream'}?${query(symbols)}`
const allMessages = (kind: StreamKind, { sendsLive }: MeasuredServer): readonly Selection[] => [
  { path: sendsLive ? pathOf(kind, '*') : '/' },
]
const openServer = (name: ServerName, kind: StreamKind, { sample, dir }: BenchmarkSettings): Promise<MeasuredServer> =>
  name === 'relay' ? openRelay(1, {}, { dir }) : openPeer(name, kind, sample)

async function withListeners<T>(
  server: MeasuredServer,
  group: ListenerGroup,
  act: (load: ListenerLoad, joined: Joined) => Promise<T>,
): Promise<T> {
  const load = new ListenerLoad(server)
  try {
    const joined = await load.join(group)
    if (joined.live < group.listeners) throw new Error(`only ${joined.live} of ${group.listeners} listeners became live`)
    return await act(load, joined)
  } finally {
    await load.end()
  }
}

/** The same bursts from one process, and from two workers behind one port. */
export async function benchmarkWorkers({ listeners, dir }: BenchmarkSettings, report: ReportFigures): Promise<void> {
  for (const workers of [1, 2]) {
    const server = await openRelay(1, { WORKERS: String(workers) }, { dir })
    const group = { kind: 'ws', listeners, selections: allMessages('ws', server), every: 1, atOnce: CONCURRENT_JOINS } as const
    await withListeners(server, group, async (load) => {
      await load.deliver({ ...BURSTS, bursts: WARM_UP_BURSTS })
      report(`ws, ${workers} worker${workers === 1 ? '' : 's'}`, await load.deliver(BURSTS))
    }).finally(() => server.end())
  }
}

/** The same bursts from the relay and its peers to the same listeners, and lone transfers on request. */
export async function benchmarkFanOut(
  kind: StreamKind,
  kinds: { readonly bursts: boolean; readonly lone: boolean },
  settings: BenchmarkSettings,
  report: ReportFigures,
): Promise<void> {
  const { listeners, peers } = settings
  const names: readonly ServerName[] = kind === 'ws' ? ['relay', 'C floor', 'naive ws'] : ['relay', 'C floor', 'hono streamSSE']
  for (const name of names.filter((peer) => peers.has(peer))) {
    const server = await openServer(name, kind, settings)
    const { warmUp = WARM_UP_BURSTS, bursts = BURSTS.bursts } = peerLimits[name] ?? {}
    const group = { kind, listeners, selections: allMessages(kind, server), every: 1, atOnce: CONCURRENT_JOINS }
    await withListeners(server, group, async (load) => {
      await load.deliver({ ...BURSTS, bursts: warmUp })
      if (kinds.bursts) report(`${kind}, ${name}`, await load.deliver({ ...BURSTS, bursts }))
      if (kinds.lone) report(`lone ${kind}, ${name}`, await load.deliver(SINGLE_TRANSFERS))
    }).finally(() => server.end())
  }
}

/** From few listeners to many. */
const GROWTH = [100, 1_000, 10_000, 20_000] as const
/** Few listeners need more work to be measured. */
const GROWTH_BURSTS: Work = { ...BURSTS, bursts: 40 }

/** The numbers of listeners whose deliveries are compared, as far as the file limit allows. */
export const growthListeners = (): readonly number[] =>
  GROWTH.map((listeners) => Math.min(listeners, filesBound() - RESERVED_FILES))

/** The same bursts to more and more listeners, from the relay and from the floor. */
export async function benchmarkGrowth(settings: BenchmarkSettings, report: ReportFigures): Promise<void> {
  for (const listeners of growthListeners())
    for (const name of (['relay', 'C floor'] as const).filter((peer) => settings.peers.has(peer))) {
      const server = await openServer(name, 'ws', settings)
      const group: ListenerGroup = {
        ...{ kind: 'ws', listeners, selections: allMessages('ws', server), every: 1, atOnce: CONCURRENT_JOINS },
      }
      await withListeners(server, group, async (load) => {
        await load.deliver({ ...BURSTS, bursts: WARM_UP_BURSTS })
        report(`${listeners}, ${name}`, await load.deliver(listeners > 1_000 ? BURSTS : GROWTH_BURSTS))
      }).finally(() => server.end())
    }
}

const DEFLATE_LISTENERS = 1_000
/** Every hundredth listener inflates and checks; reading them all would cost more than the relay does. */
const DEFLATE_READERS_EVERY = 100

/** One audience of listeners that offer compression, and one of listeners that do not. The light chain's logs are as random as real ones. */
export async function benchmarkDeflate({ dir }: BenchmarkSettings, report: ReportFigures): Promise<void> {
  for (const offersDeflate of [false, true]) {
    const server = await openRelay(1, {}, { dir, isLight: true })
    const group: ListenerGroup = {
      ...{ kind: 'ws', listeners: DEFLATE_LISTENERS, selections: allMessages('ws', server), every: 1, atOnce: CONCURRENT_JOINS },
      ...{ offersDeflate, readersEvery: DEFLATE_READERS_EVERY },
    }
    await withListeners(server, group, async (load, { deflated }) => {
      const name = deflated > 0 ? 'deflated' : offersDeflate ? 'not accepted' : 'plain'
      await load.deliver({ ...BURSTS, bursts: WARM_UP_BURSTS })
      report(`bursts, ${name}`, await load.deliver(GROWTH_BURSTS))
      report(`lone, ${name}`, await load.deliver({ ...SINGLE_TRANSFERS, bursts: GROWTH_BURSTS.bursts }))
    }).finally(() => server.end())
  }
}

/** Listeners with their own five of fifty tokens, compared with listeners that all have the same five. */
export async function benchmarkMixed({ listeners, dir }: BenchmarkSettings, report: ReportFigures): Promise<void> {
  const random = seededRandom('mixed')
  const same = Array.from({ length: TOKENS_EACH }, (_, at) => (at * TOKENS) / TOKENS_EACH)
  const own = Array.from({ length: listeners }, () => randomTokens(random))
  for (const [name, sets] of [['same', [same]] as const, ['own', own] as const]) {
    const server = await openRelay(TOKENS, {}, { dir })
    const selections = sets.map(
      (receives): Selection => ({ receives, path: pathOf('ws', receives.map((at) => server.symbols[at]).join(',')) }),
    )
    const group: ListenerGroup = { kind: 'ws', listeners, selections, every: TOKENS, atOnce: CONCURRENT_JOINS }
    await withListeners(server, group, async (load) => {
      await load.deliver({ ...MIXED_BURSTS, bursts: WARM_UP_BURSTS })
      report(`mixed, ${name} set`, await load.deliver(MIXED_BURSTS))
    }).finally(() => server.end())
  }
}

function randomTokens(random: () => number): readonly number[] {
  const set = new Set<number>()
  while (set.size < TOKENS_EACH) set.add(Math.floor(random() * TOKENS))
  return [...set]
}

export type MemoryFigures = { readonly server: string; readonly bytesPerListener: number; readonly baseBytes: number }

/** Memory per idle listener: the growth of the server's memory, divided by the listeners. */
export async function benchmarkMemory(settings: BenchmarkSettings, report: (memory: MemoryFigures) => void): Promise<void> {
  const { listeners, peers } = settings
  const servers: readonly (readonly [StreamKind, ServerName])[] = [
    ['ws', 'relay'],
    ['ws', 'naive ws'],
    ['sse', 'relay'],
    ['sse', 'hono streamSSE'],
  ]
  for (const [kind, name] of servers.filter(([, peer]) => peers.has(peer))) {
    const server = await openServer(name, kind, settings)
    const baseBytes = await settledBytes(server)
    const group = { kind, listeners, selections: allMessages(kind, server), every: 1, atOnce: CONCURRENT_JOINS }
    await withListeners(server, group, async () => {
      const bytesPerListener = ((await settledBytes(server)) - baseBytes) / listeners
      report({ server: `${kind}, ${name}`, bytesPerListener, baseBytes })
    }).finally(() => server.end())
  }
}

export type JoiningFigures = Joined & { readonly worstMs: number; readonly missing: number }

/** A token without updates, so that the joining listeners cost nothing but their joining. */
const QUIET_SELECTION: Selection = { path: pathOf('ws', 'MSFTc'), receives: [] }

/** Many listeners join at once while others keep receiving. */
export async function benchmarkJoining({ listeners }: BenchmarkSettings): Promise<JoiningFigures> {
  const server = await openRelay(1)
  const selections = allMessages('ws', server)
  const steady: ListenerGroup = { kind: 'ws', listeners: STEADY_LISTENERS, selections, every: 1, atOnce: CONCURRENT_JOINS }
  const newcomers = new ListenerLoad(server)
  let joined: Joined = { live: 0, seconds: 0, cpuSeconds: 0, deflated: 0 }
  return withListeners(server, steady, async (load) => {
    const received = await load.deliverDuring(1, STEADY_INTERVAL_MS, async () => {
      joined = await newcomers.join({ ...steady, listeners, selections: [QUIET_SELECTION], atOnce: RUSH_JOINS })
    })
    if (joined.live < listeners) throw new Error(`only ${joined.live} of ${listeners} listeners became live`)
    return { ...joined, worstMs: received.maxMs, missing: received.missing }
  }).finally(async () => {
    await newcomers.end()
    await server.end()
  })
}

export type CapacityFigures = Joined & { readonly filesBound: number; readonly bytesPerListener: number; readonly figures: Figures }

/** As many listeners as the machine's file limit allows, and a transfer to all of them. */
export async function benchmarkCapacity(): Promise<CapacityFigures> {
  const server = await openRelay(1)
  const load = new ListenerLoad(server)
  const bound = filesBound()
  try {
    const baseBytes = await settledBytes(server)
    const joined = await load.join({
      kind: 'ws',
      listeners: Math.min(CAPACITY_BOUND, bound - RESERVED_FILES),
      selections: allMessages('ws', server),
      every: 1,
      atOnce: CONCURRENT_JOINS,
    })
    const bytesPerListener = ((await settledBytes(server)) - baseBytes) / joined.live
    const figures = await load.deliver({ ...SINGLE_TRANSFERS, bursts: 1 })
    return { ...joined, filesBound: bound, bytesPerListener, figures }
  } finally {
    await load.end()
    await server.end()
  }
}
