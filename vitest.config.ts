import { defineConfig } from 'vitest/config'

/** What waits for deadlines, processes and nodes: it is true every time, and `npm run proof` has the patience for it. */
export const long = [
  'test/integration/http/**/*.test.ts',
  'test/integration/stream/{heartbeat,resume,slow-listeners}.test.ts',
  'test/e2e/{relay-downtime,real-node,source-failover,history-paging,upstream-outage,restart}.test.ts',
  'test/e2e/gateway/**/*.test.ts',
]

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/e2e/slow/**', 'test/nightly/**', ...long],
    testTimeout: 20_000,
    maxWorkers: 2,
    // Nothing in the house is a singleton, so files may share a process; starting one for each took a third of the time.
    isolate: false,
  },
})
