import { describe, expect, it } from 'vitest'
import type { IngestState } from '../../../../src/relay/ingest/ingest-state.ts'
import { sessionNote } from '../../../../src/relay/notes/published-notes.ts'
import { timestampOf } from '../chain/node-json.ts'
import { agreedHead, openIngest, play, type Step, sealedEvent } from './reducer-fixture.ts'

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

const openMarket = () =>
  openIngest(
    (update) => (update.type === 'session' && update.symbol === '*' ? `${update.state} ${update.started_at}` : update.type),
    { first: [], worth: { sessionAt } },
  )
const session = (part: number) => `${part % 2 === 0 ? 'open' : 'closed'} ${sessionAt(timestampOf(part * 10)).started_at}`
const first: Step = [sealedEvent(3, []), session(0)]

describe('the session of the market', () => {
  it.each<[string, ...Step[]]>([
    [
      'is published at the first chain time, and when it changes',
      [[...agreedHead(3), sealedEvent(3, [])], session(0)],
      [sealedEvent(9, []), ''],
      [sealedEvent(10, []), session(1)],
    ],
    ['is the last one where several changed at once', first, [sealedEvent(25, []), session(2)]],
    ['does not follow backfilled blocks', first, [sealedEvent(12, [], { via: 'backfill' }), ''], [sealedEvent(16, []), session(1)]],
    [
      'is published again after a restart only if it is another one',
      first,
      'restart',
      [sealedEvent(4, []), ''],
      'restart',
      [sealedEvent(12, []), session(1)],
    ],
  ])('%s', async (_, ...steps) => {
    await play(await openMarket(), steps)
  })

  it('is never published without a calendar', async () => {
    const ingest = await openMarket()
    await play(ingest, [first])
    const none = await ingest.restart({ worth: { sessionAt: null } })
    expect(await none.publish(sealedEvent(30, []))).toEqual([])
    expect(ingest.openedTape.tape.notes.note(sessionNote)).toEqual({ session: null })
  })
})
