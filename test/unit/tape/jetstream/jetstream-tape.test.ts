import { randomUUID } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { afterAll, beforeAll, describe } from 'vitest'
import type { JetStreamTape } from '../../../../src/tape/jetstream/jetstream-tape.ts'
import { openJetStreamTape } from '../../../../src/tape/jetstream/open-jetstream-tape.ts'
import { hasNats, NatsServer } from '../../../support/nats-server.ts'
import { type OpenTapeFixture, tapeContract } from '../tape-contract.ts'
import { unboundedOptions } from '../test-tape.ts'

const NOON = Date.parse('2026-11-20T12:00:00Z')

describe.skipIf(!hasNats)('the tape over NATS JetStream', () => {
  let nats: NatsServer
  beforeAll(async () => {
    nats = await NatsServer.start()
  })
  afterAll(() => nats.remove())

  const openFixture =
    (losesFile: boolean): OpenTapeFixture =>
    async (bounds = {}) => {
      const root = mkdtempSync(join(tmpdir(), 'stocktape-tape-'))
      const clock = { now: NOON }
      const name = `T${randomUUID().replaceAll('-', '')}`
      let images = 0
      let dir = join(root, 'tape')
      const openTape = async (): Promise<JetStreamTape> => {
        const tape = await openJetStreamTape({
          ...unboundedOptions,
          ...bounds,
          ...{ dir, now: () => clock.now, uptime: () => performance.now(), mayLead: true },
          nats: { urls: [nats.url], credentialsFile: undefined, name, replicas: 1 },
          warn: () => {},
          onUnreadable: () => {},
          onReset: (why) => {
            throw new Error(why)
          },
        })
        if (!tape.isLeading) await new Promise<void>((resolve) => tape.onLeadership((isLeading) => isLeading && resolve()))
        return tape
      }
      let tape = await openTape()
      const leave = async () => {
        images += 1
        const image = join(root, `image-${images}`)
        if (!losesFile) cpSync(dir, image, { recursive: true })
        await tape.close()
        dir = image
        tape = await openTape()
        return tape
      }
      return {
        get tape() {
          return tape
        },
        clock,
        async reopen() {
          await tape.close()
          tape = await openTape()
          return tape
        },
        crash: leave,
        async close() {
          await tape.close()
          rmSync(root, { recursive: true, force: true })
        },
      }
    }

  tapeContract('the tape over NATS', openFixture(false))
  tapeContract('a tape over NATS whose file is lost', openFixture(true))
})
