import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEmbeddedTape } from '../../../../src/relay/tape/embedded-tape.ts'
import type { OpenTapeFixture } from './tape-contract.ts'

const NOON = Date.parse('2026-11-20T12:00:00Z')

export const createTempFolder = (): string => mkdtempSync(join(tmpdir(), 'stocktape-tape-'))

export const unboundedOptions = {
  tapeRetentionMs: 365 * 86_400_000,
  tapeMaxMessages: 1_000_000,
  now: () => NOON,
  random: () => 0.5,
}

/** An embedded tape in its own folder. */
export const openTestTape: OpenTapeFixture = async (bounds = {}) => {
  const root = createTempFolder()
  const clock = { now: NOON }
  let images = 0
  let dir = join(root, 'tape')
  const openTape = () => openEmbeddedTape({ ...unboundedOptions, ...bounds, dataDir: dir, now: () => clock.now })
  let tape = openTape()
  return {
    get tape() {
      return tape
    },
    clock,
    async reopen() {
      await tape.close()
      tape = openTape()
      return tape
    },
    async crash() {
      // A killed process leaves what is on disk at that moment.
      images += 1
      const image = join(root, `image-${images}`)
      cpSync(dir, image, { recursive: true })
      await tape.close()
      dir = image
      tape = openTape()
      return tape
    },
    async close() {
      await tape.close()
      rmSync(root, { recursive: true, force: true })
    },
  }
}
