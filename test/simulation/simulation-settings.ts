import { SeededRandom } from './seeded-random.ts'

/** Habits of nodes, each of them seen somewhere. */
const nodeTraits = [
  /** Logs come in any order. */
  'unsorted',
  /** A block that is no longer canonical can still be asked for by its hash. */
  'orphans',
  /** Logs are given whether or not their address was asked for. */
  'unfiltered',
  /** Addresses are written with capitals. */
  'checksums',
  /** What is pre-confirmed has no hash, or one of its own, or no time. */
  'hashNull',
  'hashMissing',
  'hashPartial',
  'timeless',
] as const
export type NodeTrait = (typeof nodeTraits)[number]
/** How often, in %, a node has each of them. */
const TRAIT_PERCENT = 15

/** How the world of one seed is, before anything goes wrong. */
export type Settings = {
  readonly seed: number
  /** Blocks of two seconds with ten flashblocks each, or blocks of 200 ms and nothing pre-confirmed. */
  readonly mode: 'flash' | 'native'
  /** What one push holds: one new log, or all that are pending, again and again. */
  readonly shape: 'one' | 'all'
  readonly hasLink: boolean
  /** How likely a transaction is in a slot of 200 ms, in %; above 100 there may be several. */
  readonly activity: number
  readonly latencyMs: number
  /** How much later the node follows the sealed chain than the one being built. */
  readonly canonLagMs: number
  readonly safeLag: number
  readonly finalizedLag: number
  /** What `pending` is where nothing is pre-confirmed. */
  readonly withoutPending: 'latest' | 'null' | 'invalid'
  /** What a range above the head gives. */
  readonly aboveHead: 'nothing' | 'behind' | 'invalid'
  readonly traits: readonly NodeTrait[]
  /** The newest block when the world begins: a chain may be young. */
  readonly firstHead: number
  /** Whether logs can be asked for by their block's hash. */
  readonly byHash: boolean
  readonly backfillBoundMs: number
  readonly staleMs: number
  /** How often, in %, a transaction does more than move tokens. */
  readonly deeds: number
  /** How much later the list follows the sealed chain; below zero it knows what is being built. */
  readonly listLagMs: number
  /** Faults begin within this time. */
  readonly spanMs: number
  /** Whether all faults stop at last, so that the relay has to recover. */
  readonly liveness: boolean
}

const DAY_MS = 86_400_000

export function settingsOf(seed: number): Settings {
  const random = new SeededRandom(seed, 'settings')
  const mode = random.chance(70) ? 'flash' : 'native'
  return {
    seed,
    mode,
    shape: random.chance(65) ? 'one' : 'all',
    hasLink: random.chance(85),
    activity: mode === 'flash' ? random.pick([2, 15, 30, 60]) : random.pick([1, 8, 20]),
    latencyMs: random.pick([5, 20, 60, 150]),
    canonLagMs: mode === 'flash' ? random.pick([0, 0, 0, 300, 700]) : 0,
    safeLag: mode === 'flash' ? random.int(15, 50) : random.int(30, 120),
    finalizedLag: random.int(60, 180),
    withoutPending: random.pick(['latest', 'null', 'invalid']),
    aboveHead: random.pick(['nothing', 'nothing', 'behind', 'invalid']),
    traits: nodeTraits.filter(() => random.chance(TRAIT_PERCENT)),
    firstHead: random.chance(90) ? 1_000_000 : random.int(0, 5),
    byHash: random.chance(90),
    backfillBoundMs: random.chance(70) ? DAY_MS : random.int(20, 60) * 1_000,
    staleMs: random.chance(50) ? DAY_MS : random.int(20, 60) * 1_000,
    spanMs: mode === 'flash' ? random.int(20, 80) * 1_000 : random.int(10, 30) * 1_000,
    liveness: random.chance(80),
    deeds: random.pick([0, 5, 15, 40]),
    listLagMs: random.pick([-1, 0, 2_000, 10_000, 40_000]),
  }
}
