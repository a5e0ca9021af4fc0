import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type NavReading, navAt } from '../../../../src/relay/tokens/nav.ts'
import * as navHistory from '../../../../src/relay/tokens/nav-history.ts'
import { isValidReading, NaiveNavHistory, type NavAction, navStateOf, STALE_MS } from './naive-nav-history.ts'
import { NOON } from './stock-records.ts'

type Round = navHistory.Round
/** The tested functions: the real ones, or with one planted bug. */
type NavHistoryApi = typeof navHistory & { readonly navAt: typeof navAt }

const MINUTE_MS = 60_000
const arbTime = fc.integer({ min: -10, max: 10 }).map((minutes) => NOON + minutes * MINUTE_MS)
const arbPrice = fc.constantFrom('324.3014', '1.50', '2', '3e2', '0.00000001')
const arbGarbage = fc.constantFrom('0', '0.000', '-0', '-1.5', '0e5', 'string', 'object', 'boolean', '1'.repeat(500))
/** Plain objects, as JSON returns them. */
const plain = { noNullPrototype: true } as const
const arbReading: fc.Arbitrary<NavReading> = fc.record(
  {
    price: fc.oneof({ weight: 4, arbitrary: arbPrice }, arbGarbage, fc.constant(null)),
    updatedAt: fc.oneof({ weight: 6, arbitrary: arbTime }, fc.constant(null)),
  },
  plain,
)
const arbNumber = { phase: fc.integer({ min: 1, max: 2 }), round: fc.constantFrom('8', '9', '10', '11') }
const arbAnswer = {
  price: fc.oneof({ weight: 5, arbitrary: arbPrice }, fc.constantFrom('0', '-1.5')),
  updatedAt: fc.oneof({ weight: 9, arbitrary: arbTime }, fc.constant(null)),
}
const arbBlock = fc.integer({ min: 1, max: 4 })
const arbLogIndex = fc.integer({ min: 0, max: 2 })
const keyOf = (block: number, logIndex: number) => `${block}-0xaa-${logIndex}`
const arbLog = (arbInBlock: fc.Arbitrary<number>): fc.Arbitrary<Round> =>
  fc
    .record({ ...arbNumber, ...arbAnswer, block: arbInBlock, logIndex: arbLogIndex, sealed: fc.boolean() }, plain)
    .map(({ block, logIndex, ...answer }) => ({ ...answer, position: { block, logIndex }, key: keyOf(block, logIndex) }))
const arbCall: fc.Arbitrary<Round> = fc.record(
  { ...arbNumber, ...arbAnswer, position: fc.constant(null), key: fc.constant(null), sealed: fc.boolean() },
  plain,
)
const arbSettledBlock = arbBlock.chain((block) =>
  fc
    .uniqueArray(arbLog(fc.constant(block)), { selector: ({ key }) => key, maxLength: 2 })
    .map((sealed): NavAction => ({ kind: 'settle', block, sealed })),
)
const arbAction: fc.Arbitrary<NavAction> = fc.oneof(
  { weight: 5, arbitrary: arbReading.map((reading): NavAction => ({ kind: 'list', reading })) },
  { weight: 4, arbitrary: arbLog(arbBlock).map((round): NavAction => ({ kind: 'round', round })) },
  { weight: 2, arbitrary: arbCall.map((round): NavAction => ({ kind: 'round', round })) },
  { weight: 4, arbitrary: arbSettledBlock },
  { weight: 2, arbitrary: arbTime.map((now): NavAction => ({ kind: 'clock', now })) },
  { weight: 1, arbitrary: fc.constant<NavAction>({ kind: 'restart' }) },
)
/** Long and short, with and without a feed, since the list counts differently beside one. */
const arbActions = fc
  .tuple(fc.array(arbAction, { minLength: 1, maxLength: 30, size: 'max' }), fc.boolean())
  .map(([actions, hasFeed]) => (hasFeed ? actions : actions.filter(({ kind }) => kind !== 'round' && kind !== 'settle')))

/** Applies the actions to the functions and to the model, and returns the first difference. */
function firstDisagreement(api: NavHistoryApi, actions: readonly NavAction[], states: Set<string> = new Set()): string | null {
  const model = new NaiveNavHistory()
  let history = api.emptyNavHistory
  for (const action of actions) {
    model.apply(action)
    const { now } = model
    const timing = { now, navStaleAfterMs: STALE_MS }
    history = deepFreeze(applyAction(api, history, action, timing))
    const [current, expected] = [api.currentNav(history, timing), model.current()]
    const nav = api.navAt(current.reading, now, STALE_MS, null)
    if (!isDeepStrictEqual(current, expected)) return `has ${JSON.stringify(current)}, not ${JSON.stringify(expected)}`
    if (nav.state !== navStateOf(expected.reading, now)) return `is ${nav.state}`
    if (nav.price !== null && !isValidReading({ ...current.reading, price: nav.price }, now)) return `publishes ${nav.price}`
    for (const time of [now - 7 * MINUTE_MS, now - MINUTE_MS, now]) {
      if (!isDeepStrictEqual(api.navReadingAt(history, time), model.currentAt(time))) return `has another past at ${time}`
    }
    if (!isDeepStrictEqual(JSON.parse(JSON.stringify(history)), history)) return 'does not survive JSON'
    states.add(`${current.source}${history.feed.length > 0 ? ' beside a feed' : ''}: ${nav.state}`)
  }
  return null
}

function applyAction(
  api: NavHistoryApi,
  history: navHistory.NavHistory,
  action: NavAction,
  timing: { now: number; navStaleAfterMs: number },
) {
  switch (action.kind) {
    case 'list':
      return api.addListReading(history, action.reading, timing)
    case 'round':
      return api.addRound(history, action.round)
    case 'settle':
      return api.applySealedRounds(history, action.block, action.sealed)
    case 'restart':
      return JSON.parse(JSON.stringify(history)) as navHistory.NavHistory
    case 'clock':
      return history
  }
}

/** Makes a hidden change of an earlier history throw. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}

const realApi: NavHistoryApi = { ...navHistory, navAt }
const property = (api: NavHistoryApi, states?: Set<string>) =>
  fc.property(arbActions, (actions) => {
    const found = firstDisagreement(api, actions, states)
    if (found !== null) throw new Error(found)
  })

it('the NAV history agrees with a simple model after random actions', () => {
  const states = new Set<string>()
  fc.assert(property(realApi, states), { numRuns: 300 })
  expect([...states].sort()).toEqual([
    'list beside a feed: fresh',
    'list beside a feed: stale',
    'list: fresh',
    'list: invalid',
    'list: missing',
    'list: stale',
    'log beside a feed: fresh',
    'log beside a feed: invalid',
    'log beside a feed: stale',
  ])
})

it.each<[string, Partial<NavHistoryApi>]>([
  [
    'takes the round that arrived last as the newest',
    {
      addRound: (history, round) => ({
        ...history,
        feed: [...history.feed.filter(({ key }) => key === null || key !== round.key), round],
      }),
    },
  ],
  [
    'keeps the rounds that a settled block lacks',
    { applySealedRounds: (history, _, sealed) => sealed.reduce(navHistory.addRound, history) },
  ],
  [
    'prefers the feed although the list is newer',
    {
      currentNav: (history, timing) => {
        const current = navHistory.currentNav(history, timing)
        const { price = null, updatedAt = null } = history.feed.at(-1) ?? {}
        return history.feed.length > 0 ? { reading: { price, updatedAt }, source: 'log' } : current
      },
    },
  ],
  [
    'publishes invalid prices',
    { navAt: (reading, now, boundMs, frozen) => ({ ...navAt(reading, now, boundMs, frozen), price: reading.price }) },
  ],
])('the model detects a relay that %s', (_, planted) => {
  expect(fc.check(property({ ...realApi, ...planted }), { numRuns: 300, endOnFailure: true }).failed).toBe(true)
})
