import { describe, expect, it } from 'vitest'
import { regressions } from './regressions.ts'
import { inputFor, runSimulation } from './simulation-run.ts'

/** The first seeds; `npm run proof` runs more of them, and `npm run simulate` as many as are asked for. */
const SEEDS = 12

const seeds = Array.from({ length: SEEDS }, (_, nth) => nth + 1)

describe('the ingest', () => {
  it.each(seeds)('keeps every law in the world of seed %i', async (seed) => {
    expect((await runSimulation(inputFor(seed))).violations).toEqual([])
  })

  it('does the same in the same world', async () => {
    const [once, again] = [await runSimulation(inputFor(3)), await runSimulation(inputFor(3))]
    expect(once.writtenCount).toBeGreaterThan(0)
    expect(again).toEqual(once)
  })
})

describe('in a world where it once was not so,', () => {
  for (const { about, settings, faults } of regressions) {
    it(about, async () => {
      expect((await runSimulation({ settings, faults })).violations).toEqual([])
    })
  }
})
