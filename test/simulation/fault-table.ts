import fc from 'fast-check'
import { SeededRandom } from './seeded-random.ts'
import { beginningOf, endpointsOf, isQuickChain, poolsOf } from './simulation-settings.ts'

/** What can go wrong. A row: target, shortest and longest duration (ms), meaning, least and most of the amount. */
export const faultTable = {
  // The upstream socket.
  disconnect: ['socket', 0, 0, 'nothing', 0, 0],
  connectionRefused: ['socket', 500, 60_000, 'nothing', 0, 0],
  handshakeHangs: ['socket', 500, 30_000, 'nothing', 0, 0],
  subscriptionsRefused: ['socket', 500, 60_000, 'nothing', 0, 0],
  flapping: ['socket', 2_000, 40_000, 'ms between two disconnects', 300, 6_000],
  noPendingPushes: ['socket', 2_000, 90_000, 'nothing', 0, 0],
  noHeadPushes: ['socket', 2_000, 90_000, 'nothing', 0, 0],
  noLogPushes: ['socket', 2_000, 90_000, 'nothing', 0, 0],
  noPushes: ['socket', 2_000, 60_000, 'nothing', 0, 0],
  pushesLost: ['socket', 1_000, 60_000, '% of pushes lost', 5, 90],
  pushesRepeated: ['socket', 1_000, 60_000, '% of pushes repeated later', 10, 100],
  pushesReordered: ['socket', 1_000, 40_000, 'ms by which a push may be late', 50, 3_000],
  pushesLate: ['socket', 1_000, 40_000, 'ms by which every push is late', 500, 10_000],
  pendingPushesLate: ['socket', 5_000, 60_000, 'ms by which pre-confirmations are late', 4_000, 60_000],
  unreadablePushes: ['socket', 1_000, 20_000, '% of pushes', 5, 60],
  garbageLogs: ['socket', 1_000, 20_000, '% of pushes', 5, 60],
  unlistedLogs: ['socket', 1_000, 20_000, '% of pushes', 5, 60],
  badHeads: ['socket', 1_000, 20_000, '% of heads', 5, 60],
  falseRemovals: ['socket', 1_000, 20_000, '% of blocks with a false removal of a log', 10, 100],
  pendingPushesWhenSealed: ['socket', 5_000, 60_000, 'nothing', 0, 0],
  pendingLogsRefused: ['socket', 5_000, 90_000, 'nothing', 0, 0],
  falseHeads: ['socket', 1_000, 20_000, '% of heads with a false one before them', 5, 60],
  logsAhead: ['socket', 1_000, 20_000, '% of pushes with a log 50,000 blocks ahead', 5, 60],
  falseLogTimes: ['socket', 1_000, 20_000, '% of pushed logs with a block time a year later', 5, 60],
  // The node's HTTP endpoint.
  unreachable: ['rpc', 500, 60_000, 'nothing', 0, 0],
  flaky: ['rpc', 1_000, 60_000, '% of requests', 5, 70],
  rateLimited: ['rpc', 500, 10_000, 'seconds in retry-after', 0, 8],
  htmlAnswers: ['rpc', 500, 20_000, '% of requests', 10, 100],
  slowAnswers: ['rpc', 1_000, 30_000, 'ms', 300, 4_500],
  hangingAnswers: ['rpc', 1_000, 20_000, '% of requests that hang', 10, 100],
  nodeLags: ['rpc', 1_000, 40_000, 'ms behind', 300, 20_000],
  halfTheNodesLag: ['rpc', 1_000, 60_000, 'ms behind, in half of the answers', 300, 5_000],
  lateIndexing: ['rpc', 1_000, 60_000, 'ms for which a new block seems empty', 100, 900],
  narrowRanges: ['rpc', 5_000, 90_000, 'index into the range bounds 2000, 500, 10, 5', 0, 3],
  fewResults: ['rpc', 5_000, 60_000, 'logs in one answer at most', 12, 60],
  historyPruned: ['rpc', 5_000, 60_000, 'blocks for which logs are kept', 5, 60],
  pendingNull: ['rpc', 1_000, 60_000, 'nothing', 0, 0],
  pendingNumberless: ['rpc', 1_000, 60_000, 'nothing', 0, 0],
  pendingHashed: ['rpc', 1_000, 60_000, 'nothing', 0, 0],
  pendingLatest: ['rpc', 1_000, 60_000, 'nothing', 0, 0],
  pendingBehind: ['rpc', 1_000, 60_000, 'ms', 400, 30_000],
  wrongAnswers: ['rpc', 1_000, 20_000, '% of answers with another shape', 10, 100],
  noFinality: ['rpc', 5_000, 90_000, '0 refused, 1 null', 0, 1],
  logsFail: ['rpc', 1_000, 60_000, 'eth_getLogs alone: 429, -32000, 403, hangs, of another block', 0, 4],
  truncatedPages: ['rpc', 5_000, 90_000, 'index into the counts 20, 100, 500, 1000 after which a page ends', 0, 3],
  falseTimes: ['rpc', 1_000, 20_000, '% of pending blocks with a time a year later', 5, 40],
  otherChain: ['rpc', 62_000, 80_000, 'ms at its beginning for which another chain answers', 200, 15_000],
  misplacedLogs: ['rpc', 1_000, 20_000, '% of answers for one block with a log of another, or of none', 10, 100],
  contradictions: ['rpc', 1_000, 20_000, '% of answers with one log twice, with two contents', 10, 100],
  unreadableLogs: ['rpc', 1_000, 20_000, '% of answers with one log that cannot be read', 10, 100],
  endpointFrozen: ['rpc', 5_000, 90_000, 'index of the endpoint whose chain stands still', 0, 1],
  managersRefused: ['rpc', 2_000, 60_000, 'logs of pool managers alone: -32602, -32000, -32601', 0, 2],
  // The chain itself.
  chainStops: ['chain', 1_000, 60_000, 'nothing', 0, 0],
  txDropped: ['chain', 2_000, 60_000, '% of transactions', 5, 60],
  txMoved: ['chain', 2_000, 60_000, '% of transactions', 5, 60],
  txMovedUnseen: ['chain', 2_000, 60_000, '% of transactions', 5, 60],
  txChanged: ['chain', 2_000, 60_000, '% of transactions', 5, 60],
  txLosesLog: ['chain', 2_000, 60_000, '% of transactions that lose their first log', 5, 60],
  txInserted: ['chain', 2_000, 60_000, '% of transactions that get another before them', 5, 60],
  txSwapped: ['chain', 2_000, 60_000, '% of transactions', 5, 60],
  flashblocksLost: ['chain', 2_000, 60_000, '% of blocks whose later flashblocks are lost', 10, 100],
  builderRestarts: ['chain', 0, 0, 'nothing', 0, 0],
  nothingShown: ['chain', 5_000, 60_000, 'nothing', 0, 0],
  reorg: ['chain', 0, 0, 'blocks', 1, 20],
  deepReorg: ['chain', 0, 0, '% of the way down to safe', 30, 100],
  rewind: ['chain', 0, 0, 'blocks', 1, 6],
  // The token list.
  listFails: ['list', 5_000, 60_000, 'nothing', 0, 0],
  listHangs: ['list', 5_000, 30_000, 'nothing', 0, 0],
  listHtml: ['list', 5_000, 60_000, 'nothing', 0, 0],
  listEmpty: ['list', 5_000, 25_000, 'nothing', 0, 0],
  listShrinks: ['list', 5_000, 25_000, 'tokens left', 1, 2],
  tokenDelisted: ['list', 60_000, 120_000, 'index of the token', 0, 2],
  tokenListed: ['list', 0, 0, 'nothing', 0, 0],
  tokenRenamed: ['list', 5_000, 60_000, 'index of the token', 0, 2],
  invalidNav: ['list', 5_000, 90_000, 'missing, zero, negative, text, no time, future, frozen', 0, 6],
  lateNav: ['list', 5_000, 60_000, 'ms behind, every other answer', 1_000, 60_000],
  olderRounds: ['list', 5_000, 60_000, '% of the rounds of a feed with a time before that of earlier ones', 20, 80],
  // The tape.
  slowTape: ['tape', 500, 20_000, 'ms for each append', 20, 4_000],
  // The wall clock of the relay's machine.
  clockStepped: ['clock', 3_000, 60_000, 'index into the steps of -1, +1 and +25 hours', 0, 2],
  // The relay itself.
  relayKilled: ['relay', 0, 240_000, 'nothing', 0, 0],
  relayStopped: ['relay', 0, 120_000, 'nothing', 0, 0],
  powerLost: ['relay', 0, 120_000, 'nothing', 0, 0],
  backupRestored: ['relay', 1_000, 90_000, 'nothing', 0, 0],
} as const satisfies Record<string, readonly [string, number, number, string, number, number]>

export type FaultKind = keyof typeof faultTable

/** A fault: when it begins (ms since the start), how long it lasts, and how strong it is. */
export type Fault = {
  readonly at: number
  readonly for: number
  readonly target: string
  readonly kind: FaultKind
  readonly amount: number
}

/** Kinds that came later. They are drawn by themselves, so that the seeds without them stay the same. */
const laterKinds: readonly FaultKind[] = [
  'wrongAnswers',
  'subscriptionsRefused',
  'falseHeads',
  'logsAhead',
  'logsFail',
  'truncatedPages',
  'endpointFrozen',
  'clockStepped',
  'powerLost',
  'backupRestored',
  'falseLogTimes',
  'falseTimes',
  'otherChain',
  'misplacedLogs',
  'contradictions',
  'unreadableLogs',
  'olderRounds',
  'managersRefused',
]
/** How often, in %, a seed may have a fault of such a kind, and how often one may begin while the relay starts. */
const LATER_KIND_PERCENT = 10
const EARLY_FAULT_PERCENT = 25
const earlyTargets: readonly string[] = ['socket', 'rpc', 'list']

const allKinds = Object.keys(faultTable) as readonly FaultKind[]
const kinds = allKinds.filter((kind) => !laterKinds.includes(kind)) as [FaultKind, ...FaultKind[]]
const earlyKinds = kinds.filter((kind) => earlyTargets.includes(faultTable[kind][0])) as [FaultKind, ...FaultKind[]]
const failingKinds = ['endpointFrozen', 'unreachable', 'logsFail', 'hangingAnswers'] as const
/** Faults begin after this. A long fault may outlast the run. */
const FAULTS_BEGIN_MS = 2_000
const MAX_FAULTS = 10
const MAX_KINDS = 6
const RESTART_PERCENT = 15
/** How often, in %, the node has pruned what was sealed while the relay was down, and for how long it keeps it so. */
const PRUNED_OUTAGE_PERCENT = 3
/** How often, in %, a node refuses the logs of the manager for a while, where there is one. */
const MANAGER_REFUSED_PERCENT = 40
/** How often, in %, blocks are replaced just after a minute is over, where there are pools: then the minute has a bar. */
const REORG_AFTER_MINUTE_PERCENT = 30
const AFTER_MINUTE_MS = { min: 0, max: 15_000 }
const reorgKinds = ['reorg', 'reorg', 'deepReorg', 'rewind'] as const
const PRUNED_AFTER_MS = { min: 2_000, max: 30_000 }

/** One fault of a kind. fast-check draws it, so that it shrinks towards early, short and small. */
const faultArbitrary = (kind: FaultKind, [min, max]: readonly [number, number]): fc.Arbitrary<Fault> => {
  const [target, shortest, longest, , least, most] = faultTable[kind]
  return fc
    .record({
      at: fc.integer({ min, max }),
      for: fc.integer({ min: shortest, max: longest }),
      amount: fc.integer({ min: least, max: most }),
    })
    .map((drawn) => ({ ...drawn, target, kind }))
}

/** The kinds that a seed uses: only a few, because common faults would hide rare ones. */
function faultKindsFor(seed: number): readonly FaultKind[] {
  const random = new SeededRandom(seed, 'swarm')
  const chosen = new Set<FaultKind>()
  const count = random.int(1, MAX_KINDS)
  while (chosen.size < count) chosen.add(random.pick(kinds))
  // A restart makes every other fault harder to survive.
  if (random.chance(RESTART_PERCENT)) chosen.add('relayKilled')
  return [...chosen]
}

/** Faults of kinds that came later, and one that begins early: none for most seeds. */
function moreFaultsFor(seed: number, spanMs: number): readonly fc.Arbitrary<readonly Fault[]>[] {
  const random = new SeededRandom(seed, 'more faults')
  const early = random.chance(EARLY_FAULT_PERCENT) ? [faultArbitrary(random.pick(earlyKinds), [0, FAULTS_BEGIN_MS])] : []
  const later = laterKinds.filter((kind) => random.chance(LATER_KIND_PERCENT) && kind !== 'managersRefused')
  const more = [...early, ...later.map((kind) => faultArbitrary(kind, [FAULTS_BEGIN_MS, spanMs]))]
  return [
    ...more.map((arbitrary) => fc.noBias(fc.array(arbitrary, { maxLength: 1 }))),
    ...endpointFaultsFor(seed, spanMs),
    ...quickChainFaultsFor(seed, spanMs),
    ...prunedOutageFor(seed, spanMs),
    ...managerFaultsFor(seed, spanMs),
    ...reorgAfterMinuteFor(seed),
  ]
}

/** A manager that is refused is a fault only where there is one. */
function managerFaultsFor(seed: number, spanMs: number): readonly fc.Arbitrary<readonly Fault[]>[] {
  if (!poolsOf(seed).hasManager || !new SeededRandom(seed, 'manager refused').chance(MANAGER_REFUSED_PERCENT)) return []
  return [fc.noBias(fc.array(faultArbitrary('managersRefused', [FAULTS_BEGIN_MS, spanMs]), { minLength: 1, maxLength: 2 }))]
}

/** The trades of a minute change after its bars were published. */
function reorgAfterMinuteFor(seed: number): readonly fc.Arbitrary<readonly Fault[]>[] {
  const random = new SeededRandom(seed, 'reorg after a minute')
  if (!poolsOf(seed).pools || !random.chance(REORG_AFTER_MINUTE_PERCENT)) return []
  const minuteMs = 60_000 - 1_000 * (beginningOf(seed).firstSecond ?? 0)
  const { min, max } = AFTER_MINUTE_MS
  const reorg = faultArbitrary(random.pick(reorgKinds), [minuteMs + min, minuteMs + max])
  return [fc.noBias(fc.array(reorg, { minLength: 1, maxLength: 2 }))]
}

/** Where another endpoint is healthy, the first one fails. */
function endpointFaultsFor(seed: number, spanMs: number): readonly fc.Arbitrary<readonly Fault[]>[] {
  if (!endpointsOf(seed).othersHealthy) return []
  const kind = new SeededRandom(seed, 'failing endpoint').pick(failingKinds)
  return [fc.noBias(fc.array(faultArbitrary(kind, [FAULTS_BEGIN_MS, spanMs]), { minLength: 1, maxLength: 3 }))]
}

/** A quick chain replaces many blocks, and its node may become slow just then. */
function quickChainFaultsFor(seed: number, spanMs: number): readonly fc.Arbitrary<readonly Fault[]>[] {
  if (!isQuickChain(seed)) return []
  const late = [spanMs / 2, spanMs] as const
  const [reorgs, slow] = [faultArbitrary('deepReorg', late), faultArbitrary('slowAnswers', late)]
  return [fc.noBias(fc.array(reorgs, { minLength: 1, maxLength: 3 })), fc.noBias(fc.array(slow, { maxLength: 1 }))]
}

/** The relay is down, and when it comes back the node lacks the blocks that it was in. */
function prunedOutageFor(seed: number, spanMs: number): readonly fc.Arbitrary<readonly Fault[]>[] {
  if (!new SeededRandom(seed, 'pruned outage').chance(PRUNED_OUTAGE_PERCENT)) return []
  const parts = fc.tuple(
    faultArbitrary('relayKilled', [FAULTS_BEGIN_MS, spanMs]),
    faultArbitrary('historyPruned', [FAULTS_BEGIN_MS, spanMs]),
    fc.integer(PRUNED_AFTER_MS),
  )
  return [parts.map(([outage, pruned, afterMs]) => [outage, { ...pruned, at: outage.at, for: outage.for + afterMs }])]
}

/** The schedules that a seed can produce. */
export function scheduleArbitrary(seed: number, spanMs: number): fc.Arbitrary<readonly Fault[]> {
  const arbitraries = faultKindsFor(seed).map((kind) => faultArbitrary(kind, [FAULTS_BEGIN_MS, spanMs]))
  const faults = fc.noBias(fc.array(fc.oneof(...arbitraries), { minLength: 1, maxLength: MAX_FAULTS }))
  const more = moreFaultsFor(seed, spanMs)
  return more.length === 0 ? faults : fc.tuple(faults, ...more).map((parts) => parts.flat())
}

/** The schedule of a seed. */
export const scheduleOf = (seed: number, spanMs: number): readonly Fault[] =>
  fc.sample(scheduleArbitrary(seed, spanMs), { seed, numRuns: 1 })[0] ?? []
