import { describe, expect, it } from 'vitest'
import type { Update } from '../../../../src/protocol/updates.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import type { IngestState } from '../../../../src/relay/ingest/ingest-state.ts'
import { sessionNote } from '../../../../src/relay/notes/published-notes.ts'
import { timestampOf } from '../chain/node-json.ts'
import { agreedHead, openIngest, sealedEvent } from './reducer-fixture.ts'

/** A market that opens and closes every two seconds, which are ten blocks. */
const sessionAt: NonNullable<IngestState['sessionAt']> = (seconds) => {
  const part = Math.floor((seconds - timestampOf(0)) / 2)
  const iso = (at: number) => new Date((timestampOf(0) + 2 * at) * 1_000).toISOString()
  return {
    market: 'XNYS',
    state: part % 2 === 0 ? 'open' : 'closed',
    started_at: iso(part),
    ends_at: iso(part + 1),
    closed_at: null,
    reason: null,
    valid_to: iso(1_000),
  }
}

const openMarket = async () => {
  const tell = (update: Update) => (update.type === 'session' ? [`${update.state} ${update.started_at}`, update.symbol] : [])
  const { publish, restart, openedTape } = await openIngest(tell, { first: [], worth: { sessionAt } })
  const sessionsOf =
    (run: { readonly publish: typeof publish }) =>
    async (...events: readonly IngestEvent[]) =>
      (await run.publish(...events)).flatMap(([session, symbol]) => (symbol === '*' && session ? [session] : []))
  const next = async (calendar: IngestState['sessionAt'] = sessionAt) => ({
    publish: sessionsOf(await restart({ worth: { sessionAt: calendar } })),
  })
  return { publish: sessionsOf({ publish }), tape: openedTape.tape, restart: next }
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
    expect(tape.notes.note(sessionNote)).toEqual({ session: null })
  })
})
