import { createRoot } from 'react-dom/client'
import { StocktapeProvider, useTape } from 'stocktape/react'

function Tape() {
  const { stocks, movements, feed } = useTape({ symbols: '*', limit: 20 })
  return (
    <>
      <p>{`${feed.phase}, source ${feed.source}, ${feed.gaps} gaps`}</p>
      <ul>
        {stocks.map(({ address, symbol, nav }) => (
          <li key={address}>{`${symbol} ${nav.price ?? 'no NAV'} ${nav.state}`}</li>
        ))}
      </ul>
      <ol>
        {movements.map(({ id, time, symbol, shares, stage }) => (
          <li key={id}>{`${time} ${symbol} ${shares} shares, ${stage}`}</li>
        ))}
      </ol>
    </>
  )
}

createRoot(document.getElementById('root')).render(
  <StocktapeProvider url="http://127.0.0.1:8080">
    <Tape />
  </StocktapeProvider>,
)
