import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseSymbol } from '../../../../src/relay/tokens/list/list-parser.ts'
import type { Token } from '../../../../src/relay/tokens/token.ts'
import { TokenDirectory } from '../../../../src/relay/tokens/token-directory.ts'
import { APPLE, apple, TESLA, tesla, tokenOf } from './stock-records.ts'

const gold = '0xb20000000000000000000000000000000000601d'
const symbolOf = (directory: TokenDirectory, selector: string) => {
  const result = directory.find(selector)
  return result.kind === 'found' ? result.token.symbol : result.kind
}

describe('the directory', () => {
  const directory = new TokenDirectory([
    { ...tokenOf(apple()), formerSymbols: ['FRUIT'] },
    tokenOf(tesla()),
    tokenOf(tesla({ contract_address: gold, symbol: 'BRK.B', isin: undefined })),
  ])

  it.each<[string, string, string]>([
    ['symbol', 'AAPLc', 'AAPLc'],
    ['symbol in any case', 'aaplC', 'AAPLc'],
    ['symbol without the trailing c', 'AAPL', 'AAPLc'],
    ['symbol with an extra c', 'brk.bc', 'BRK.B'],
    ['symbol with spaces around it', `${' '.repeat(5_000)}TSLA${' '.repeat(5_000)}`, 'TSLAc'],
    ['address in any case', '0xB200000000000000000000C2e324d24d7eEcd1fb', 'AAPLc'],
    ['ISIN', 'isin:US0378331005', 'AAPLc'],
    ['ISIN in any case', 'ISIN:us88160r1014', 'TSLAc'],
    ['ISIN with a space before it', 'isin: US0378331005', 'AAPLc'],
    ['former symbol', 'fruit', 'AAPLc'],
  ])('finds a token by its %s', (_, selector, symbol) => {
    expect(symbolOf(directory, selector)).toBe(symbol)
  })

  it.each(['', ' ', 'c', '0x', '0x12', 'isin:', 'isin:undefined', 'isin:null', 'US0378331005', '*', '__proto__', 'constructor'])(
    'finds nothing by %j',
    (selector) => {
      expect(directory.find(selector).kind).toBe('unknown')
    },
  )

  it('suggests similar names, the closest first, three at most', () => {
    expect(directory.find('APPL')).toEqual({ kind: 'unknown', suggest: ['AAPLc'] })
    expect(directory.find('TSAL')).toEqual({ kind: 'unknown', suggest: ['TSLAc'] })
    expect(directory.find('zzzzzz')).toEqual({ kind: 'unknown', suggest: [] })
    const crowd = ['AAAc', 'AABc', 'AACc', 'AADc', 'XXXc'].map((symbol, nth) =>
      tokenOf(apple({ symbol, contract_address: `0x${String(nth + 1).repeat(40)}`, isin: undefined })),
    )
    expect(new TokenDirectory(crowd).find('AAE')).toEqual({ kind: 'unknown', suggest: ['AAAc', 'AABc', 'AACc'] })
  })
})

/** A token with a symbol and its own address. */
const tokenWithSymbol = (symbol: string, overrides: Partial<Token> = {}): Token => {
  nth += 1
  const contract_address = `0x${String(nth).padStart(40, 'b')}`
  return { ...tokenOf(apple({ contract_address, symbol, isin: undefined })), ...overrides }
}
let nth = 0
const delistedState = { state: 'delisted' } as const

describe('two tokens', () => {
  it('with the same ISIN are ambiguous, unless one is delisted', () => {
    const listed = tokenOf(apple({ symbol: 'AAPL' }))
    const other = tokenOf(tesla({ isin: 'us0378331005' }))
    const isin = 'isin:US0378331005'
    expect(new TokenDirectory([listed, other]).find(isin)).toEqual({ kind: 'ambiguous', suggest: [APPLE, TESLA] })
    expect(new TokenDirectory([{ ...listed, ...delistedState }, other]).find(isin)).toEqual({ kind: 'found', token: other })
  })

  it('or more with the same symbol are suggested by address, up to a bound', () => {
    const crowd = (size: number) => Array.from({ length: size }, () => tokenWithSymbol('ABCc'))
    const twenty = crowd(20)
    expect(new TokenDirectory(twenty).find('abc')).toEqual({ kind: 'ambiguous', suggest: twenty.map(({ address }) => address) })
    expect(new TokenDirectory(crowd(1_000)).find('abc')).toMatchObject({ suggest: { length: 100 } })
  })
})

/** `METAc was FBc`, `ABC is delisted`: a token with its state and its former symbols. */
const tokenFrom = (text: string): Token => {
  const [symbol = '', formerSymbols = ''] = text.replace(' is delisted', '').split(' was ')
  const former = formerSymbols === '' ? [] : formerSymbols.split(',')
  return tokenWithSymbol(symbol, { formerSymbols: former, ...(text.includes(' is delisted') && delistedState) })
}
const BOTH = 'ambiguous'

it.each<[string, readonly string[], Readonly<Record<string, number | typeof BOTH>>]>([
  ['are equal', ['ABCc', 'ABCc'], { 'ABCc abcc abc ABCcc': BOTH }],
  ['differ in case, by the exact case', ['Abc', 'ABC'], { Abc: 0, ABC: 1, abc: BOTH }],
  ['differ in case, by the exact case without the c', ['ABCc', 'abcc'], { ABC: 0, abc: 1, Abc: BOTH }],
  ['are with and without a c', ['ABC', 'ABCc'], { 'ABC abc': 0, 'ABCc abcc ABCC ABCcc': 1 }],
  ['are with and without a c, in the other order', ['ABCc', 'ABC'], { 'ABC abc': 1, 'ABCc abcc ABCC ABCcc': 0 }],
  ['match with an extra c and without the c', ['ABCcc', 'ABC'], { abcc: BOTH }],
  ['match with an extra c', ['ABC'], { abcc: 0 }],
  ['match without the c', ['ABCcc'], { abcc: 0 }],
  ['are former ones', ['METAc was FBc,THEFACEBOOK'], { 'FBc fbc FB fb TheFacebook thefacebookc METAc meta': 0 }],
  ['are of another token now', ['METAc was FBc', 'FBc'], { 'FBc fbc FB fb': 1 }],
  ['are former ones and exact, unlike the current one', ['METAc was FBc', 'FB'], { FBc: 0, FB: 1 }],
  ['match like a former one only with a c', ['METAc was FBC', 'FBc'], { FB: 1 }],
  ['are former ones of two tokens', ['A was OLD', 'B was OLD'], { old: BOTH }],
  ['are former ones in several cases', ['NEW was OLD,old,OLDc'], { 'Old oldC OLDCC': 0 }],
  ['are former and current ones', ['Abc was ABC,abc,Abc,ABCc'], { 'abc ABC aBc abcc ab': 0 }],
  ['are of a delisted token alone', ['ABCc is delisted was OLD', 'XYZ'], { 'ABCc abc old': 0 }],
  ['are of a delisted and a listed token', ['ABCc is delisted', 'ABCc'], { ABCc: 1 }],
  ['are of a listed token in another case', ['ABCc is delisted', 'abcc'], { ABCc: 1 }],
  ['are of a listed token without the c', ['ABCc is delisted', 'ABC'], { ABCc: 1 }],
  ['are of a listed token with another c', ['ABCc is delisted', 'ABCcc'], { ABCc: 1 }],
  ['are former ones of a listed token', ['ABCc is delisted', 'XYZ was ABCc'], { ABCc: 1 }],
  ['are of two delisted tokens', ['ABC is delisted', 'ABC is delisted'], { abc: BOTH }],
])('a token is found, or ambiguous, by symbols that %s', (_, texts, found) => {
  const tokens = texts.map(tokenFrom)
  const directory = new TokenDirectory(tokens)
  const ambiguous = { kind: 'ambiguous', suggest: tokens.map(({ address }) => address) }
  for (const [selectors, result] of Object.entries(found)) {
    const expected = result === BOTH ? ambiguous : { kind: 'found', token: tokens[result] }
    for (const selector of selectors.split(' ')) expect([selector, directory.find(selector)]).toEqual([selector, expected])
  }
  for (const token of tokens) expect(directory.find(token.address)).toEqual({ kind: 'found', token })
})

describe('a symbol of any script', () => {
  it.each([
    ['ΑΣ', 'ασ'],
    ['ΑΣ', 'ας'],
    ['ΑΣc', 'ας'],
    ['straße', 'STRASSE'],
    ['ẞ', 'ss'],
    ['K', 'k'],
    ['e\u0301t', '\u00c9T'],
    ['\u0130stc', '\u0130ST'],
    ['😀', '😀C'],
    [' pad ', 'PAD'],
  ])('such as %j is found by %j', (symbol, selector) => {
    expect(symbolOf(new TokenDirectory([tokenWithSymbol(symbol)]), selector)).toBe(symbol)
  })

  it('is not confused with one that looks alike', () => {
    const directory = new TokenDirectory([tokenWithSymbol('AAPLc'), tokenWithSymbol('ААРLc')])
    expect(symbolOf(directory, 'AAPLc')).toBe('AAPLc')
    expect(symbolOf(directory, 'ААРLc')).toBe('ААРLc')
    const kelvin = new TokenDirectory([tokenWithSymbol('Kc'), tokenWithSymbol('\u212ac')])
    expect(symbolOf(kelvin, 'Kc')).toBe('Kc')
    expect(symbolOf(kelvin, '\u212ac')).toBe('\u212ac')
  })

  it('may start like an address, but never takes an address or an ISIN from its token', () => {
    const prefixed = tokenWithSymbol('0xDOG')
    const named = tokenWithSymbol('isin:US0378331005')
    const spoof = tokenWithSymbol(TESLA)
    const directory = new TokenDirectory([prefixed, named, spoof, tokenOf(apple()), tokenOf(tesla())])
    expect(directory.find('0xdog')).toEqual({ kind: 'found', token: prefixed })
    expect(symbolOf(directory, 'isin:US0378331005')).toBe('AAPLc')
    expect(symbolOf(directory, TESLA)).toBe('TSLAc')
    expect(new TokenDirectory([spoof]).find(TESLA)).toEqual({ kind: 'unknown', suggest: [] })
    expect(new TokenDirectory([named]).find('isin:US0378331005')).toEqual({ kind: 'unknown', suggest: [] })
    const delisted = { ...tokenOf(apple()), ...delistedState }
    expect(new TokenDirectory([named, delisted]).find('isin:US0378331005')).toEqual({ kind: 'found', token: delisted })
  })

  it('finds its token after a round trip through a URL path', () => {
    const token = tokenOf(apple())
    // Including lone surrogates, which JSON may contain.
    const codes = fc.array(fc.oneof(fc.nat(0x7f), fc.nat(0xffff)), { minLength: 1, maxLength: 140 })
    fc.assert(
      fc.property(codes, (charCodes) => {
        const symbol = parseSymbol(String.fromCharCode(...charCodes)) ?? 'none'
        const selector = decodeURIComponent(encodeURIComponent(symbol))
        expect(new TokenDirectory([{ ...token, symbol }]).find(selector).kind).toBe('found')
      }),
    )
  })
})

describe('a selector', () => {
  it.each(['x'.repeat(10_000), 'c'.repeat(10_000), '0x'.repeat(5_000), `isin:${'1'.repeat(10_000)}`, '😀'.repeat(5_000)])(
    'with thousands of characters is unknown, without suggestions',
    (selector) => {
      const directory = new TokenDirectory([tokenWithSymbol('x'.repeat(128)), tokenWithSymbol('c'.repeat(128)), tokenOf(apple())])
      expect(directory.find(selector)).toEqual({ kind: 'unknown', suggest: [] })
    },
  )

  it('finds nothing if it is empty, not even the symbol c', () => {
    for (const selector of ['', ' ']) {
      expect(new TokenDirectory([tokenWithSymbol('c'), tokenWithSymbol('A')]).find(selector)).toEqual({
        kind: 'unknown',
        suggest: [],
      })
    }
  })

  it('finds the longest symbol, with and without its c', () => {
    const longest = 'x'.repeat(127)
    const directory = new TokenDirectory([tokenWithSymbol(`${longest}c`)])
    for (const selector of [`${longest}c`, longest, `${longest}cc`]) expect(directory.find(selector).kind).toBe('found')
  })

  it('gets no suggestions if it is long or there are very many names', () => {
    const name = 'x'.repeat(120)
    expect(new TokenDirectory([tokenWithSymbol(name)]).find(`${name}y`)).toEqual({ kind: 'unknown', suggest: [] })
    const token = tokenOf(apple())
    const crowd = Array.from({ length: 1_001 }, (_, index) => ({
      ...token,
      address: `0x${String(index).padStart(40, '0')}` as const,
      symbol: `N${index}`,
    }))
    expect(new TokenDirectory(crowd).find('N100x')).toEqual({ kind: 'unknown', suggest: [] })
    expect(new TokenDirectory(crowd.slice(1)).find('N100x').kind).toBe('unknown')
    expect(new TokenDirectory(crowd.slice(1)).find('N100x')).not.toEqual({ kind: 'unknown', suggest: [] })
  })

  it('gets the spelling of the listed token as a suggestion, not that of the delisted one', () => {
    const directory = new TokenDirectory([tokenWithSymbol('ABCDE', delistedState), tokenWithSymbol('Abcde')])
    expect(directory.find('ABXDE')).toEqual({ kind: 'unknown', suggest: ['Abcde'] })
  })
})

describe('another state of a token', () => {
  it('is found by its new names, and by no name that only the former state had', () => {
    const directory = new TokenDirectory([tokenOf(apple())])
    const { isin: _isin, ...rest } = tokenOf(apple())
    const renamed: Token = { ...rest, isin: 'US0000000001', symbol: 'NEWc', formerSymbols: ['OLDc'] }
    directory.set(renamed)
    const found = (selector: string) => directory.find(selector).kind
    expect(['NEW', 'OLD', 'isin:US0000000001', 'AAPL', 'isin:US0378331005'].map(found)).toEqual([
      ...['found', 'found', 'found'],
      ...['unknown', 'unknown'],
    ])
    expect(directory.find('NEW')).toEqual({ kind: 'found', token: renamed })
  })
})
