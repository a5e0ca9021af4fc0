import { createRoot } from 'react-dom/client'
import { StocktapeProvider, useFeed, useTape } from 'stocktape/react'

function Tape() {
  const { status, error, data } = useTape({ symbols: '*', since: '10m', limit: 20 })
  const feed = useFeed()
  return (
    <>
      <p>{`${status}${error ? `: ${error.message}` : ''}; ${feed.phase}, source ${feed.source}, ${feed.gaps} gaps`}</p>
      <ul>
        {data.stocks.map(({ address, symbol, nav }) => (
          <li key={address}>{`${symbol} ${nav.price ?? 'no NAV'} ${nav.state}`}</li>
        ))}
      </ul>
      <ol>
        {data.movements.map(({ id, time, symbol, shares, stage }) => (
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
