import { describe, expect, it } from 'vitest'
import {
  duePoll,
  isCheckDue,
  isEndpointLeft,
  isLinkLeft,
  isProbeDue,
  statusOf,
} from '../../../../../src/relay/chain/source/source-decisions.ts'
import { type Evidence, initialState, next, type SourceState } from '../../../../../src/relay/chain/source/source-evidence.ts'

const SILENCE_MS = 3_000
/** When the table's evidence arrives; long after the start, and not long after the head. */
const AT = 100_000
const HEAD = 1_000

/** A source that has started, with a head and nothing unanswered. */
const started = (fields: Partial<SourceState> = {}): SourceState => ({
  ...initialState(2, SILENCE_MS, 0),
  ...{ head: HEAD, settled: HEAD, headAt: AT, headReadAt: AT, pendingPolledAt: AT, headPolledAt: AT, probedAt: AT },
  ...fields,
})
const after = (state: SourceState, evidence: readonly Evidence[], at = AT): SourceState =>
  evidence.reduce((reached, piece) => next(reached, piece, at), state)

/** Every name of a type: a list that lacks one, or has another, does not compile. */
const namesOf = <Name extends string>(names: Readonly<Record<Name, true>>) => Object.keys(names) as Name[]
const links = namesOf<SourceState['link']>({
  ...{ none: true, opening: true, down: true, refused: true, pushing: true, leaving: true },
})
const trusts = namesOf<SourceState['trust']>({ unproven: true, proven: true, silent: true, behind: true, no_pending: true })
const views = namesOf<SourceState['pending']>({ unknown: true, shown: true, missing: true, behind: true })
const statuses = ['preconfirmed', 'behind', 'latest', 'null'] as const

/** Polls of the pending block that have shown nothing for long enough: the next one counts. */
const lastingGap = { since: AT - 2_000, polls: 2 }
/** Two sealed blocks whose logs were not pushed. */
const missed: readonly Evidence[] = [
  { type: 'head', number: HEAD, via: 'poll' },
  { type: 'polled_logs', newest: null, closesGap: true },
  { type: 'settled', number: HEAD + 1, logs: 2 },
  { type: 'settled', number: HEAD + 2, logs: 1 },
]

/** A line with `*` stands for one of each trust that a connection may begin with. */
const withEachDoubt = (line: string): readonly string[] =>
  line.includes('*') ? trusts.filter((trust) => trust !== 'proven').map((trust) => line.replaceAll('*', trust)) : [line]

type Cell = readonly [row: string, column: string, expected: string]

/** The cells of a table: what the state that names the row comes to in the column. */
const cellsOf = (table: string): readonly Cell[] => {
  const lines = table.trim().split('\n').flatMap(withEachDoubt)
  const [head = [], ...rows] = lines.map((line) => line.trim().split(/ {2,}/))
  return rows.flatMap(([name = '', ...cells]) => cells.map((cell, index): Cell => [name, head[index + 1] ?? '', cell]))
}
/** A row that names a link, the trust in it, what is pending, and whether heads are pushed. */
const fieldsOf = (name: string) => {
  const [link, trust, pending] = name.split(' ') as [SourceState['link'], SourceState['trust'], SourceState['pending']?]
  return { link, trust, ...(pending && { pending }), ...(name.endsWith(' heads') && { linkHead: heads }) }
}
/** The head of a link that pushes heads. */
const heads = { number: HEAD, at: AT, isPushed: true, polledAhead: 0 }

describe('a link and the trust in what it pushes', () => {
  const columns: Readonly<Record<string, readonly Evidence[]>> = {
    live: [{ type: 'live', subscription: 'pendingLogs' }],
    'live logs': [{ type: 'live', subscription: 'logs' }],
    down: [{ type: 'down', isRefused: false }],
    refused: [{ type: 'down', isRefused: true }],
    left: [{ type: 'left', what: 'link' }],
    'filter refused': [{ type: 'refused' }],
    pushed: [{ type: 'pushed', newest: HEAD + 1 }],
    missed,
    'missed, late': [{ type: 'pushed_late' }, ...missed],
    preconfirmed: [{ type: 'pending', status: 'preconfirmed' }],
    latest: [{ type: 'pending', status: 'latest' }],
    behind: [{ type: 'pending', status: 'behind' }],
    null: [{ type: 'pending', status: 'null' }],
  }
  const table = `
    link and trust      live              live logs         down             refused             left                filter refused      pushed          missed          missed, late    preconfirmed    latest              behind              null
    none unproven       pushing unproven  refused unproven  down unproven    refused unproven    =                   =                   =               =               =               =               =                   =                   =
    opening *           pushing *         refused *         down *           refused *           =                   =                   =               =               =               =               =                   =                   =
    down *              pushing *         refused *         =                refused *           =                   =                   =               =               =               =               =                   =                   =
    refused *           pushing *         =                 down *           =                   leaving *           =                   =               =               =               =               =                   =                   =
    pushing unproven    =                 =                 down unproven    refused unproven    leaving unproven    refused unproven    pushing proven  pushing silent  pushing behind  pushing proven  pushing no_pending  pushing no_pending  =
    pushing proven      =                 =                 down unproven    refused unproven    leaving unproven    refused unproven    =               pushing silent  pushing behind  =               =                   =                   =
    pushing silent      =                 =                 down silent      refused silent      leaving silent      refused silent      pushing proven  =               pushing behind  =               =                   =                   =
    pushing behind      =                 =                 down behind      refused behind      leaving behind      refused behind      pushing proven  pushing silent  =               =               =                   =                   =
    pushing no_pending  =                 =                 down no_pending  refused no_pending  leaving no_pending  refused no_pending  pushing proven  pushing silent  pushing behind  =               =                   =                   =
    leaving *           pushing *         refused *         opening *        refused *           =                   =                   =               =               =               =               =                   =                   =
  `
  it.each(cellsOf(table))('that are %s are, after %s: %s', (name, column, expected) => {
    for (const pending of views) {
      const reached = after(started({ ...fieldsOf(name), pending, gap: lastingGap }), columns[column] ?? [])
      expect(`${reached.link} ${reached.trust}`).toBe(expected === '=' ? name : expected)
    }
  })

  it('have a row for every pair that can be reached', () => {
    const pairs = links.flatMap((link) => trusts.map((trust) => `${link} ${trust}`))
    const unreachable = pairs.filter((pair) => !cellsOf(table).some(([name]) => name === pair))
    expect(unreachable).toEqual(
      ['none', 'opening', 'down', 'refused', 'leaving'].flatMap((link) =>
        link === 'none' ? trusts.slice(1).map((trust) => `${link} ${trust}`) : [`${link} proven`],
      ),
    )
  })
})

describe('what the node shows as pending', () => {
  const table = `
    pending  preconfirmed  null     latest   behind  null again  latest again  behind again
    unknown  shown         missing  missing  behind  missing     missing       behind
    shown    shown         shown    shown    shown   missing     missing       behind
    missing  shown         missing  missing  behind  missing     missing       behind
    behind   shown         missing  missing  behind  missing     missing       behind
  `
  it.each(cellsOf(table))('that is %s is, after %s: %s', (name, column, expected) => {
    const [status, lasts] = column.split(' again')
    const state = started({ pending: name as SourceState['pending'], gap: lasts === undefined ? null : lastingGap })
    const reached = after(state, [{ type: 'pending', status: status as (typeof statuses)[number] }])
    expect(reached.pending).toBe(expected)
  })

  it('is gone only after three polls in two seconds', () => {
    const polls = (...times: readonly number[]) =>
      times.reduce((state, at) => next(state, { type: 'pending', status: 'null' }, at), started({ pending: 'shown' })).pending
    expect([polls(0, 1_000, 1_999), polls(0, 60_000), polls(0, 1_000, 2_000)]).toEqual(['shown', 'shown', 'missing'])
  })
})

it('a timely push that is known costs no new state', () => {
  const pushing = after(started({ link: 'pushing' }), [{ type: 'pushed', newest: HEAD + 1 }])
  expect(next(pushing, { type: 'pushed', newest: HEAD + 1 }, AT)).toBe(pushing)
})

describe('the status', () => {
  const statusText = (state: SourceState, at = AT) => {
    const status = statusOf(state, at)
    return status ? `${status.source} ${status.reason}` : 'none yet'
  }
  const table = `
    link and trust      unknown         shown             missing            behind
    none unproven       none yet        poll ok           sealed no_pending  sealed behind
    opening *           none yet        none yet          none yet           none yet
    down *              none yet        poll unreachable  sealed no_pending  sealed behind
    refused *           none yet        poll refused      sealed no_pending  sealed behind
    pushing unproven    pendingLogs ok  pendingLogs ok    pendingLogs ok     pendingLogs ok
    pushing proven      pendingLogs ok  pendingLogs ok    pendingLogs ok     pendingLogs ok
    pushing silent      none yet        poll silent       sealed no_pending  sealed behind
    pushing behind      none yet        poll behind       sealed no_pending  sealed behind
    pushing no_pending  none yet        poll silent       sealed no_pending  sealed behind
    leaving *           none yet        none yet          none yet           none yet
  `
  it.each(cellsOf(table))('of a link that is %s, with pending blocks %s, is %s', (name, pending, expected) => {
    const state = started({ ...fieldsOf(name), pending: pending as SourceState['pending'] })
    expect(statusText(state)).toBe(expected)
    // The same cell under what overrules it.
    const [source] = expected.split(' ')
    const isKnown = expected !== 'none yet'
    expect(statusText({ ...state, settled: null })).toBe('none yet')
    expect(statusText({ ...state, headAt: AT - 30_001 })).toBe(isKnown ? `${source} stale_head` : expected)
    expect(statusText({ ...state, headAt: AT - 30_000 })).toBe(expected)
    expect(statusText({ ...state, headReadAt: AT - 10_001 })).toBe(expected.replace(' ok', ' unreachable'))
    expect(statusText({ ...state, headReadAt: AT - 10_000 })).toBe(expected)
    expect(statusText({ ...state, lagsSince: AT - SILENCE_MS - 1 })).toBe(expected.replace(' ok', ' behind'))
    expect(statusText({ ...state, lagsSince: AT - SILENCE_MS })).toBe(expected)
    expect(statusText({ ...state, requestedAt: AT - SILENCE_MS })).toBe(expected)
    const unreachable = source === 'pendingLogs' ? 'pendingLogs unreachable' : 'down unreachable'
    expect(statusText({ ...state, requestedAt: AT - SILENCE_MS - 1 })).toBe(unreachable)
    expect(statusText({ ...state, requestedAt: AT - SILENCE_MS - 1, settled: null })).toBe('down unreachable')
  })
})

it('a head is new only if it is higher', () => {
  const headAtAfter = (head: number) => next(started(), { type: 'progress', head, settled: HEAD - 1 }, AT + 5).headAt
  expect([headAtAfter(HEAD - 1), headAtAfter(HEAD), headAtAfter(HEAD + 1)]).toEqual([AT, AT, AT + 5])
})

describe('settling that lags', () => {
  const progress = (head: number, settled: number): Evidence => ({ type: 'progress', head, settled })
  const pushing = started({ link: 'pushing' })
  const reasonAfter = (state: SourceState, at: number) => statusOf({ ...state, headAt: at, headReadAt: at }, at)?.reason

  it.each([
    [2, 60_000, 'ok'],
    [3, SILENCE_MS, 'ok'],
    [3, SILENCE_MS + 1, 'behind'],
  ])('by %i blocks for %i ms is %s', (blocks, ms, reason) => {
    const lagging = after(pushing, [progress(HEAD + blocks, HEAD)], AT)
    expect(reasonAfter(after(lagging, [progress(HEAD + blocks + 1, HEAD + 1)], AT + 2_000), AT + ms)).toBe(reason)
  })

  it.each([
    ['before it is behind', 2, 2_000, 'ok'],
    ['once it is behind', 2, 20_000, 'behind'],
    ['once it is behind', 1, 20_000, 'ok'],
  ])('and %s comes within %i blocks of the head, after %i ms, is %s', (_, blocks, ms, reason) => {
    const lagging = after(pushing, [progress(HEAD + 20, HEAD)], AT)
    expect(reasonAfter(after(lagging, [progress(HEAD + 20, HEAD + 20 - blocks)], AT + ms), AT + 20_000)).toBe(reason)
  })

  it('has ten seconds after the start', () => {
    const start = after(started({ link: 'pushing', head: null, settled: null }), [progress(HEAD + 20, HEAD)])
    expect([reasonAfter(start, AT + 10_000), reasonAfter(start, AT + 10_001)]).toEqual(['ok', 'behind'])
  })

  it('has ten seconds after an outage of the node, in which it could not keep up', () => {
    const lagging = after(pushing, [progress(HEAD + 20, HEAD), { type: 'requested' }], AT)
    const back = after(lagging, [{ type: 'answered' }], AT + 60_000)
    expect([reasonAfter(back, AT + 70_000), reasonAfter(back, AT + 70_001)]).toEqual(['ok', 'behind'])
  })
})

describe('what is polled', () => {
  const table = `
    source                            0             499           500           3000          60000
    none unproven unknown             pending_logs  pending_logs  pending_logs  pending_logs  pending_logs
    none unproven missing             pending_logs  pending_logs  pending_logs  pending_logs  pending_logs
    opening unproven unknown          pending_logs  pending_logs  pending_logs  pending_logs  pending_logs
    refused unproven shown heads      pending_logs  pending_logs  pending_logs  pending_logs  pending_logs
    refused unproven missing heads    null          null          null          head          pending_logs
    refused unproven behind heads     null          null          null          head          pending_logs
    pushing unproven shown            head          head          pending       pending       pending
    pushing unproven shown heads      null          null          pending       pending       pending
    pushing proven shown              head          head          head          head          head
    pushing proven shown heads        null          null          null          head          head
    pushing silent shown              pending_logs  pending_logs  pending_logs  pending_logs  pending_logs
    pushing silent missing heads      null          null          null          head          pending_logs
    pushing no_pending missing heads  null          null          null          head          pending_logs
  `
  it.each(cellsOf(table))('with a source that is %s, %s later: %s', (name, later, expected) => {
    expect(String(duePoll(started(fieldsOf(name)), AT + Number(later)))).toBe(expected)
  })

  it.each([
    ['is subscribed and not pushed yet', { ...heads, isPushed: false }],
    ['was older than a polled one twice', { ...heads, polledAhead: 2 }],
    ['was pushed five seconds ago', { ...heads, at: AT - 5_000 }],
  ])('includes the head while it %s', (_, linkHead) => {
    expect(duePoll(started({ link: 'pushing', trust: 'proven', linkHead }), AT)).toBe('head')
  })

  it('is the head at once when something shows a newer one', () => {
    const proven = started({ link: 'pushing', trust: 'proven', linkHead: heads })
    expect([duePoll(proven, AT), duePoll(after(proven, [{ type: 'head_wanted' }]), AT)]).toEqual([null, 'head'])
  })

  it('counts how often a polled head is newer than the pushed one', () => {
    const polled = (number: number): Evidence => ({ type: 'head', number, via: 'poll' })
    const ahead = after(started({ linkHead: heads }), [polled(HEAD + 1), polled(HEAD + 1)])
    expect(ahead.linkHead?.polledAhead).toBe(2)
    expect(after(ahead, [polled(HEAD)]).linkHead?.polledAhead).toBe(0)
    expect(after(ahead, [{ type: 'head', number: HEAD - 1, via: 'link' }]).linkHead?.polledAhead).toBe(0)
  })
})

it.each([
  ['opening unproven', false],
  ['down silent', false],
  ['refused unproven', true],
  ['pushing unproven', false],
  ['pushing proven', false],
  ['pushing silent', true],
  ['pushing behind', true],
  ['pushing no_pending', true],
])('a link that is %s is probed: %s, once a minute', (name, isProbed) => {
  const state = started(fieldsOf(name))
  expect([isProbeDue(state, true, AT + 59_999), isProbeDue(state, true, AT + 60_000)]).toEqual([false, isProbed])
  // A link that pushes, but not for all filters, is probed too.
  const isPartlyProbed = isProbed || state.link === 'pushing'
  expect([isProbeDue(state, false, AT + 59_999), isProbeDue(state, false, AT + 60_000)]).toEqual([false, isPartlyProbed])
})

it.each([
  ['no request', null, AT - 60_000, false],
  ['a request that is a second old', AT - 1_000, AT - 1_000, true],
  ['a younger request', AT - 999, AT - 60_000, false],
  ['an old request, just after the head was polled', AT - 60_000, AT - 999, false],
])('the head is polled beside %s', (_, requestedAt, headPolledAt, isDue) => {
  expect(isCheckDue(started({ requestedAt, headPolledAt }), AT)).toBe(isDue)
})

describe('the node behind a link', () => {
  it.each([
    ['opening silent', null, false],
    ['down silent', null, false],
    ['refused unproven', null, true],
    ['leaving silent', null, false],
    ['pushing unproven', heads, false],
    ['pushing proven', heads, false],
    ['pushing silent', heads, true],
    ['pushing behind', heads, true],
    ['pushing no_pending', heads, false],
  ])('that is %s is left for the next one at once, and again after a minute: %s', (name, linkHead, isLeft) => {
    const state = started({ ...fieldsOf(name), linkHead })
    expect(isLinkLeft(state, AT)).toBe(isLeft)
    expect(isLinkLeft({ ...state, hasNextLink: false }, AT)).toBe(false)
    const left = { ...next(state, { type: 'left', what: 'link' }, AT), link: state.link }
    expect([isLinkLeft(left, AT + 30_000), isLinkLeft({ ...left, linkHead: null }, AT + 60_000)]).toEqual([false, isLeft])
  })

  it('is left when no head comes for half a minute, even if no other head is known', () => {
    const pushing = started({ link: 'pushing', trust: 'proven', linkHead: heads })
    expect([isLinkLeft(pushing, AT + 30_000), isLinkLeft(pushing, AT + 30_001)]).toEqual([false, true])
    expect(isLinkLeft({ ...pushing, hasNextLink: false }, AT + 90_000)).toBe(false)
  })
})

it('endpoints are left while settling is behind and stands still, once a minute', () => {
  const behind = started({ lagsSince: AT - SILENCE_MS - 1, settledAt: AT - SILENCE_MS - 1 })
  const left = next(behind, { type: 'left', what: 'endpoint' }, AT)
  expect([isEndpointLeft(started(), AT), isEndpointLeft(behind, AT)]).toEqual([false, true])
  expect([isEndpointLeft(left, AT + 59_999), isEndpointLeft(left, AT + 60_000)]).toEqual([false, true])
})

it('an endpoint whose blocks are being settled is left only if that does not catch up within a minute', () => {
  const behind = started({ lagsSince: AT - SILENCE_MS - 1, settledAt: AT - SILENCE_MS })
  expect(isEndpointLeft(behind, AT)).toBe(false)
  const moving = next({ ...behind, head: HEAD + 90 }, { type: 'progress', head: HEAD + 90, settled: HEAD + 5 }, AT + 50_000)
  expect([isEndpointLeft(moving, AT + 53_000), isEndpointLeft(moving, AT + 53_001)]).toEqual([false, true])
  expect(isEndpointLeft({ ...moving, settledAt: AT + 57_000 }, AT + 57_000)).toBe(true)
})

describe('a link without another URL whose heads stand still', () => {
  const pushing = after(started({ link: 'pushing', hasNextLink: false }), [{ type: 'heads_live' }])
  const moveOn = (state: SourceState, blocks: number) => ({ ...state, head: HEAD + blocks })

  it('is stale once the chain moved on by more than five blocks, for half a minute', () => {
    expect(isLinkLeft(moveOn(pushing, 6), AT + 30_001)).toBe(true)
    expect(isLinkLeft(moveOn(pushing, 6), AT + 30_000)).toBe(false)
    expect(isLinkLeft(moveOn(pushing, 5), AT + 90_000)).toBe(false)
  })

  it('is not stale while new ones come, however late', () => {
    const head = (number: number): Evidence => ({ type: 'head', number, via: 'link' })
    const behind = next(moveOn(pushing, 40), head(HEAD + 1), AT + 20_000)
    expect(isLinkLeft(behind, AT + 50_000)).toBe(false)
    expect(isLinkLeft(next(behind, head(HEAD + 1), AT + 45_000), AT + 50_001)).toBe(true)
  })

  it('is not stale if it was refused heads, or is lost', () => {
    expect(isLinkLeft(moveOn(started({ link: 'pushing', hasNextLink: false }), 99), AT + 90_000)).toBe(false)
    expect(isLinkLeft(after(moveOn(pushing, 99), [{ type: 'down', isRefused: false }]), AT + 90_000)).toBe(false)
  })
})
