import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type NavReading, navAt } from '../../../src/tokens/nav.ts'
import * as rounds from '../../../src/tokens/nav-history.ts'
import { isValidReading, NaiveNavHistory, type NavAction, navStateOf, STALE_MS } from './naive-nav-history.ts'
import { NOON } from './stock-records.ts'

type Round = rounds.Round
/** What is put to the test: the functions as they are, or one of them spoilt. */
type NavHistoryApi = typeof rounds & { readonly navAt: typeof navAt }

const MINUTE_MS = 60_000
const arbTime = fc.integer({ min: -10, max: 10 }).map((minutes) => NOON + minutes * MINUTE_MS)
const arbPrice = fc.constantFrom('324.3014', '1.50', '2', '3e2', '0.00000001')
const arbGarbage = fc.constantFrom('0', '0.000', '-0', '-1.5', '0e5', 'string', 'object', 'boolean', '1'.repeat(500))
/** As JSON brings them back. */
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
    .map(({ block, logIndex, ...said }) => ({ ...said, position: { block, logIndex }, key: keyOf(block, logIndex) }))
const arbCall: fc.Arbitrary<Round> = fc.record(
  {
    ...arbNumber,
    ...arbAnswer,
    position: fc.constant(null),
    key: fc.constant(null),
    sealed: fc.boolean(),
  },
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
  {
    weight: 2,
    arbitrary: fc
      .array(fc.tuple(arbBlock, arbLogIndex), { minLength: 1, maxLength: 4 })
      .map((places): NavAction => ({ kind: 'takeBack', keys: places.map((place) => keyOf(...place)) })),
  },
  { weight: 2, arbitrary: arbSettledBlock },
  { weight: 2, arbitrary: arbTime.map((now): NavAction => ({ kind: 'clock', now })) },
  { weight: 1, arbitrary: fc.constant<NavAction>({ kind: 'restart' }) },
)
/** Long and short, with and without a feed: the list behaves otherwise beside one. */
const arbActions = fc
  .tuple(fc.array(arbAction, { minLength: 1, maxLength: 30, size: 'max' }), fc.boolean())
  .map(([actions, hasFeed]) =>
    hasFeed ? actions : actions.filter(({ kind }) => kind !== 'round' && kind !== 'settle'),
  )

/** Lets both live through a history, and says where they first disagree. */
function firstDisagreement(
  api: NavHistoryApi,
  actions: readonly NavAction[],
  seen: Set<string> = new Set(),
): string | null {
  const naive = new NaiveNavHistory()
  let known = api.emptyNavHistory
  for (const action of actions) {
    naive.apply(action)
    const { now } = naive
    const timing = { now, staleMs: STALE_MS }
    known = deepFreeze(applyAction(api, known, action, timing))
    const [held, expected] = [api.currentNav(known, timing), naive.current()]
    const nav = api.navAt(held.reading, now, STALE_MS)
    if (!isDeepStrictEqual(held, expected)) return `holds ${JSON.stringify(held)}, not ${JSON.stringify(expected)}`
    if (nav.state !== navStateOf(expected.reading, now)) return `is ${nav.state}`
    if (nav.price !== null && !isValidReading({ ...held.reading, price: nav.price }, now))
      return `passes ${nav.price} on`
    for (const madeAt of [now - 7 * MINUTE_MS, now - MINUTE_MS, now]) {
      if (!isDeepStrictEqual(api.navReadingAt(known, madeAt), naive.currentAt(madeAt)))
        return `has another past at ${madeAt}`
    }
    if (!isDeepStrictEqual(JSON.parse(JSON.stringify(known)), known)) return 'is lost on the way through JSON'
    seen.add(`${held.source}: ${nav.state}`).add(`missed: ${held.missed}`)
  }
  return null
}

function applyAction(
  api: NavHistoryApi,
  known: rounds.NavHistory,
  action: NavAction,
  timing: { now: number; staleMs: number },
) {
  switch (action.kind) {
    case 'list':
      return api.addListReading(known, action.reading, timing)
    case 'round':
      return api.addRound(known, action.round)
    case 'takeBack':
      return api.removeRounds(known, new Set(action.keys))
    case 'settle':
      return api.applySealedRounds(known, action.block, action.sealed)
    case 'restart':
      return JSON.parse(JSON.stringify(known)) as rounds.NavHistory
    case 'clock':
      return known
  }
}

/** So that what was held before cannot be changed unnoticed. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}

const realApi: NavHistoryApi = { ...rounds, navAt }
const property = (api: NavHistoryApi, seen?: Set<string>) =>
  fc.property(arbActions, (actions) => {
    const found = firstDisagreement(api, actions, seen)
    if (found !== null) throw new Error(found)
  })

it('whatever happens, the NAV that is held is the one that a sorted list of everything known shows', () => {
  const seen = new Set<string>()
  fc.assert(property(realApi, seen), { numRuns: 300 })
  expect([...seen].sort()).toEqual([
    'list: fresh',
    'list: invalid',
    'list: missing',
    'list: stale',
    'log: fresh',
    'log: invalid',
    'log: stale',
    'missed: false',
    'missed: true',
  ])
})

it.each<[string, Partial<NavHistoryApi>]>([
  [
    'takes the round that came last for the newest',
    {
      addRound: (known, round) => ({
        ...known,
        feed: [...known.feed.filter(({ key }) => key === null || key !== round.key), round],
      }),
    },
  ],
  [
    'believes the list whenever it speaks',
    { addListReading: (known, reading) => ({ ...known, list: [...known.list, reading] }) },
  ],
  ['keeps what was taken back', { removeRounds: (known) => known }],
  [
    'forgets that a settled block lacks a round',
    { applySealedRounds: (known, _, sealed) => sealed.reduce(rounds.addRound, known) },
  ],
  [
    'prefers the feed though the list is newer',
    {
      currentNav: (known, timing) => {
        const held = rounds.currentNav(known, timing)
        const { price = null, updatedAt = null } = known.feed.at(-1) ?? {}
        return held.missed ? { reading: { price, updatedAt }, source: 'log', missed: false } : held
      },
    },
  ],
  [
    'knows no past',
    { navReadingAt: (known, madeAt) => rounds.currentNav(known, { now: madeAt, staleMs: STALE_MS }).reading },
  ],
  [
    'passes on what is no price',
    { navAt: (reading, now, boundMs) => ({ ...navAt(reading, now, boundMs), price: reading.price }) },
  ],
  [
    'calls what is ahead fresh',
    { navAt: (reading, now, boundMs) => navAt(reading, Math.max(now, reading.updatedAt ?? 0), boundMs) },
  ],
])('a relay that %s is found out', (_, spoilt) => {
  expect(fc.check(property({ ...realApi, ...spoilt }), { numRuns: 300, endOnFailure: true }).failed).toBe(true)
})
