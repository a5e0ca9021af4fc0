import { seededRandom } from '../../src/devnet/life/seeded-random.ts'
import type { Part } from './bench-flags.ts'
import {
  type Figures,
  type Joined,
  type ListenerGroup,
  ListenerLoad,
  pathOf,
  settledBytes,
  type Work,
  withLoad,
} from './listener-load.ts'
import type { Selection, StreamKind } from './listeners-process.ts'
import { openPeer, openRelay, type RelayOptions, type ServerName } from './measured-servers.ts'
import { filesBound, RESERVED_FILES } from './pinned-processes.ts'
import type { Sample } from './sample-messages.ts'

/** Servers that give work to many listeners. */

/** A flashblock of twenty transfers every 200 ms, for two blocks. */
const BURSTS: Work = { burst: 20, everyMs: 200, bursts: 20 }
/** One transfer every 200 ms, so that there is nothing to batch. */
const SINGLE_TRANSFERS: Work = { burst: 1, everyMs: 200, bursts: 20 }
/** Few listeners need more work to be measured. */
const MORE_BURSTS = 40
const WARM_UP_BURSTS = 10
/** A slow peer gets only what it can deliver in a few seconds. The cost per message is the same. */
const peerLimits: Readonly<Partial<Record<ServerName, { readonly warmUp: number; readonly bursts: number }>>> = {
  'naive ws': { warmUp: 1, bursts: 2 },
  'hono streamSSE': { warmUp: 1, bursts: 1 },
}

/** From few listeners to many, as far as the file limit allows. */
export const growthListeners = (): readonly number[] =>
  [100, 1_000, 10_000, 20_000].map((listeners) => Math.min(listeners, filesBound() - RESERVED_FILES))

/** Listeners of a server, and the work that they receive, each under a name that all rounds share. */
export type Scenario = {
  readonly server: ServerName
  readonly options?: RelayOptions
  readonly group: ListenerGroup
  readonly works: readonly { readonly part: Part; readonly name: string; readonly work: Work }[]
  readonly warmUp?: Work
}

const fanOut = (kind: StreamKind, server: ServerName, listeners: number): Scenario => {
  const { warmUp = WARM_UP_BURSTS, bursts = BURSTS.bursts } = peerLimits[server] ?? {}
  const lone = { part: 'lone', name: `lone ws, ${server}`, work: SINGLE_TRANSFERS } as const
  const works = [{ part: kind, name: `${kind}, ${server}`, work: { ...BURSTS, bursts } }, ...(kind === 'ws' ? [lone] : [])]
  return { server, group: { kind, listeners }, works, warmUp: { ...BURSTS, bursts: warmUp } }
}

const growing = (server: ServerName, listeners: number): Scenario => {
  const work = listeners > 1_000 ? BURSTS : { ...BURSTS, bursts: MORE_BURSTS }
  return { server, group: { listeners }, works: [{ part: 'growth', name: `${listeners}, ${server}`, work }] }
}

const DEFLATE_LISTENERS = 1_000
/** Every hundredth listener inflates and checks; reading them all would cost more than the relay does. */
const DEFLATE_READERS_EVERY = 100

/** The light chain's logs are as random as real ones. */
const deflate = (offersDeflate: boolean): Scenario => ({
  ...{ server: 'relay', options: { isLight: true } },
  group: { listeners: DEFLATE_LISTENERS, offersDeflate, readersEvery: DEFLATE_READERS_EVERY },
  works: [BURSTS, SINGLE_TRANSFERS].map((work) => ({
    ...{ part: 'deflate', work: { ...work, bursts: MORE_BURSTS } },
    name: `${work === BURSTS ? 'bursts' : 'lone'}, ${offersDeflate ? 'deflated' : 'plain'}`,
  })),
})

const workers = (count: number, listeners: number): Scenario => ({
  ...{ server: 'relay', options: { settings: { WORKERS: String(count) } }, group: { listeners } },
  works: [{ part: 'workers', name: `ws, ${count} worker${count === 1 ? '' : 's'}`, work: BURSTS }],
})

const TOKENS = 50
const TOKENS_EACH = 5
/** Spread over fifty tokens, so that five of them get twenty transfers. */
const MIXED_BURSTS: Work = { ...BURSTS, burst: (BURSTS.burst * TOKENS) / TOKENS_EACH }

function mixed(name: string, sets: readonly (readonly number[])[], listeners: number): Scenario {
  // The names of the tokens are known once the chain is open.
  const selections = sets.map((receives): Selection => ({ receives, path: pathOf('ws', receives.map((at) => `#${at}`).join(',')) }))
  return {
    ...{ server: 'relay', options: { tokens: TOKENS }, group: { listeners, selections, every: TOKENS } },
    ...{ works: [{ part: 'mixed', name: `mixed, ${name} set`, work: MIXED_BURSTS }] },
    warmUp: { ...MIXED_BURSTS, bursts: WARM_UP_BURSTS },
  }
}

function randomTokens(random: () => number): readonly number[] {
  const set = new Set<number>()
  while (set.size < TOKENS_EACH) set.add(Math.floor(random() * TOKENS))
  return [...set]
}

/** All scenarios of a round, with so many listeners where the scenario itself has no number. */
export function scenariosWith(listeners: number): readonly Scenario[] {
  const random = seededRandom('mixed')
  const same = Array.from({ length: TOKENS_EACH }, (_, at) => (at * TOKENS) / TOKENS_EACH)
  const own = Array.from({ length: listeners }, () => randomTokens(random))
  return [
    ...(['relay', 'C floor', 'naive ws'] as const).map((server) => fanOut('ws', server, listeners)),
    ...(['relay', 'C floor', 'hono streamSSE'] as const).map((server) => fanOut('sse', server, listeners)),
    ...growthListeners().flatMap((count) => (['relay', 'C floor'] as const).map((server) => growing(server, count))),
    ...[deflate(false), deflate(true), workers(1, listeners), workers(2, listeners)],
    ...[mixed('same', [same], listeners), mixed('own', own, listeners)],
  ]
}

/** Measures what is selected of a scenario, on the relay of a source folder or on a peer. */
export async function measureScenario(
  { server: name, options, group, works, warmUp = { ...BURSTS, bursts: WARM_UP_BURSTS } }: Scenario,
  { sample, dir }: { readonly sample: Sample; readonly dir: string },
  report: (name: string, figures: Figures) => void,
): Promise<void> {
  const opening = name === 'relay' ? openRelay({ ...options, dir }) : openPeer(name, group.kind ?? 'ws', sample)
  await withLoad(opening, async (load, { symbols }) => {
    const named = (path: string) => path.replaceAll(/#(\d+)/g, (_, at) => symbols[at] ?? '')
    const selections = group.selections?.map((selection) => ({ ...selection, path: named(selection.path) }))
    const { deflated } = await load.join({ ...group, ...(selections && { selections }) })
    await load.deliver(warmUp)
    // An earlier commit may not accept compression.
    for (const { name, work } of works)
      report(deflated > 0 ? name : name.replace('deflated', 'not accepted'), await load.deliver(work))
  })
}

export type MemoryFigures = { readonly server: string; readonly bytesPerListener: number; readonly baseBytes: number }
export const memoryServers: readonly (readonly [StreamKind, ServerName])[] = [
  ['ws', 'relay'],
  ['ws', 'naive ws'],
  ['sse', 'relay'],
  ['sse', 'hono streamSSE'],
]

/** Memory per idle listener: the growth of the server's memory, divided by the listeners. */
export const measureMemory = (kind: StreamKind, name: ServerName, sample: Sample, listeners: number): Promise<MemoryFigures> =>
  withLoad(name === 'relay' ? openRelay() : openPeer(name, kind, sample), async (load, server) => {
    const baseBytes = await settledBytes(server)
    await load.join({ kind, listeners })
    return { server: `${kind}, ${name}`, bytesPerListener: ((await settledBytes(server)) - baseBytes) / listeners, baseBytes }
  })

export type JoiningFigures = Joined & { readonly maxMs: number; readonly missing: number }

const RUSH_JOINS = 500
/** Listeners that are connected before others join, and how often they get a transfer. */
const [STEADY_LISTENERS, STEADY_INTERVAL_MS] = [100, 100]
/** A token without updates, so that the joining listeners cost nothing but their joining. */
const QUIET_SELECTION: Selection = { path: pathOf('ws', 'MSFTc'), receives: [] }

/** Many listeners join at once while others keep receiving. */
export const measureJoining = (listeners: number): Promise<JoiningFigures> =>
  withLoad(openRelay(), async (load, server) => {
    const newcomers = new ListenerLoad(server)
    let joined: Joined | undefined
    try {
      await load.join({ listeners: STEADY_LISTENERS })
      const { maxMs, missing } = await load.deliverDuring(1, STEADY_INTERVAL_MS, async () => {
        joined = await newcomers.join({ listeners, selections: [QUIET_SELECTION], atOnce: RUSH_JOINS })
      })
      if (!joined) throw new Error('nobody has joined')
      return { ...joined, maxMs, missing }
    } finally {
      await newcomers.end()
    }
  })

const CAPACITY_BOUND = 20_000
export type CapacityFigures = Joined & { readonly filesBound: number; readonly bytesPerListener: number; readonly figures: Figures }

/** As many listeners as the machine's file limit allows, and a transfer to all of them. */
export const measureCapacity = (): Promise<CapacityFigures> =>
  withLoad(openRelay(), async (load, server) => {
    const bound = filesBound()
    const baseBytes = await settledBytes(server)
    const joined = await load.join({ listeners: Math.min(CAPACITY_BOUND, bound - RESERVED_FILES), mayBeFewer: true })
    const bytesPerListener = ((await settledBytes(server)) - baseBytes) / joined.live
    return { ...joined, filesBound: bound, bytesPerListener, figures: await load.deliver({ ...SINGLE_TRANSFERS, bursts: 1 }) }
  })
