import type { StreamOptions } from '../../src/sdk/client/stream-types.ts'
import { SeededRandom } from './seeded-random.ts'

/** Quirks of nodes. Each was observed somewhere. */
const nodeTraits = [
  /** Logs come in any order. */
  'unsorted',
  /** The node still returns a block by its hash that is no longer canonical. */
  'orphans',
  /** The node returns logs of all addresses. */
  'unfiltered',
  /** Addresses contain capitals. */
  'checksums',
  /** Pre-confirmed logs have no hash, or a hash of their own, or no time. */
  'hashNull',
  'hashMissing',
  'hashPartial',
  'timeless',
] as const
export type NodeTrait = (typeof nodeTraits)[number]
/** How often, in %, a node has each of them. */
const TRAIT_PERCENT = 15
/** How often, in %, a node answers calls. */
const CALLS_PERCENT = 25
/** How often, in %, a tape is small, and how small: some of the blocks that a reorganisation can reach are evicted. */
const SMALL_TAPE_PERCENT = 10
export const LEAST_TAPE_BOUND = 100
const MOST_TAPE_BOUND = 1_000
/** How often, in %, it is so small that the open keys alone may fill it. */
const TINY_TAPE_PERCENT = 4
const LEAST_TINY_BOUND = 10

/** Shares, in %, of the worlds that have pools, and of those in which each run of the relay gets other ones. */
const POOLS_PERCENT = 40
const CHANGING_POOLS_PERCENT = 30
/** How often, in %, a manager has pools too, where there are pools. */
const MANAGER_PERCENT = 50
/** How often, in %, some of the pools are in no bar, where there are pools. */
const SECONDARY_PERCENT = 30
/** How often, in %, a simulation begins within a minute: then a fault may hit just after a minute is over. */
const WITHIN_MINUTE_PERCENT = 60

/** What a seed decides before any fault. */
export type Settings = {
  readonly seed: number
  /** Blocks of two seconds with ten flashblocks each, or blocks of 200 ms without pre-confirmations. */
  readonly mode: 'flash' | 'native'
  /** What one push contains: one new log, or all pending logs again. */
  readonly shape: 'one' | 'all'
  readonly hasLink: boolean
  /** Probability of a transaction in a slot of 200 ms, in %. Above 100 a slot may contain several. */
  readonly activity: number
  readonly latencyMs: number
  /** How far the node's sealed chain lags behind its pending block. */
  readonly sealedLagMs: number
  readonly safeLag: number
  readonly finalizedLag: number
  /** What `pending` returns where nothing is pre-confirmed. */
  readonly withoutPending: 'latest' | 'null' | 'invalid'
  /** What a range above the head returns. */
  readonly aboveHead: 'nothing' | 'behind' | 'invalid'
  readonly traits: readonly NodeTrait[]
  /** The newest block when the simulation begins: a chain may be young. */
  readonly firstHead: number
  /** Whether the node returns logs by their block's hash. */
  readonly byHash: boolean
  readonly backfillBoundMs: number
  readonly staleMs: number
  /** How often, in %, a transaction contains issuer actions. */
  readonly issuerPercent: number
  /** How far the list lags behind the sealed chain. Below zero it knows the pending block. */
  readonly listLagMs: number
  /** Whether the node answers calls of contracts. Otherwise it does not know the method. */
  readonly answersCalls?: boolean
  /** Whether the relay is given pools, and whether each of its runs gets others. */
  readonly pools?: 'same' | 'changing'
  /** Whether some of the pools are those of a manager. */
  readonly hasManager?: boolean
  /** Whether pools of one currency are in no bar. */
  readonly hasSecondary?: boolean
  /** The second of a minute at which the simulation begins; 0 where it is not named. */
  readonly firstSecond?: number
  /** How many updates the tape keeps; without it, more than a simulation writes. */
  readonly tapeBound?: number
  /** Whether the node does not know safe and finalized blocks at all. */
  readonly finalityUnknown?: boolean
  /** How many URLs the relay is given; one where it is not named. */
  readonly endpoints?: number
  /** Whether the faults of the socket and of HTTP strike the first endpoint alone. */
  readonly othersHealthy?: boolean
  /** A program follows the stream with the SDK, beside a client that never leaves. */
  readonly client?: ClientSettings
  /** Faults begin within this time. */
  readonly spanMs: number
  /** Whether all faults end before the run does, so that the relay has to recover. */
  readonly liveness: boolean
}

/** A program that follows the stream, and the network between it and the relay. */
export type ClientSettings = {
  readonly selection: Pick<StreamOptions, 'types' | 'stage'> & { readonly minValue?: string }
  /** How often its connections break, about; null for never. */
  readonly cutEveryMs: number | null
  /** How often the program ends and starts again, about; null for never. */
  readonly restartEveryMs: number | null
  /** Messages that get lost although the connection goes on, in %. */
  readonly lossPercent: number
  /** Messages that get lost in the last seconds before a connection breaks, in %; none where it is not named. */
  readonly breakLossPercent?: number
  readonly queueBound: number
  readonly fill: boolean
}

/** How often, in %, there is a client, how often it loses messages, and how often it restarts where it loses none. */
const CLIENT_PERCENT = 30
const LOSS_PERCENT = 30
const RESTART_PERCENT = 30
/** How often, in %, connections that break lose messages just before. */
const BREAK_LOSS_PERCENT = 40

function clientOf(seed: number): Pick<Settings, 'client'> {
  const random = new SeededRandom(seed, 'client')
  if (!random.chance(CLIENT_PERCENT)) return {}
  const lossPercent = random.chance(LOSS_PERCENT) ? random.pick([1, 1, 10]) : 0
  const client: ClientSettings = {
    selection: random.pick<ClientSettings['selection']>([
      {},
      { types: '*' },
      { types: ['transfer', 'nav'] },
      { types: ['transfer', 'mint', 'burn', 'seal', 'retract', 'amend'] },
      { minValue: '1000' },
      { stage: 'sealed' },
    ]),
    cutEveryMs: random.chance(70) ? random.pick([500, 3_000, 15_000]) : null,
    restartEveryMs: lossPercent === 0 && random.chance(RESTART_PERCENT) ? random.pick([2_000, 10_000]) : null,
    lossPercent,
    queueBound: random.pick([1, 20, 10_000, 10_000]),
    fill: random.chance(50),
  }
  return { client: { ...client, ...breakLossOf(seed, client) } }
}

/** Drawn by itself, because it came later. A program that ends as well knows nothing of what was lost before. */
function breakLossOf(seed: number, { cutEveryMs, restartEveryMs }: ClientSettings): Pick<ClientSettings, 'breakLossPercent'> {
  const random = new SeededRandom(seed, 'losses before breaks')
  if (cutEveryMs === null || restartEveryMs !== null || !random.chance(BREAK_LOSS_PERCENT)) return {}
  return { breakLossPercent: random.pick([10, 50]) }
}

/** How often, in %, a node knows no safe block, and how often a chain is so long and unsafe that blocks are forgotten. */
const FINALITY_UNKNOWN_PERCENT = 8
const LONG_CHAIN_PERCENT = 1
/** A chain without flashblocks of somewhat more than 1,024 blocks, few of them with logs. */
const longChain = { mode: 'native', activity: 4, safeLag: 1_150, spanMs: 240_000, latencyMs: 5, finalityUnknown: true } as const

/** How often, in %, a chain is busy, its node answers at once, and hundreds of blocks with logs may be replaced. */
const QUICK_CHAIN_PERCENT = 1
const quickChain = { mode: 'native', activity: 60, safeLag: 500, spanMs: 110_000, latencyMs: 5 } as const

/** How often, in %, the relay is given several URLs, and how often only the first of them has faults. */
const ENDPOINTS_PERCENT = 15
const OTHERS_HEALTHY_PERCENT = 60

const DAY_MS = 86_400_000

function tapeBoundOf(seed: number): Pick<Settings, 'tapeBound'> {
  const tiny = new SeededRandom(seed, 'tiny tape')
  if (tiny.chance(TINY_TAPE_PERCENT)) return { tapeBound: tiny.int(LEAST_TINY_BOUND, LEAST_TAPE_BOUND) }
  const random = new SeededRandom(seed, 'tape bound')
  return random.chance(SMALL_TAPE_PERCENT) ? { tapeBound: random.int(LEAST_TAPE_BOUND, MOST_TAPE_BOUND) } : {}
}

/** The pools in the world of a seed. */
export function poolsOf(seed: number): Pick<Settings, 'pools' | 'hasManager' | 'hasSecondary'> {
  const random = new SeededRandom(seed, 'pools')
  if (!random.chance(POOLS_PERCENT)) return {}
  const pools = random.chance(CHANGING_POOLS_PERCENT) ? 'changing' : 'same'
  // Drawn by themselves, because they came later.
  return {
    pools,
    ...(new SeededRandom(seed, 'pool manager').chance(MANAGER_PERCENT) ? { hasManager: true } : {}),
    ...(new SeededRandom(seed, 'second currency').chance(SECONDARY_PERCENT) ? { hasSecondary: true } : {}),
  }
}

/** When the world of a seed begins. */
export function beginningOf(seed: number): Pick<Settings, 'firstSecond'> {
  const random = new SeededRandom(seed, 'first second')
  return random.chance(WITHIN_MINUTE_PERCENT) ? { firstSecond: random.int(1, 59) } : {}
}

function chainOf(seed: number): Partial<Settings> {
  const random = new SeededRandom(seed, 'long chain')
  if (random.chance(LONG_CHAIN_PERCENT)) return longChain
  if (isQuickChain(seed)) return quickChain
  return random.chance(FINALITY_UNKNOWN_PERCENT) ? { finalityUnknown: true } : {}
}

/** Whether hundreds of blocks with logs may be replaced in the world of a seed. */
export const isQuickChain = (seed: number): boolean => new SeededRandom(seed, 'quick chain').chance(QUICK_CHAIN_PERCENT)

/** The relay's endpoints in the world of a seed. */
export function endpointsOf(seed: number): Pick<Settings, 'endpoints' | 'othersHealthy'> {
  const random = new SeededRandom(seed, 'endpoints')
  if (!random.chance(ENDPOINTS_PERCENT)) return {}
  return { endpoints: random.int(2, 3), ...(random.chance(OTHERS_HEALTHY_PERCENT) ? { othersHealthy: true } : {}) }
}

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
    sealedLagMs: mode === 'flash' ? random.pick([0, 0, 0, 300, 700]) : 0,
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
    issuerPercent: random.pick([0, 5, 15, 40]),
    listLagMs: random.pick([-1, 0, 2_000, 10_000, 40_000]),
    // Drawn by themselves, because they came later: the seeds without them stay the same.
    ...(new SeededRandom(seed, 'calls').chance(CALLS_PERCENT) ? { answersCalls: true } : {}),
    ...tapeBoundOf(seed),
    ...endpointsOf(seed),
    ...chainOf(seed),
    ...clientOf(seed),
    ...poolsOf(seed),
    ...beginningOf(seed),
  }
}
