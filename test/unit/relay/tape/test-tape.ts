import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { TapeStoreOptions } from '../../../../src/relay/tape/tape-store.ts'
import { openLocalTape, type TestTape } from '../../../support/local-tape.ts'
import type { OpenTapeFixture } from './tape-contract.ts'

const NOON = Date.parse('2026-11-20T12:00:00Z')

const createTempFolder = (): string => mkdtempSync(join(tmpdir(), 'stocktape-tape-'))

/** A folder that is removed after the test. */
export function createOwnFolder(): string {
  const folder = createTempFolder()
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export const unboundedOptions = {
  tapeRetentionMs: 365 * 86_400_000,
  tapeMaxMessages: 1_000_000,
  now: () => NOON,
  random: () => 0.5,
}

/** The tape of a folder, for a relay that runs alone. */
export const openTapeIn = (dataDir: string, options: Partial<TapeStoreOptions> = {}): TestTape =>
  openLocalTape({ ...unboundedOptions, dataDir, ...options })

/** A tape in its own folder, opened again as often as a test wants. */
export async function openReopenable(
  open: (dataDir: string, now: () => number) => TestTape | Promise<TestTape>,
  losesFile = false,
): ReturnType<OpenTapeFixture> {
  const root = createTempFolder()
  const clock = { now: NOON }
  let images = 0
  // The tape creates both folders.
  let dir = join(root, 'data', 'tape')
  const openAgain = async () => {
    tape = await open(dir, () => clock.now)
    return tape
  }
  let tape = await open(dir, () => clock.now)
  return {
    get tape() {
      return tape
    },
    clock,
    async reopen() {
      await tape.close()
      return openAgain()
    },
    async crash() {
      // A killed process leaves what is on disk at that moment.
      images += 1
      const image = join(root, `image-${images}`)
      if (!losesFile) cpSync(dir, image, { recursive: true })
      await tape.close()
      dir = image
      return openAgain()
    },
    async close() {
      await tape.close()
      rmSync(root, { recursive: true, force: true })
    },
  }
}

/** An embedded tape in its own folder. */
export const openTestTape: OpenTapeFixture = async (bounds = {}) =>
  openReopenable((dataDir, now) => openTapeIn(dataDir, { ...bounds, now }))
