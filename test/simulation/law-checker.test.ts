import { describe, expect, it } from 'vitest'
import { type Fault, faultTable, scheduleOf } from './fault-table.ts'
import { plantedBugs } from './planted-bugs.ts'
import { shrinkFailure } from './shrink-failure.ts'
import { runSimulation } from './simulation-run.ts'
import { type Settings, settingsOf } from './simulation-settings.ts'

/** A world of flashblocks in which nothing goes wrong by itself. */
const quietSettings: Settings = {
  seed: 1,
  mode: 'flash',
  shape: 'one',
  hasLink: true,
  activity: 60,
  latencyMs: 20,
  canonLagMs: 0,
  safeLag: 30,
  finalizedLag: 60,
  withoutPending: 'latest',
  aboveHead: 'nothing',
  traits: [],
  firstHead: 1_000_000,
  byHash: true,
  backfillBoundMs: 86_400_000,
  staleMs: 86_400_000,
  deeds: 30,
  listLagMs: 0,
  spanMs: 20_000,
  liveness: true,
}
const fault = (kind: Fault['kind'], at: number, lasting: number, amount: number): Fault => ({
  at,
  for: lasting,
  target: faultTable[kind][0],
  kind,
  amount,
})

const lawsBrokenBy = async (bug: string, ...faults: readonly Fault[]): Promise<readonly string[]> => {
  const modifyInputs = plantedBugs[bug]
  if (!modifyInputs) throw new Error(`no bug called ${bug}`)
  const { violations } = await runSimulation({ settings: quietSettings, faults, modifyInputs })
  return violations.map(({ law }) => law)
}

describe('the checker', () => {
  it('finds nothing wrong in a world without faults', async () => {
    expect((await runSimulation({ settings: quietSettings, faults: [] })).violations).toEqual([])
  })

  it('finds a message that is lost', async () => {
    expect(await lawsBrokenBy('every 20th message is lost')).not.toEqual([])
  })

  it('finds a digest over another order', async () => {
    expect(await lawsBrokenBy('the digest is over another order')).toContain('I4')
  })

  it('finds a key that is never retracted', async () => {
    expect(await lawsBrokenBy('nothing is ever retracted', fault('drop', 2_000, 30_000, 60))).toContain('I4')
  })

  it('finds a reorganisation that is ignored', async () => {
    expect(await lawsBrokenBy('a reorganisation is ignored', fault('reorg', 9_000, 0, 3))).not.toEqual([])
  })

  it('finds a multiplier that holds for all of its block', async () => {
    expect(await lawsBrokenBy('a multiplier holds for all of its block')).toContain('I15')
  })

  it.each([
    'a schedule takes effect by the wall clock',
    'a schedule takes effect one block late',
    'a schedule is forgotten',
  ])('finds that %s', async (bug) => {
    expect(await lawsBrokenBy(bug)).toContain('I16')
  })

  it('finds an action that holds nothing', async () => {
    expect(await lawsBrokenBy('an action holds nothing')).toContain('I17')
  })

  it('finds a memo that is dropped', async () => {
    expect(await lawsBrokenBy('a memo is dropped')).toContain('I3')
  })

  it('finds a retraction that does not say what holds again', async () => {
    expect(await lawsBrokenBy('nobody says what holds again', fault('drop', 2_000, 30_000, 60))).toContain('I18')
  })

  it('finds subscribers that were not told all', async () => {
    expect(await lawsBrokenBy('a sealed block in five is not overheard')).toContain('I19')
  })

  it('finds a key that a restart forgot', async () => {
    const bug = 'a restart forgets what is open'
    expect(await lawsBrokenBy(bug, fault('kill', 9_500, 5_000, 0), fault('drop', 2_000, 9_000, 60))).not.toEqual([])
  })
})

describe('a hunt', () => {
  it('ends with as few faults as will do', async () => {
    const lengthOf = (seed: number) => scheduleOf(seed, settingsOf(seed).spanMs).length
    const seed = Array.from({ length: 100 }, (_, nth) => nth + 1).find((one) => lengthOf(one) > 4) ?? 0
    const failure = await shrinkFailure(seed, plantedBugs['every 20th message is lost'])
    expect(failure?.settings.seed).toBe(seed)
    expect(failure?.faults).toHaveLength(1)
  })
})
