import type { ComponentType } from 'preact'
import type { Flow, FlowSpan } from '../chart/flow.ts'
import { FlowChart } from '../chart/flow-chart.tsx'
import { PriceChart } from '../chart/price-chart.tsx'
import type { BoardFeed } from '../feed/board-feed.ts'
import { marksOf, pointsOf, stretchesOf, useHistory } from '../feed/symbol-history.ts'
import { CodeBlock } from '../shared/code-block.tsx'
import { HexLink } from '../shared/hex-link.tsx'
import { BackLink } from '../shared/navigation.tsx'
import { formatPrice } from '../shared/number-text.ts'
import { basisWords } from '../shared/state-words.ts'
import { basisOf, multiplierText, nameOf, warningsText } from '../shared/stock-texts.ts'
import { visibleJson } from '../shared/visible-text.ts'
import { BasisCell, NavCell, QuoteCell, type StockProps, SupplyCell } from './symbol-cells.tsx'
import { Movements, Timeline } from './symbol-sections.tsx'

type PageProps = StockProps & { readonly feed: BoardFeed; readonly flow: Flow | undefined; readonly flowSpan: FlowSpan }

export function SymbolPage({ stock, feed, flow, flowSpan, nowMs }: PageProps) {
  const { readings, events } = useHistory(stock, feed)
  const basis = basisOf(stock)
  return (
    <article class="symbol-page" data-symbol={stock.symbol}>
      <SymbolHead stock={stock} nowMs={nowMs} />
      <p class="note">
        {basis && stock.quote
          ? `Basis ${basisWords(basis.kind, stock.quote.venue)}.`
          : 'Without a NAV or a price there is no basis.'}{' '}
        Neither is a price at which anyone can trade.
      </p>
      <section aria-label="NAV and price on the chain">
        <p class="legend">
          <span class="legend-nav">NAV {formatPrice(stock.nav.price)}</span>
          <span class="legend-quote">On chain {formatPrice(stock.quote?.price ?? null)}</span>
          <span class="legend-closed">market closed</span>
          <span class="legend-held">NAV held</span>
          <span class="legend-mark">multiplier or pause</span>
        </p>
        <PriceChart
          {...pointsOf(readings, feed, stock)}
          stretches={stretchesOf(readings, events, nowMs)}
          marks={marksOf(events)}
          nowMs={nowMs}
        />
      </section>
      <section aria-label="Flow by minute">
        <h2>
          Flow <small>{flowSpan.words}, by minute: in and minted above, out and burnt below</small>
        </h2>
        <FlowChart flow={flow} minutesRead={flowSpan.minutes} />
      </section>
      <Timeline stock={stock} events={events} nowMs={nowMs} />
      <Movements stock={stock} feed={feed} nowMs={nowMs} />
      <details>
        <summary>The record in the token list</summary>
        <CodeBlock text={visibleJson(stock.token, 2)} />
      </details>
    </article>
  )
}

const figures: readonly (readonly [title: string, Cell: ComponentType<StockProps>])[] = [
  ['NAV', NavCell],
  ['On chain', QuoteCell],
  ['Basis', BasisCell],
  ['Supply', SupplyCell],
]

function SymbolHead({ stock, nowMs }: StockProps) {
  const { isin } = stock.token
  const warnings = warningsText(stock)
  return (
    <>
      <header>
        <BackLink />
        <h1>
          <b dir="auto">{stock.symbol}</b> <span dir="auto">{nameOf(stock)}</span>
        </h1>
        <p class="facts">
          {typeof isin === 'string' && <span>ISIN {isin}</span>}
          <HexLink kind="address" label="contract" hex={stock.address} />
          <span>{multiplierText(stock)}</span>
          {warnings !== null && <span class="attention">{warnings}</span>}
        </p>
      </header>
      <section class="numbers" aria-label="Value">
        {figures.map(([title, Cell]) => (
          <div class="number" key={title}>
            <h2>{title}</h2>
            <Cell stock={stock} nowMs={nowMs} />
          </div>
        ))}
      </section>
    </>
  )
}
