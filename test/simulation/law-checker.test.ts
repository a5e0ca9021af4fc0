import { describe, expect, it } from 'vitest'
import { type Fault, faultTable, scheduleOf } from './fault-table.ts'
import { plants } from './planted-bugs.ts'
import { hunt } from './shrink-failure.ts'
import { run } from './simulation-run.ts'
import { type Settings, settingsOf } from './simulation-settings.ts'

/** A world of flashblocks in which nothing goes wrong by itself. */
const calm: Settings = {
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

const brokenBy = async (bug: string, ...faults: readonly Fault[]): Promise<readonly string[]> => {
  const between = plants[bug]
  if (!between) throw new Error(`no bug called ${bug}`)
  const { broken } = await run({ settings: calm, faults, between })
  return broken.map(({ law }) => law)
}

describe('the checker', () => {
  it('finds nothing wrong in a world without faults', async () => {
    expect((await run({ settings: calm, faults: [] })).broken).toEqual([])
  })

  it('finds a message that is lost', async () => {
    expect(await brokenBy('every 20th message is lost')).not.toEqual([])
  })

  it('finds a digest over another order', async () => {
    expect(await brokenBy('the digest is over another order')).toContain('I4')
  })

  it('finds a key that is never retracted', async () => {
    expect(await brokenBy('nothing is ever retracted', fault('drop', 2_000, 30_000, 60))).toContain('I4')
  })

  it('finds a reorganisation that is ignored', async () => {
    expect(await brokenBy('a reorganisation is ignored', fault('reorg', 9_000, 0, 3))).not.toEqual([])
  })

  it('finds a multiplier that holds for all of its block', async () => {
    expect(await brokenBy('a multiplier holds for all of its block')).toContain('I15')
  })

  it.each([
    'a schedule takes effect by the wall clock',
    'a schedule takes effect one block late',
    'a schedule is forgotten',
  ])('finds that %s', async (bug) => {
    expect(await brokenBy(bug)).toContain('I16')
  })

  it('finds an action that holds nothing', async () => {
    expect(await brokenBy('an action holds nothing')).toContain('I17')
  })

  it('finds a memo that is dropped', async () => {
    expect(await brokenBy('a memo is dropped')).toContain('I3')
  })

  it('finds a retraction that does not say what holds again', async () => {
    expect(await brokenBy('nobody says what holds again', fault('drop', 2_000, 30_000, 60))).toContain('I18')
  })

  it('finds subscribers that were not told all', async () => {
    expect(await brokenBy('a sealed block in five is not overheard')).toContain('I19')
  })

  it('finds a key that a restart forgot', async () => {
    const bug = 'a restart forgets what is open'
    expect(await brokenBy(bug, fault('kill', 9_500, 5_000, 0), fault('drop', 2_000, 9_000, 60))).not.toEqual([])
  })
})

describe('a hunt', () => {
  it('ends with as few faults as will do', async () => {
    const lengthOf = (seed: number) => scheduleOf(seed, settingsOf(seed).spanMs).length
    const seed = Array.from({ length: 100 }, (_, nth) => nth + 1).find((one) => lengthOf(one) > 4) ?? 0
    const prey = await hunt(seed, plants['every 20th message is lost'])
    expect(prey?.settings.seed).toBe(seed)
    expect(prey?.faults).toHaveLength(1)
  })
})
