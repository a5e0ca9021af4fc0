import { expect, it, vi } from 'vitest'
import type { SourceInput, SourceProgress } from '../../src/relay/chain/source/source-step.ts'
import { inputFor, runSimulation } from './simulation-run.ts'

/** One run of a source: its first state, and each input with its time and its events. */
type Run = { readonly start: SourceProgress; readonly steps: { input: SourceInput; at: number; events: string }[] }

const { runs, original } = vi.hoisted(() => ({
  runs: [] as Run[],
  original: {} as { sourceStep: typeof import('../../src/relay/chain/source/source-step.ts').sourceStep },
}))

vi.mock('../../src/relay/chain/source/source-step.ts', async (importOriginal) => {
  const module = await importOriginal<typeof import('../../src/relay/chain/source/source-step.ts')>()
  original.sourceStep = module.sourceStep
  const runOf = new WeakMap<SourceProgress, Run>()
  const sourceStep: typeof module.sourceStep = (before, input, at) => {
    let run = runOf.get(before)
    if (!run) {
      run = { start: before, steps: [] }
      runs.push(run)
    }
    const after = module.sourceStep(before, input, at)
    run.steps.push({ input, at, events: JSON.stringify(after.events) })
    runOf.set(after, run)
    return after
  }
  return { ...module, sourceStep }
})

const SEEDS = 12

it('the inputs of a source, replayed in their order, have the same events', async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) await runSimulation(inputFor(seed))
  const types = new Set<string>()
  for (const { start, steps } of runs) {
    let progress = start
    for (const { input, at, events } of steps) {
      progress = original.sourceStep(progress, input, at)
      expect(JSON.stringify(progress.events)).toBe(events)
      for (const { type } of progress.events) types.add(type)
    }
  }
  expect([...types].sort()).toEqual(['cursor', 'finality', 'head', 'logs', 'refusal', 'reorg', 'sealed', 'status', 'subscribed'])
  expect(runs.length).toBeGreaterThanOrEqual(SEEDS)
})
