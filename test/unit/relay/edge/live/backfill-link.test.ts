import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { parseDecimal } from '../../../../../src/protocol/decimal.ts'
import { defaultSelectionOptions, type SelectionOptions, SYMBOLS_BOUND } from '../../../../../src/protocol/parameters/selection.ts'
import { updateTypes } from '../../../../../src/protocol/updates.ts'
import { readHistoryQuery } from '../../../../../src/relay/edge/history/history-query.ts'
import { backfillUrlOf } from '../../../../../src/relay/edge/live/backfill-link.ts'
import { CurrentState } from '../../../../../src/relay/edge/select/current-state.ts'
import { notesOfTokens } from '../../tape/update-drafts.ts'
import { openTestEdge } from '../edge-fixture.ts'

/** The server's bound for the request line and headers, and the share of a client's headers. */
const HEADERS_BOUND_BYTES = 8_192
const HEADERS_OF_A_CLIENT_BYTES = 2_048

const addressOf = (nth: number): Hex => `0x${nth.toString(16).padStart(40, '0')}`

/** The query behind the link for a listener of these tokens that missed everything after position 7 up to 90. */
async function queryFromLink(
  symbols: readonly string[] | null,
  options: Partial<SelectionOptions> = {},
  after: { seq: number; n: number | null } = { seq: 7, n: null },
) {
  const { tape } = openTestEdge()
  const tokens = (symbols ?? ['AAPLc']).map((symbol, nth) => ({ address: addressOf(nth), symbol, isin: null, formerSymbols: [] }))
  await tape.append([], notesOfTokens(tokens))
  const current = new CurrentState(tape.notes)
  const selection = {
    tokens: symbols && new Set(tokens.map(({ address }) => address)),
    options: { ...defaultSelectionOptions, ...options },
  }
  const url = backfillUrlOf(selection, { epoch: tape.epoch, after, upTo: 90 }, current.directory)
  // The tape has grown by the time a client follows the link.
  const later = { ...tape, epoch: tape.epoch, end: () => 1_000 }
  const query = readHistoryQuery(new URL(url, 'http://localhost').searchParams, {
    tape: later,
    current,
    now: () => 0,
    wallTime: () => 0,
  })
  return { url, query, selection }
}

/** As many symbols as a selection may name. */
const many = (symbolOf: (nth: number) => string) => Array.from({ length: SYMBOLS_BOUND }, (_, nth) => symbolOf(nth))
/** An odd symbol, and so many others that a link with their addresses would be too long. */
const beside = (odd: string) => [odd, ...Array.from({ length: 120 }, (_, nth) => `S${nth}c`)]

describe('the backfill link', () => {
  it.each<[string, readonly string[] | null, Partial<SelectionOptions>]>([
    ['all types', ['AAPLc'], { types: updateTypes }],
    ['some types of all tokens', null, { types: ['transfer', 'nav'] }],
    ['the sealed view', ['AAPLc', 'TSLAc'], { stage: 'sealed' }],
    [
      'filters',
      ['AAPLc'],
      { min_value: parseDecimal('10000.50'), min_shares: parseDecimal('0.000001'), account: [addressOf(8), addressOf(9)] },
    ],
  ])('names the same selection: %s', async (_, symbols, options) => {
    const { query, selection } = await queryFromLink(symbols, options)
    const written = ({ min_value, min_shares, ...rest }: SelectionOptions) => ({ ...rest, value: min_value, shares: min_shares })
    expect(query.selection.tokens).toEqual(selection.tokens)
    expect({ ...written(query.selection.options), value: null }).toEqual({ ...written(selection.options), value: null })
  })

  it('covers the skipped range and no more', async () => {
    expect((await queryFromLink(null)).query).toMatchObject({ after: { seq: 7, n: null }, before: { seq: 91, n: null } })
    const within = { seq: 7, n: 3 }
    // The next seal is live, and so is everything that the sealed view emits before it.
    expect((await queryFromLink(null, { stage: 'sealed' }, within)).query).toMatchObject({
      after: within,
      before: { seq: 91, n: 1 },
    })
  })

  it.each<readonly [what: string, symbols: readonly string[], pattern: RegExp]>([
    ['the maximum number of tokens', many((nth) => `S${nth}c`), /^\/v1\/events\?[\w.,=&*-]+$/],
    ...['é', 'ß&', '#+', '100%', "it's?"].map((odd) => [`symbols such as ${odd}0`, many((nth) => odd + nth), /^\S+$/] as const),
    // The address of a token stands for a symbol that would not find it.
    ...['*', ' S0c', 'S\u00a0', '\ud800', '\u0000', 'A,B', addressOf(3), 'isin:S0c'].map(
      (odd) => [`the symbol ${JSON.stringify(odd)} among others`, beside(odd), new RegExp(addressOf(0))] as const,
    ),
    ['a symbol of several tokens', beside('A,1').map((symbol, nth) => (nth > 0 && nth < 20 ? 'SAMEc' : symbol)), /S119c/],
  ])('is a path that a server accepts, with %s', async (_, symbols, pattern) => {
    const { url, query, selection } = await queryFromLink(symbols)
    expect(url).toMatch(pattern)
    expect(url.length).toBeLessThan(HEADERS_BOUND_BYTES - HEADERS_OF_A_CLIENT_BYTES)
    expect(query.selection.tokens).toEqual(selection.tokens)
  })
})
