import { describe, expect, it } from 'vitest'
import { type Fault, faultTable, scheduleOf } from './fault-table.ts'
import { plantedBugs } from './planted-bugs.ts'
import { shrinkFailure } from './shrink-failure.ts'
import { runSimulation } from './simulation-run.ts'
import { type Settings, settingsOf } from './simulation-settings.ts'

/** Flashblocks, and no faults. */
const quietSettings: Settings = {
  seed: 1,
  mode: 'flash',
  shape: 'one',
  hasLink: true,
  activity: 60,
  latencyMs: 20,
  sealedLagMs: 0,
  safeLag: 30,
  finalizedLag: 60,
  withoutPending: 'latest',
  aboveHead: 'nothing',
  traits: [],
  firstHead: 1_000_000,
  byHash: true,
  backfillBoundMs: 86_400_000,
  staleMs: 86_400_000,
  issuerPercent: 30,
  listLagMs: 0,
  spanMs: 20_000,
  liveness: true,
}
/** Some of its pools are those of a manager. */
const managed = { pools: 'same', hasManager: true, activity: 200 } as const
const fault = (kind: Fault['kind'], at: number, durationMs: number, amount: number): Fault => ({
  at,
  for: durationMs,
  target: faultTable[kind][0],
  kind,
  amount,
})

const lawsBrokenBy = (bug: string, ...faults: readonly Fault[]): Promise<readonly string[]> => lawsBrokenIn({}, bug, ...faults)

async function lawsBrokenIn(settings: Partial<Settings>, bug: string, ...faults: readonly Fault[]): Promise<readonly string[]> {
  const modifyInputs = plantedBugs[bug]
  if (!modifyInputs) throw new Error(`no bug called ${bug}`)
  const { violations } = await runSimulation({ settings: { ...quietSettings, ...settings }, faults, modifyInputs })
  return violations.map(({ law }) => law)
}

describe('the law checker', () => {
  it('finds nothing wrong without faults', async () => {
    expect((await runSimulation({ settings: quietSettings, faults: [] })).violations).toEqual([])
  })

  it('finds a lost message', async () => {
    expect(await lawsBrokenBy('every 20th fact is lost')).not.toEqual([])
  })

  it('finds a digest over another order of keys', async () => {
    expect(await lawsBrokenBy('the digest is over another order')).toContain('I4')
  })

  it('finds a missing retract', async () => {
    expect(await lawsBrokenBy('nothing is ever retracted', fault('txDropped', 2_000, 30_000, 60))).toContain('I4')
  })

  it('finds an ignored reorganisation', async () => {
    expect(await lawsBrokenBy('a reorganisation is ignored', fault('reorg', 9_000, 0, 3))).not.toEqual([])
  })

  it('finds a multiplier that takes effect after its block', async () => {
    expect(await lawsBrokenBy('a multiplier takes effect after its block')).toContain('I15')
  })

  it.each([
    // The clock goes on while the chain stands still.
    ['a schedule takes effect by the wall clock', [fault('chainStops', 18_000, 30_000, 0)]],
    ['a schedule takes effect one block late', []],
    ['a schedule never takes effect', []],
  ] as const)('finds that %s', async (bug, faults) => {
    expect(await lawsBrokenBy(bug, ...faults)).toContain('I16')
  })

  it('finds an action without keys', async () => {
    expect(await lawsBrokenBy('an action has no keys')).toContain('I17')
  })

  it('finds a dropped memo', async () => {
    expect(await lawsBrokenBy('a memo is dropped')).toContain('I3')
  })

  it('finds a retract without the value that holds again', async () => {
    expect(await lawsBrokenBy('a retract lacks the value that holds again', fault('txDropped', 2_000, 30_000, 60))).toContain('I18')
  })

  it('finds subscribers that miss logs', async () => {
    expect(await lawsBrokenBy('subscribers miss every fifth sealed block')).toContain('I19')
  })

  it.each([
    ['numbers follow no clock', 'I20', {}, fault('backupRestored', 6_000, 1_000, 0)],
    ['a resume from a lost position goes on', 'I20', {}, fault('backupRestored', 4_000, 4_000, 0)],
    ['what is open is evicted', 'I21', { tapeBound: 40 }, fault('logsFail', 2_000, 30_000, 0)],
    ['the highest head that was pushed is kept', 'I22', {}, fault('falseHeads', 2_000, 8_000, 60)],
    ['intervals follow the wall clock', 'I5', { hasLink: false }, fault('clockStepped', 6_000, 50_000, 0)],
    ['only the first endpoint is asked', 'I5', { endpoints: 2, othersHealthy: true }, fault('logsFail', 2_000, 60_000, 0)],
  ] as const)('finds that %s', async (bug, law, settings, aFault) => {
    expect(await lawsBrokenIn(settings, bug, aFault)).toContain(law)
  })

  it.each([
    ['a retract does not wait for the chain', fault('otherChain', 6_000, 62_000, 8_000)],
    ['a log of another block is left out', fault('misplacedLogs', 2_000, 20_000, 60)],
    ['the last of two contents counts', fault('contradictions', 2_000, 20_000, 60)],
    ['an older round takes the time of the one before', fault('olderRounds', 2_000, 20_000, 60)],
    ['a log that cannot be read counts as gone', fault('unreadableLogs', 2_000, 20_000, 60)],
  ] as const)('finds that %s, and nothing without that', async (bug, lie) => {
    expect(await lawsBrokenBy(bug, lie)).not.toEqual([])
    expect((await runSimulation({ settings: quietSettings, faults: [lie] })).violations).toEqual([])
  })

  it('finds a lost route that moves no token', async () => {
    expect(await lawsBrokenIn(managed, 'a route that nets out is lost')).toContain('I4')
  })

  it.each(['-32602', '-32000', '-32601'])(
    'finds a trade that a refused manager retracts, and nothing without that: %s',
    async (code) => {
      const refused = fault('managersRefused', 6_000, 25_000, ['-32602', '-32000', '-32601'].indexOf(code))
      expect(await lawsBrokenIn(managed, 'an open trade of a refused manager is retracted', refused)).not.toEqual([])
      expect((await runSimulation({ settings: { ...quietSettings, ...managed }, faults: [refused] })).violations).toEqual([])
    },
  )

  it.each([
    ['a retracted trade stays in its bar', [fault('reorg', 13_000, 0, 5)]],
    ['a late trade gives its bar no new revision', [fault('reorg', 13_000, 0, 5)]],
    ['a changed bar is not stored', [fault('reorg', 13_000, 0, 5)]],
    ['a bar is published one block early', []],
    ['a stored bar lacks a pool', []],
    ['the last trade of a minute is not in its bar', []],
  ] as const)('finds about bars that %s, and nothing without that', async (bug, faults) => {
    const settings = { ...managed, activity: 60, firstSecond: 50 } as const
    expect(await lawsBrokenIn(settings, bug, ...faults)).toContain('I25')
    expect((await runSimulation({ settings: { ...quietSettings, ...settings }, faults })).violations).toEqual([])
  })

  it('finds an open key that a restart forgot', async () => {
    const bug = 'a restart forgets open keys'
    expect(await lawsBrokenBy(bug, fault('relayKilled', 9_500, 5_000, 0), fault('txDropped', 2_000, 9_000, 60))).not.toEqual([])
  })
})

describe('shrinking a failure', () => {
  it('ends with the fewest faults that still break the law', async () => {
    const lengthOf = (seed: number) => scheduleOf(seed, settingsOf(seed).spanMs).length
    const seed = Array.from({ length: 100 }, (_, nth) => nth + 1).find((seed) => lengthOf(seed) > 4) ?? 0
    const failure = await shrinkFailure(seed, plantedBugs['every 20th fact is lost'])
    expect(failure?.settings.seed).toBe(seed)
    expect(failure?.faults).toHaveLength(1)
  })
})
