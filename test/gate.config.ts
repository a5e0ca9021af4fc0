import { join } from 'node:path'
import { defineConfig, type TestProjectConfiguration } from 'vitest/config'
import { chosenSlice, filesOfSlice, groups, patience } from './long-tests.ts'

/** Long tests: one slice of them, chosen by `SLICE` or by the commit, and what every landing runs. */
const projects = [...filesOfSlice(chosenSlice())]
  .filter(([, files]) => files.length > 0)
  .map(([name, files]): TestProjectConfiguration => {
    const { workers, order, env = {}, globalSetup = [] } = groups[name] ?? { workers: 1, order: 0 }
    const test = {
      name,
      include: [...files],
      env,
      globalSetup: [...globalSetup],
      maxWorkers: workers,
      sequence: { groupOrder: order },
    }
    return { extends: true, test: { ...test, isolate: workers === 1 } }
  })

export default defineConfig({
  test: {
    projects,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    ...patience,
    reporters: ['default', join(import.meta.dirname, 'support/minutes-report.ts')],
  },
})
