import { describe, expect, it, onTestFinished } from 'vitest'
import { Update } from '../../../../src/protocol/updates.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import type { IngestState } from '../../../../src/relay/ingest/ingest-state.ts'
import { sessionNote } from '../../../../src/relay/tape/notes.ts'
import { timestampOf } from '../chain/node-json.ts'
import { openTestTape } from '../tape/test-tape.ts'
import { NOON } from '../tokens/stock-records.ts'
import { agreedHead } from './multiplier-fixture.ts'
import { openReducer, sealedEvent } from './reducer-fixture.ts'

/** A market that opens and closes every two seconds, which are ten blocks. */
const sessionAt: NonNullable<IngestState['sessionAt']> = (seconds) => {
  const part = Math.floor((seconds - timestampOf(0)) / 2)
  const iso = (at: number) => new Date((timestampOf(0) + 2 * at) * 1_000).toISOString()
  return {
    market: 'XNYS',
    state: part % 2 === 0 ? 'open' : 'closed',
    started_at: iso(part),
    ends_at: iso(part + 1),
    reason: null,
    valid_to: iso(1_000),
  }
}

const openMarket = async () => {
  const openedTape = await openTestTape()
  onTestFinished(() => openedTape.close())
  const open = async (calendar: IngestState['sessionAt'] = sessionAt) => {
    const fixture = await openReducer(openedTape.tape, { now: NOON }, [], { sessionAt: calendar })
    const publish = async (...events: readonly IngestEvent[]) => {
      const sessions = (await fixture.publish(...events)).filter(({ update }) => update.type === 'session')
      return sessions.map(({ text }) => {
        const update = Update.parse(JSON.parse(text))
        if (update.type !== 'session') throw new Error('unreachable')
        expect([update.symbol, update.address]).toEqual(['*', null])
        return `${update.state} ${update.started_at}`
      })
    }
    return { ...fixture, publish }
  }
  return { ...(await open()), tape: openedTape.tape, restart: open }
}
const since = (part: number) => sessionAt(timestampOf(part * 10)).started_at

describe('the session of the market', () => {
  it('is published at the first chain time, and when it changes', async () => {
    const { publish } = await openMarket()
    expect(await publish(...agreedHead(3), sealedEvent(3, []))).toEqual([`open ${since(0)}`])
    expect(await publish(sealedEvent(9, []))).toEqual([])
    expect(await publish(sealedEvent(10, []))).toEqual([`closed ${since(1)}`])
  })

  it('is the last one where several changed at once', async () => {
    const { publish } = await openMarket()
    await publish(sealedEvent(3, []))
    expect(await publish(sealedEvent(25, []))).toEqual([`open ${since(2)}`])
  })

  it('does not follow backfilled blocks', async () => {
    const { publish } = await openMarket()
    await publish(sealedEvent(3, []))
    expect(await publish(sealedEvent(12, [], { via: 'backfill' }))).toEqual([])
    expect(await publish(sealedEvent(16, []))).toEqual([`closed ${since(1)}`])
  })

  it('is published again after a restart only if it is another one', async () => {
    const { publish, restart } = await openMarket()
    await publish(sealedEvent(3, []))
    expect(await (await restart()).publish(sealedEvent(4, []))).toEqual([])
    expect(await (await restart()).publish(sealedEvent(12, []))).toEqual([`closed ${since(1)}`])
  })

  it('is never published without a calendar', async () => {
    const { publish, restart, tape } = await openMarket()
    await publish(sealedEvent(3, []))
    const none = await restart(null)
    expect(await none.publish(sealedEvent(30, []))).toEqual([])
    expect(tape.note(sessionNote)).toEqual({ session: null })
  })
})
