import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Head, StockState } from '../../sdk/client/index.ts'
import type { BoardFeed } from '../feed/board-feed.ts'
import { memo, useOutside } from '../feed/board-hooks.ts'
import { type BoardFilter, type TapeShow, tapeShows } from '../shared/board-route.ts'
import { CsvButton } from '../shared/csv-button.tsx'
import { changeFilter, changeView, openPage } from '../shared/navigation.tsx'
import { formatCount } from '../shared/number-text.ts'
import { keep, kept } from '../shared/page-settings.ts'
import { formatAge, formatClock } from '../shared/time-text.ts'
import { FilterChips, FilterForm } from './filter-bar.tsx'
import { recordOf } from './pulse-strip.tsx'
import { tapeCsv } from './tape-csv.ts'
import type { TapeLine } from './tape-lines.ts'
import { linesOf, tapeTabs } from './tape-tabs.ts'
import {
  lineRemark,
  lineSentence,
  lineText,
  shortFigure,
  shortRemark,
  shortValue,
  stageOf,
  tintOf,
  weightOf,
} from './tape-texts.ts'

/** Height of a line: of two rows, and of one where the list is as wide as the page. The style has these numbers too. */
const [LINE_PX, WIDE_LINE_PX] = [44, 36]
const WIDE = '(min-width: 720px) and (max-width: 1019px), (min-width: 1600px)'
/** Rows drawn beyond each edge, so that a quick scroll shows no empty space. */
const MARGIN_ROWS = 6

type TapeProps = {
  readonly feed: BoardFeed
  readonly nowMs: number
  readonly isPaused: boolean
  readonly onPause: (isPaused: boolean) => void
  readonly filter: BoardFilter
  readonly show: TapeShow
  readonly isWall: boolean
  /** The token whose page is shown, and whose lines alone are in the list. */
  readonly only: Pick<StockState, 'address' | 'symbol'> | null
}

/** With another filter or for another token it is another tape, which begins at its newest line. */
export const TapePanel = (props: TapeProps) => (
  <Tape key={JSON.stringify([props.feed.filter, props.show, props.only?.address])} {...props} />
)

/** Shows the lines, newest on top. They do not move while they are paused, scrolled, or under the pointer or the focus. */
function Tape({ feed, nowMs, isPaused, onPause, filter, show, isWall, only }: TapeProps) {
  const [isFilterOpen, setFilterOpen] = useState(false)
  const scroller = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [isUnderPointer, setUnderPointer] = useState(false)
  const [hasFocus, setFocus] = useState(false)
  const [isOfAll, setOfAll] = useState(false)
  const isHeld = isPaused || top > 0 || isUnderPointer || hasFocus
  const token = isOfAll ? null : only
  const lines = linesOf(feed.lines.all, show, token?.address ?? null)
  const shown = useHold(lines, isHeld)
  const waiting = lines.length - shown.length
  feed.lines.isHeld = isHeld
  // A pointer may lie anywhere: it does not silence the page for a reader who hears it.
  feed.isSilent = isPaused || top > 0 || hasFocus
  const resume = () => {
    scroller.current?.scrollTo(0, 0)
    setTop(0)
    setFocus(false)
    onPause(false)
  }
  const panel = useOutside<HTMLElement>(() => setFilterOpen(false))
  const closeFilter = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !isFilterOpen) return
    setFilterOpen(false)
    event.stopPropagation()
  }
  const apply = (next: BoardFilter) => {
    setFilterOpen(false)
    changeFilter(next)
  }
  return (
    <section class="tape" aria-label="Tape" ref={panel} onKeyDown={closeFilter}>
      <header class="tape-head">
        <h2>Tape</h2>
        <span class="chips">
          {token && (
            <button type="button" class="chip" aria-label={`${token.symbol}: of all symbols`} onClick={() => setOfAll(true)}>
              {token.symbol} <i aria-hidden="true">×</i>
            </button>
          )}
          <FilterChips filter={filter} onMore={() => setFilterOpen(true)} />
        </span>
        {(isPaused || top > 0 || waiting > 0) && (
          <button type="button" class="waiting" onClick={resume}>
            {waiting > 0 ? `${formatCount(waiting)} new ↑` : 'Newest ↑'}
          </button>
        )}
        <button type="button" aria-expanded={isFilterOpen} onClick={() => setFilterOpen(!isFilterOpen)}>
          <Icon path="M1 2h14l-5.5 6v6l-3-2V8z" word="Filter" />
        </button>
        <button type="button" aria-pressed={isPaused} onClick={() => onPause(!isPaused)}>
          {isPaused ? <Icon path="M4 2l9 6-9 6z" word="Resume" /> : <Icon path="M3 2h3.5v12H3zM9.5 2H13v12H9.5z" word="Pause" />}
        </button>
      </header>
      <div class="tape-tabs">
        <TapeTabs feed={feed} show={show} />
        <CsvButton
          label="Save these lines as CSV"
          name={`stocktape-${token?.symbol ?? 'tape'}`}
          text={() => tapeCsv(shown, feed.head)}
        />
      </div>
      <SignLine />
      {isFilterOpen && (
        <div class="filter-panel">
          <FilterForm filter={filter} onChange={apply} />
        </div>
      )}
      <div
        class="tape-body"
        onPointerDown={() => setFilterOpen(false)}
        // A finger that has left the screen is nowhere.
        onPointerEnter={({ pointerType }) => setUnderPointer(pointerType === 'mouse')}
        onPointerLeave={() => setUnderPointer(false)}
        onFocusCapture={({ target }) => setFocus(target instanceof Element && target.matches('.line :focus-visible'))}
        // The next line that has the focus keeps the list as it is.
        onBlurCapture={({ relatedTarget }) => setFocus(relatedTarget instanceof Element && relatedTarget.closest('.line') !== null)}
      >
        <LineList {...{ feed, nowMs, scroller, shown, waiting, show, isWall, top }} onScroll={setTop} />
      </div>
    </section>
  )
}

/** A sign in the place of its word, where a phone has no room for that. */
const Icon = ({ path, word }: { readonly path: string; readonly word: string }) => (
  <>
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={path} />
    </svg>
    <span class="icon-word">{word}</span>
  </>
)

const KEPT_SIGNS = 'signs'

/** Explains the dots to a reader who is new. */
function SignLine() {
  const [isSeen, setSeen] = useState(kept(KEPT_SIGNS) !== null)
  if (isSeen) return null
  const close = () => {
    setSeen(true)
    keep(KEPT_SIGNS, 'seen')
  }
  return (
    <p class="sign-line">
      {signNames.map(([stage, name]) => (
        <span key={stage} data-sign={stage}>
          <span class="line-dot" aria-hidden="true" /> {name}
          {stage === 'preconfirmed' && <span class="gloss">: no block yet</span>}
        </span>
      ))}
      <button type="button" aria-label="Hide what the signs mean" onClick={close}>
        ✕
      </button>
    </p>
  )
}

const signNames = [
  ['preconfirmed', 'pre-confirmed'],
  ['sealed', 'sealed'],
  ['retracted', 'retracted'],
] as const

/** The number of the strip, of which the page may have read a part only. */
const retractedOf = (feed: BoardFeed): number => Math.max(recordOf(feed).retracted, feed.lines.retractedCount)

function TapeTabs({ feed, show }: Pick<TapeProps, 'feed' | 'show'>) {
  const retracted = retractedOf(feed)
  return (
    <nav aria-label="Parts of the tape">
      {tapeShows.map((name) => (
        <button type="button" key={name} aria-pressed={show === name} onClick={() => changeView({ show: name })}>
          {tapeTabs[name].title}
          {name === 'retracted' && retracted > 0 && <span class="figure">{` ${formatCount(retracted)}`}</span>}
        </button>
      ))}
    </nav>
  )
}

type LineListProps = Pick<TapeProps, 'feed' | 'nowMs' | 'show' | 'isWall'> & {
  readonly scroller: RefObject<HTMLDivElement | null>
  /** The lines of the list, newest last. */
  readonly shown: readonly TapeLine[]
  readonly waiting: number
  readonly top: number
  readonly onScroll: (top: number) => void
}

function LineList({ feed, nowMs, scroller, shown, waiting, show, isWall, top, onScroll }: LineListProps) {
  // A wall is read from far away.
  const linePx = !isWall && matchMedia(WIDE).matches ? WIDE_LINE_PX : LINE_PX
  const count = shown.length
  const from = Math.max(0, Math.floor(top / linePx) - MARGIN_ROWS)
  // The list is never higher than the window, so no row below this one is visible.
  const to = Math.min(count, Math.ceil((top + innerHeight) / linePx) + MARGIN_ROWS)
  useEffect(() => {
    if (to >= count - MARGIN_ROWS && feed.lines.all.length > 0) void feed.readOlder()
  }, [feed, to, count])
  const rows = shown.slice(count - to, count - from).toReversed()
  return (
    <section
      class="tape-scroll"
      data-tape
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls it
      tabIndex={0}
      aria-label="Newest first"
      onScroll={({ currentTarget }) => onScroll(currentTarget.scrollTop)}
    >
      <ul class="tape-space" style={{ height: `${count * linePx}px` }}>
        {rows.map((line, index) => {
          // Only sealed lines depend on the heads. The others receive none, so that a new head does not draw them again.
          const head = line.isSealed ? feed.head : null
          return <TapeRow key={line.nth} top={(from + index) * linePx} {...{ line, head }} />
        })}
      </ul>
      {count === 0 && <p class="empty">{emptyWords(feed, show, waiting, nowMs)}</p>}
      {!isWall && feed.olderEnd !== null && (
        <button type="button" class="older" onClick={() => void feed.readOlder()}>
          {feed.isReadingHistory ? 'Reading older lines …' : 'Older lines'}
          {show === 'retracted' &&
            feed.lines.retractedCount < retractedOf(feed) &&
            ` (${formatCount(feed.lines.retractedCount)} of ${formatCount(retractedOf(feed))} read)`}
        </button>
      )}
    </section>
  )
}

/** Returns the lines of the list. While it is held, those that were in it when that began, and older ones. */
function useHold(lines: readonly TapeLine[], isHeld: boolean): readonly TapeLine[] {
  const held = useRef<{ readonly first: number; readonly nths: ReadonlySet<number> } | null>(null)
  if (!isHeld) held.current = null
  // Without a line there is none to keep in its place.
  else if (lines.length > 0) held.current ??= { first: lines[0]?.nth ?? 0, nths: new Set(lines.map(({ nth }) => nth)) }
  if (held.current === null) return lines
  const { first, nths } = held.current
  return lines.filter(({ nth }) => nth < first || nths.has(nth))
}

function emptyWords(feed: BoardFeed, show: TapeShow, waiting: number, nowMs: number): string {
  const last = feed.lastUpdates.get('*')
  if (waiting > 0) return 'The page had to drop the lines shown here, because many newer ones arrived. Resume to see the newest.'
  if (feed.failure !== null) return feed.needsKey ? 'Waiting for a key.' : 'Nothing is streamed.'
  if (feed.status?.reason === 'no_list') return 'There is nothing to stream until the token list is read.'
  if (feed.state?.phase !== 'live') return 'Connecting …'
  const since = last === undefined ? '' : ` The last message arrived ${formatAge(nowMs - Date.parse(last))} ago.`
  return `${tapeTabs[show].empty}${since}`
}

type RowProps = { readonly line: TapeLine; readonly top: number; readonly head: Head | null }

const TapeRow = memo(({ line, top, head }: RowProps) => {
  const { content } = line
  const { symbol, type, figure, detail } = lineText(line)
  const [value, short] = [shortValue(line), shortFigure(line)]
  const stage = stageOf(line, head)
  const remark = shortRemark(line)
  const isLate = 'late' in content && content.late === true
  return (
    <li
      class="line"
      style={{ transform: `translateY(${top}px)` }}
      data-line={line.id}
      data-stage={stage ?? undefined}
      data-tint={tintOf(line) ?? undefined}
      data-weight={weightOf(line) ?? undefined}
      data-trade={content.type === 'trade' || undefined}
      data-late={isLate || undefined}
      data-amended={line.amended.length > 0 || undefined}
    >
      <button type="button" onClick={() => openPage({ name: 'fact', key: line.id })}>
        <span class="unseen">{lineSentence(line, head)}</span>
        <span class="line-row" aria-hidden="true">
          <span class="line-time">
            {formatClock(content.time)}
            <span class="milliseconds">{content.time.slice(19, 23)}</span>
          </span>
          <span class="line-dot" />
          <span class="line-symbol" dir="auto">
            {symbol === '*' ? '' : symbol}
          </span>
          <span class={`line-type ${sideOf(line)}`}>{type}</span>
          <span class="line-value">{value || figure}</span>
        </span>
        <span class="line-row" aria-hidden="true">
          <span class="line-detail" title={[lineRemark(line), detail].filter(Boolean).join(': ')}>
            {isLate && stage !== 'retracted' && <LateClock />}
            {remark !== null && <span class="attention">{`${remark}${detail && ' · '}`}</span>}
            {detail}
          </span>
          <span class="line-figure">
            {short}
            {short !== '' && 'amount' in content && content.amount !== null && <bdi> {symbol}</bdi>}
          </span>
        </span>
      </button>
    </li>
  )
})

/** The sign of a late line, which its title and its sentence explain. */
const LateClock = () => (
  <svg class="clock" viewBox="0 0 12 12" aria-hidden="true">
    <circle cx="6" cy="6" r="5" />
    <path d="M6 3v3l2 1.5" />
  </svg>
)

const sideOf = ({ content }: TapeLine): string =>
  content.type !== 'trade' || content.side === null ? '' : content.side === 'buy' ? 'up' : 'down'
