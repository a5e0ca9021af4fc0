import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Devnet, startDevnet } from '../../src/devnet/devnet.ts'
import type { Update } from '../../src/protocol/updates.ts'
import { brokenPrevChains } from '../e2e/slow/reconnecting-readers.ts'
import { ChildProgram, startCommand } from '../support/child-program.ts'
import { isNightly } from '../support/test-length.ts'
import { listenSse, type TestListener } from '../support/test-listener.ts'

/**
 * A relay that is killed again and again under traffic, and one listener that reconnects each time with its last id.
 * Everything it received is compared with the chain.
 */

const RUNS = isNightly ? 16 : 4
const UPDATES_PER_RUN = 60

let devnet: Devnet
let dir: string
let relay: ChildProgram | undefined
let currentListener: TestListener | undefined

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'stocktape-kills-'))
  devnet = await startDevnet({ blockMs: 400, flashblockMs: 40, transactionsPerFlashblock: 3, calendar: true })
})

afterAll(async () => {
  currentListener?.close()
  await relay?.kill()
  await devnet.stop()
  rmSync(dir, { recursive: true })
})

async function startRelay(): Promise<string> {
  relay = new ChildProgram([...startCommand, '--port', '0', '--data-dir', dir, '--log-level', 'warn'], {
    env: { ...process.env, UPSTREAM_RPC_URL: devnet.rpcUrl, UPSTREAM_WS_URL: devnet.wsUrl, STOCKS_API_URL: devnet.url },
  })
  const host = new URL(await relay.listeningUrl()).host
  return `http://${host}/v1/stream?symbols=*&snapshot=false&types=*`
}

const updatesOf = (listener: TestListener): readonly Update[] =>
  listener.messages.filter((message): message is Update => 'prev' in message)

it(`a listener that resumes gets every update once over ${RUNS} kills of the relay`, async () => {
  const history: Update[] = []
  for (let run = 0; run < RUNS; run += 1) {
    const url = await startRelay()
    const last = history.at(-1)?.id
    const listener = await listenSse(url, last ? { 'last-event-id': last } : {})
    currentListener = listener
    expect(await listener.waitFor('subscribed')).toMatchObject({ resume: last ? 'full' : 'none' })
    await listener.until(() => updatesOf(listener).length >= UPDATES_PER_RUN, `${UPDATES_PER_RUN} updates`)
    // New blocks may be pre-confirmed before those of the downtime are read. Blocks are settled in order.
    const highest = highestBlock(listener)
    if (run === RUNS - 1) await listener.waitFor('seal', ({ block }) => block.number >= highest)
    await relay?.kill()
    await listener.closed
    expect(listener.messagesOf('gap')).toEqual([])
    history.push(...updatesOf(listener))
  }
  expect(new Set(history.map(({ id }) => id)).size).toBe(history.length)
  expect(history.filter(({ type }) => type === 'hole')).toEqual([])
  expect(brokenPrevChains(history)).toEqual([])
  const published = history.flatMap((update) => {
    // A part is published with the log that contains it, and only the seal lists its key.
    if (update.type === 'seal') return update.keys.filter((_, at) => update.types[at] === 'part')
    return 'stage' in update && 'key' in update && update.key ? [update.key] : []
  })
  expect(new Set(published).size).toBe(published.length)
  expect(missingKeys(published)).toEqual([])
})

/** The highest block with a published key. */
const highestBlock = (listener: TestListener): number =>
  Math.max(...updatesOf(listener).flatMap((update) => ('key' in update && update.key ? [Number.parseInt(update.key, 10)] : [])))

/** Sealed logs that were not published, between the first and the last block that were published completely. */
function missingKeys(published: readonly string[]): readonly string[] {
  const blocks = published.map((key) => Number.parseInt(key, 10))
  const first = Math.min(...blocks) + 1
  const last = Math.max(...blocks) - 1
  const received = new Set(published)
  const tokens = new Set<string>(devnet.tokens.map(({ address }) => address))
  const keys: string[] = []
  for (let number = first; number <= last; number += 1) {
    for (const log of devnet.chain.block(number)?.logs ?? []) {
      if (tokens.has(log.address)) keys.push(`${number}-${log.transactionHash}-${Number(log.logIndex)}`)
    }
  }
  expect(keys.length).toBeGreaterThan((RUNS * UPDATES_PER_RUN) / 2)
  return keys.filter((key) => !received.has(key))
}
