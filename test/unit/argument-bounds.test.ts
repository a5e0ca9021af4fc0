import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../src/lib/hex.ts'
import { listEvent, openReducer, pendingLogEvent, subscribedEvent, transactionEvent } from './relay/ingest/reducer-fixture.ts'
import { multiplierUpdated } from './relay/ingest/token-logs.ts'
import { openTestTape } from './relay/tape/test-tape.ts'
import { transfer } from './relay/tape/update-drafts.ts'
import { APPLE, apple, parsedList, polledList } from './relay/tokens/stock-records.ts'

/** More than a call can have arguments. */
const MANY = 130_000

const openTape = async (settings: Parameters<typeof openTestTape>[0] = {}) => {
  const openedTape = await openTestTape(settings)
  onTestFinished(() => openedTape.close())
  return openedTape.tape
}

describe('more items than a call can have arguments', () => {
  it('may be listed', async () => {
    const { state, publishParts } = await openReducer(await openTape())
    const [token] = parsedList(apple({ multiplier: undefined }))
    const addresses = Array.from({ length: MANY }, (_, at): Hex => `0x${at.toString(16).padStart(40, '0')}`)
    const tokens = addresses.flatMap((address) => (token ? [{ ...token, address }] : []))
    await publishParts(MANY, { type: 'list', list: polledList(tokens) })
    expect(state.tokens.size).toBe(MANY)
  })

  it('may be amended', async () => {
    const { state, publish, reduceEvents } = await openReducer(await openTape())
    await publish(listEvent(apple()), subscribedEvent, pendingLogEvent({ block: 10, index: 0 }))
    const [fact] = state.ledger.factsOf(APPLE as Hex)
    if (!fact) throw new Error('no fact')
    const { draft } = fact.published
    for (let index = 1; index <= MANY; index += 1) state.ledger.add({ ...draft, key: `10-${index}` }, 'sealed', 0, 0)
    const { updates } = reduceEvents(transactionEvent([multiplierUpdated({ block: 9, index: 0 }, '2')]))
    expect(updates.length).toBe(MANY + 2)
  })

  it('may be evicted', async () => {
    const tape = await openTape({ tapeMaxMessages: 1 })
    const at = Date.parse('2026-11-20T12:00:00Z')
    const entries = await tape.append(Array.from({ length: MANY }, (_, nth) => transfer({ at, nth })))
    expect(await tape.readAfter(0, 10)).toEqual(entries.slice(-1))
  })
})
