import { relative } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { patience } from '../long-tests.ts'

/** The layers of tests that a mutant is tried with. */
const layers: Readonly<Record<string, readonly string[]>> = {
  unit: ['test/unit/**/*.test.ts'],
  simulation: ['test/simulation/**/*.test.ts'],
  journeys: ['test/integration/**/*.test.ts', 'test/e2e/*.test.ts', 'test/e2e/gateway/**/*.test.ts'],
}

const mutantFile = process.env.MUTANT_FILE ?? ''

/** Begins with the tests that lie nearest to the mutant. */
class NearestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const distance = ({ moduleId }: TestSpecification) =>
      relative(mutantFile.replace(/^src/, 'test/unit'), relative('.', moduleId)).split('/').length
    return files.sort((one, other) => distance(one) - distance(other))
  }
}

export default defineConfig({
  test: {
    // The seeds of the fresh worlds change with each commit.
    exclude: ['test/simulation/fresh-worlds.test.ts'],
    include: [...(layers[process.env.MUTANT_LAYER ?? ''] ?? [])],
    reporters: ['./test/mutants/first-failure.ts'],
    sequence: { sequencer: NearestFirst },
    testTimeout: 20_000,
    hookTimeout: 20_000,
    ...patience,
    // Journeys mostly wait.
    maxWorkers: process.env.MUTANT_LAYER === 'journeys' ? 2 : 1,
    isolate: false,
    passWithNoTests: true,
  },
})
