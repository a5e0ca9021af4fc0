import { expect, it } from 'vitest'
import { slowRegressions } from './regressions.ts'
import { runSimulation } from './simulation-run.ts'

it.each([...slowRegressions])('$about', async ({ settings, faults }) => {
  expect((await runSimulation({ settings, faults })).violations).toEqual([])
})
