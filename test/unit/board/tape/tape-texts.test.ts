import { expect, it } from 'vitest'
import type { TapeLine } from '../../../../src/board/tape/tape-lines.ts'
import {
  dollarsOf,
  lineSentence,
  lineText,
  shortFigure,
  shortValue,
  tintOf,
  weightOf,
} from '../../../../src/board/tape/tape-texts.ts'

const block = { number: 7, hash: null, timestamp: null }
const fact = { symbol: 'AAPLc', address: '0xa', key: '7-0xb-1', stage: 'preconfirmed', late: false, block }
const transfer = {
  ...{ ...fact, type: 'transfer', from: `0x${'a'.repeat(40)}`, to: `0x${'b'.repeat(40)}` },
  ...{ raw: '4250000000', amount: '42.5', shares: '42.5', reference_value: '13919.28' },
}
const trade = {
  ...{ ...fact, type: 'trade', side: 'buy', raw: '125000000', amount: '1.25', shares: '1.25', currency_amount: '410.2' },
  ...{ price: '328.16', reference_value: '410', basis_bps: '4.24', basis: 'premium', nav: { age_s: 39 } },
  venue: { kind: 'uniswap_v3', currency: { symbol: 'USDC' } },
}
const split = { ...fact, type: 'multiplier', phase: 'effective', previous: '1', multiplier: '4', effective_at: null }
const line = (content: object, more: Partial<TapeLine> = {}) =>
  ({ nth: 1, id: 'k', content, isSealed: false, retraction: null, amended: [], ...more }) as unknown as TapeLine
const retraction = { reason: 'not_sealed', replaced_by: null, time: '' } as const

it.each([
  ['a trade', line(trade), 'AAPLc buy of 1.25 tokens, 410.20 USDC, at 328.16, 4.2 basis points over the NAV, pre-confirmed'],
  [
    'a trade against a held NAV',
    line({ ...trade, side: 'sell', basis_bps: '-12.5', basis: 'drift' }, { isSealed: true }),
    'AAPLc sell of 1.25 tokens, 410.20 USDC, at 328.16, 12.5 basis points under a held NAV, sealed',
  ],
  ['a movement', line(transfer), 'AAPLc transfer of 42.5 tokens, about $13,919.28, pre-confirmed'],
  [
    'a retraction',
    line(transfer, { retraction }),
    'AAPLc transfer of 42.5 tokens, about $13,919.28, retracted, not in the sealed block',
  ],
  [
    'a transfer of nothing',
    line({ ...transfer, raw: '0', amount: '0', reference_value: '0.00' }),
    'AAPLc zero transfer, pre-confirmed',
  ],
  ['a split', line(split, { isSealed: true }), 'AAPLc split, 1 to 4 · in effect, sealed'],
])('a screen reader says of %s what it is, what it is worth, and whether it is certain', (_, shown, sentence) => {
  expect(lineSentence(shown, null)).toBe(sentence)
})

it.each([
  [line(transfer), '≈ $13,919'],
  [line({ ...transfer, reference_value: '999.99' }), '≈ $999.99'],
  [line(trade), '410.20 USDC'],
  [line({ ...transfer, reference_value: '0.00' }), '< $0.01'],
  [line({ ...transfer, reference_value: null }), 'NAV unknown'],
  [line({ ...transfer, raw: '0', reference_value: '0.00' }), ''],
])('an estimate of a thousand dollars or more has no cents', (shown, value) => {
  expect(shortValue(shown)).toBe(value)
})

it.each([
  ['a trade is worth what was paid', line(trade), 410.2],
  ['a movement its value at the NAV', line(transfer), 13_919.28],
  ['a split nothing', line(split), null],
])('%s', (_, one, dollars) => expect(dollarsOf(one)).toBe(dollars))

it.each([
  ['a large trade', line({ ...trade, currency_amount: '1000' }), 'heavy'],
  ['a trade', line({ ...trade, currency_amount: '999' }), null],
  ['a trade of nearly nothing', line({ ...trade, currency_amount: '0.1' }), 'light'],
  ['a large movement', line(transfer), 'heavy'],
  ['a movement', line({ ...transfer, reference_value: '1.00' }), null],
  ['a movement of less than a dollar', line({ ...transfer, reference_value: '0.99' }, { isSealed: true }), 'light'],
  ['a movement of nothing', line({ ...transfer, raw: '0', reference_value: null }), 'light'],
  ['a movement without a NAV', line({ ...transfer, reference_value: null }), 'unknown'],
  ['a split', line(split), null],
])('the ink of %s depends on its value', (_, shown, weight) => expect(weightOf(shown)).toBe(weight))

it('nothing is not given as a number', () => {
  const nothing = line({ ...transfer, raw: '0', amount: '0', reference_value: '0.00' })
  expect([lineText(nothing).type, lineText(nothing).figure, shortFigure(nothing)]).toEqual(['zero transfer', '', ''])
})

it.each([
  ['1', '20', 'split'],
  ['20', '1', 'reverse split'],
  ['1', '1.0005', 'shares per token'],
  ['2', '3', 'shares per token'],
  [null, '2', 'shares per token'],
  ['1', null, 'shares per token'],
])('a multiplier that was %s and is %s is told as a %s', (previous, multiplier, words) => {
  expect(lineText(line({ ...split, previous, multiplier })).type).toBe(words)
})

it.each([
  [{ change: 'changed', changed: ['name'], before: { name: 'Apl' } }, ['name changed', 'Apl → Apple']],
  [{ change: 'changed', changed: ['name'], before: null }, ['name changed', '']],
  [
    { change: 'changed', changed: ['symbol', 'name'], before: { symbol: 'APLc', name: 'Apl' } },
    ['renamed', 'APLc → AAPLc · Apl → Apple'],
  ],
  [{ change: 'changed', changed: ['contract_uri'], before: {} }, ['token details changed', 'link to its document']],
  [{ change: 'changed', changed: ['paused_features'], before: { paused_features: [] } }, ['paused features changed', '']],
  [{ change: 'listed', changed: [], before: null }, ['listed', 'Apple']],
])('a record that is %o is told as %o', (fields, words) => {
  const { type, detail } = lineText(line({ ...fact, type: 'token', token: { symbol: 'AAPLc', name: 'Apple' }, ...fields }))
  expect([type, detail]).toEqual(words)
})

it.each([
  [{}, 'at 328.16 · +4.2 bps · v3'],
  [{ nav: { age_s: 3_600 } }, 'at 328.16 · +4.2 bps, old NAV · v3'],
  [{ basis: 'drift', nav: { age_s: 90_000 } }, 'at 328.16 · +4.2 bps drift · v3'],
])('a trade with %o says against which NAV it is measured', (fields, detail) => {
  expect(lineText(line({ ...trade, ...fields })).detail).toBe(detail)
})

it.each([
  [{ source: 'down', reason: 'unreachable' }, 'source down: no endpoint answers', 'bad'],
  [{ source: 'poll', reason: 'silent' }, 'source slow: the subscription went silent', 'attention'],
  [{ source: 'pendingLogs', reason: 'ok' }, 'source live: the node pushes each line before its block', null],
])('the status %o is told and tinted', (fields, words, tint) => {
  const status = line({ ...fact, type: 'status', symbol: '*', ...fields })
  const { type, detail } = lineText(status)
  expect([`${type}: ${detail}`, tintOf(status)]).toEqual([words, tint])
})
