import { describe, expect, it } from 'vitest'
import { apiKeyRequired } from '../../../../../src/relay/edge/limits/refusals.ts'
import { apple, tesla } from '../../tape/update-drafts.ts'
import { DAY, openCharts } from '../bars/chart-fixture.ts'

const resolutions = ['1', '5', '15', '60', '240', '1D']

describe('a chart', () => {
  it('learns what the data feed has', async () => {
    const { answerTo } = await openCharts({})
    expect(await answerTo('config')).toEqual({
      ...{ supports_search: true, supports_group_request: false, supports_marks: true, supports_timescale_marks: true },
      ...{ supports_time: true, exchanges: [], symbols_types: [], supported_resolutions: resolutions },
    })
    const time = await (await openCharts({})).fetch('time')
    expect([time.headers.get('content-type'), await time.text()]).toEqual(['text/plain; charset=UTF-8', String(DAY + 3 * 86_400)])
  })

  it.each(['AAPLc', 'aapl', 'DEX:AAPLc', apple, 'isin:US0378331005'])('resolves %s', async (symbol) => {
    const { answerTo } = await openCharts({})
    expect(await answerTo(`symbols?symbol=${symbol}`)).toMatchObject({
      ...{ name: 'AAPLc', ticker: 'AAPLc', type: 'stock', session: '24x7', timezone: 'Etc/UTC', visible_plots_set: 'ohlcv' },
      ...{ has_intraday: true, has_daily: true, supported_resolutions: resolutions, minmov: 1, pricescale: 10_000 },
      intraday_multipliers: ['1', '5', '15', '60', '240'],
      description: 'Apple ‹b›Inc.‹/b›',
    })
  })

  it.each<[query: string, found: readonly string[]]>([
    ['query=', ['AAPLc', 'TSLAc']],
    ['', ['AAPLc', 'TSLAc']],
    ['query=AAP&type=&exchange=&limit=30', ['AAPLc']],
    ['query=SL', ['TSLAc']],
    ['query=tesla', ['TSLAc']],
    ['query=us0378', ['AAPLc']],
    [`query=${tesla}`, ['TSLAc']],
    ['query=C&limit=1', ['AAPLc']],
    ['query=a&type=stock&exchange=DEX', ['AAPLc', 'TSLAc']],
    ['query=a&type=bond', []],
    ['query=a&exchange=NYSE', []],
    ['query=nothing', []],
  ])('that searches with %s finds %j', async (query, found) => {
    const { answerTo } = await openCharts({})
    const symbols: readonly { symbol: string; ticker: string }[] = await answerTo(`search?${query}`)
    expect(symbols.map(({ symbol }) => symbol)).toEqual(found)
    expect(symbols.map(({ ticker }) => ticker)).toEqual(found)
  })

  it('finds an exact symbol first, and tokens with one symbol by their addresses', async () => {
    const others = ['1', '2', '3'].map((digit): `0x${string}` => `0x${digit.repeat(40)}`)
    const [first = apple, second = apple, third = apple] = others
    const named = { isin: null, formerSymbols: [], record: {} }
    const tokens = [
      { address: first, symbol: 'XAB', ...named },
      { address: second, symbol: 'ABCc', ...named },
      { address: third, symbol: 'ABc', ...named },
      { address: apple, symbol: 'ABc', ...named },
    ]
    const { answerTo } = await openCharts({ tokens })
    const symbols: readonly { symbol: string; ticker: string }[] = await answerTo('search?query=AB')
    expect(symbols.map(({ ticker }) => ticker)).toEqual([third, apple, 'ABCc', 'XAB'])
    for (const { symbol, ticker } of symbols)
      expect(await answerTo(`symbols?symbol=${ticker}`)).toMatchObject({ name: symbol, ticker })
  })

  it.each<[path: string, status: number, message: string]>([
    ['symbols?symbol=NOPE', 404, "No tokenized stock 'NOPE'."],
    ['symbols?symbol=*', 404, "No tokenized stock '*'."],
    ['symbols?symbol=AAPLX', 404, "No tokenized stock 'AAPLX'. Did you mean AAPLc?"],
    ['symbols', 400, 'symbol: is missing.'],
    [`history?symbol=NOPE&resolution=1&from=1&to=2`, 404, "No tokenized stock 'NOPE'."],
    [`marks?symbol=NOPE&resolution=1&from=1&to=2`, 404, "No tokenized stock 'NOPE'."],
    [`timescale_marks?symbol=NOPE&resolution=1&from=1&to=2`, 404, "No tokenized stock 'NOPE'."],
    ['history?symbol=AAPLc&resolution=1&to=2', 400, 'from: give it, or countback.'],
    ['history?symbol=AAPLc&resolution=1&from=1', 400, 'to: is missing.'],
    ['history?symbol=AAPLc&from=1&to=2', 400, 'resolution: is missing.'],
    ['history?symbol=AAPLc&resolution=30&from=1&to=2', 400, 'resolution: must be 1, 5, 15, 60, 240, 1D.'],
    ['history?symbol=AAPLc&resolution=toString&from=1&to=2', 400, 'resolution: must be 1, 5, 15, 60, 240, 1D.'],
    ['history?symbol=AAPLc&resolution=1&from=now&to=2', 400, 'from: must be a time in seconds since 1970.'],
    ['history?symbol=AAPLc&resolution=1&from=1&to=2&countback=0', 400, 'countback: must be a number of bars.'],
    ['search?limit=0', 400, 'limit: must be a number of symbols, 1 to 100.'],
    ['marks?symbol=AAPLc&resolution=1&from=1', 400, 'to: is missing.'],
    ['nothing', 404, 'There is nothing at /udf/nothing; /docs says what there is.'],
  ])('that asks for %s gets %i as an error of UDF, and as an error record', async (path, status, message) => {
    const { ask } = await openCharts({})
    expect(await ask(path)).toEqual({
      status,
      answer: { s: 'error', errmsg: message, code: status, reason: expect.any(String), message, details: [expect.anything()] },
    })
  })

  it('may send parameters that the relay does not know', async () => {
    const { answerTo } = await openCharts({ minutes: [{ start: DAY, prices: ['1'] }] })
    const others = 'currencyCode=USD&unitId=&firstDataRequest=true&constructor=1'
    expect(await answerTo(`history?symbol=AAPLc&resolution=1&from=0&to=${DAY + 1}&${others}`)).toMatchObject({ t: [DAY] })
  })

  it('needs a key where the relay requires keys', async () => {
    const { fetch } = await openCharts({ authorize: (_, query) => (query.get('key') === 'right' ? null : apiKeyRequired) })
    for (const name of ['config', 'time', 'symbols', 'search', 'history', 'marks', 'timescale_marks']) {
      const { status, headers } = await fetch(name)
      expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    }
    expect((await fetch('config?key=right')).status).toBe(200)
  })

  it('waits for the list', async () => {
    const { ask, fetch } = await openCharts({ tokens: [] })
    expect(await ask('symbols?symbol=AAPLc')).toMatchObject({ status: 503, answer: { reason: 'no_list' } })
    expect((await fetch('symbols?symbol=AAPLc')).headers.get('retry-after')).toBe('1')
  })
})
