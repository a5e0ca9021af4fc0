import { defineConfig, type TestProjectConfiguration } from 'vitest/config'
import { slowFiles } from '../vitest.config.ts'
import { hasNats } from './support/nats-server.ts'

/** Two hundred clients reconnect at once; the waits of clients and the start of the relay are measured: all need the whole machine. */
const alone = ['test/e2e/slow/{deploy,conform,newcomer}.test.ts']

/** What listeners do, once more with an ingester and two edges that share a tape over NATS. */
const overNats: TestProjectConfiguration = {
  extends: true,
  test: {
    name: 'over NATS',
    include: [
      'test/integration/stream/*.test.ts',
      'test/e2e/{browser-reconnect,client-limits,corporate-actions,history*,http-stream,preconfirmations,quotes}.test.ts',
      'test/e2e/{relay-downtime,resume,same-bytes*,sealed-view,shared-tape,websocket}.test.ts',
    ],
    env: { STOCKTAPE_TAPE: 'nats' },
    globalSetup: ['test/support/nats-setup.ts'],
    maxWorkers: 3,
    isolate: false,
    sequence: { groupOrder: 1 },
  },
}

/** Processes that restart, stop, fork and report, once more as the image runs them. */
const built: TestProjectConfiguration = {
  extends: true,
  test: {
    name: 'built',
    include: ['test/e2e/{restart,gateway/redacted-secrets}.test.ts', 'test/e2e/slow/{stopping,workers}.test.ts'],
    env: { STOCKTAPE_FORM: 'built' },
    globalSetup: ['test/support/built-setup.ts'],
    maxWorkers: 3,
    isolate: false,
    sequence: { groupOrder: 1 },
  },
}

/** What takes longer than a minute: first the files that mostly wait, then those that measure time or memory. */
export default defineConfig({
  test: {
    testTimeout: 300_000,
    hookTimeout: 300_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'in parallel',
          include: [...slowFiles, 'test/e2e/slow/**/*.test.ts'],
          exclude: alone,
          // A third one saves a minute, and lets waits end too early on a slow machine.
          maxWorkers: 2,
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: 'one by one', include: ['test/nightly/**/*.test.ts', ...alone], maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
      ...(hasNats ? [overNats] : []),
      built,
    ],
  },
})
