import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { regularSteps, singleSteps, TEST_CYCLE_S, type TestStep } from '../../src/devnet/life/test-token-schedule.ts'
import { testToken } from '../../src/devnet/tokens/issued-tokens.ts'
import { listenNdjson, type Message, type TestListener } from '../support/test-listener.ts'
import { openDevnet, openRelayFor } from '../support/test-stack.ts'

const CYCLE_MS = TEST_CYCLE_S * 1_000
/** All steps are at multiples of this. */
const BLOCK_S = 5

const timeText = (atS: number): string => `${Math.floor(atS / 60)}:${String(atS % 60).padStart(2, '0')}`

/** A message as the document names it. */
const nameOf = (message: Message): string => {
  switch (message.type) {
    case 'multiplier':
      return `multiplier ${message.phase}`
    case 'pause':
    case 'token':
      return `${message.type} ${message.change}`
    case 'nav':
      return `nav ${message.nav.state}`
    case 'trade':
      return `trade ${message.side}`
    case 'retract':
      return `retract ${message.reason}`
    default:
      return message.type
  }
}

const tellingTypes = new Set('action amend burn mint multiplier nav pause retract seize token trade transfer'.split(' '))
const toldIn = (listener: TestListener): readonly Message[] => listener.messages.filter(({ type }) => tellingTypes.has(type))

/** The record on the list, without what follows the feed. */
const recordOf = ({ list }: Devnet): string => {
  const { nav_price, nav_price_updated_at, ...record } = list.records().find(({ symbol }) => symbol === testToken.symbol) ?? {}
  return JSON.stringify(record)
}

/**
 * Makes a block in two flashblocks, and seals it once the relay has published what is pre-confirmed. Then the relay reads
 * the list where it changed: blocks come so fast here that it would otherwise read a list of a minute ago.
 */
const makeBlock = async (devnet: Devnet, listener: TestListener): Promise<void> => {
  const logs = [...devnet.makeFlashblock(), ...devnet.makeFlashblock()].filter(({ address }) => address === testToken.address)
  const { number } = devnet.chain.pending
  const isOfBlock = (message: Message) => 'block' in message && message.block?.number === number
  if (logs.length > 0) await listener.until(() => toldIn(listener).some(isOfBlock), `the logs of block ${number}`)
  const recordBefore = recordOf(devnet)
  devnet.seal()
  if (recordOf(devnet) === recordBefore) return
  // Once the second is asked for, the first has been read.
  const { list } = devnet.requests
  await devnet.until(() => devnet.requests.list >= list + 2)
}

describe('the test token', () => {
  it('brings what its schedule says, minute by minute', async () => {
    // A whole run of the schedule in the past, so that no block is ahead of the relay's clock.
    const startMs = Math.floor(Date.now() / CYCLE_MS - 1) * CYCLE_MS
    const now = () => startMs
    const devnet = await openDevnet({ pace: 'manual', calendar: true, blockMs: BLOCK_S * 1_000, flashblockMs: BLOCK_S * 500, now })
    const POOLS = devnet.poolsText.split(',').find((text) => text.startsWith('TESTc')) ?? expect.unreachable()
    const settings = { FEEDS: `TESTc=${devnet.feeds.TESTc?.proxy}`, POOLS, QUOTE_TOKENS: devnet.quoteTokens }
    const relay = await openRelayFor(devnet, settings)
    const listener = await listenNdjson(`${relay.url}/v1/stream?symbols=TESTc&types=*&snapshot=false`)
    await listener.waitFor('nav')
    await listener.waitFor('venue')
    const steps = [...regularSteps, ...singleSteps].toSorted((one, other) => one.atS - other.atS)
    for (let atS = BLOCK_S; atS <= TEST_CYCLE_S; atS += BLOCK_S) {
      const before = toldIn(listener).length
      const brought = steps.filter((step) => step.atS === atS).flatMap(({ messages }) => messages)
      const told = () => toldIn(listener).slice(before).map(nameOf)
      await makeBlock(devnet, listener)
      await listener.until(
        () => told().length >= brought.length,
        `${brought.join(', ')} at ${timeText(atS)}, but ${told().join(', ')}`,
      )
      expect([timeText(atS), told().toSorted()]).toEqual([timeText(atS), brought.toSorted()])
    }
  })

  it('is described by its document', async () => {
    const document = await readFile(new URL('../../docs/test-token.md', import.meta.url), 'utf8')
    const rowOf = ({ atS, what, messages }: TestStep) =>
      `| ${timeText(atS)} | ${what} | ${messages.length > 0 ? messages.map((name) => `\`${name}\``).join(', ') : '–'} |`
    expect(document.split('\n').filter((line) => /^\| \d/.test(line))).toEqual(singleSteps.map(rowOf))
    const times = Map.groupBy(regularSteps, ({ what }) => what)
    for (const [what, steps] of times) {
      const seconds = [...new Set(steps.map(({ atS }) => `:${String(atS % 60).padStart(2, '0')}`))].join(' and ')
      const minutes = [...new Set(steps.map(({ atS }) => Math.floor(atS / 60)))].join(', ')
      expect(document).toContain(`- ${what}: at ${seconds} of the minutes ${minutes}.`)
    }
  })
})
