import { isDeepStrictEqual } from 'node:util'
import type { Hex } from '../../../lib/hex.ts'
import type { Draft } from '../../../protocol/updates.ts'
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
import { type ListedMultiplier, type Token, withDerivedState } from '../token.ts'
import { multiplierDraft, navDraft, pauseDrafts, tokenDraft } from '../token-drafts.ts'
import type { ListedToken } from './list-parser.ts'
import { dropChangesOverriddenByList } from './record-changes.ts'

export type TokenTable = ReadonlyMap<Hex, Token>

export type TokenChanges = { readonly drafts: readonly Draft[]; readonly tokens: readonly Token[] }

/** `at` is the position of the list in the chain: after all logs that the relay has received. */
export type ListTiming = NavTiming & { readonly at: ChainPosition }

/** Addresses in the order of the list, and addresses of known tokens that the list lacks. */
export type ListedAddresses = { readonly order: readonly Hex[]; readonly missing: readonly Hex[] }

/** Number of refreshes for which a multiplier stays that the list omits, and that no log or call has reported. */
const OMISSIONS_BOUND = 3

/** Record fields whose changes are published as updates of their own types. */
const SEPARATELY_PUBLISHED_FIELDS: ReadonlySet<string> = new Set([
  'nav_price',
  'nav_price_updated_at',
  'multiplier',
  'paused_features',
])

/** Compares the known tokens with a full list or its last part. Tokens are equal by address, and a missing token is delisted. */
export function diffFullList(
  table: TokenTable,
  list: readonly ListedToken[],
  timing: ListTiming,
  { missing } = addressesOf(table, list),
): TokenChanges {
  const delisted = missing.flatMap((address) => {
    const token = table.get(address)
    return token && token.state !== 'delisted' ? [delistToken(token, timing)] : []
  })
  return mergeChanges([diffPartialList(table, list, timing), ...delisted])
}

export function addressesOf(table: TokenTable, list: readonly ListedToken[]): ListedAddresses {
  const order = list.map(({ address }) => address)
  const listed = new Set(order)
  return { order, missing: listedAddresses(table).filter((address) => !listed.has(address)) }
}

/** Compares only the tokens that the list contains, since others may be missing by mistake. */
export const diffPartialList = (table: TokenTable, list: readonly ListedToken[], timing: ListTiming): TokenChanges =>
  mergeChanges(list.map((listed) => diffToken(table.get(listed.address), listed, timing)))

/** Publishes the NAVs that have become stale, of tokens that no list has just updated. */
export function refreshNavs(table: TokenTable, timing: NavTiming, unread: readonly Hex[] = [...table.keys()]): TokenChanges {
  const changes = unread.flatMap((address) => {
    const token = table.get(address)
    return token?.state === 'listed' ? [updateNav(token, timing)] : []
  })
  return mergeChanges(changes)
}

/** Called when the relay begins to receive the logs of these addresses. Awaited tokens become listed. */
export function markListed(table: TokenTable, addresses: readonly Hex[], timing: NavTiming): TokenChanges {
  const awaited = addresses.flatMap((address) => {
    const token = table.get(address)
    return token?.state === 'awaited' ? [{ ...token, state: 'listed' as const }] : []
  })
  return mergeChanges(awaited.map((token) => introduce(token, timing)))
}

/** Publishes a new token with its values, because no listener knows them. */
function introduce(token: Token, timing: NavTiming): TokenChanges {
  const { drafts, tokens } = updateNav(token, timing)
  const listing = tokenDraft(token, timing, { change: 'listed', changed: [], before: null })
  const multiplier =
    token.multiplier === null ? [] : [multiplierDraft(token, timing, { from: null, effectiveAt: null, source: 'list' })]
  return { drafts: [listing, ...multiplier, ...drafts], tokens }
}

const mergeChanges = (changes: readonly TokenChanges[]): TokenChanges => ({
  drafts: changes.flatMap((change) => change.drafts),
  tokens: changes.flatMap((change) => change.tokens),
})

function delistToken(token: Token, timing: NavTiming): TokenChanges {
  const after: Token = { ...token, state: 'delisted', publishedNav: null }
  const drafts = token.state === 'listed' ? [tokenDraft(token, timing, { change: 'delisted', changed: [], before: null })] : []
  return { drafts, tokens: [after] }
}

function diffToken(before: Token | undefined, listed: ListedToken, timing: ListTiming): TokenChanges {
  const after = mergeListed(before, listed, timing)
  if (!before || after.state === 'awaited') return { drafts: [], tokens: before && isDeepStrictEqual(before, after) ? [] : [after] }
  const navChanges = updateNav(after, timing)
  const drafts = [
    ...recordDrafts(before, after, timing),
    ...(before.multiplier === after.multiplier
      ? []
      : [multiplierDraft(after, timing, { from: before.multiplier, effectiveAt: null, source: 'list' })]),
    ...pauseDrafts(before, after, timing),
    ...navChanges.drafts,
  ]
  const updated = navChanges.tokens[0] ?? after
  return { drafts, tokens: isDeepStrictEqual(before, updated) ? [] : [updated] }
}

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

function recordDrafts(before: Token, after: Token, timing: NavTiming): Draft[] {
  const fields = new Set([...Object.keys(before.record), ...Object.keys(after.record)])
  const names = [...fields].filter(
    (name) => !SEPARATELY_PUBLISHED_FIELDS.has(name) && !isDeepStrictEqual(before.record[name], after.record[name]),
  )
  if (names.length === 0) return []
  const formerFields = Object.fromEntries(names.flatMap((name) => (name in before.record ? [[name, before.record[name]]] : [])))
  return [tokenDraft(after, timing, { change: 'changed', changed: names, before: formerFields })]
}

/** Publishes the NAV if its price, time, state or freeze differs from the last published one. */
export function updateNav(token: Token, timing: NavTiming): TokenChanges {
  const { reading, source } = currentNav(token.navHistory, timing)
  const { publishedNav } = token
  const nav = navAt(reading, timing.now, timing.navStaleAfterMs, token.frozen)
  const isUnchanged = publishedNav ? isSameNav(publishedNav, nav) : nav.state === 'missing' && !nav.frozen
  const isSameReading = reading.price === token.navReading.price && reading.updatedAt === token.navReading.updatedAt
  const updated = isSameReading ? token : { ...token, navReading: reading }
  if (isUnchanged) return { drafts: [], tokens: token.state === 'listed' ? [updated] : [] }
  return { drafts: [navDraft(token, timing, { nav, before: publishedNav, source })], tokens: [{ ...updated, publishedNav: nav }] }
}

export const isSameList = (a: readonly Hex[], b: readonly Hex[]): boolean =>
  a === b || (a.length === b.length && a.every((address, index) => address === b[index]))

export const listedAddresses = (table: TokenTable): Hex[] =>
  [...table.values()].flatMap((token) => (token.state === 'delisted' ? [] : [token.address]))
