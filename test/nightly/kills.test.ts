import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Devnet, startDevnet } from '../../src/devnet/devnet.ts'
import type { Update } from '../../src/protocol/updates.ts'
import { brokenChains } from '../e2e/slow/reconnecting-readers.ts'
import { Program, startCommand } from '../support/child-program.ts'
import { type Ear, listenSse } from '../support/test-listener.ts'

/**
 * A relay that is killed again and again under traffic, and one listener that comes back each time with nothing but its
 * last id. What it heard in all is held against the chain.
 */

const LIVES = 8
const HEARD_PER_LIFE = 60

let devnet: Devnet
let dir: string
let relay: Program | undefined
let ear: Ear | undefined

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'stocktape-kills-'))
  devnet = await startDevnet({ blockMs: 400, flashMs: 40, transactionsPerFlash: 3, calendar: true })
})

afterAll(async () => {
  ear?.close()
  await relay?.kill()
  await devnet.stop()
  rmSync(dir, { recursive: true })
})

async function rise(): Promise<string> {
  relay = new Program([...startCommand, '--port', '0', '--data-dir', dir, '--log-level', 'warn'], {
    env: { ...process.env, UPSTREAM_RPC_URL: devnet.rpcUrl, UPSTREAM_WS_URL: devnet.wsUrl, STOCKS_API_URL: devnet.url },
  })
  const host = new URL(await relay.url()).host
  return `http://${host}/v1/stream?symbols=*&snapshot=false&types=*`
}

const updatesOf = (ears: Ear): readonly Update[] =>
  ears.messages.filter((message): message is Update => 'prev' in message)

it(`misses nothing and hears nothing twice over ${LIVES} lives`, async () => {
  const history: Update[] = []
  for (let life = 0; life < LIVES; life += 1) {
    const url = await rise()
    const last = history.at(-1)?.id
    const listener = await listenSse(url, last ? { 'last-event-id': last } : {})
    ear = listener
    expect(await listener.hear('subscribed')).toMatchObject({ resume: last ? 'full' : 'none' })
    await listener.until(() => updatesOf(listener).length >= HEARD_PER_LIFE, `${HEARD_PER_LIFE} updates`)
    await relay?.kill()
    await listener.ended
    expect(listener.all('gap')).toEqual([])
    history.push(...updatesOf(listener))
  }
  expect(new Set(history.map(({ id }) => id)).size).toBe(history.length)
  expect(history.filter(({ type }) => type === 'hole')).toEqual([])
  expect(brokenChains(history)).toEqual([])
  const told = history.flatMap((update) => {
    // What is folded into another is told with it, and listed by the seal alone.
    if (update.type === 'seal') return update.keys.filter((_, at) => update.types[at] === 'part')
    return 'stage' in update && 'key' in update && update.key ? [update.key] : []
  })
  expect(new Set(told).size).toBe(told.length)
  expect(missing(told)).toEqual([])
})

/** Sealed logs between the first and the last block that was told whole, and not told. */
function missing(told: readonly string[]): readonly string[] {
  const blocks = told.map((key) => Number.parseInt(key, 10))
  const first = Math.min(...blocks) + 1
  const last = Math.max(...blocks) - 1
  const heard = new Set(told)
  const tokens = new Set<string>(devnet.tokens.map(({ address }) => address))
  const keys: string[] = []
  for (let number = first; number <= last; number += 1) {
    for (const log of devnet.chain.block(number)?.logs ?? []) {
      if (tokens.has(log.address)) keys.push(`${number}-${log.transactionHash}-${Number(log.logIndex)}`)
    }
  }
  expect(keys.length).toBeGreaterThan((LIVES * HEARD_PER_LIFE) / 2)
  return keys.filter((key) => !heard.has(key))
}
