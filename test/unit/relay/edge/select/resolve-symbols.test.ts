import { afterEach, describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { unknownSymbol } from '../../../../../src/relay/edge/limits/refusals.ts'
import { CurrentState } from '../../../../../src/relay/edge/select/current-state.ts'
import { resolveSymbols } from '../../../../../src/relay/edge/select/resolve-symbols.ts'
import { parseList } from '../../../../../src/relay/tokens/list/list-parser.ts'
import type { Token } from '../../../../../src/relay/tokens/token.ts'
import { openLocalTape, type TestTape } from '../../../../support/local-tape.ts'
import { notesOfTokens } from '../../tape/update-drafts.ts'
import { changesOfList } from '../../tokens/stock-records.ts'

type ListedToken = { readonly symbol: string; readonly address: Hex; readonly isin?: string }

const address = (digit: string): Hex => `0xb2${'0'.repeat(37)}${digit}`
const aapl = { symbol: 'AAPLc', address: address('1'), isin: 'US0378331005' }
const tsla = { symbol: 'TSLAc', address: address('2'), isin: 'US88160R1014' }
const meta = { symbol: 'METAc', address: address('a'), isin: 'US30303M1027' }
const twin = { symbol: 'aaplC', address: address('6') }
const allTokens: readonly ListedToken[] = [aapl, tsla, meta]

let tape: TestTape | undefined
afterEach(() => tape?.close())

/** The current state after these lists in turn. A token that changes its symbol keeps its address. */
async function viewOf(...lists: (readonly ListedToken[])[]): Promise<CurrentState> {
  let known = new Map<Hex, Token>()
  for (const list of lists) {
    const records = list.map(({ symbol, address, isin }) => ({ symbol, contract_address: address, isin, decimals: 8 }))
    const changes = changesOfList(known, [...parseList(Buffer.from(JSON.stringify({ tokens: records }))).tokens.values()], {
      now: 0,
      navStaleAfterMs: 1_000,
      at: { block: 0, logIndex: 0 },
    })
    known = new Map([...known, ...changes.map(({ after }) => [after.address, after] as const)])
  }
  tape = openLocalTape({ dataDir: ':memory:', tapeRetentionMs: 60_000, tapeMaxMessages: 1_000, now: () => 0, random: () => 0.5 })
  await tape.append([], notesOfTokens(known.values()))
  return new CurrentState(tape.notes)
}
const resolveIn = async (selectors: readonly string[], ...lists: (readonly ListedToken[])[]) =>
  resolveSymbols(await viewOf(...(lists.length > 0 ? lists : [allTokens])), selectors)

describe('a token', () => {
  it.each([
    ...['AAPLc', 'aApLc', 'AAPL', 'aapl', ' AAPLc ', 'isin:US0378331005', 'ISIN:us0378331005'],
    ...[aapl.address, aapl.address.toUpperCase().replace('0X', '0x'), aapl.address.toUpperCase()],
  ])('is found by %j', async (selector) => {
    expect(await resolveIn([selector])).toEqual({ tokens: new Set([aapl.address]), rejected: [] })
  })

  const gold = { symbol: 'GOLD', address: address('3') }
  const plain = { symbol: 'AAPL', address: address('4') }
  const renamed = { ...meta, symbol: 'FBc' }
  const heir = { symbol: 'METAc', address: address('5') }
  const again = { ...aapl, address: address('5') }

  it.each<[string, string, ListedToken, readonly (readonly ListedToken[])[]]>([
    ['with a c that its symbol lacks, if no other token has that symbol', 'GOLDc', gold, [[gold]]],
    ['by its exact symbol when two symbols differ by a c', 'AAPL', plain, [[aapl, plain]]],
    ['by its exact symbol with a c', 'AAPLc', aapl, [[aapl, plain]]],
    ['by its exact spelling when two symbols differ by that', 'AAPLc', aapl, [[aapl, twin]]],
    ['by its former symbol', 'METAc', meta, [[meta], [renamed]]],
    ['by its new symbol', 'FBc', meta, [[meta], [renamed]]],
    ['before another with that former symbol', 'METAc', heir, [[meta], [renamed, heir]]],
    ['before a delisted one with its symbol', 'AAPLc', again, [[aapl], [again]]],
    ['before a delisted one with its ISIN', `isin:${aapl.isin}`, again, [[aapl], [again]]],
    ['by its address, though it is delisted', aapl.address, aapl, [[aapl], [again]]],
    ['by its symbol, though it is delisted, if no other has it', 'AAPLc', aapl, [[aapl], [tsla]]],
  ])('is found %s: %s', async (_, selector, token, lists) => {
    expect(await resolveIn([selector], ...lists)).toEqual({ tokens: new Set([token.address]), rejected: [] })
  })

  it('named twice is found once', async () => {
    expect((await resolveIn(['AAPL', 'aaplc', aapl.address])).tokens).toEqual(new Set([aapl.address]))
  })
})

describe('all tokens', () => {
  it('are selected by *, alone or beside others', async () => {
    expect(await resolveIn(['*'])).toEqual({ tokens: null, rejected: [] })
    expect(await resolveIn(['NOPE', '*'])).toMatchObject({ tokens: null, rejected: [{ symbol: 'NOPE' }] })
  })
})

describe('a symbol that several tokens match', () => {
  const twins = [aapl, twin]

  it('is rejected with their addresses', async () => {
    expect(await resolveIn(['aapl'], twins)).toEqual({
      tokens: new Set(),
      rejected: [{ symbol: 'aapl', reason: 'ambiguous_symbol', suggest: [aapl.address, twin.address] }],
    })
  })

  it('is refused with their addresses', async () => {
    const { rejected } = await resolveIn(['aapl'], twins)
    const { code, reason, message } = unknownSymbol(rejected)
    expect([code, reason]).toEqual([404, 'ambiguous_symbol'])
    expect(message).toContain(`Did you mean ${aapl.address} or ${twin.address}?`)
  })
})

describe('a symbol that no token matches', () => {
  it.each([
    ['APPL', ['AAPLc']],
    ['AAPPL', ['AAPLc']],
    ['TLSA', ['TSLAc']],
    ['Meat', ['METAc']],
    ['ZZZZZZZZ', []],
    ['', []],
    ['0xb2', []],
    [address('f'), []],
    ['isin:US0000000000', []],
    ['株', []],
  ])('is rejected with close symbols: %j', async (symbol, suggest) => {
    expect(await resolveIn([symbol])).toEqual({ tokens: new Set(), rejected: [{ symbol, reason: 'unknown_symbol', suggest }] })
  })

  it('is refused in the format of the contract', async () => {
    expect(unknownSymbol((await resolveIn(['APPL'])).rejected).record).toEqual({
      code: 404,
      message: "No tokenized stock 'APPL'. Did you mean AAPLc?",
      reason: 'unknown_symbol',
      details: [{ '@type': 'stocktape/unknown_symbol', suggest: ['AAPLc'] }],
    })
    expect(unknownSymbol((await resolveIn(['ZZZZZZZZ'])).rejected).message).toBe("No tokenized stock 'ZZZZZZZZ'.")
  })

  it('suggests three symbols at most, the closest first', async () => {
    const similar = ['ABCDc', 'ABCEc', 'ABCFc', 'ABXXc'].map((symbol, index) => ({ symbol, address: address(`${index}`) }))
    const { rejected } = await resolveIn(['ABCG'], similar)
    expect(rejected[0]?.suggest).toEqual(['ABCDc', 'ABCEc', 'ABCFc'])
  })
})
