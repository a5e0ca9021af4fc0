import { expect, it, onTestFinished } from 'vitest'
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

const behind = { reason: 'behind' } as const
it.each<[status: Partial<ReturnType<typeof statusDraft>>, ms: number, ageMs: number, reasons: readonly string[]]>([
  [behind, 10_000, 60_000, []],
  [behind, 10_001, 60_000, [CANNOT_READ]],
  [behind, 60_000, 11_000, [CANNOT_READ]],
  [behind, 60_000, 10_000, []],
  [{ source: 'pendingLogs', reason: 'stale_head' }, 0, 0, ["the chain's head does not move"]],
  [{ source: 'down', reason: 'unreachable' }, 0, 0, ['the upstream is down']],
])('a relay of status %o for %i ms, whose newest settled block is %i ms old, is unready because of %j', async (...row) => {
  const [status, ms, ageMs, reasons] = row
  const { tape, clock, readiness } = openTestReadiness()
  const publish = (change: typeof status) => {
    const draft = { ...statusDraft({ at: clock.now }), ...change }
    const timestamp = (clock.now + ms - ageMs) / 1_000
    return tape.append([draft], new Notes().set(statusNote, draft).set(newestSettledNote, { number: 97, timestamp }))
  }
  const reasonsNow = () => readiness.reasons().filter((reason) => !reason.includes('list'))
  await publish(status)
  clock.now += ms
  expect(reasonsNow()).toEqual(reasons)
  await publish({ source: 'pendingLogs', reason: 'ok' })
  expect(reasonsNow()).toEqual([])
})

it('a relay without a list, and with every upstream URL of another chain, names both as reasons', () => {
  const { readiness } = openTestReadiness(true)
  expect(readiness.reasons().map((reason) => reason.split(':')[0])).toEqual(['wrong_chain', 'no_list', 'the upstream is down'])
})
