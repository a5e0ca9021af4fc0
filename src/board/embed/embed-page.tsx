import { useEffect } from 'preact/hooks'
import { Sparkline, scaleOf } from '../chart/sparkline.tsx'
import { useConnectionMark, useFeed, useNow } from '../feed/board-hooks.ts'
import { DemoMark } from '../pages/board-frame.tsx'
import { emptyFilter, formatRoute, parseRoute } from '../shared/board-route.ts'
import { relayUrl } from '../shared/page-settings.ts'
import { stockSentence } from '../shared/stock-texts.ts'
import { findStock } from '../symbols/shown-symbols.ts'
import { BasisCell, ChangeCell, NameCell, NavCell, QuoteCell } from '../symbols/symbol-cells.tsx'
import { phaseWord, troubleOf } from '../tape/pulse-strip.tsx'

/** One symbol as a card in the page of somebody else. Its stream has this symbol alone, and hardly a line. */
export function EmbedPage({ symbol }: { readonly symbol: string }) {
  const feed = useFeed({ ...emptyFilter, symbols: [symbol], types: ['hole'] })
  const nowMs = useNow(feed)
  useConnectionMark(feed)
  useEffect(() => {
    document.title = `${symbol} · stocktape`
  }, [symbol])
  const stock = findStock(feed.book, symbol) ?? feed.book.all()[0]
  const trouble = troubleOf(feed, nowMs)
  const board = new URL(formatRoute({ ...parseRoute(''), page: { name: 'symbol', symbol: stock?.symbol ?? symbol } }), relayUrl())
  const day = stock && feed.day.of(stock, nowMs)
  return (
    <main class="embed">
      <header>
        {stock ? <NameCell {...{ stock, nowMs }} /> : <b>{symbol}</b>}
        <DemoMark feed={feed} />
      </header>
      {stock && day && (
        <>
          <p class="unseen">{stockSentence(stock, nowMs)}</p>
          <div class="embed-figures" aria-hidden="true">
            <QuoteCell stock={stock} />
            <ChangeCell {...{ stock, day, nowMs }} />
            <BasisCell {...{ stock, nowMs }} />
            <NavCell {...{ stock, nowMs }} lostMs={feed.lostMs} />
          </div>
          <Sparkline {...day} {...scaleOf([day])} />
        </>
      )}
      <footer>
        <span class={trouble === null ? '' : trouble.level}>
          {feed.failure ?? trouble?.text ?? phaseWord(feed, feed.state?.source ?? feed.status?.source ?? null)}
        </span>
        <a href={board.href} target="_blank" rel="noopener">
          stocktape ↗
        </a>
      </footer>
    </main>
  )
}
