import { isDeepStrictEqual } from 'node:util'
import type { Hex } from '../../../lib/hex.ts'
import type { DraftOf } from '../../../protocol/updates.ts'
import type { ChainPosition } from '../chain-position.ts'
import {
  addReportedChange,
  isSameDouble,
  isSupersededByLog,
  type MultiplierHistory,
  newMultiplierHistory,
} from '../multiplier-history.ts'
import { isSameNav, type NavTiming, navAt } from '../nav.ts'
import { addListReading, currentNav, emptyNavHistory } from '../nav-history.ts'
import { addPauseChange, type PauseHistory } from '../pause-history.ts'
import { type Token, withDerivedState } from '../token.ts'
import { type ChangedToken, commonFields, multiplierDraft, pauseDrafts, tokenDraft } from '../token-drafts.ts'
import type { ListedToken } from './list-parser.ts'
import { dropChangesOverriddenByList } from './record-changes.ts'

export type TokenTable = ReadonlyMap<Hex, Token>

/** `at` is the position of the list in the chain: after all logs that the relay has received. */
export type ListTiming = NavTiming & { readonly at: ChainPosition }

/** Number of refreshes for which a multiplier stays that the list omits, and that no log or call has reported. */
const OMISSIONS_BOUND = 3

/** Record fields whose changes are published as updates of their own types. */
const SEPARATELY_PUBLISHED_FIELDS: ReadonlySet<string> = new Set([
  'nav_price',
  'nav_price_updated_at',
  'multiplier',
  'paused_features',
])

/** Compares the tokens of a list with the known ones, which are equal by address. */
export const diffList = (table: TokenTable, list: readonly ListedToken[], timing: ListTiming): readonly ChangedToken[] =>
  list.map((listed) => diffToken(table.get(listed.address), listed, timing))

/** Delists the tokens of these addresses, which a list lacks. */
export const delist = (table: TokenTable, missing: readonly Hex[], timing: NavTiming): readonly ChangedToken[] =>
  missing.flatMap((address) => {
    const token = table.get(address)
    if (!token || token.state === 'delisted') return []
    const drafts = token.state === 'listed' ? [tokenDraft(token, timing, { change: 'delisted', changed: [], before: null })] : []
    return [{ after: { ...token, state: 'delisted', publishedNav: null }, drafts }]
  })

/** Publishes the NAVs that have become stale, of tokens that no list has just updated. */
export const refreshNavs = (table: TokenTable, unread: readonly Hex[], timing: NavTiming): readonly ChangedToken[] =>
  unread.flatMap((address) => {
    const token = table.get(address)
    return token?.state === 'listed' ? [updateNav(token, timing)] : []
  })

/** Called when the relay begins to receive the logs of these addresses. Awaited tokens become listed. */
export const markListed = (table: TokenTable, addresses: readonly Hex[], timing: NavTiming): readonly ChangedToken[] =>
  addresses.flatMap((address) => {
    const token = table.get(address)
    return token?.state === 'awaited' ? [introduce({ ...token, state: 'listed' }, timing)] : []
  })

/** Publishes a new token with its values, because no listener knows them. */
function introduce(token: Token, timing: NavTiming): ChangedToken {
  const { after, drafts } = updateNav(token, timing)
  const listing = tokenDraft(token, timing, { change: 'listed', changed: [], before: null })
  return { after, drafts: [listing, ...multiplierDrafts(null, token, timing), ...drafts] }
}

function diffToken(before: Token | undefined, listed: ListedToken, timing: ListTiming): ChangedToken {
  const merged = mergeListed(before, listed, timing)
  if (!before || merged.state === 'awaited') return { after: merged, drafts: [] }
  const { after, drafts: navDrafts } = updateNav(merged, timing)
  const drafts = [
    ...recordDrafts(before, after, timing),
    ...multiplierDrafts(before.multiplier, after, timing),
    ...pauseDrafts(before, after, timing),
    ...navDrafts,
  ]
  return { after, drafts }
}

const multiplierDrafts = (from: string | null, token: Token, timing: NavTiming): readonly DraftOf<'multiplier'>[] =>
  from === token.multiplier ? [] : [multiplierDraft(token, timing, { from, effectiveAt: null, source: 'list' })]

function mergeListed(before: Token | undefined, listed: ListedToken, timing: ListTiming): Token {
  const { address, isin, decimals, supply, record } = listed
  const multiplier = listedMultiplier(before, listed)
  const recordChanges = before ? dropChangesOverriddenByList(before.recordChanges, before.lastListed.record, record) : []
  const token = {
    ...before,
    address,
    formerSymbols: before?.formerSymbols ?? [],
    isin,
    decimals,
    supply,
    lastListed: { ...multiplier, paused: listed.paused, record },
    multiplierHistory: before ? multiplierAfterList(before, multiplier, timing) : newMultiplierHistory(listed.multiplier),
    pauseHistory: before ? pausesAfterList(before, listed, timing) : { initial: listed.paused, changes: [] },
    recordChanges,
    navHistory: addListReading(before?.navHistory ?? emptyNavHistory, listed.nav, timing),
    publishedNav: before?.publishedNav ?? null,
    frozen: before?.frozen ?? null,
    state: before?.state === 'listed' ? ('listed' as const) : ('awaited' as const),
  }
  return withDerivedState(token, timing)
}

type ListedMultiplier = Pick<Token['lastListed'], 'multiplier' | 'omissions'>

/** Returns the list's multiplier. If the list omits it, the last one stays: for some refreshes, or always after a log or call. */
function listedMultiplier(before: Token | undefined, { multiplier }: ListedToken): ListedMultiplier {
  if (multiplier !== null || !before) return { multiplier }
  const { multiplier: known, omissions = 0 } = before.lastListed
  if (before.multiplierSource !== 'list') return { multiplier: known }
  return omissions < OMISSIONS_BOUND ? { multiplier: known, omissions: omissions + 1 } : { multiplier: null }
}

/** Applies the list's multiplier, a secondary source: it counts only if it changed in the list and differs from the known one. */
function multiplierAfterList(before: Token, { multiplier }: ListedMultiplier, { at }: ListTiming): MultiplierHistory {
  const { multiplierHistory, scheduled } = before
  const isRepeated = multiplier === before.lastListed.multiplier || isSameDouble(multiplier, before.multiplier)
  // The list may apply a scheduled multiplier before a block reaches its time.
  const isAhead = scheduled && isSameDouble(multiplier, scheduled.to)
  if (isRepeated || isAhead || isSupersededByLog(multiplierHistory, multiplier)) return multiplierHistory
  const change = { key: null, source: 'list', phase: 'effective', from: null, to: multiplier } as const
  return addReportedChange(multiplierHistory, { ...at, ...change, effectiveAt: null, timestamp: null, isApplied: false })
}

function pausesAfterList(before: Token, { paused }: ListedToken, { at }: ListTiming): PauseHistory {
  const { pauseHistory } = before
  if (isDeepStrictEqual(paused, before.lastListed.paused) || isDeepStrictEqual(paused, before.paused)) return pauseHistory
  return addPauseChange(pauseHistory, { ...at, key: null, kind: 'all', features: paused })
}

function recordDrafts(before: Token, after: Token, timing: NavTiming): DraftOf<'token'>[] {
  const fields = new Set([...Object.keys(before.record), ...Object.keys(after.record)])
  const names = [...fields].filter(
    (name) => !SEPARATELY_PUBLISHED_FIELDS.has(name) && !isDeepStrictEqual(before.record[name], after.record[name]),
  )
  if (names.length === 0) return []
  const formerFields = Object.fromEntries(names.flatMap((name) => (name in before.record ? [[name, before.record[name]]] : [])))
  return [tokenDraft(after, timing, { change: 'changed', changed: names, before: formerFields })]
}

/** Publishes the NAV if its price, time, state or freeze differs from the last published one. */
export function updateNav(token: Token, timing: NavTiming): ChangedToken {
  const { reading, source } = currentNav(token.navHistory, timing)
  const { publishedNav } = token
  const nav = navAt(reading, timing.now, timing.navStaleAfterMs, token.frozen)
  const isUnchanged = publishedNav ? isSameNav(publishedNav, nav) : nav.state === 'missing' && !nav.frozen
  const isSameReading = reading.price === token.navReading.price && reading.updatedAt === token.navReading.updatedAt
  const updated = isSameReading ? token : { ...token, navReading: reading }
  if (isUnchanged) return { after: updated, drafts: [] }
  const draft: DraftOf<'nav'> = { type: 'nav', ...commonFields(token, timing), nav, before: publishedNav, source }
  return { after: { ...updated, publishedNav: nav }, drafts: [draft] }
}

export const isSameList = (a: readonly Hex[], b: readonly Hex[]): boolean =>
  a === b || (a.length === b.length && a.every((address, index) => address === b[index]))

export const listedAddresses = (table: TokenTable): Hex[] =>
  [...table.values()].filter(({ state }) => state !== 'delisted').map(({ address }) => address)
