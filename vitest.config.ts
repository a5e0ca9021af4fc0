import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/proof/**'],
    testTimeout: 20_000,
    maxWorkers: 2,
  },
})
