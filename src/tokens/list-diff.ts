import { isDeepStrictEqual } from 'node:util'
import type { Hex } from '../protocol/fields.ts'
import type { Draft } from '../protocol/updates.ts'
import type { Place } from './chain-position.ts'
import type { Listed } from './list-parser.ts'
import { multiplierDraft, navDraft, pauseDrafts, tokenDraft } from './messages.ts'
import { type Factor, factorOf, isReplaced, sameDouble, withWitness } from './multiplier.ts'
import { type NavReading, type NavRule, navAt, sameNav } from './nav.ts'
import { heldNow, listSaid, noRounds } from './nav-history.ts'
import { type Pauses, withPause } from './pauses.ts'
import { fieldsLeft } from './record.ts'
import { held, type Token } from './token.ts'

/** Every token as last published. */
export type Board = ReadonlyMap<Hex, Token>

/** What came of comparing two boards: what is to be told, and the tokens as they are now. */
export type Change = { readonly drafts: readonly Draft[]; readonly tokens: readonly Token[] }

/** When something is heard that is no log: by the clock, and after which log of the chain. */
export type Moment = NavRule & { readonly at: Place }

/** Fields of a record whose changes have message types of their own. */
const TOLD_ELSEWHERE: ReadonlySet<string> = new Set([
  'nav_price',
  'nav_price_updated_at',
  'multiplier',
  'paused_features',
])

/** Compares the board with a whole list: identity is the address, and what is missing is delisted. */
export function compare(board: Board, list: readonly Listed[], rule: Moment): Change {
  const told = compareListed(board, list, rule)
  const present = new Set(list.map((listed) => listed.address))
  const gone = [...board.values()].filter((token) => token.state !== 'delisted' && !present.has(token.address))
  return joined([told, ...gone.map((token) => delisted(token, rule))])
}

/** Compares only what a list holds: it may have left something out. */
export function compareListed(board: Board, list: readonly Listed[], rule: Moment): Change {
  const changes = list.map((listed) => changed(board.get(listed.address), listed, rule))
  return joined(changes)
}

/** Nothing new from the list: only time passes, and a NAV may have become stale. */
export const restate = (board: Board, rule: NavRule): Change =>
  joined([...board.values()].filter((token) => token.state === 'listed').map((token) => valued(token, rule)))

/** The logs of these addresses are heard from now on: what was awaited is listed. */
export function heard(board: Board, addresses: readonly Hex[], rule: NavRule): Change {
  const awaited = addresses.flatMap((address) => {
    const token = board.get(address)
    return token?.state === 'awaited' ? [{ ...token, state: 'listed' as const }] : []
  })
  const listings = awaited.map(
    (token): Change => ({
      drafts: [tokenDraft(token, rule, { change: 'listed', changed: [], was: null })],
      tokens: [],
    }),
  )
  return joined([...listings, ...awaited.map((token) => valued(token, rule))])
}

const joined = (changes: readonly Change[]): Change => ({
  drafts: changes.flatMap((change) => change.drafts),
  tokens: changes.flatMap((change) => change.tokens),
})

function delisted(token: Token, rule: NavRule): Change {
  const after: Token = { ...token, state: 'delisted', told: null }
  const drafts =
    token.state === 'listed' ? [tokenDraft(token, rule, { change: 'delisted', changed: [], was: null })] : []
  return { drafts, tokens: [after] }
}

function changed(before: Token | undefined, listed: Listed, rule: Moment): Change {
  const after = merged(before, listed, rule)
  if (!before || after.state === 'awaited')
    return { drafts: [], tokens: before && isDeepStrictEqual(before, after) ? [] : [after] }
  const told = valued(after, rule)
  const drafts = [
    ...recordDrafts(before, after, rule),
    ...(before.multiplier === after.multiplier
      ? []
      : [multiplierDraft(after, rule, { from: before.multiplier, effectiveAt: null, source: 'list' })]),
    ...pauseDrafts(before, after, rule),
    ...told.drafts,
  ]
  const now = told.tokens[0] ?? after
  return { drafts, tokens: isDeepStrictEqual(before, now) ? [] : [now] }
}

function merged(before: Token | undefined, listed: Listed, rule: Moment): Token {
  const { address, isin, decimals, supply, record } = listed
  const said = before ? fieldsLeft(before.said, before.listed.record, record) : []
  const token = {
    ...before,
    address,
    former: before?.former ?? [],
    isin,
    decimals,
    supply,
    listed: { multiplier: listed.multiplier, paused: listed.paused, record },
    factor: before ? factorListed(before, listed, rule) : factorOf(listed.multiplier),
    pauses: before ? pausesListed(before, listed, rule) : { base: listed.paused, changes: [] },
    said,
    rounds: listSaid(before?.rounds ?? noRounds, listed.nav, rule),
    told: before?.told ?? null,
    state: before?.state === 'listed' ? ('listed' as const) : ('awaited' as const),
  }
  return held(token, rule)
}

/** The list is a second witness: heard only where it changes its own word, and only where it says another number. */
function factorListed(before: Token, { multiplier }: Listed, { at }: Moment): Factor {
  const { factor, scheduled } = before
  const repeats = multiplier === before.listed.multiplier || sameDouble(multiplier, before.multiplier)
  // It knows of a schedule's end before any block has shown it, and it forgets nothing that a log has said.
  const isAhead = scheduled && sameDouble(multiplier, scheduled.to)
  const forgets = multiplier === null && before.multiplierSource !== 'list'
  if (repeats || isAhead || forgets || isReplaced(factor, multiplier)) return factor
  const word = { key: null, source: 'list', phase: 'effective', from: null, to: multiplier } as const
  return withWitness(factor, { ...at, ...word, effectiveAt: null, timestamp: null, matured: false })
}

function pausesListed(before: Token, { paused }: Listed, { at }: Moment): Pauses {
  const { pauses } = before
  if (isDeepStrictEqual(paused, before.listed.paused) || isDeepStrictEqual(paused, before.paused)) return pauses
  return withPause(pauses, { ...at, key: null, kind: 'all', features: paused })
}

function recordDrafts(before: Token, after: Token, rule: NavRule): Draft[] {
  const fields = new Set([...Object.keys(before.record), ...Object.keys(after.record)])
  const names = [...fields].filter(
    (name) => !TOLD_ELSEWHERE.has(name) && !isDeepStrictEqual(before.record[name], after.record[name]),
  )
  if (names.length === 0) return []
  const was = Object.fromEntries(names.flatMap((name) => (name in before.record ? [[name, before.record[name]]] : [])))
  return [tokenDraft(after, rule, { change: 'changed', changed: names, was })]
}

/** Tells the NAV if it, its time or its state is not what was told last. */
export function valued(token: Token, rule: NavRule): Change {
  const { reading, source } = heldNow(token.rounds, rule)
  const { told } = token
  const nav = navAt(reading, rule.now, rule.staleMs)
  const same = told ? sameNav(told, nav) : nav.state === 'missing'
  const held = sameReading(reading, token.reading) ? token : { ...token, reading }
  if (same) return { drafts: [], tokens: token.state === 'listed' ? [held] : [] }
  return { drafts: [navDraft(token, rule, { nav, was: told, source })], tokens: [{ ...held, told: nav }] }
}

const sameReading = (one: NavReading, other: NavReading): boolean =>
  one.price === other.price && one.updatedAt === other.updatedAt

/** The tokens that are listed, by their addresses. */
export const listedAddresses = (board: Board): Hex[] =>
  [...board.values()].flatMap((token) => (token.state === 'delisted' ? [] : [token.address]))
