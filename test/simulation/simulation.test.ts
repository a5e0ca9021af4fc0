import { describe, expect, it } from 'vitest'
import { regressions } from './regressions.ts'
import { inputFor, runSimulation } from './simulation-run.ts'

/** The first seeds. Each landing runs others, and `npm run simulate` as many as you like. */
const SEEDS = 12

const seeds = Array.from({ length: SEEDS }, (_, nth) => nth + 1)

describe('the ingest', () => {
  it.each(seeds)('keeps every law with seed %i', async (seed) => {
    expect((await runSimulation(inputFor(seed))).violations).toEqual([])
  })

  it('behaves the same when a seed runs again', async () => {
    const [first, second] = [await runSimulation(inputFor(3)), await runSimulation(inputFor(3))]
    expect(first.writtenCount).toBeGreaterThan(0)
    expect(second).toEqual(first)
  })
})

describe('a regression', () => {
  for (const { about, settings, faults } of regressions) {
    it(about, async () => {
      expect((await runSimulation({ settings, faults })).violations).toEqual([])
    })
  }
})
