import { diceOf } from '../../src/devnet/life/random.ts'
import { type Figures, Gathering, type Guests, type Joined, settledBytes, type Work } from './listener-load.ts'
import type { Kind, Selection } from './listeners-process.ts'
import { type Name, openPeer, openRelay, type Served } from './measured-servers.ts'
import { FILES_SPARED, filesBound } from './pinned-processes.ts'
import type { Sample } from './sample-messages.ts'

/** What is measured, one round of each part. */

export type Setting = { readonly listeners: number; readonly sample: Sample; readonly peers: ReadonlySet<Name> }
/** A server at some work, by a name that all rounds share. */
export type Told = (who: string, figures: Figures) => void

/** A flashblock of twenty transfers every 200 ms, as long as two blocks. */
const BURSTS: Work = { burst: 20, everyMs: 200, bursts: 20 }
/** Nothing to put together: one transfer every 200 ms. */
const LONE: Work = { burst: 1, everyMs: 200, bursts: 20 }
const TOKENS = 50
const TOKENS_EACH = 5
/** Over fifty tokens, so that five of them make twenty. */
const MIXED: Work = { burst: (BURSTS.burst * TOKENS) / TOKENS_EACH, everyMs: 200, bursts: 20 }

/** Whoever cannot keep up is given what it can deliver in a few seconds; what that costs per message is the same. */
const bearable: Readonly<Partial<Record<Name, { readonly warmUp: number; readonly bursts: number }>>> = {
  'naive ws': { warmUp: 1, bursts: 2 },
  'hono streamSSE': { warmUp: 1, bursts: 1 },
}
const WARM_UP_BURSTS = 10

/** How many come in at once where that is not what is measured, and where it is. */
const AT_ONCE = 200
const RUSH = 500
/** Who has been there for long while others come in, and what they hear. */
const REGULARS = 100
const REGULARS_EVERY_MS = 100

const HELD_BOUND = 20_000

const query = (symbols: string) => `symbols=${symbols}&types=transfer&snapshot=false`
const pathOf = (kind: Kind, symbols: string) => `${kind === 'ws' ? '/v1/ws' : '/v1/stream'}?${query(symbols)}`
const everything = (kind: Kind, { saysLive }: Served): readonly Selection[] => [
  { path: saysLive ? pathOf(kind, '*') : '/' },
]
const openNamed = (name: Name, kind: Kind, sample: Sample): Promise<Served> =>
  name === 'relay' ? openRelay(1) : openPeer(name, kind, sample)

async function withGuests<T>(served: Served, guests: Guests, act: (gathering: Gathering) => Promise<T>): Promise<T> {
  const gathering = new Gathering(served)
  try {
    const { live } = await gathering.join(guests)
    if (live < guests.listeners) throw new Error(`only ${live} of ${guests.listeners} listeners became live`)
    return await act(gathering)
  } finally {
    await gathering.end()
  }
}

/** The same bursts from the relay and its peers to the same listeners; and lone transfers too, if they are wanted. */
export async function fanOut(
  kind: Kind,
  wanted: { readonly bursts: boolean; readonly lone: boolean },
  { listeners, sample, peers }: Setting,
  told: Told,
): Promise<void> {
  const names: readonly Name[] =
    kind === 'ws' ? ['relay', 'C floor', 'naive ws'] : ['relay', 'C floor', 'hono streamSSE']
  for (const name of names.filter((one) => peers.has(one))) {
    const served = await openNamed(name, kind, sample)
    const { warmUp = WARM_UP_BURSTS, bursts = BURSTS.bursts } = bearable[name] ?? {}
    const guests = { kind, listeners, selections: everything(kind, served), every: 1, atOnce: AT_ONCE }
    await withGuests(served, guests, async (gathering) => {
      await gathering.hear({ ...BURSTS, bursts: warmUp })
      if (wanted.bursts) told(`${kind}, ${name}`, await gathering.hear({ ...BURSTS, bursts }))
      if (wanted.lone) told(`lone ${kind}, ${name}`, await gathering.hear(LONE))
    }).finally(() => served.end())
  }
}

/** Each listener with its own five of fifty tokens, beside as many who all have the same five. */
export async function mixed({ listeners }: Setting, told: Told): Promise<void> {
  const dice = diceOf('mixed')
  const same = Array.from({ length: TOKENS_EACH }, (_, at) => (at * TOKENS) / TOKENS_EACH)
  const own = Array.from({ length: listeners }, () => drawn(dice))
  for (const [who, sets] of [['same', [same]] as const, ['own', own] as const]) {
    const served = await openRelay(TOKENS)
    const selections = sets.map((hears) => ({
      hears,
      path: pathOf('ws', hears.map((at) => served.symbols[at]).join(',')),
    }))
    const guests: Guests = { kind: 'ws', listeners, selections, every: TOKENS, atOnce: AT_ONCE }
    await withGuests(served, guests, async (gathering) => {
      await gathering.hear({ ...MIXED, bursts: WARM_UP_BURSTS })
      told(`mixed, ${who} set`, await gathering.hear(MIXED))
    }).finally(() => served.end())
  }
}

function drawn(dice: () => number): readonly number[] {
  const set = new Set<number>()
  while (set.size < TOKENS_EACH) set.add(Math.floor(dice() * TOKENS))
  return [...set]
}

export type Memory = { readonly who: string; readonly bytesPerListener: number; readonly baseBytes: number }

/** What a listener costs that hears nothing: the growth of the server's memory, shared out. */
export async function memory({ listeners, sample, peers }: Setting, told: (memory: Memory) => void): Promise<void> {
  const servers: readonly (readonly [Kind, Name])[] = [
    ['ws', 'relay'],
    ['ws', 'naive ws'],
    ['sse', 'relay'],
    ['sse', 'hono streamSSE'],
  ]
  for (const [kind, name] of servers.filter(([, one]) => peers.has(one))) {
    const served = await openNamed(name, kind, sample)
    const baseBytes = await settledBytes(served)
    const guests = { kind, listeners, selections: everything(kind, served), every: 1, atOnce: AT_ONCE }
    await withGuests(served, guests, async () => {
      const bytesPerListener = ((await settledBytes(served)) - baseBytes) / listeners
      told({ who: `${kind}, ${name}`, bytesPerListener, baseBytes })
    }).finally(() => served.end())
  }
}

export type Joining = Joined & { readonly worstMs: number; readonly missing: number }

/** A token of which nothing is told, so that those who come in cost nothing but their coming. */
const ANOTHER: Selection = { path: pathOf('ws', 'MSFTc'), hears: [] }

/** Everybody comes in at once, and those who are there go on hearing. */
export async function joining({ listeners }: Setting): Promise<Joining> {
  const served = await openRelay(1)
  const selections = everything('ws', served)
  const regulars: Guests = { kind: 'ws', listeners: REGULARS, selections, every: 1, atOnce: AT_ONCE }
  const newcomers = new Gathering(served)
  let joined: Joined = { live: 0, seconds: 0, cpuSeconds: 0 }
  return withGuests(served, regulars, async (gathering) => {
    const heard = await gathering.during(1, REGULARS_EVERY_MS, async () => {
      joined = await newcomers.join({ ...regulars, listeners, selections: [ANOTHER], atOnce: RUSH })
    })
    if (joined.live < listeners) throw new Error(`only ${joined.live} of ${listeners} listeners became live`)
    return { ...joined, worstMs: heard.maxMs, missing: heard.missing }
  }).finally(async () => {
    await newcomers.end()
    await served.end()
  })
}

export type Held = Joined & {
  readonly filesBound: number
  readonly bytesPerListener: number
  readonly figures: Figures
}

/** As many listeners as this machine's files allow, and a transfer that all of them hear. */
export async function held(): Promise<Held> {
  const served = await openRelay(1)
  const gathering = new Gathering(served)
  const bound = filesBound()
  try {
    const baseBytes = await settledBytes(served)
    const joined = await gathering.join({
      kind: 'ws',
      listeners: Math.min(HELD_BOUND, bound - FILES_SPARED),
      selections: everything('ws', served),
      every: 1,
      atOnce: AT_ONCE,
    })
    const bytesPerListener = ((await settledBytes(served)) - baseBytes) / joined.live
    const figures = await gathering.hear({ ...LONE, bursts: 1 })
    return { ...joined, filesBound: bound, bytesPerListener, figures }
  } finally {
    await gathering.end()
    await served.end()
  }
}
