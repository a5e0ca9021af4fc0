import { defineConfig } from 'vitest/config'

/** The layers of tests that a mutant is tried with. */
const layers: Readonly<Record<string, readonly string[]>> = {
  unit: ['test/unit/**/*.test.ts'],
  simulation: ['test/simulation/**/*.test.ts'],
  journeys: ['test/integration/**/*.test.ts', 'test/e2e/*.test.ts', 'test/e2e/gateway/**/*.test.ts'],
}

export default defineConfig({
  test: {
    // The seeds of the fresh worlds change with each commit.
    exclude: ['test/simulation/fresh-worlds.test.ts'],
    include: [...(layers[process.env.MUTANT_LAYER ?? ''] ?? [])],
    reporters: ['./test/mutants/first-failure.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    // Journeys mostly wait.
    maxWorkers: process.env.MUTANT_LAYER === 'journeys' ? 2 : 1,
    isolate: false,
    passWithNoTests: true,
  },
})
