import { defineConfig } from 'vitest/config'
import { gateFiles, patience, slowFiles } from './test/long-tests.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/conformance/**', 'test/e2e/slow/**', 'test/nightly/**', ...slowFiles, ...gateFiles],
    testTimeout: 20_000,
    ...patience,
    maxWorkers: 2,
    // No module keeps global state, so files share a process. A process per file would take a third of the time.
    isolate: false,
  },
})
