import { describe, expect, it, onTestFinished } from 'vitest'
import { openReadiness } from '../../../../src/edge/live/readiness.ts'
import { headNote, Notes, newestSettledNote, statusNote } from '../../../../src/tape/notes.ts'
import { status as statusDraft } from '../../tape/update-drafts.ts'
import { openTestEdge } from '../edge-fixture.ts'

const CANNOT_READ = 'the logs of the newest sealed blocks cannot be read'

describe('a relay whose source is behind', () => {
  it.each([
    [97, 10_000, []],
    [97, 10_001, [CANNOT_READ]],
    [98, 60_000, []],
  ])('and that has settled block %i of 100 is, after %i ms, unready because of %j', async (settled, ms, reasons) => {
    const { tape, clock, context } = openTestEdge()
    const { view, now } = context
    const readiness = openReadiness({ tape, view, now, isWrongChain: () => false, isDraining: () => false })
    onTestFinished(readiness.close)
    const draft = { ...statusDraft({ at: clock.now }), reason: 'behind' as const }
    const head = { pending: null, sealed: 100, safe: null, finalized: null }
    const notes = new Notes().set(statusNote, draft).set(headNote, head)
    await tape.append([draft], notes.set(newestSettledNote, { number: settled, timestamp: 1 }))
    clock.now += ms
    expect(readiness.reasons().filter((reason) => !reason.includes('list'))).toEqual(reasons)
  })
})

it('a relay without a list, and with every upstream URL of another chain, names both as reasons', () => {
  const { tape, context } = openTestEdge()
  const { view, now } = context
  const readiness = openReadiness({ tape, view, now, isWrongChain: () => true, isDraining: () => false })
  onTestFinished(readiness.close)
  expect(readiness.reasons().map((reason) => reason.split(':')[0])).toEqual(['wrong_chain', 'no_list', 'the upstream is down'])
})
