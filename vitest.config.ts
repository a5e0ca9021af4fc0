import { defineConfig } from 'vitest/config'

/** What waits for deadlines, processes and nodes: it is true every time, and `npm run proof` has the patience for it. */
export const long = [
  'test/wire/**/*.test.ts',
  'test/contract/{heartbeat,resume,slow}.test.ts',
  'test/journeys/{absence,anvil,evidence,history-paging,outage,restart,rpc-*}.test.ts',
]

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/proof/**', ...long],
    testTimeout: 20_000,
    maxWorkers: 2,
    // Nothing in the house is a singleton, so files may share a process; starting one for each took a third of the time.
    isolate: false,
  },
})
