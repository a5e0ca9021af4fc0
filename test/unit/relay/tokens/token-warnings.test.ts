import { describe, expect, it } from 'vitest'
import type { Token } from '../../../../src/relay/tokens/token.ts'
import { TokenWarnings } from '../../../../src/relay/tokens/token-warnings.ts'
import { apple, tesla, tokenOf } from './stock-records.ts'

/** The warnings of each token of a list, in its order. */
function warningsOf(...tokens: readonly Token[]) {
  const warnings = new TokenWarnings()
  for (const token of tokens) warnings.replace(undefined, token)
  return tokens.map((token) => warnings.of(token))
}
const named = (texts: { readonly symbol?: string; readonly name?: string }) => tokenOf(tesla(texts))

describe('a token', () => {
  it.each<[string, string]>([
    ['a Cyrillic letter among Latin ones', 'TS\u041bAc'],
    ['a Greek letter among Latin ones', 'TSL\u0391c'],
    ['a Cherokee letter among Latin ones', 'TSL\u13aac'],
    ['Latin and Hebrew words', 'Tesla \u05d8\u05e1\u05dc\u05d4'],
    ['Greek and Cyrillic letters', '\u0391\u0411\u0412'],
  ])('with %s mixes scripts', (_, text) => {
    expect(warningsOf(named({ symbol: text }))).toEqual([['mixed_scripts']])
    expect(warningsOf(named({ name: text }))).toEqual([['mixed_scripts']])
  })

  it.each<[string, string]>([
    ['a zero-width space', '\u200b'],
    ['a zero-width joiner', '\u200d'],
    ['a word joiner', '\u2060'],
    ['a soft hyphen', '\u00ad'],
    ['a byte order mark', '\ufeff'],
    ['a variation selector', '\ufe0f'],
    ['a tag', '\u{e0041}'],
    ['a Hangul filler', '\u3164'],
    ['a blank of Braille', '\u2800'],
    ['a NUL', '\0'],
    ['an escape', '\u001b'],
    ['a C1 control', '\u009b'],
    ['a line separator', '\u2028'],
  ])('with %s has hidden characters', (_, character) => {
    expect(warningsOf(named({ symbol: `TSL${character}Ac` }))).toEqual([['hidden_characters']])
    expect(warningsOf(named({ name: `Tes${character}la` }))).toEqual([['hidden_characters']])
  })

  it.each([...'\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069'])(
    'with %j changes the direction',
    (character) => {
      expect(warningsOf(named({ symbol: `TSL${character}Ac` }))).toEqual([['direction_override']])
      expect(warningsOf(named({ name: `Tes${character}la` }))).toEqual([['direction_override']])
    },
  )

  it.each([
    ['TSLAc', 'Tesla, Inc. (Class A) 50%'],
    ['Ünïcödé', 'Nestlé S.A. – Zürich'],
    ['ГАЗП', 'Газпром'],
    ['ΟΠΑΠ', 'ΟΠΑΠ Α.Ε.'],
    ['ソニーG', '株式会社ソニー Group'],
    ['삼성전자', '삼성전자 Samsung'],
    ['台積電ADR', '台灣積體電路製造'],
    ['أرامكو', 'شركة الزيت 1'],
    ['€50', '🍏 №1'],
    ['❤️', 'Family 👨‍👩‍👧 of 🏴󠁧󠁢󠁥󠁮󠁧󠁿'],
  ])('with the names of one script, such as %s and %s, has no warning', (symbol, name) => {
    expect(warningsOf(named({ symbol, name }))).toEqual([[]])
  })

  it('may have several warnings, in one order', () => {
    const [warnings] = warningsOf(named({ symbol: '\u202eA\u200b\u0410PLc' }), tokenOf(apple({ symbol: 'AAPLc' })))
    expect(warnings).toEqual(['mixed_scripts', 'hidden_characters', 'direction_override', 'looks_like_another'])
  })
})

describe('a token that looks like another', () => {
  it.each<[string, string, string]>([
    ['the same symbol', 'AAPLc', 'AAPLc'],
    ['another case', 'AAPLc', 'aaplC'],
    ['a Cyrillic letter', 'AAPLc', '\u0410APLc'],
    ['Cyrillic letters alone', 'COM', '\u0421\u041e\u041c'],
    ['a Greek letter', 'AAPLc', 'A\u0391PLc'],
    ['a small Cyrillic letter', 'AAPLc', 'AAPL\u0441'],
    ['wide letters', 'AAPLc', '\uff21\uff21\uff30\uff2cc'],
    ['mathematical letters', 'AAPLc', '\u{1d400}\u{1d400}PLc'],
    ['a hidden character', 'AAPLc', 'AA\u200bPLc'],
    ['a direction mark', 'AAPLc', 'AAPLc\u200e'],
  ])('by %s is marked, and so is the other one', (_, symbol, other) => {
    const tokens = warningsOf(tokenOf(apple({ symbol })), named({ symbol: other }))
    expect(tokens.map((warnings) => warnings.includes('looks_like_another'))).toEqual([true, true])
  })

  it('by its name is marked where the names differ', () => {
    expect(warningsOf(tokenOf(apple()), named({ name: '\u0410pple' })).map((warnings) => warnings.at(-1))).toEqual([
      'looks_like_another',
      'looks_like_another',
    ])
    expect(warningsOf(tokenOf(apple({ name: 'Alphabet' })), named({ name: 'Alphabet' }))).toEqual([[], []])
    expect(warningsOf(tokenOf(apple({ name: 'Nestlé' })), named({ name: 'Nestle\u0301' }))).toEqual([[], []])
  })

  it('is marked only while the other one is listed under that symbol', () => {
    const [real, copy] = [tokenOf(apple()), named({ symbol: '\u0410APLc' })]
    const warnings = new TokenWarnings()
    warnings.replace(undefined, real)
    warnings.replace(undefined, copy)
    expect(warnings.of(real)).toEqual(['looks_like_another'])
    const renamed = named({ symbol: 'TSLAc' })
    warnings.replace(copy, renamed)
    expect([warnings.of(real), warnings.of(renamed)]).toEqual([[], []])
    warnings.replace(renamed, copy)
    const delisted: Token = { ...copy, state: 'delisted' }
    warnings.replace(copy, delisted)
    expect([warnings.of(real), warnings.of(delisted)]).toEqual([[], ['mixed_scripts', 'looks_like_another']])
    warnings.replace(real, { ...real, state: 'delisted' })
    expect(warnings.of(delisted)).toEqual(['mixed_scripts'])
  })
})
