import { expect, it } from 'vitest'
import type { Update } from '../../../src/protocol/updates.ts'
import { mergeMetrics, openMetrics } from '../../../src/relay/metrics.ts'

it('a gauge has the series that something measures, each with its value at the reading', async () => {
  const metrics = openMetrics()
  const seriesOf = async () => (await metrics.text()).match(/^stocktape_nav_age_seconds.*$/gm)
  expect(await seriesOf()).toBeNull()
  let [symbol, age] = ['AAPLc', 3]
  metrics.navAge.measureBy(() => [[{ symbol }, age]])
  expect(await seriesOf()).toEqual(['stocktape_nav_age_seconds{symbol="AAPLc"} 3'])
  ;[symbol, age] = ['TSLAc', 4]
  expect(await seriesOf()).toEqual(['stocktape_nav_age_seconds{symbol="TSLAc"} 4'])
})

it('movements of the first 500 tokens are counted by symbol, and those of the others together', async () => {
  const metrics = openMetrics()
  const movement = { type: 'mint', key: 'k', reference_value: '1.50' }
  const movements = Array.from({ length: 503 }, (_, token) => ({ ...movement, symbol: `T${token}` }))
  metrics.countPublished([...movements, ...movements].map((update) => ({ update: update as Update })))
  const lines = (await metrics.text()).match(/^stocktape_movement_value_usd_total\{.*$/gm) ?? []
  expect(lines).toHaveLength(501)
  expect(lines.slice(-2)).toEqual([
    'stocktape_movement_value_usd_total{symbol="T499",type="mint"} 3',
    'stocktape_movement_value_usd_total{symbol="other",type="mint"} 9',
  ])
})

it('trades are counted by the kind of their venue, with the amount of the currency', async () => {
  const metrics = openMetrics()
  const venue = { kind: 'slipstream', currency: { symbol: 'USDC' } }
  const trade = { type: 'trade', symbol: 'AAPLc', key: 'k', currency_amount: '2.5', venue }
  const trades = ['buy', 'sell', null].map((side) => ({ ...trade, side }))
  metrics.countPublished(trades.map((update) => ({ update: update as Update })))
  expect((await metrics.text()).match(/^stocktape_trade.*$/gm)).toEqual([
    'stocktape_trades_total{symbol="AAPLc",venue="slipstream",side="buy"} 1',
    'stocktape_trades_total{symbol="AAPLc",venue="slipstream",side="sell"} 1',
    'stocktape_trades_total{symbol="AAPLc",venue="slipstream",side="none"} 1',
    'stocktape_trade_value_total{symbol="AAPLc",venue="slipstream",currency="USDC"} 7.5',
  ])
})

it('metrics of several processes become one: what each holds is added, what all of them know is not', async () => {
  const [writer, first, second] = [openMetrics(), openMetrics(), openMetrics()]
  writer.updates.inc({ type: 'transfer' }, 5)
  writer.tapeCommitSeconds.observe(0.002)
  for (const [metrics, listeners, block] of [
    [first, 2, 100],
    [second, 3, 101],
  ] as const) {
    metrics.listeners.inc({ transport: 'ws' }, listeners)
    metrics.headBlock.measureBy(() => [[{ stage: 'sealed' }, block]])
    metrics.replays.measureBy(() => listeners)
  }
  const text = await mergeMetrics(await Promise.all([writer, first, second].map((metrics) => metrics.json())))
  expect(text.split('\n')).toEqual(
    expect.arrayContaining([
      'stocktape_updates_total{type="transfer"} 5',
      'stocktape_listeners{transport="ws"} 5',
      'stocktape_replays 5',
      'stocktape_head_block{stage="sealed"} 101',
      'stocktape_tape_commit_seconds_count 1',
    ]),
  )
})
