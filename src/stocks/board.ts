import { isDeepStrictEqual } from 'node:util'
import type { Hex, Nav, TokenRecord } from '../protocol/parts.ts'
import type { Draft, DraftOf } from '../protocol/updates.ts'
import type { Listed } from './list.ts'
import { type NavReading, navAt, sameNav } from './nav.ts'

/** A token as last published, and what is held of it beside its record. Kept beside the tape as it is. */
export type Token = {
  readonly address: Hex
  readonly symbol: string
  /** Names it had before; they still find it. */
  readonly former: readonly string[]
  readonly isin: string | null
  readonly decimals: number | null
  readonly multiplier: string | null
  readonly multiplierSource: 'log' | 'call' | 'list' | null
  /** What the list itself said last, so that its repeating an old value is not taken for news. */
  readonly listed: { readonly multiplier: string | null; readonly paused: readonly number[] }
  readonly paused: readonly number[]
  readonly supply: string | null
  readonly reading: NavReading
  /** The NAV that listeners were told last. */
  readonly told: Nav | null
  /** Awaited until its logs are heard; only then is it told as listed. */
  readonly state: 'awaited' | 'listed' | 'delisted'
  readonly record: TokenRecord
}

/** Every token as last published. */
export type Board = ReadonlyMap<Hex, Token>

/** What came of comparing two boards: what is to be told, and the tokens as they are now. */
export type Change = { readonly drafts: readonly Draft[]; readonly tokens: readonly Token[] }

/** What a NAV is measured by. */
export type NavRule = { readonly now: number; readonly staleMs: number }

/** Fields of a record whose changes have message types of their own. */
const TOLD_ELSEWHERE: ReadonlySet<string> = new Set([
  'nav_price',
  'nav_price_updated_at',
  'multiplier',
  'paused_features',
])
/** A token remembers so many former names. */
const FORMER_BOUND = 8

const featureNames = ['TRANSFER', 'MINT', 'BURN', 'SEIZE'] as const
export const featureName = (ordinal: number): string => featureNames[ordinal] ?? `UNKNOWN_${ordinal}`

/** Compares the board with a whole list: identity is the address, and what is missing is delisted. */
export function compare(board: Board, list: readonly Listed[], rule: NavRule): Change {
  const told = compareListed(board, list, rule)
  const present = new Set(list.map((listed) => listed.address))
  const gone = [...board.values()].filter((token) => token.state !== 'delisted' && !present.has(token.address))
  return joined([told, ...gone.map((token) => delisted(token, rule))])
}

/** Compares only what a list holds: it may have left something out. */
export function compareListed(board: Board, list: readonly Listed[], rule: NavRule): Change {
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

const timeOf = (rule: NavRule): string => new Date(rule.now).toISOString()

function tokenDraft(
  token: Token,
  rule: NavRule,
  told: Pick<DraftOf<'token'>, 'change' | 'changed' | 'was'>,
): DraftOf<'token'> {
  const { symbol, address, record } = token
  const { change, changed, was } = told
  return { type: 'token', symbol, address, time: timeOf(rule), change, changed, token: record, was, source: 'list' }
}

function delisted(token: Token, rule: NavRule): Change {
  const after: Token = { ...token, state: 'delisted', told: null }
  const drafts =
    token.state === 'listed' ? [tokenDraft(token, rule, { change: 'delisted', changed: [], was: null })] : []
  return { drafts, tokens: [after] }
}

function changed(before: Token | undefined, listed: Listed, rule: NavRule): Change {
  const after = merged(before, listed, rule)
  if (!before || after.state === 'awaited')
    return { drafts: [], tokens: before && isDeepStrictEqual(before, after) ? [] : [after] }
  const told = valued(after, rule)
  const drafts = [
    ...recordDrafts(before, after, rule),
    ...multiplierDrafts(before, after, rule),
    ...pauseDrafts(before, after, rule),
    ...told.drafts,
  ]
  const now = told.tokens[0] ?? after
  return { drafts, tokens: isDeepStrictEqual(before, now) ? [] : [now] }
}

function merged(before: Token | undefined, listed: Listed, rule: NavRule): Token {
  const { address, symbol, isin, decimals, supply, record } = listed
  const renamed = before && before.symbol !== symbol
  const listSays = { multiplier: listed.multiplier, paused: listed.paused }
  const newFactor = !before || before.listed.multiplier !== listed.multiplier
  const newPauses = !before || !isDeepStrictEqual(before.listed.paused, listed.paused)
  return {
    address,
    symbol,
    former: renamed
      ? [before.symbol, ...before.former.filter((name) => name !== symbol && name !== before.symbol)].slice(
          0,
          FORMER_BOUND,
        )
      : (before?.former ?? []),
    isin,
    decimals,
    multiplier: newFactor ? listed.multiplier : before.multiplier,
    multiplierSource: newFactor ? (listed.multiplier === null ? null : 'list') : before.multiplierSource,
    listed: listSays,
    paused: newPauses ? listed.paused : before.paused,
    supply,
    reading: newer(before?.reading, listed.nav, rule),
    told: before?.told ?? null,
    state: before?.state === 'listed' ? 'listed' : 'awaited',
    record,
  }
}

/** An older round never replaces a newer one: the list may come from several machines. */
function newer(before: NavReading | undefined, after: NavReading, rule: NavRule): NavReading {
  const older = before?.updatedAt != null && after.updatedAt !== null && after.updatedAt < before.updatedAt
  return older && navAt(before, rule.now, rule.staleMs).state !== 'invalid' ? before : after
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

function multiplierDrafts(before: Token, after: Token, rule: NavRule): Draft[] {
  if (before.multiplier === after.multiplier) return []
  const { symbol, address } = after
  return [
    {
      type: 'multiplier',
      symbol,
      address,
      time: timeOf(rule),
      phase: 'effective',
      from: before.multiplier,
      to: after.multiplier,
      effective_at: null,
      source: 'list',
    },
  ]
}

function pauseDrafts(before: Token, after: Token, rule: NavRule): Draft[] {
  const { symbol, address } = after
  const draft = (paused: boolean, raw: readonly number[]): Draft[] =>
    raw.length === 0
      ? []
      : [
          {
            type: 'pause',
            symbol,
            address,
            time: timeOf(rule),
            paused,
            features: raw.map(featureName),
            raw: [...raw],
            now: [...after.paused],
            source: 'list',
          },
        ]
  return [
    ...draft(
      true,
      after.paused.filter((ordinal) => !before.paused.includes(ordinal)),
    ),
    ...draft(
      false,
      before.paused.filter((ordinal) => !after.paused.includes(ordinal)),
    ),
  ]
}

/** Tells the NAV if it, its time or its state is not what was told last. */
function valued(token: Token, rule: NavRule): Change {
  const nav = navAt(token.reading, rule.now, rule.staleMs)
  const same = token.told ? sameNav(token.told, nav) : nav.state === 'missing'
  if (same) return { drafts: [], tokens: token.state === 'listed' ? [token] : [] }
  const { symbol, address, told } = token
  return {
    drafts: [{ type: 'nav', symbol, address, time: timeOf(rule), nav, was: told, source: 'list' }],
    tokens: [{ ...token, told: nav }],
  }
}

/** The tokens that are listed, by their addresses. */
export const listedAddresses = (board: Board): Hex[] =>
  [...board.values()].flatMap((token) => (token.state === 'delisted' ? [] : [token.address]))
