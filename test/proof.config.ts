import { defineConfig } from 'vitest/config'
import { long } from '../vitest.config.ts'

/** What takes longer than a minute's patience: one file after the other, each with the machine to itself. */
export default defineConfig({
  test: {
    include: ['test/e2e/slow/**/*.test.ts', 'test/nightly/**/*.test.ts', ...long],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    fileParallelism: false,
  },
})
