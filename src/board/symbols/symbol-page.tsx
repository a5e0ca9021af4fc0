import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { premium, type Update } from '../../sdk/client/index.ts'
import type { ChartProps } from '../chart/candle-chart.tsx'
import type { BoardFeed } from '../feed/board-feed.ts'
import type { DayFigures } from '../feed/day-bars.ts'
import { useHistory } from '../feed/symbol-history.ts'
import type { AlertState } from '../feed/use-alerts.ts'
import type { BoardView } from '../shared/board-route.ts'
import { CopyButton } from '../shared/copy-button.tsx'
import { HexLink } from '../shared/hex-link.tsx'
import { BackLink, openPage, PageLink } from '../shared/navigation.tsx'
import { formatBlock, formatDecimal, formatMoney, formatPrice, shortHex, UNKNOWN } from '../shared/number-text.ts'
import { relayUrl } from '../shared/page-settings.ts'
import { ScrollTable, TableHead } from '../shared/scroll-table.tsx'
import { type LineStage, quoteStateWords, stageWords, typeName, venueWords } from '../shared/state-words.ts'
import { nameOf, pausedText, scheduledText, sharesText, warningsText } from '../shared/stock-texts.ts'
import { formatClock, formatMoment } from '../shared/time-text.ts'
import { CodeBlock, visibleJson } from '../shared/visible-text.tsx'
import { isFolded, type TapeLine } from '../tape/tape-lines.ts'
import { dollarsOf, lineRemark, lineText, multiplierWords, phaseWords, shortFigure, stageOf } from '../tape/tape-texts.ts'
import { AlertPanel } from './alert-panel.tsx'
import { BasisCell, ChangeCell, NavCell, PinButton, QuoteCell, type StockProps, SupplyCell, VolumeCell } from './symbol-cells.tsx'

type PageProps = StockProps & {
  readonly feed: BoardFeed
  /** The symbols in the order of the list. */
  readonly order: readonly string[]
  readonly alertState: AlertState
  readonly view: BoardView
}

export function SymbolPage({ stock, feed, order, nowMs, alertState, view }: PageProps) {
  const { readings, events } = useHistory(stock, feed)
  const basis = premium(stock)
  return (
    <article class="symbol-page" data-symbol={stock.symbol}>
      <SymbolHead {...{ stock, nowMs, order, alertState, view }} lostMs={feed.lostMs} day={feed.day.of(stock, nowMs)} />
      <LazyChart {...{ stock, feed, readings, events, nowMs }} />
      <p class="note">
        {basis && stock.quote
          ? `The ${basis.kind} is that of the deepest pool's price against ${basis.kind === 'drift' ? 'the held NAV' : 'the NAV'}, with ${stock.quote.venue.currency.symbol} taken as 1 USD.`
          : 'Without a NAV or a price there is no premium.'}{' '}
        Neither is a price to trade at.
      </p>
      <div class="two-parts">
        <Pools stock={stock} />
        <Timeline stock={stock} events={events} nowMs={nowMs} />
      </div>
      <Movements stock={stock} feed={feed} nowMs={nowMs} />
      <details>
        <summary>The record in the token list</summary>
        <CodeBlock text={visibleJson(stock.token, 2)} />
      </details>
    </article>
  )
}

/** Loads the code of the chart when a symbol is opened. Without a connection, once the relay answers. */
function LazyChart(props: ChartProps) {
  const [chart, setChart] = useState<{ readonly View: ComponentType<ChartProps> } | 'failed' | null>(null)
  const isLive = props.feed.state?.phase === 'live'
  const [attempt, setAttempt] = useState(0)
  useEffect(() => {
    if (isLive && chart === 'failed') setAttempt(attempt + 1)
  }, [isLive])
  useEffect(() => {
    import('../chart/candle-chart.tsx').then(
      ({ CandleChart: View }) => setChart({ View }),
      () => setChart('failed'),
    )
  }, [attempt])
  if (chart !== null && chart !== 'failed') return <chart.View {...props} />
  // A newer relay may lack the file that a page from before its update asks for.
  const failure = isLive ? 'The chart could not be loaded: load the page again.' : 'The chart is drawn once the relay answers.'
  return <p class="chart cursor-text">{chart === 'failed' ? failure : 'Loading the candles …'}</p>
}

type FigureProps = StockProps & Pick<BoardFeed, 'lostMs'> & { readonly day: DayFigures }

const BASIS = 'Premium bps'
const figures: readonly (readonly [title: string, Cell: ComponentType<FigureProps>])[] = [
  ['Price', QuoteCell],
  ['NAV', NavCell],
  [BASIS, BasisCell],
  ['Change', ChangeCell],
  ['Volume 24 h', VolumeCell],
  ['Supply', SupplyCell],
]

/** Characters of every valid ISIN. */
const ISIN_LENGTH = 12

type SymbolHeadProps = FigureProps & Pick<PageProps, 'order' | 'alertState' | 'view'>

function SymbolHead({ stock, nowMs, order, lostMs, day, alertState, view }: SymbolHeadProps) {
  const at = order.indexOf(stock.symbol)
  const [before, after] = [order[at - 1], at === -1 ? undefined : order[at + 1]]
  const { isin } = stock.token
  const notices = [warningsText(stock), scheduledText(stock, nowMs), pausedText(stock)].filter((text) => text !== null)
  return (
    <>
      <header>
        <div class="page-head">
          <BackLink />
          <AlertPanel stock={stock} state={alertState} />
          <CopyButton label="Copy link" text={() => location.href}>
            Copy link
          </CopyButton>
          <CopyButton label="Embed: copy an iframe for a page of your own" text={() => embedCode(stock.symbol)}>
            Embed
          </CopyButton>
          {before === undefined ? (
            <span class="no-link" aria-hidden="true">
              ‹
            </span>
          ) : (
            <PageLink page={{ name: 'symbol', symbol: before }} title={before}>
              ‹<span class="wide-word"> {before}</span>
            </PageLink>
          )}
          {after === undefined ? (
            <span class="no-link" aria-hidden="true">
              ›
            </span>
          ) : (
            <PageLink page={{ name: 'symbol', symbol: after }} title={after}>
              <span class="wide-word">{after} </span>›
            </PageLink>
          )}
        </div>
        <h1>
          <PinButton {...{ stock, view }} />
          <b dir="auto">{stock.symbol}</b>{' '}
          <span dir="auto" title={nameOf(stock)}>
            {nameOf(stock)}
          </span>
        </h1>
        <p class="facts">
          {typeof isin === 'string' && (
            <span title={isin}>ISIN {isin.length > ISIN_LENGTH ? `${isin.slice(0, ISIN_LENGTH)}…` : isin}</span>
          )}
          <HexLink kind="address" label="contract" hex={stock.address} />
          <span>{sharesText(stock)}</span>
        </p>
        {notices.length > 0 && (
          <p class="notices attention">
            {notices.map((text) => (
              <span key={text}>{text}</span>
            ))}
          </p>
        )}
      </header>
      <section class="numbers" aria-label="Value">
        {figures.map(([title, Cell]) => (
          <div class="number" key={title}>
            <h2>{title === BASIS && premium(stock)?.kind === 'drift' ? 'Drift bps' : title}</h2>
            <Cell {...{ stock, nowMs, lostMs, day }} />
          </div>
        ))}
      </section>
    </>
  )
}

const embedCode = (symbol: string): string =>
  `<iframe src="${new URL(`embed/${encodeURIComponent(symbol)}`, relayUrl())}" width="360" height="190" title="${symbol}"></iframe>`

/** The pools of a stock, the deepest first: its price is that of the first. */
function Pools({ stock: { quotes, venues } }: Pick<StockProps, 'stock'>) {
  const quoted = quotes.map(({ venue, ...quote }) => ({ venue, quote }))
  const others = venues.filter(({ venue }) => !quotes.some((quote) => quote.venue.pool === venue.pool))
  const pools = [...quoted, ...others.map(({ venue }) => ({ venue, quote: null }))]
  return (
    <section aria-label="Pools">
      <h2>Pools</h2>
      {pools.length === 0 ? (
        <p class="faint">The relay follows no pool of this symbol: there is no price on the chain.</p>
      ) : (
        <ScrollTable label="Prices of the pools" name="pools" titles={['Pool', 'Kind', 'Fee', 'Price', 'Depth to +1 %', 'Read at']}>
          {pools.map(({ venue, quote }) => (
            <tr key={venue.pool}>
              <td>
                <HexLink kind="address" label="" hex={venue.pool} />
              </td>
              <td>{venueWords(venue)}</td>
              <td class="figure">{venue.fee_bps === null ? UNKNOWN : `${venue.fee_bps} bps`}</td>
              <td class="figure">
                {quote === null || quote.state === 'ok' ? formatPrice(quote?.price ?? null) : quoteStateWords(quote)}
              </td>
              <td class="figure">{quote?.depth == null ? UNKNOWN : formatMoney(Number(quote.depth))}</td>
              <td class="figure">{quote ? `block ${formatBlock(quote.block.number)}` : 'not yet'}</td>
            </tr>
          ))}
        </ScrollTable>
      )}
    </section>
  )
}

/** Limit on the events, and on the movements, that are listed. */
const SHOWN = 12

function Timeline({ stock, events, nowMs }: StockProps & { readonly events: readonly Update[] }) {
  const scheduled = scheduledText(stock, nowMs)
  const past = events.filter(isAction).reverse()
  return (
    <section aria-label="Corporate actions">
      <h2>Corporate actions</h2>
      <ol class="timeline">
        {scheduled !== null && (
          <li class="attention">
            <b>scheduled</b> {scheduled}
          </li>
        )}
        {past.slice(0, SHOWN).map((update) => (
          <li key={update.id}>
            <time dateTime={update.time}>{formatMoment(update.time, nowMs)}</time>{' '}
            <b>{update.type === 'multiplier' ? multiplierWords(update) : typeName(update.type)}</b> {eventWords(update)}
          </li>
        ))}
        {scheduled === null && past.length === 0 && <li class="faint">None on the tape.</li>}
      </ol>
    </section>
  )
}

/** The history of a symbol has its seals too, and the multiplier with which it was listed. */
const isAction = (update: Update): boolean =>
  update.type === 'multiplier' ? update.previous !== null : update.type === 'pause' || update.type === 'action'

function eventWords(update: Update): string {
  if (update.type === 'multiplier')
    return `${phaseWords[update.phase]}: ${update.previous === null ? '' : `${update.previous} → `}${update.multiplier ?? UNKNOWN}`
  if (update.type === 'pause') return `${update.features.join(', ').toLowerCase()} ${update.change}`
  return update.type === 'action' ? update.description || update.action_id : ''
}

function Movements({ stock: { address }, feed: { lines, head }, nowMs }: StockProps & { readonly feed: BoardFeed }) {
  // Beside the tape, the last ones are on the screen already.
  const [isLargest, setLargest] = useState(() => matchMedia('(min-width: 1020px)').matches)
  const own = lines.all.filter(
    ({ content, ...line }) =>
      content.type !== 'gap' &&
      content.address === address &&
      'shares' in content &&
      'key' in content &&
      !isFolded({ content, ...line }),
  )
  // A retracted line did not happen.
  const dollars = (line: TapeLine) => (line.retraction ? -1 : (dollarsOf(line) ?? 0))
  const shown = (isLargest ? own.toSorted((a, b) => dollars(b) - dollars(a)) : own.toReversed()).slice(0, SHOWN)
  return (
    <section aria-label="Movements">
      <h2>
        Trades and moves
        <fieldset class="tabs" aria-label="Order">
          <button type="button" aria-pressed={!isLargest} onClick={() => setLargest(false)}>
            last
          </button>
          <button type="button" aria-pressed={isLargest} onClick={() => setLargest(true)}>
            largest of the {own.length} loaded
          </button>
        </fieldset>
      </h2>
      {shown.length === 0 && <p class="faint">None yet.</p>}
      <table class="movements">
        {shown.length > 0 && <TableHead titles={['', 'Time', 'Type', 'From → to', 'Tokens', 'Shares', 'Value', '']} />}
        <tbody>
          {shown.map((line) => (
            <MovementRow key={line.nth} line={line} stage={stageOf(line, head)} nowMs={nowMs} />
          ))}
        </tbody>
      </table>
    </section>
  )
}

type MovementProps = { readonly line: TapeLine; readonly stage: LineStage | null; readonly nowMs: number }

function MovementRow({ line, stage, nowMs }: MovementProps) {
  const { content } = line
  if (!('shares' in content && 'key' in content)) return null
  const { value, detail, type } = lineText(line)
  const side = content.type === 'trade' ? content.side : null
  const open = () => openPage({ name: 'fact', key: line.id })
  return (
    <tr class={line.retraction ? 'struck' : ''} data-stage={stage ?? undefined} title={lineRemark(line) ?? ''}>
      <td>
        <span class="line-dot" />
        <span class="unseen">{stage && stageWords[stage]}</span>
      </td>
      <td title={formatMoment(content.time, nowMs)}>{formatClock(content.time)}</td>
      <td class={side === null ? '' : side === 'buy' ? 'up' : 'down'}>{type}</td>
      <td>{'from' in content ? `${shortHex(content.from)} → ${shortHex(content.to)}` : detail}</td>
      <td class="figure">{shortFigure(line)}</td>
      <td class="figure">{formatDecimal(content.shares, 2)}</td>
      <td class="figure">{value}</td>
      <td>
        <button type="button" title="From its first message to its end" onClick={open}>
          Details
        </button>
      </td>
    </tr>
  )
}
