import { describe, expect, it } from 'vitest'
import { UsageError } from '../../../../src/lib/exit-codes.ts'
import { examples } from '../../../../src/protocol/contract-examples.ts'
import type { StockState, StreamItem, StreamState } from '../../../../src/sdk/client/index.ts'
import { readAmount, readTailFlags, selectionOf } from '../../../../src/tools/tail/tail-flags.ts'
import { TailLines } from '../../../../src/tools/tail/tail-lines.ts'
import { tableLines } from '../../../../src/tools/tail/tail-table.ts'
import { TailTotals } from '../../../../src/tools/tail/tail-totals.ts'
import { paintFor, withColours, withoutColours } from '../../../../src/tools/terminal-colours.ts'

/** The examples of the contract, which its schemas have checked. */
const exampleOf = (type: string, change: object = {}): StreamItem =>
  ({ ...examples.find((example) => example.type === type), ...change }) as unknown as StreamItem

const transfer = exampleOf('transfer', { key: '5-0xaa-1', symbol: 'AAPLc', amount: '2.5', reference_value: '800.10' })
const retract = exampleOf('retract', { key: '5-0xaa-1' })

describe('a line of tail', () => {
  it('names what a retraction takes back, if it was printed', () => {
    const lines = new TailLines(withoutColours)
    expect(lines.lineOf(retract)).toMatch(/RETRACTED/)
    expect(lines.lineOf(retract)).not.toMatch(/takes back/)
    lines.lineOf(transfer)
    expect(lines.lineOf(retract)).toMatch(/RETRACTED: .*; takes back 2\.5 = 800\.10 USD$/)
  })

  it('marks a gap that the client found itself', () => {
    const gap = { type: 'gap', id: 'a.5', reason: 'missed', after: 'a.2', through: 'a.5', backfill: null } as const
    expect(new TailLines(withoutColours).lineOf(gap)).toBe('# GAP: missed, after a.2 through a.5')
  })

  it('is the same text with and without colours, and text from outside brings none', () => {
    for (const item of [transfer, retract, exampleOf('nav'), exampleOf('quote'), exampleOf('seal'), exampleOf('snapshot')]) {
      const hostile = { ...item, symbol: 'A\u001b[2J' } as StreamItem
      const coloured = new TailLines(withColours).lineOf(hostile)
      expect(coloured).toContain('\u001b[')
      expect(coloured).not.toContain('\u001b[2J')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the colours themselves
      expect(coloured.replace(/\u001b\[\d+m/g, '')).toBe(new TailLines(withoutColours).lineOf(hostile))
    }
  })

  it.each([
    [undefined, true, {}, true],
    [undefined, false, {}, false],
    [undefined, true, { NO_COLOR: '1' }, false],
    [undefined, false, { FORCE_COLOR: '1' }, true],
    [undefined, false, { FORCE_COLOR: '0' }, false],
    [true, false, { NO_COLOR: '1' }, true],
    [false, true, { FORCE_COLOR: '1' }, false],
  ])('has colours with flag %s, terminal %s and %j: %s', (flag, isTerminal, env, expected) => {
    expect(paintFor({ flag, isTerminal, env }) === withColours).toBe(expected)
  })
})

describe('the totals of tail', () => {
  it('count by type, and add up exactly by symbol', () => {
    const totals = new TailTotals()
    for (const value of ['0.10', '0.20', null]) totals.add(exampleOf('transfer', { symbol: 'AAPLc', reference_value: value }))
    totals.add(exampleOf('mint', { symbol: 'TSLAc', reference_value: '90071992547409.93' }))
    totals.add(exampleOf('transfer', { symbol: 'AAPLc', key: '5-0xaa-1', reference_value: '0.05' }))
    totals.add(retract)
    expect(totals.lines(61_400)).toEqual([
      '6 updates in 61 s: 4 transfer, 1 mint, 1 retract',
      '5 movements = 90071992547410.28 USD: TSLAc 1 = 90071992547409.93, AAPLc 4 = 0.35; 1 of them = 0.05 USD retracted',
    ])
  })
})

describe('an amount', () => {
  it.each([
    ['2500', '2500'],
    ['10k', '10000'],
    ['1.5M', '1500000'],
    ['0.0000000000000000001', '0.0000000000000000001'],
    ['0.1234k', '123.4'],
    ['2b', '2000000000'],
    ['007', '7'],
  ])('%s is %s', (text, amount) => {
    expect(readAmount('--min-value', text)).toBe(amount)
  })

  it.each(['', 'k', '1e3', '-5', '1.', '.5', '1kk', '1 000'])('is not %j', (text) => {
    expect(() => readAmount('--min-value', text)).toThrow(/^--min-value must be an amount such as 2500, 10k or 1\.5m, not /)
  })
})

describe('the flags of tail', () => {
  it.each<[readonly string[], string]>([
    [[], 'name at least one symbol, or * for all'],
    [['AAPLc', '--json', '--tui'], '--json and --tui exclude each other'],
    [['AAPLc', '--stage', 'safe'], '--stage must be sealed or preconfirmed, not safe'],
  ])('%j are refused: %s', (args, message) => {
    const read = () => selectionOf(readTailFlags(args))
    expect(read).toThrow(UsageError)
    expect(read).toThrow(message)
  })

  it('select', () => {
    const request = readTailFlags(['AAPLc', 'TSLAc', '--types', 'nav,quote', '--min-value', '10k', '--since', '5m', '--no-color'])
    expect(request.symbols).toEqual(['AAPLc', 'TSLAc'])
    expect(request.color).toBe(false)
    expect(selectionOf(request)).toEqual({ types: ['nav', 'quote'], minValue: '10000', since: '5m' })
  })
})

describe('the table of tail', () => {
  const state = {
    phase: 'live',
    transport: 'websocket',
    source: 'poll',
    head: { sealed: 7 },
    demo: true,
    rejected: [],
  } as unknown as StreamState
  const stock = (symbol: string) => ({ ...exampleOf('snapshot', { symbol }), movements: [] }) as unknown as StockState
  const stocks = ['B', 'A', 'C', 'D', 'E', 'F'].map(stock)
  const recent = Array.from({ length: 50 }, (_, nth) => ({
    time: '2026-11-23T10:00:00.000Z',
    text: `row ${nth}`,
    stage: nth === 0 ? 'RETRACTED' : 'sealed',
  }))

  it.each([
    [24, 80],
    [10, 40],
    [6, 20],
    [3, 10],
  ])('fits into %i rows of %i columns', (rows, columns) => {
    const lines = tableLines({ stocks, recent, state }, { rows, columns }, withoutColours)
    expect(lines.length).toBeLessThanOrEqual(rows)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns)
  })

  it('has the stocks by symbol, the newest movements, and what the connection is', () => {
    const lines = tableLines({ stocks, recent, state }, { rows: 12, columns: 200 }, withoutColours)
    expect(lines.slice(1, 5).map((line) => line[0])).toEqual(['A', 'B', 'C', 'D'])
    expect(lines.join('\n')).toMatch(/… 2 more\n10:00:00 RETRACTED +row 0\n10:00:00 sealed/)
    expect(lines.at(-1)).toMatch(/^live over websocket · source poll · sealed 7 .*nothing is real.*counts as 1 USD/)
  })
})
