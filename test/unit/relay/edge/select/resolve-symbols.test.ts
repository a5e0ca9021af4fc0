import { afterEach, describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { CurrentState } from '../../../../../src/relay/edge/select/current-state.ts'
import { resolveSymbols, unknownSymbol } from '../../../../../src/relay/edge/select/resolve-symbols.ts'
import { openEmbeddedTape } from '../../../../../src/relay/tape/embedded-tape.ts'
import type { SearchableTape } from '../../../../../src/relay/tape/tape.ts'
import { diffFullList } from '../../../../../src/relay/tokens/list/list-diff.ts'
import { parseList } from '../../../../../src/relay/tokens/list/list-parser.ts'
import type { Token } from '../../../../../src/relay/tokens/token.ts'
import { notesOfTokens } from '../../tape/update-drafts.ts'

type ListedToken = { readonly symbol: string; readonly address: Hex; readonly isin?: string }

const address = (digit: string): Hex => `0xb2${'0'.repeat(37)}${digit}`
const aapl = { symbol: 'AAPLc', address: address('1'), isin: 'US0378331005' }
const tsla = { symbol: 'TSLAc', address: address('2'), isin: 'US88160R1014' }
const meta = { symbol: 'METAc', address: address('a'), isin: 'US30303M1027' }
const allTokens: readonly ListedToken[] = [aapl, tsla, meta]

let tape: SearchableTape | undefined
afterEach(() => tape?.close())

/** The current state after these lists in turn. A token that changes its symbol keeps its address. */
async function viewOf(...lists: (readonly ListedToken[])[]): Promise<CurrentState> {
  let known = new Map<Hex, Token>()
  for (const list of lists) {
    const records = list.map(({ symbol, address, isin }) => ({ symbol, contract_address: address, isin, decimals: 8 }))
    const { tokens } = diffFullList(known, [...parseList(Buffer.from(JSON.stringify({ tokens: records }))).tokens.values()], {
      now: 0,
      navStaleAfterMs: 1_000,
      at: { block: 0, logIndex: 0 },
    })
    known = new Map([...known, ...tokens.map((token) => [token.address, token] as const)])
  }
  tape = openEmbeddedTape({ dataDir: ':memory:', tapeRetentionMs: 60_000, tapeMaxMessages: 1_000, now: () => 0, random: () => 0.5 })
  await tape.append([], notesOfTokens(known.values()))
  return new CurrentState(tape)
}
const resolveIn = async (selectors: readonly string[], ...lists: (readonly ListedToken[])[]) =>
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
  ])('is found by %j', async (selector) => {
    expect(await resolveIn([selector])).toEqual({ tokens: new Set([aapl.address]), rejected: [] })
  })

  it('without a c in its symbol is found with one, if no other token has that symbol', async () => {
    const gold = { symbol: 'GOLD', address: address('3') }
    expect(await resolveIn(['GOLDc'], [gold])).toMatchObject({ tokens: new Set([gold.address]) })
  })

  it('is found by its exact symbol when two symbols differ by a c', async () => {
    const plain = { symbol: 'AAPL', address: address('4') }
    const both = [aapl, plain]
    expect(await resolveIn(['AAPL'], both)).toMatchObject({ tokens: new Set([plain.address]) })
    expect(await resolveIn(['AAPLc'], both)).toMatchObject({ tokens: new Set([aapl.address]) })
  })

  it('named twice is found once', async () => {
    expect((await resolveIn(['AAPL', 'aaplc', aapl.address])).tokens).toEqual(new Set([aapl.address]))
  })

  it('is found by its former symbol', async () => {
    const renamed = [{ ...meta, symbol: 'FBc' }]
    expect(await resolveIn(['METAc'], [meta], renamed)).toEqual({ tokens: new Set([meta.address]), rejected: [] })
    expect(await resolveIn(['FBc'], [meta], renamed)).toEqual({ tokens: new Set([meta.address]), rejected: [] })
  })

  it('with a current symbol wins over one with that former symbol', async () => {
    const heir = { symbol: 'METAc', address: address('5') }
    const after = [{ ...meta, symbol: 'FBc' }, heir]
    expect(await resolveIn(['METAc'], [meta], after)).toEqual({ tokens: new Set([heir.address]), rejected: [] })
  })
})

describe('all tokens', () => {
  it('are selected by *, alone or beside others', async () => {
    expect(await resolveIn(['*'])).toEqual({ tokens: null, rejected: [] })
    expect(await resolveIn(['AAPLc', '*'])).toEqual({ tokens: null, rejected: [] })
  })

  it('do not hide an unknown symbol', async () => {
    expect(await resolveIn(['*', 'NOPE'])).toMatchObject({ tokens: null, rejected: [{ symbol: 'NOPE' }] })
  })
})

describe('a symbol that several tokens match', () => {
  const twin = { symbol: 'aaplC', address: address('6') }
  const twins = [aapl, twin]

  it('is rejected with their addresses', async () => {
    expect(await resolveIn(['aapl'], twins)).toEqual({
      tokens: new Set(),
      rejected: [{ symbol: 'aapl', reason: 'ambiguous_symbol', suggest: [aapl.address, twin.address] }],
    })
  })

  it('is not ambiguous in the exact spelling of one of them', async () => {
    expect(await resolveIn(['AAPLc'], twins)).toEqual({ tokens: new Set([aapl.address]), rejected: [] })
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
  ])('is rejected with close symbols: %j', async (symbol, suggest) => {
    expect(await resolveIn([symbol])).toEqual({ tokens: new Set(), rejected: [{ symbol, reason: 'unknown_symbol', suggest }] })
  })

  it('does not affect the others', async () => {
    expect(await resolveIn(['APPL', 'TSLA'])).toMatchObject({ tokens: new Set([tsla.address]), rejected: [{ symbol: 'APPL' }] })
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

describe('a delisted token', () => {
  const again = { ...aapl, address: address('5') }

  it('loses its symbol and its ISIN to a listed one', async () => {
    for (const selector of ['AAPLc', `isin:${aapl.isin}`]) {
      expect(await resolveIn([selector], [aapl], [again])).toEqual({ tokens: new Set([again.address]), rejected: [] })
    }
  })

  it('is still found by its address, and by its symbol if no other token has it', async () => {
    expect(await resolveIn([aapl.address], [aapl], [again])).toMatchObject({ tokens: new Set([aapl.address]) })
    expect(await resolveIn(['AAPLc'], [aapl], [tsla])).toMatchObject({ tokens: new Set([aapl.address]) })
  })
})
