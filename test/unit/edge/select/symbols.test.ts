import { afterEach, describe, expect, it } from 'vitest'
import { resolveSymbols, unknownSymbol } from '../../../../src/edge/select/symbols.ts'
import { View } from '../../../../src/edge/select/view.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { openSqliteTape } from '../../../../src/tape/sqlite.ts'
import type { SearchableTape } from '../../../../src/tape/tape.ts'
import { diffFullList } from '../../../../src/tokens/list-diff.ts'
import { parseList } from '../../../../src/tokens/list-parser.ts'
import type { Token } from '../../../../src/tokens/token.ts'
import { notesOfTokens } from '../../tape/update-drafts.ts'

type ListedToken = { readonly symbol: string; readonly address: Hex; readonly isin?: string }

const address = (digit: string): Hex => `0xb2${'0'.repeat(37)}${digit}`
const aapl = { symbol: 'AAPLc', address: address('1'), isin: 'US0378331005' }
const tsla = { symbol: 'TSLAc', address: address('2'), isin: 'US88160R1014' }
const meta = { symbol: 'METAc', address: address('a'), isin: 'US30303M1027' }
const allTokens: readonly ListedToken[] = [aapl, tsla, meta]

let tape: SearchableTape | undefined
afterEach(() => tape?.close())

/** The edge's view of what was listed, list after list: a token that changes its symbol keeps its address. */
async function viewOf(...lists: (readonly ListedToken[])[]): Promise<View> {
  let board = new Map<Hex, Token>()
  for (const list of lists) {
    const records = list.map(({ symbol, address, isin }) => ({ symbol, contract_address: address, isin, decimals: 8 }))
    const { tokens } = diffFullList(board, parseList(JSON.stringify({ tokens: records })).tokens, {
      now: 0,
      staleMs: 1_000,
      at: { block: 0, logIndex: 0 },
    })
    board = new Map([...board, ...tokens.map((token) => [token.address, token] as const)])
  }
  tape = openSqliteTape({ dir: ':memory:', retentionMs: 60_000, bound: 1_000, now: () => 0, random: () => 0.5 })
  await tape.append([], notesOfTokens(board.values()))
  return new View(tape)
}
const chooseSymbols = async (selectors: readonly string[], ...lists: (readonly ListedToken[])[]) =>
  resolveSymbols(await viewOf(...(lists.length > 0 ? lists : [allTokens])), selectors)

describe('a token', () => {
  it.each([
    'AAPLc',
    'aaplc',
    'AAPLC',
    'aApLc',
    'AAPL',
    'aapl',
    ' AAPLc ',
    aapl.address,
    aapl.address.toUpperCase().replace('0X', '0x'),
    aapl.address.toUpperCase(),
    'isin:US0378331005',
    'ISIN:us0378331005',
  ])('is chosen by %j', async (selector) => {
    expect(await chooseSymbols([selector])).toEqual({ tokens: new Set([aapl.address]), rejected: [] })
  })

  it('whose symbol has no c is chosen with one, where that is nobody else', async () => {
    const gold = { symbol: 'GOLD', address: address('3') }
    expect(await chooseSymbols(['GOLDc'], [gold])).toMatchObject({ tokens: new Set([gold.address]) })
  })

  it('is the one that bears the very name, where two differ by a c', async () => {
    const plain = { symbol: 'AAPL', address: address('4') }
    const both = [aapl, plain]
    expect(await chooseSymbols(['AAPL'], both)).toMatchObject({ tokens: new Set([plain.address]) })
    expect(await chooseSymbols(['AAPLc'], both)).toMatchObject({ tokens: new Set([aapl.address]) })
  })

  it('named twice is chosen once', async () => {
    expect((await chooseSymbols(['AAPL', 'aaplc', aapl.address])).tokens).toEqual(new Set([aapl.address]))
  })

  it('is found by its former symbol', async () => {
    const renamed = [{ ...meta, symbol: 'FBc' }]
    expect(await chooseSymbols(['METAc'], [meta], renamed)).toEqual({ tokens: new Set([meta.address]), rejected: [] })
    expect(await chooseSymbols(['FBc'], [meta], renamed)).toEqual({ tokens: new Set([meta.address]), rejected: [] })
  })

  it('that bears a name now comes before one that bore it once', async () => {
    const heir = { symbol: 'METAc', address: address('5') }
    const after = [{ ...meta, symbol: 'FBc' }, heir]
    expect(await chooseSymbols(['METAc'], [meta], after)).toEqual({ tokens: new Set([heir.address]), rejected: [] })
  })
})

describe('all tokens', () => {
  it('are chosen by *, alone or beside others', async () => {
    expect(await chooseSymbols(['*'])).toEqual({ tokens: null, rejected: [] })
    expect(await chooseSymbols(['AAPLc', '*'])).toEqual({ tokens: null, rejected: [] })
  })

  it('do not hide a name that is wrong', async () => {
    expect(await chooseSymbols(['*', 'NOPE'])).toMatchObject({ tokens: null, rejected: [{ symbol: 'NOPE' }] })
  })
})

describe('a name that several bear', () => {
  const twin = { symbol: 'aaplC', address: address('6') }
  const twins = [aapl, twin]

  it('is rejected with their addresses', async () => {
    expect(await chooseSymbols(['aapl'], twins)).toEqual({
      tokens: new Set(),
      rejected: [{ symbol: 'aapl', reason: 'ambiguous_symbol', suggest: [aapl.address, twin.address] }],
    })
  })

  it('is none where it is written as only one of them is', async () => {
    expect(await chooseSymbols(['AAPLc'], twins)).toEqual({ tokens: new Set([aapl.address]), rejected: [] })
  })

  it('is refused with a way out', async () => {
    const { rejected } = await chooseSymbols(['aapl'], twins)
    const { code, reason, message } = unknownSymbol(rejected)
    expect([code, reason]).toEqual([404, 'ambiguous_symbol'])
    expect(message).toContain(`Did you mean ${aapl.address} or ${twin.address}?`)
  })
})

describe('a name that nobody bears', () => {
  it.each([
    ['APPL', ['AAPLc']],
    ['AAPPL', ['AAPLc']],
    ['APLc', ['AAPLc']],
    ['TLSA', ['TSLAc']],
    ['Meat', ['METAc']],
    ['ZZZZZZZZ', []],
    ['', []],
    ['0xb2', []],
    [address('f'), []],
    ['isin:US0000000000', []],
    ['isin:', []],
    ['株', []],
  ])('is rejected, with what is close to it: %j', async (symbol, suggest) => {
    expect(await chooseSymbols([symbol])).toEqual({
      tokens: new Set(),
      rejected: [{ symbol, reason: 'unknown_symbol', suggest }],
    })
  })

  it('leaves the others chosen', async () => {
    expect(await chooseSymbols(['APPL', 'TSLA'])).toMatchObject({
      tokens: new Set([tsla.address]),
      rejected: [{ symbol: 'APPL' }],
    })
  })

  it('is refused in the words of the contract', async () => {
    expect(unknownSymbol((await chooseSymbols(['APPL'])).rejected).record).toEqual({
      code: 404,
      message: "No tokenized stock 'APPL'. Did you mean AAPLc?",
      details: [{ '@type': 'stocktape/unknown_symbol', suggest: ['AAPLc'] }],
    })
    expect(unknownSymbol((await chooseSymbols(['ZZZZZZZZ'])).rejected).message).toBe("No tokenized stock 'ZZZZZZZZ'.")
  })

  it('suggests three names at most, the closest first', async () => {
    const family = ['ABCDc', 'ABCEc', 'ABCFc', 'ABXXc'].map((symbol, index) => ({
      symbol,
      address: address(`${index}`),
    }))
    const { rejected } = await chooseSymbols(['ABCG'], family)
    expect(rejected[0]?.suggest).toEqual(['ABCDc', 'ABCEc', 'ABCFc'])
  })
})

describe('a token that was delisted', () => {
  const again = { ...aapl, address: address('5') }

  it('gives up its symbol and its ISIN to one that is listed', async () => {
    for (const selector of ['AAPLc', `isin:${aapl.isin}`]) {
      expect(await chooseSymbols([selector], [aapl], [again])).toEqual({
        tokens: new Set([again.address]),
        rejected: [],
      })
    }
  })

  it('is still found by its address, and by its symbol where nobody else bears it', async () => {
    expect(await chooseSymbols([aapl.address], [aapl], [again])).toMatchObject({ tokens: new Set([aapl.address]) })
    expect(await chooseSymbols(['AAPLc'], [aapl], [tsla])).toMatchObject({ tokens: new Set([aapl.address]) })
  })
})
