import { describe, expect, it, onTestFinished } from 'vitest'
import { openReadiness } from '../../../../../src/relay/edge/live/readiness.ts'
import { newestSettledNote, statusNote } from '../../../../../src/relay/notes/published-notes.ts'
import { Notes } from '../../../../../src/relay/tape/notes.ts'
import { status as statusDraft } from '../../tape/update-drafts.ts'
import { openTestEdge } from '../edge-fixture.ts'

const CANNOT_READ = 'the logs of the newest sealed blocks cannot be read'

function openTestReadiness(isWrongChain = false) {
  const { tape, clock, context } = openTestEdge()
  const { current, now } = context
  const readiness = openReadiness({ tape, shared: null, current, now, isWrongChain: () => isWrongChain, isStopping: () => false })
  onTestFinished(readiness.close)
  return { tape, clock, readiness }
}

describe('a relay whose source is behind', () => {
  it.each([
    [10_000, 60_000, []],
    [10_001, 60_000, [CANNOT_READ]],
    [60_000, 11_000, [CANNOT_READ]],
    [60_000, 10_000, []],
  ])('for %i ms, and whose newest settled block is %i ms old, is unready because of %j', async (ms, ageMs, reasons) => {
    const { tape, clock, readiness } = openTestReadiness()
    const draft = { ...statusDraft({ at: clock.now }), reason: 'behind' as const }
    const timestamp = (clock.now + ms - ageMs) / 1_000
    await tape.append([draft], new Notes().set(statusNote, draft).set(newestSettledNote, { number: 97, timestamp }))
    clock.now += ms
    expect(readiness.reasons().filter((reason) => !reason.includes('list'))).toEqual(reasons)
  })
})

it.each([
  [{ source: 'pendingLogs', reason: 'stale_head' }, "the chain's head does not move"],
  [{ source: 'down', reason: 'unreachable' }, 'the upstream is down'],
] as const)('a relay whose status is %o is unready until that ends', async (status, reason) => {
  const { tape, clock, readiness } = openTestReadiness()
  const publish = async (change: object) => {
    const draft = { ...statusDraft({ at: clock.now }), ...change }
    await tape.append([draft], new Notes().set(statusNote, draft))
    return readiness.reasons().filter((text) => !text.includes('list'))
  }
  expect(await publish(status)).toEqual([reason])
  expect(await publish({ source: 'pendingLogs', reason: 'ok' })).toEqual([])
})

it('a relay without a list, and with every upstream URL of another chain, names both as reasons', () => {
  const { readiness } = openTestReadiness(true)
  expect(readiness.reasons().map((reason) => reason.split(':')[0])).toEqual(['wrong_chain', 'no_list', 'the upstream is down'])
})
