import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { examples } from '../../../src/protocol/contract-examples.ts'
import { type Message, Notice } from '../../../src/protocol/notices.ts'
import { formatTextLine } from '../../../src/protocol/readable-line.ts'
import { Update } from '../../../src/protocol/updates.ts'

/** All example messages of the contract: at least one of each type. */
const messages = examples.flatMap((example): Message[] => {
  const update = Update.safeParse(example)
  if (update.success) return [update.data]
  const notice = Notice.safeParse(example)
  return notice.success ? [notice.data] : []
})
const exampleOf = <Type extends Message['type']>(type: Type): Extract<Message, { type: Type }> => {
  const found = messages.find((message): message is Extract<Message, { type: Type }> => message.type === type)
  if (!found) throw new Error(`no example of ${type}`)
  return found
}

/** Control and escape characters, line and paragraph separators, and all characters that change the writing direction. */
const controlCharacters = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

describe('a text line', () => {
  it.each(messages.map((message) => [message.type, message] as const))('is a single line for a %s', (_, message) => {
    const line = formatTextLine(message)
    expect(line).not.toBe('')
    expect(line).not.toMatch(controlCharacters)
    expect(line).toBe(line.trimEnd())
  })

  it('shows the time, type, amount, parties and stage of a movement', () => {
    expect(formatTextLine(exampleOf('transfer'))).toBe(
      '14:05:12.441 AAPLc    transfer   1.5 = 486.45 USD  0x2bd8…23c8 to 0x81b6…95e4  preconfirmed in 52380564, 0xca97…48bb',
    )
  })

  it('shows shares that differ from the amount, and no unknown value', () => {
    const line = formatTextLine(exampleOf('mint'))
    expect(line).toContain('10 (10.00537939 shares)  ')
    expect(line).not.toContain('USD')
  })

  it.each([
    [
      { basis_bps: '-3', basis: 'drift' },
      { frozen: true },
      '324.9043891 USDC on uniswap v3, 3 bps under a held NAV with USDC as 1 USD, fresh, frozen',
    ],
    [{ basis_bps: null, basis: null }, { price: null, state: 'missing' }, '324.9043891 USDC on uniswap v3, NAV missing'],
    [{ price: null, state: 'thin', basis_bps: null, basis: null }, {}, 'thin, USDC on uniswap v3'],
  ] as const)('says against what a quote stands: %j', (fields, navFields, content) => {
    const quote = exampleOf('quote')
    const line = formatTextLine({ ...quote, ...fields, nav: { ...quote.nav, ...navFields } })
    expect(line.endsWith(`      ${content}`)).toBe(true)
  })

  it('counts a single log as one', () => {
    expect(formatTextLine({ ...exampleOf('seal'), count: 1 })).toContain(': 1 log, ')
  })

  it('shows the raw amount when the decimals are unknown', () => {
    expect(formatTextLine({ ...exampleOf('transfer'), amount: null, shares: null, reference_value: null })).toContain(
      '150000000 raw',
    )
  })

  it('marks a late update', () => {
    expect(formatTextLine(exampleOf('burn'))).toContain('sealed, late in ')
  })

  it.each([
    [
      'multiplier',
      'scheduled 1.000537939576369481 to 2.001075879152738962 at 2026-11-23T14:30:00.000Z  preconfirmed in 52380567, 0x252f…f111',
    ],
    ['retract', 'mint 52380564-0x3e23…009d-21 retracted: its block was sealed without it'],
    [
      'amend',
      'transfer 52380564-0xca97…48bb-17 amended in memo: transfer 1.5 = 486.45 USD  0x2bd8…23c8 to 0x81b6…95e4  sealed in 52380564, 0xca97…48bb',
    ],
    ['seal', 'block 52380564: 2 logs, 1 of them late, digest fd3ca2824cfa3584fec5f8d99cd17c47'],
    ['hole', 'blocks 52290100 to 52369900 could not be read: pruned'],
    ['finality', 'safe up to block 52380524'],
    ['quote', '324.9043891 USDC on uniswap v3, 15.24 bps over NAV with USDC as 1 USD, fresh'],
    ['session', 'XNYS closed, Thanksgiving Day, until 2026-11-27T01:00:00.000Z'],
  ] as const)('describes the content of a %s', (type, content) => {
    expect(formatTextLine(exampleOf(type)).endsWith(` ${content}`)).toBe(true)
  })

  it('gives the reason of a retract', () => {
    const retract = exampleOf('retract')
    const replaced_by = `7-0x${'ab'.repeat(32)}-3`
    expect(formatTextLine({ ...retract, reason: 'reorg' })).toContain('its block was replaced')
    expect(formatTextLine({ ...retract, reason: 'replaced', replaced_by })).toContain('sealed as 7-0xabab…abab-3')
  })

  it.each(
    messages.filter((message) => !('time' in message && 'prev' in message)).map((message) => [message.type, message] as const),
  )('starts with # for a notice: %s', (_, message) => {
    expect(formatTextLine(message)).toMatch(/^# /)
  })

  it('names the warnings about a token', () => {
    const snapshot = exampleOf('snapshot')
    expect(formatTextLine(snapshot)).not.toContain('warnings')
    expect(formatTextLine({ ...snapshot, symbol: '\u202eAPLc', token_warnings: ['mixed_scripts', 'direction_override'] })).toMatch(
      /^# \ufffdAPLc .*, warnings: mixed_scripts direction_override$/,
    )
  })

  it('marks the built-in chain as not real', () => {
    expect(formatTextLine({ ...exampleOf('hello'), demo: true })).toContain('nothing here is real')
    expect(formatTextLine(exampleOf('hello'))).not.toContain('nothing here is real')
  })

  it.each([
    ['a colour', '\u001b[31mred\u001b[0m'],
    ['an eight-bit escape', '\u009b31m'],
    ['a carriage return', 'true\rfalse'],
    ['a line separator', 'one\u2028two\u2029three'],
    ['a right-to-left override', '\u202egpj.exe\u202c'],
    ['a mark', '\u200e\u200f\u061c'],
  ])('replaces %s in a text from outside and keeps the rest', (_, text) => {
    const line = formatTextLine({ ...exampleOf('action'), description: `begin ${text} end` })
    expect(line).not.toMatch(controlCharacters)
    expect(line).toMatch(/begin .*\ufffd.* end/)
  })

  it('keeps the letters of every language', () => {
    const description = 'Tëst 株式分割 سهم 🍏'
    expect(formatTextLine({ ...exampleOf('action'), description })).toContain(description)
  })

  it('has no control characters, with any texts in any message', () => {
    const nasty = fc.string({
      unit: fc.oneof(
        fc.constantFrom('\u001b', '\r', '\n', '\t', '\0', '\u007f', '\u0085', '\u009b', '\u2028', '\u202e', '\u2067'),
        fc.constantFrom('\u200f', '\u061c', '\ufeff', '\ud800', 'a', '0', ' '),
      ),
      maxLength: 6,
    })
    fc.assert(
      fc.property(fc.constantFrom(...messages), nasty, nasty, (message, before, after) => {
        const altered = mapTexts(message, (text) => `${before}${text}${after}`)
        expect(formatTextLine(altered)).not.toMatch(controlCharacters)
      }),
      { numRuns: 500 },
    )
  })
})

/** The same message with every text except its type changed. */
function mapTexts(message: Message, change: (text: string) => string): Message {
  const text = JSON.stringify(message, (name, value: unknown) =>
    typeof value === 'string' && name !== 'type' ? change(value) : value,
  )
  return JSON.parse(text)
}
