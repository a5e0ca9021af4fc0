import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  defaultSelectionOptions,
  patchOptions,
  readStreamQuery,
  type SelectionOptions,
  SelectionPatch,
  SYMBOLS_BOUND,
} from '../../../../src/protocol/parameters/selection.ts'
import { startPointFromLastEventId } from '../../../../src/protocol/parameters/start-point.ts'
import { POSITION_BOUND_BYTES } from '../../../../src/protocol/position.ts'
import { Refusal } from '../../../../src/protocol/refusal.ts'
import { defaultTypes, updateTypes } from '../../../../src/protocol/updates.ts'

const readText = (text: string) => readStreamQuery(new URLSearchParams(text))
const readParameter = (name: string, value: string) => readStreamQuery(new URLSearchParams([[name, value]]))
const refusalOf = (act: () => unknown): Refusal => {
  try {
    act()
  } catch (failure) {
    if (failure instanceof Refusal) return failure
    throw failure
  }
  throw new Error('nothing was refused')
}

const account = '0xb200000000000000000000c2e324d24d7eecd1fb'
const other = '0x81b637d8fcd2c6da6359e6963113a1170de795e4'

describe('a query', () => {
  it.each([
    ['symbols', 'AAPLc', ['AAPLc']],
    ['symbols', 'aapl, TSLAc ,isin:US88160R1014,*', ['aapl', 'TSLAc', 'isin:US88160R1014', '*']],
    ['symbols', ',,AAPLc,', ['AAPLc']],
    ['types', 'nav,transfer', ['transfer', 'nav']],
    ['types', 'transfer,transfer', ['transfer']],
    ['types', 'approval,log', ['approval', 'log']],
    ['types', '*', updateTypes],
    ['types', 'nav,*', updateTypes],
    ['stage', 'preconfirmed', 'preconfirmed'],
    ['stage', 'sealed', 'sealed'],
    ['snapshot', 'true', true],
    ['snapshot', '1', true],
    ['snapshot', 'false', false],
    ['snapshot', '0', false],
    ['min_value', '10000', { units: 10_000n, scale: 0 }],
    ['min_value', '0', { units: 0n, scale: 0 }],
    ['min_shares', '0.5', { units: 5n, scale: 1 }],
    ['account', account, [account]],
    ['account', ` ${account.toUpperCase()}, ${other},${account}`, [account, other]],
    ['heartbeat', '1', 1],
    ['heartbeat', '60', 60],
    ['format', 'sse', 'sse'],
    ['format', 'ndjson', 'ndjson'],
    ['format', 'text', 'text'],
    ['events', 'named', 'named'],
  ] as const)('parses %s=%s', (name, text, value) => {
    expect(readParameter(name, text)).toEqual({ [name]: value })
  })

  it.each([
    ['symbols', ['x'.repeat(129), Array.from({ length: SYMBOLS_BOUND + 1 }, (_, index) => `S${index}`).join()]],
    ['types', ['', 'swap', 'transfer,swap', 'Transfer', 'a\u2028b\u2029c']],
    ['stage', ['', 'finalized']],
    ['since', ['', 'yesterday']],
    ['snapshot', ['', 'maybe']],
    ['min_value', ['', '1e4', '-1', '+1', 'NaN', '9'.repeat(41)]],
    ['min_shares', ['.5', '1,5']],
    ['account', ['', '0x12', account.slice(2), `${account}0`, `${account},alice`, Array(21).fill(account).join()]],
    ['heartbeat', ['', '61', '1.5', '-1']],
    ['format', ['', 'xml']],
    ['events', ['all']],
  ])('refuses %s with its name: %j', (name, texts) => {
    for (const text of texts) {
      const { code, reason, message, details } = refusalOf(() => readParameter(name, text))
      expect([code, reason, details.parameter]).toEqual([400, 'bad_parameter', name])
      expect(message).toMatch(new RegExp(`^${name}(\\.\\d+)?: .+\\.$`))
    }
  })

  it.each(['symbols', 'min_value', 'format'])('refuses %s when it is given twice', (name) => {
    const refusal = refusalOf(() => readText(`${name}=a&${name}=a`))
    expect(refusal).toMatchObject({ code: 400, message: `${name}: given 2 times; give it once.`, details: { parameter: name } })
  })

  it('says what an address is', () => {
    expect(refusalOf(() => readParameter('account', '0x12')).message).toBe('account: must be an address of 40 hex digits.')
  })

  it('lists the known types when one is unknown', () => {
    const { message } = refusalOf(() => readParameter('types', 'swap'))
    for (const type of updateTypes) expect(message).toContain(type)
  })

  it('quotes only the beginning of a long unknown type', () => {
    expect(refusalOf(() => readParameter('types', 'x'.repeat(4_000))).message.length).toBeLessThan(300)
  })

  it.each([
    ['colour=blue', 'colour', [], /^Unknown parameter "colour"\. Known are symbols, types, /],
    ['typs=nav', 'typs', ['types'], /^Unknown parameter "typs"\. Did you mean types\?$/],
    ['min_vale=1', 'min_vale', ['min_value'], /Did you mean min_value\?$/],
    ['party=0x12', 'party', ['account'], /^Unknown parameter "party"\. Did you mean account\?$/],
    ['Symbols=AAPLc', 'Symbols', ['symbols'], /Did you mean symbols\?$/],
    ['__proto__=1', '__proto__', [], /^Unknown parameter "__proto__"\./],
    [`${'x'.repeat(4_000)}=1`, 'x'.repeat(40), [], /^Unknown parameter "x{40}"\./],
    ['%0A%E2%80%A8=1', '\n\u2028', [], /^Unknown parameter "\\n\ufffd"\./],
  ])('refuses a parameter that it does not know: %s', (text, parameter, suggest, message) => {
    const refusal = refusalOf(() => readText(`symbols=AAPLc&${text}`))
    expect(refusal).toMatchObject({ code: 400, reason: 'unknown_parameter', details: { parameter, suggest } })
    expect(refusal.message).toMatch(message)
  })

  it('ignores the key, and what other programs add to a URL', () => {
    const text = 'symbols=AAPLc&key=secret&lastEventId=&_=171&utm_source=x&utm_=y'
    expect(readText(text)).toEqual({ symbols: ['AAPLc'] })
  })

  it('without parameters selects nothing', () => {
    expect(readText('')).toEqual({})
  })

  it('of any text is either parsed or refused in one line', () => {
    const names = ['symbols', 'types', 'stage', 'since', 'snapshot', 'min_value', 'min_shares', 'account', 'heartbeat']
    const pairs = fc.array(fc.tuple(fc.constantFrom(...names), fc.string({ unit: 'binary', maxLength: 12 })), { maxLength: 3 })
    fc.assert(
      fc.property(pairs, (given) => {
        try {
          readStreamQuery(new URLSearchParams(given))
        } catch (failure) {
          if (!(failure instanceof Refusal)) throw failure
          expect(failure.message).toMatch(/^[a-z_]+(\.\d+)?: .+$/)
        }
      }),
      { numRuns: 200 },
    )
  })
})

describe('the parameter since', () => {
  const hour = 3_600_000

  it.each([
    ['now', { from: 'now' }],
    ['start', { from: 'start' }],
    ['90s', { from: 'duration', ms: 90_000 }],
    ['5m', { from: 'duration', ms: 300_000 }],
    ['0s', { from: 'duration', ms: 0 }],
    ['2026-11-20T14:00:00Z', { from: 'time', time: Date.UTC(2026, 10, 20, 14) }],
    ['2026-11-20T14:00:00.123456789Z', { from: 'time', time: Date.UTC(2026, 10, 20, 14, 0, 0, 124) }],
    ['2016-12-31T23:59:60Z', { from: 'time', time: Date.UTC(2017, 0, 1) }],
    ['2016-12-31T23:59:60.5+00:00', { from: 'time', time: Date.UTC(2017, 0, 1, 0, 0, 0, 500) }],
    ['2026-11-20t14:00:00z', { from: 'time', time: Date.UTC(2026, 10, 20, 14) }],
    ['2026-11-20T14:00:00+02:00', { from: 'time', time: Date.UTC(2026, 10, 20, 12) }],
    ['2026-11-20T14:00:00-05:30', { from: 'time', time: Date.UTC(2026, 10, 20, 19, 30) }],
  ])('parses %s', (text, since) => {
    expect(readParameter('since', text)).toEqual({ since })
  })

  it('parses an offset whose plus became a space in the query string', () => {
    expect(readText('since=2026-11-20T14:00:00+02:00')).toEqual({ since: { from: 'time', time: Date.UTC(2026, 10, 20, 12) } })
  })

  it('parses a position, with and without a place in a seal', () => {
    expect(readParameter('since', 'k3f9a1.18422').since).toEqual({
      from: 'position',
      text: 'k3f9a1.18422',
      position: { epoch: 'k3f9a1', seq: 18_422, n: null },
    })
    expect(readParameter('since', 'k3f9a1.18422.3').since).toMatchObject({ position: { seq: 18_422, n: 3 } })
  })

  it('bounds a duration', () => {
    expect(readParameter('since', '999999999999h').since).toEqual({ from: 'duration', ms: 366 * 24 * hour })
  })

  it.each([
    ...['tomorrow', 'Now', ' now', '90', '90 s', '-90s', '1.5h', '5min', '5M', 'h', 'PT5M', '1e3s', '1763647200', 'null', '-'],
    ...['2026-11-20', '2026-11-20T14:00', '2026-11-20T14:00:00', '2026-11-20T14:00:00+0200', '2026-13-20T14:00:00Z'],
    ...['2026-11-20T25:00:00Z', '2026-11-32T00:00:00Z', '2026-02-30T00:00:00Z', 'k3f9a1', 'K3F9A1.1', 'k3f9a1.-1', 'k3f9a1.1.0'],
  ])('refuses %j and lists the valid forms', (text) => {
    const { code, message } = refusalOf(() => readParameter('since', text))
    expect(code).toBe(400)
    expect(message).toMatch(/^since: must be now, start, a position, a duration .* or an RFC 3339 time\.$/)
  })

  it('parses every time of a message to the millisecond', () => {
    const times = fc.date({ min: new Date('1970-01-01'), max: new Date('2999-12-31'), noInvalidDate: true })
    fc.assert(
      fc.property(times, (time) => {
        expect(readParameter('since', time.toISOString()).since).toEqual({ from: 'time', time: time.getTime() })
      }),
    )
  })
})

describe('Last-Event-ID', () => {
  it.each(['now', 'start', '5m', '2026-11-20T14:00:00Z', 'garbage', '18422', 'k3f9a1.18422 '])(
    'with a valid since that is not a position counts as unreadable: %s',
    (header) => {
      expect(startPointFromLastEventId(header)).toEqual({ from: 'position', text: header, position: null })
    },
  )

  it.each([
    ['header', 'symbols=AAPLc&since=garbage&lastEventId=b.2', 'a.1', 'a.1'],
    ['query', 'symbols=AAPLc&since=garbage&lastEventId=b.2', '', 'b.2'],
  ])('in the %s wins over since, which is not even read', (_place, query, header, text) => {
    const { since, symbols } = readStreamQuery(new URLSearchParams(query), header)
    expect(symbols).toEqual(['AAPLc'])
    expect(since).toMatchObject({ from: 'position', text })
  })

  it('longer than 256 bytes counts as unreadable and is cut to 256', () => {
    const long = `k3f9a1.1${'.1'.repeat(POSITION_BOUND_BYTES)}`
    expect(startPointFromLastEventId(long)).toEqual({ from: 'position', text: long.slice(0, POSITION_BOUND_BYTES), position: null })
  })

  it('never throws, and is a position only in its own characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (header) => {
        const since = startPointFromLastEventId(header)
        if (since.from !== 'position') throw new Error('unreachable')
        expect(since.text.length).toBeLessThanOrEqual(POSITION_BOUND_BYTES)
        if (since.position) expect(header).toMatch(/^[0-9a-z.]+$/)
      }),
    )
  })
})

describe('the options of a selection', () => {
  const current: SelectionOptions = {
    types: ['transfer'],
    stage: 'sealed',
    min_value: { units: 1n, scale: 0 },
    min_shares: { units: 2n, scale: 0 },
    account: [account],
    pools: [account],
  }
  const patchOf = (given: unknown) => SelectionPatch.parse(given)

  it('default to all types but approval and log, pre-confirmed, without filters', () => {
    expect(patchOptions(defaultSelectionOptions, patchOf({}))).toEqual({
      types: defaultTypes,
      stage: 'preconfirmed',
      min_value: null,
      min_shares: null,
      account: null,
      pools: null,
    })
  })

  it('are replaced one by one', () => {
    expect(patchOptions(current, patchOf({ types: ['nav'], min_value: '5' }))).toEqual({
      ...current,
      types: ['nav'],
      min_value: { units: 5n, scale: 0 },
    })
  })

  it('are cleared one by one by null', () => {
    for (const name of ['min_value', 'min_shares', 'account'])
      expect(patchOptions(current, patchOf({ [name]: null }))).toEqual({ ...current, [name]: null })
    expect(patchOptions(current, patchOf({ types: null }))).toEqual({ ...current, types: defaultTypes })
  })

  it('are the same from a query and from a message', () => {
    const filters = { min_value: '10', min_shares: '0.5', account: [account, other] }
    const fromMessage = patchOf({ types: ['nav', 'transfer'], stage: 'sealed', ...filters })
    const fromQuery = readText(`types=nav,transfer&stage=sealed&min_value=10&min_shares=0.5&account=${account},${other}`)
    expect(patchOptions(defaultSelectionOptions, fromQuery)).toEqual(patchOptions(defaultSelectionOptions, fromMessage))
  })
})
