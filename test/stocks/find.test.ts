import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Directory } from '../../src/stocks/find.ts'
import { APPLE, apple, TESLA, tesla, tokenOf } from './records.ts'

const gold = '0xb20000000000000000000000000000000000601d'
const symbolOf = (directory: Directory, selector: string) => {
  const finding = directory.find(selector)
  return finding.kind === 'found' ? finding.token.symbol : finding.kind
}

describe('a token is found by', () => {
  const directory = new Directory([
    { ...tokenOf(apple()), former: ['FRUIT'] },
    tokenOf(tesla()),
    tokenOf(tesla({ contract_address: gold, symbol: 'BRK.B', isin: undefined })),
  ])

  it.each<[string, string, string]>([
    ['its symbol', 'AAPLc', 'AAPLc'],
    ['its symbol in any case', 'aaplC', 'AAPLc'],
    ['its symbol without the trailing c', 'AAPL', 'AAPLc'],
    ['its symbol with a c too many', 'brk.bc', 'BRK.B'],
    ['its symbol with spaces around it', '  TSLAc ', 'TSLAc'],
    ['its address in any case', '0xB200000000000000000000C2e324d24d7eEcd1fb', 'AAPLc'],
    ['its ISIN', 'isin:US0378331005', 'AAPLc'],
    ['its ISIN in any case', 'ISIN:us88160r1014', 'TSLAc'],
    ['a symbol it had before', 'fruit', 'AAPLc'],
  ])('%s', (_, selector, symbol) => {
    expect(symbolOf(directory, selector)).toBe(symbol)
  })

  it.each([
    '',
    ' ',
    'c',
    '0x',
    '0x12',
    'isin:',
    'isin:undefined',
    'isin:null',
    'US0378331005',
    '*',
    '__proto__',
    'constructor',
  ])('nothing like %j', (selector) => {
    expect(directory.find(selector).kind).toBe('unknown')
  })

  it('no selector that harms', () => {
    fc.assert(
      fc.property(fc.string(), (selector) => {
        expect(['found', 'unknown', 'ambiguous']).toContain(directory.find(selector).kind)
      }),
    )
  })

  it('close names are suggested, the closest first, three at most', () => {
    expect(directory.find('APPL')).toEqual({ kind: 'unknown', suggest: ['AAPLc'] })
    expect(directory.find('TSAL')).toEqual({ kind: 'unknown', suggest: ['TSLAc'] })
    expect(directory.find('zzzzzz')).toEqual({ kind: 'unknown', suggest: [] })
    const crowd = ['AAAc', 'AABc', 'AACc', 'AADc', 'XXXc'].map((symbol, nth) =>
      tokenOf(apple({ symbol, contract_address: `0x${String(nth + 1).repeat(40)}`, isin: undefined })),
    )
    expect(new Directory(crowd).find('AAE')).toEqual({ kind: 'unknown', suggest: ['AAAc', 'AABc', 'AACc'] })
  })
})

describe('two tokens', () => {
  it('with one name are ambiguous, and their addresses are suggested', () => {
    const directory = new Directory([tokenOf(apple()), tokenOf(tesla({ symbol: 'AAPLc' }))])
    expect(directory.find('AAPLc')).toEqual({ kind: 'ambiguous', suggest: [APPLE, TESLA] })
    expect(directory.find('aapl')).toEqual({ kind: 'ambiguous', suggest: [APPLE, TESLA] })
    expect(symbolOf(directory, TESLA)).toBe('AAPLc')
  })

  it('whose names differ by case are told apart by it', () => {
    const directory = new Directory([tokenOf(apple({ symbol: 'Abc' })), tokenOf(tesla({ symbol: 'ABC' }))])
    expect(symbolOf(directory, 'Abc')).toBe('Abc')
    expect(symbolOf(directory, 'ABC')).toBe('ABC')
    expect(directory.find('abc').kind).toBe('ambiguous')
  })

  it('with and without a c are told apart by it', () => {
    const directory = new Directory([tokenOf(apple({ symbol: 'AAPLc' })), tokenOf(tesla({ symbol: 'AAPL' }))])
    expect(symbolOf(directory, 'AAPL')).toBe('AAPL')
    expect(symbolOf(directory, 'aapl')).toBe('AAPL')
    expect(symbolOf(directory, 'aaplc')).toBe('AAPLc')
  })

  it('of which one bears the former name of the other: the present one is meant', () => {
    const directory = new Directory([{ ...tokenOf(apple()), former: ['TSLAc'] }, tokenOf(tesla())])
    expect(directory.find('TSLAc')).toMatchObject({ kind: 'found', token: { address: TESLA } })
  })
})
