import { createChart, LineSeries, LineType } from 'lightweight-charts'
import { useEffect, useRef, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { premium } from 'stocktape/client'
import { StocktapeProvider, useFeed, useStock, useTape } from 'stocktape/react'

const SYMBOLS = ['AAPLc', 'TSLAc', 'NVDAc', 'MSFTc', 'GOOGLc']
// A premium or a discount of more basis points is an alert.
const ALERT_BPS = 50

function Connection() {
  const { phase, source, demo, gaps, error, retryAt } = useFeed()
  const problem = error ? `: ${error.message}${retryAt ? `, next attempt at ${retryAt.toLocaleTimeString()}` : ''}` : ''
  return <p>{`${phase}${problem}, source ${source ?? 'unknown'}${demo ? ' (built-in chain)' : ''}, ${gaps} gaps`}</p>
}

function Row({ symbol, onChoose }) {
  const { status, error, data: stock } = useStock(symbol)
  if (!stock) {
    return (
      <tr>
        <td>{symbol}</td>
        <td colSpan={3}>{error?.message ?? status}</td>
      </tr>
    )
  }
  // Over a stale NAV the difference is a drift, and says nothing about the price.
  const basis = premium(stock)
  const isAlert = basis?.kind === 'premium' && Math.abs(Number(basis.bps)) > ALERT_BPS
  const text = basis ? `${basis.bps} bps ${basis.kind}` : 'no basis'
  return (
    <tr>
      <td>
        <button type="button" onClick={onChoose}>
          {symbol}
        </button>
      </td>
      <td>{`NAV ${stock.nav.price ?? 'none'} ${stock.nav.state}`}</td>
      <td>{`pool ${stock.quote?.price ?? 'none'}`}</td>
      <td>{isAlert ? <mark>{`ALERT ${text}`}</mark> : text}</td>
    </tr>
  )
}

function Movements() {
  const { status, error, data } = useTape({ symbols: SYMBOLS, since: '1h', limit: 20 })
  if (status !== 'ready') return <p>{error?.message ?? status}</p>
  return (
    <ol>
      {data.movements.map(({ key, time, symbol, type, shares, reference_value: value, stage }) => {
        const text = `${time} ${symbol} ${type} ${shares ?? 'unknown'} shares, ${value ?? 'unknown'} USD, ${stage}`
        return <li key={key}>{stage === 'retracted' ? <s>{text}</s> : text}</li>
      })}
    </ol>
  )
}

// One line for the NAV, and one for each pool: their prices differ.
const titleOf = (update) => (update.type === 'nav' ? 'NAV' : `${update.venue.kind} ${update.venue.pool.slice(0, 8)}`)
const priceOf = (update) => (update.type === 'nav' ? update.nav.price : update.price)

function Chart({ symbol }) {
  const box = useRef(null)
  const chart = useRef(null)
  const { data } = useTape({ symbols: symbol, types: ['nav', 'quote'], since: '24h', limit: 1_000 })
  useEffect(() => {
    chart.current = { api: createChart(box.current, { height: 300, timeScale: { timeVisible: true } }), lines: {} }
    return () => chart.current.api.remove()
  }, [])
  useEffect(() => {
    const { api, lines } = chart.current
    const byTitle = Object.groupBy(data.updates.filter(priceOf).toReversed(), titleOf)
    for (const [title, updates] of Object.entries(byTitle)) {
      lines[title] ??= api.addSeries(LineSeries, { title, lineType: LineType.WithSteps })
      // A chart has one point for each second: the last one.
      const points = new Map(updates.map((update) => [Math.floor(Date.parse(update.time) / 1_000), Number(priceOf(update))]))
      lines[title].setData([...points].map(([time, value]) => ({ time, value })))
    }
  }, [data])
  return <div ref={box} />
}

function Page() {
  const [chosen, setChosen] = useState(SYMBOLS[0])
  return (
    <>
      <Connection />
      <table>
        <tbody>
          {SYMBOLS.map((symbol) => (
            <Row key={symbol} symbol={symbol} onChoose={() => setChosen(symbol)} />
          ))}
        </tbody>
      </table>
      <h2>{chosen}</h2>
      <Chart key={chosen} symbol={chosen} />
      <p>
        Charts by <a href="https://www.tradingview.com/">TradingView</a>
      </p>
      <Movements />
    </>
  )
}

createRoot(document.getElementById('root')).render(
  <StocktapeProvider url="http://127.0.0.1:8080">
    <Page />
  </StocktapeProvider>,
)
