import fc from 'fast-check'
import { SeededRandom } from './seeded-random.ts'

/** What can go wrong, one row each: whom it befalls, how long it lasts (ms), and what its amount means. */
export const faultTable = {
  // The upstream socket.
  cut: ['socket', 0, 0, 'nothing', 0, 0],
  refused: ['socket', 500, 60_000, 'nothing', 0, 0],
  hang: ['socket', 500, 30_000, 'nothing', 0, 0],
  flapping: ['socket', 2_000, 40_000, 'ms between two cuts', 300, 6_000],
  mutePending: ['socket', 2_000, 90_000, 'nothing', 0, 0],
  muteHeads: ['socket', 2_000, 90_000, 'nothing', 0, 0],
  muteLogs: ['socket', 2_000, 90_000, 'nothing', 0, 0],
  muteAll: ['socket', 2_000, 60_000, 'nothing', 0, 0],
  lossy: ['socket', 1_000, 60_000, '% of pushes lost', 5, 90],
  repeated: ['socket', 1_000, 60_000, '% of pushes said again later', 10, 100],
  shuffled: ['socket', 1_000, 40_000, 'ms by which a push may be late', 50, 3_000],
  late: ['socket', 1_000, 40_000, 'ms by which all is late', 500, 10_000],
  behind: ['socket', 5_000, 60_000, 'ms by which pre-confirmations are late', 4_000, 60_000],
  malformed: ['socket', 1_000, 20_000, '% of pushes', 5, 60],
  garbage: ['socket', 1_000, 20_000, '% of pushes', 5, 60],
  foreign: ['socket', 1_000, 20_000, '% of pushes', 5, 60],
  badHead: ['socket', 1_000, 20_000, '% of heads', 5, 60],
  takenBack: ['socket', 1_000, 20_000, '% of blocks of which a log is said to be removed', 10, 100],
  mined: ['socket', 5_000, 60_000, 'nothing', 0, 0],
  noPendingLogs: ['socket', 5_000, 90_000, 'nothing', 0, 0],
  // The node that is asked.
  unreachable: ['rpc', 500, 60_000, 'nothing', 0, 0],
  flaky: ['rpc', 1_000, 60_000, '% of questions', 5, 70],
  busy: ['rpc', 500, 10_000, 'seconds it asks to wait', 0, 8],
  html: ['rpc', 500, 20_000, '% of questions', 10, 100],
  slow: ['rpc', 1_000, 30_000, 'ms', 300, 4_500],
  stalled: ['rpc', 1_000, 20_000, '% of questions that hang', 10, 100],
  lagging: ['rpc', 1_000, 40_000, 'ms behind', 300, 20_000],
  uneven: ['rpc', 1_000, 60_000, 'ms behind, half of the answers', 300, 5_000],
  unindexed: ['rpc', 1_000, 60_000, 'ms for which a new block seems empty', 100, 900],
  narrow: ['rpc', 5_000, 90_000, 'how narrow a range must be: 2000, 500, 10, 5', 0, 3],
  crowded: ['rpc', 5_000, 60_000, 'logs in one answer', 12, 60],
  gone: ['rpc', 5_000, 60_000, 'blocks for which logs are kept', 5, 60],
  pendingNull: ['rpc', 1_000, 60_000, 'nothing', 0, 0],
  pendingNumberless: ['rpc', 1_000, 60_000, 'nothing', 0, 0],
  pendingHashed: ['rpc', 1_000, 60_000, 'nothing', 0, 0],
  pendingLatest: ['rpc', 1_000, 60_000, 'nothing', 0, 0],
  pendingBehind: ['rpc', 1_000, 60_000, 'ms', 400, 30_000],
  noFinality: ['rpc', 5_000, 90_000, '0 refused, 1 null', 0, 1],
  // The chain itself.
  stop: ['chain', 1_000, 60_000, 'nothing', 0, 0],
  drop: ['chain', 2_000, 60_000, '% of transactions', 5, 60],
  move: ['chain', 2_000, 60_000, '% of transactions', 5, 60],
  silentMove: ['chain', 2_000, 60_000, '% of transactions', 5, 60],
  change: ['chain', 2_000, 60_000, '% of transactions', 5, 60],
  shift: ['chain', 2_000, 60_000, '% of transactions that lose their first log', 5, 60],
  insert: ['chain', 2_000, 60_000, '% of transactions that get another before them', 5, 60],
  swap: ['chain', 2_000, 60_000, '% of transactions', 5, 60],
  gap: ['chain', 2_000, 60_000, '% of blocks whose later flashblocks are lost', 10, 100],
  restart: ['chain', 0, 0, 'nothing', 0, 0],
  dark: ['chain', 5_000, 60_000, 'nothing', 0, 0],
  reorg: ['chain', 0, 0, 'blocks', 1, 20],
  deepReorg: ['chain', 0, 0, '% of the way down to safe', 30, 100],
  rewind: ['chain', 0, 0, 'blocks', 1, 6],
  // The list.
  listFails: ['list', 5_000, 60_000, 'nothing', 0, 0],
  listHangs: ['list', 5_000, 30_000, 'nothing', 0, 0],
  listHtml: ['list', 5_000, 60_000, 'nothing', 0, 0],
  listEmpty: ['list', 5_000, 25_000, 'nothing', 0, 0],
  listShrinks: ['list', 5_000, 25_000, 'tokens left', 1, 2],
  delisted: ['list', 60_000, 120_000, 'which', 0, 2],
  listed: ['list', 0, 0, 'nothing', 0, 0],
  renamed: ['list', 5_000, 60_000, 'which', 0, 2],
  oddNav: ['list', 5_000, 90_000, 'missing, zero, negative, text, no time, future, frozen', 0, 6],
  oldNav: ['list', 5_000, 60_000, 'ms behind, every other answer', 1_000, 60_000],
  // The tape.
  slowTape: ['tape', 500, 20_000, 'ms for each append', 20, 4_000],
  // The relay itself.
  kill: ['relay', 0, 240_000, 'nothing', 0, 0],
  leave: ['relay', 0, 120_000, 'nothing', 0, 0],
} as const satisfies Record<string, readonly [string, number, number, string, number, number]>

export type FaultKind = keyof typeof faultTable

/** Something that goes wrong at a time (ms since the beginning), for a while, to an extent. */
export type Fault = {
  readonly at: number
  readonly for: number
  readonly target: string
  readonly kind: FaultKind
  readonly amount: number
}

const kinds = Object.keys(faultTable) as [FaultKind, ...FaultKind[]]
/** Faults fall into this part of a run; what lasts longer reaches beyond. */
const FAULTS_BEGIN_MS = 2_000
const MAX_FAULTS = 10
const MAX_KINDS = 6
const RESTART_PERCENT = 15

/** One fault of a kind, drawn by fast-check so that it shrinks towards short, early and little. */
const faultArbitrary = (kind: FaultKind, spanMs: number): fc.Arbitrary<Fault> => {
  const [target, shortest, longest, , least, most] = faultTable[kind]
  return fc
    .record({
      at: fc.integer({ min: FAULTS_BEGIN_MS, max: spanMs }),
      for: fc.integer({ min: shortest, max: longest }),
      amount: fc.integer({ min: least, max: most }),
    })
    .map((drawn) => ({ ...drawn, target, kind }))
}

/** The kinds that a seed switches on: a few, for common faults would hide rare ones. */
function faultKindsFor(seed: number): readonly FaultKind[] {
  const random = new SeededRandom(seed, 'swarm')
  const chosen = new Set<FaultKind>()
  const count = random.int(1, MAX_KINDS)
  while (chosen.size < count) chosen.add(random.pick(kinds))
  // A restart makes everything else harder.
  if (random.chance(RESTART_PERCENT)) chosen.add('kill')
  return [...chosen]
}

/** The schedules that belong to a seed. */
export const scheduleArbitrary = (seed: number, spanMs: number): fc.Arbitrary<readonly Fault[]> =>
  fc.noBias(
    fc.array(fc.oneof(...faultKindsFor(seed).map((kind) => faultArbitrary(kind, spanMs))), {
      minLength: 1,
      maxLength: MAX_FAULTS,
    }),
  )

/** The one schedule that a seed stands for. */
export const scheduleOf = (seed: number, spanMs: number): readonly Fault[] =>
  fc.sample(scheduleArbitrary(seed, spanMs), { seed, numRuns: 1 })[0] ?? []
