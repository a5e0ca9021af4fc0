import { defineConfig } from 'vitest/config'

/** Files that wait for real deadlines, processes and nodes: too slow for `npm test`, so `npm run proof` runs them. */
export const slowFiles = [
  'test/integration/http/**/*.test.ts',
  'test/integration/stream/{connection-start,heartbeat,refused-requests,resume,since,slow-listeners,transports,websocket-requests}.test.ts',
  'test/e2e/{browser-reconnect,history,history-paging,http-stream,metrics,quotes,real-node,relay-downtime,requested-faults}.test.ts',
  'test/e2e/{restart,resume,source-failover,test-token,upstream-outage,websocket}.test.ts',
  'test/e2e/gateway/**/*.test.ts',
  'test/simulation/{client-streams,reach-report}.test.ts',
  'test/unit/{argument-bounds,relay/chain/any-json,relay/edge/history/history-export}.test.ts',
  'test/unit/{main.test.ts,tools/{completion,tail/tail}.test.ts,build/build-board.test.ts}',
  'test/unit/devnet/{devnet-main,devnet-restart}.test.ts',
  'test/unit/relay/tape/{open-tape.test.ts,jetstream/*.test.ts}',
  'test/unit/docs/{asyncapi,typescript-types}.test.ts',
]

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/e2e/slow/**', 'test/nightly/**', ...slowFiles],
    testTimeout: 20_000,
    maxWorkers: 2,
    // No module keeps global state, so files share a process. A process per file would take a third of the time.
    isolate: false,
  },
})
