import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/proof/**'],
    testTimeout: 20_000,
    maxWorkers: 2,
    // Nothing in the house is a singleton, so files may share a process; starting one for each took a third of the time.
    isolate: false,
  },
})
