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

describe('the backfill link', () => {
  it.each<[string, readonly string[] | null, Partial<SelectionOptions>]>([
    ['one token', ['AAPLc'], {}],
    ['all types', ['AAPLc'], { types: updateTypes }],
    ['some types', null, { types: ['transfer', 'nav'] }],
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
    // What the sealed view emits before the next seal comes live.
    expect((await queryFromLink(null, { stage: 'sealed' }, within)).query).toMatchObject({
      after: within,
      before: { seq: 91, n: 1 },
    })
  })

  it('is a path that a server accepts, with the maximum number of tokens', async () => {
    const many = Array.from({ length: SYMBOLS_BOUND }, (_, nth) => `S${nth}c`)
    const { url, query, selection } = await queryFromLink(many)
    expect(url).toMatch(/^\/v1\/events\?[\w.,=&*-]+$/)
    expect(url.length).toBeLessThan(HEADERS_BOUND_BYTES - HEADERS_OF_A_CLIENT_BYTES)
    expect(query.selection.tokens).toEqual(selection.tokens)
  })

  it.each(['é', 'ß&', '#+', '100%', "it's?"])('is short enough for symbols such as %j', async (odd) => {
    const many = Array.from({ length: SYMBOLS_BOUND }, (_, nth) => `${odd}${nth}`)
    const { url, query, selection } = await queryFromLink(many)
    expect(url.length).toBeLessThan(HEADERS_BOUND_BYTES - HEADERS_OF_A_CLIENT_BYTES)
    expect(query.selection.tokens).toEqual(selection.tokens)
  })

  it.each(['*', ' S0c', 'S\u00a0', '\ud800', '\u0000', 'A,B', addressOf(3), 'isin:S0c'])(
    'uses the address of a token with the symbol %j',
    async (odd) => {
      const many = [odd, ...Array.from({ length: 120 }, (_, nth) => `S${nth}c`)]
      const { url, query, selection } = await queryFromLink(many)
      expect(query.selection.tokens).toEqual(selection.tokens)
      expect(url).toContain(addressOf(0))
    },
  )

  it('uses the address of a token that its symbol would not find', async () => {
    const many = Array.from({ length: 120 }, (_, nth) => (nth < 20 ? 'SAMEc' : nth < 40 ? `A,${nth}` : `S${nth}c`))
    const { query, selection, url } = await queryFromLink(many)
    expect(query.selection.tokens).toEqual(selection.tokens)
    expect(url).toContain('S119c')
  })
})
