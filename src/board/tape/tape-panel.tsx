import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Head } from '../../sdk/client/index.ts'
import type { BoardFeed } from '../feed/board-feed.ts'
import { memo } from '../feed/board-hooks.ts'
import type { BoardFilter } from '../shared/board-route.ts'
import { changeFilter, openPage } from '../shared/navigation.tsx'
import { formatCount } from '../shared/number-text.ts'
import { formatDuration, formatTapeTime } from '../shared/time-text.ts'
import { FilterChips, FilterForm } from './filter-bar.tsx'
import type { TapeLine } from './tape-lines.ts'
import { lineRemark, lineSentence, lineText, stageOf } from './tape-texts.ts'

const ROW_PX = 44
/** Rows drawn beyond each edge, so that a quick scroll shows no empty space. */
const MARGIN_ROWS = 6

type TapeProps = {
  readonly feed: BoardFeed
  readonly nowMs: number
  readonly isPaused: boolean
  readonly onPause: (isPaused: boolean) => void
  readonly filter: BoardFilter
}

/** Another feed, which another filter has, is another tape: it begins at its newest line. */
export const TapePanel = (props: TapeProps) => <Tape key={JSON.stringify(props.feed.filter)} {...props} />

/** Shows the lines, newest on top. They do not move while they are paused, scrolled, or under the pointer or the focus. */
function Tape({ feed, nowMs, isPaused, onPause, filter }: TapeProps) {
  const [isFilterOpen, setFilterOpen] = useState(false)
  const scroller = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [isUnderPointer, setUnderPointer] = useState(false)
  const [hasFocus, setFocus] = useState(false)
  const isHeld = isPaused || top > 0 || isUnderPointer || hasFocus
  const anchor = useAnchor(feed, isHeld)
  feed.lines.isHeld = isHeld
  const resume = () => {
    scroller.current?.scrollTo(0, 0)
    setTop(0)
    setFocus(false)
    onPause(false)
  }
  const apply = (next: BoardFilter) => {
    setFilterOpen(false)
    changeFilter(next)
  }
  return (
    <section class="tape" aria-label="Tape">
      <header class="tape-head">
        <h2>Tape</h2>
        <span class="chips">
          <FilterChips filter={filter} onMore={() => setFilterOpen(true)} />
        </span>
        {(isPaused || top > 0 || feed.lines.newest > anchor) && (
          <button type="button" class="waiting" onClick={resume}>
            {feed.lines.newest > anchor ? `${formatCount(feed.lines.newest - anchor)} new ↑` : 'Newest ↑'}
          </button>
        )}
        <button type="button" aria-expanded={isFilterOpen} onClick={() => setFilterOpen(!isFilterOpen)}>
          Filter
        </button>
        <button type="button" aria-pressed={isPaused} onClick={() => onPause(!isPaused)}>
          {isPaused ? 'Resume' : 'Pause'}
        </button>
      </header>
      {isFilterOpen && (
        <div class="filter-panel">
          <FilterForm filter={filter} onChange={apply} />
        </div>
      )}
      <div
        class="tape-body"
        // A finger that has left the screen is nowhere.
        onPointerEnter={({ pointerType }) => setUnderPointer(pointerType === 'mouse')}
        onPointerLeave={() => setUnderPointer(false)}
        onFocusCapture={({ target }) => setFocus(target instanceof Element && target.matches('.line :focus-visible'))}
        onBlurCapture={() => setFocus(false)}
      >
        <LineList {...{ feed, nowMs, scroller, anchor, top }} onScroll={setTop} />
      </div>
    </section>
  )
}

type LineListProps = Pick<TapeProps, 'feed' | 'nowMs'> & {
  readonly scroller: RefObject<HTMLDivElement | null>
  readonly anchor: number
  readonly top: number
  readonly onScroll: (top: number) => void
}

function LineList({ feed, nowMs, scroller, anchor, top, onScroll }: LineListProps) {
  const { lines } = feed
  const first = lines.all[0]?.nth ?? 1
  const count = lines.all.length === 0 ? 0 : anchor - first + 1
  const from = Math.max(0, Math.floor(top / ROW_PX) - MARGIN_ROWS)
  // The list is never higher than the window, so no row below this one is visible.
  const to = Math.min(count, Math.ceil((top + innerHeight) / ROW_PX) + MARGIN_ROWS)
  useEffect(() => {
    if (to >= count - MARGIN_ROWS && count > 0) void feed.readOlder()
  }, [feed, to, count])
  const rows = Array.from({ length: Math.max(0, to - from) }, (_, index) => lines.at(anchor - from - index))
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
      <ul class="tape-space" style={{ height: `${count * ROW_PX}px` }}>
        {rows.map((line) => {
          if (!line) return null
          // Only sealed lines depend on the heads. The others receive none, so that a new head does not draw them again.
          const head = line.isSealed ? feed.head : null
          return <TapeRow key={line.nth} top={(anchor - line.nth) * ROW_PX} {...{ line, head }} />
        })}
      </ul>
      {count === 0 && <p class="empty">{emptyWords(feed, nowMs)}</p>}
    </section>
  )
}

/** Returns the number of the line on top, which does not change while the list is held. */
function useAnchor({ lines }: BoardFeed, isHeld: boolean): number {
  const anchor = useRef<number | null>(null)
  if (!isHeld) anchor.current = null
  // Without a line there is none to keep in its place.
  else if (lines.all.length > 0) anchor.current ??= lines.newest
  // Lines that were dropped from the list cannot be shown.
  return Math.max(anchor.current ?? lines.newest, (lines.all[0]?.nth ?? 1) - 1)
}

function emptyWords(feed: BoardFeed, nowMs: number): string {
  const last = feed.lastUpdates.get('*')
  if (feed.lines.all.length > 0)
    return 'The page had to drop the lines shown here, because many newer ones arrived. Resume to see the newest.'
  if (feed.failure !== null) return 'The relay refuses this selection.'
  if (feed.state?.phase !== 'live') return 'Connecting …'
  const since = last === undefined ? '' : ` The last message arrived ${formatDuration(nowMs - Date.parse(last))} ago.`
  return `Nothing yet. A quiet market is normal: a line appears when a token moves.${since}`
}

type RowProps = { readonly line: TapeLine; readonly top: number; readonly head: Head | null }

const TapeRow = memo(({ line, top, head }: RowProps) => {
  const { content } = line
  const { symbol, type, figure, value, detail } = lineText(line)
  const stage = stageOf(line, head)
  const remark = lineRemark(line)
  const isLate = 'late' in content && content.late === true
  return (
    <li
      class={`line ${content.type === 'gap' || content.type === 'hole' ? 'is-gap' : ''}`}
      style={{ transform: `translateY(${top}px)` }}
      data-line={line.id}
      data-stage={stage ?? undefined}
      data-late={isLate || undefined}
      data-amended={line.amended.length > 0 || undefined}
    >
      <button type="button" onClick={() => openPage({ name: 'fact', key: line.id })}>
        <span class="unseen">{lineSentence(line, head)}</span>
        <span class="line-row" aria-hidden="true">
          <span class="line-time">{'time' in content ? formatTapeTime(content.time) : ''}</span>
          <span class="line-dot" />
          <span class="line-symbol" dir="auto">
            {symbol === '*' ? '' : symbol}
          </span>
          <span class="line-type">{type}</span>
          <span class="line-figure">{figure}</span>
        </span>
        <span class="line-row" aria-hidden="true">
          <span class={`line-detail ${remark === null ? '' : 'attention'}`} title={remark ?? detail}>
            {isLate && stage !== 'retracted' ? <LateMark detail={detail} /> : (remark ?? detail)}
          </span>
          <span class="line-value">{value}</span>
        </span>
      </button>
    </li>
  )
})

/** Marks a late line with a small clock, which the title and the sentence of the line explain. */
const LateMark = ({ detail }: { readonly detail: string }) => (
  <>
    <svg class="clock" viewBox="0 0 12 12" aria-hidden="true">
      <circle cx="6" cy="6" r="5" />
      <path d="M6 3v3l2 1.5" />
    </svg>
    late <span class="faint">{detail}</span>
  </>
)
