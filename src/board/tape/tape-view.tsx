import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Head } from '../../sdk/client/index.ts'
import type { BoardFeed } from '../feed/board-feed.ts'
import { memo } from '../feed/board-hooks.ts'
import { formatCount } from '../shared/number-text.ts'
import { formatDuration, formatTapeTime } from '../shared/time-text.ts'
import type { TapeLine } from './tape-lines.ts'
import { lineRemark, lineSentence, lineText, stageOf } from './tape-texts.ts'

const ROW_PX = 44
/** Rows beyond the edges, so that a quick scroll shows no white. */
const MARGIN_ROWS = 6

export type TapeProps = {
  readonly feed: BoardFeed
  readonly nowMs: number
  readonly isPaused: boolean
  readonly onPause: (isPaused: boolean) => void
  readonly onOpen: (line: TapeLine) => void
}

/** The list, newest on top. It never moves under a reader: away from the top, or paused, it waits. */
export function TapeView({ feed, nowMs, isPaused, onPause, onOpen }: TapeProps) {
  const { lines } = feed
  const scroller = useRef<HTMLDivElement>(null)
  const [scroll, setScroll] = useState({ top: 0, height: 600 })
  const isHeld = isPaused || scroll.top > 0
  const anchor = useAnchor(feed, isHeld)
  lines.isHeld = isHeld
  const first = lines.all[0]?.nth ?? 1
  const count = lines.all.length === 0 ? 0 : anchor - first + 1
  const from = Math.max(0, Math.floor(scroll.top / ROW_PX) - MARGIN_ROWS)
  const to = Math.min(count, Math.ceil((scroll.top + scroll.height) / ROW_PX) + MARGIN_ROWS)
  useEffect(() => {
    if (to >= count - MARGIN_ROWS && count > 0) void feed.readOlder()
  }, [feed, to, count])
  useLayoutEffect(() => {
    const element = scroller.current
    if (!element) return
    const measure = () => setScroll((now) => ({ ...now, height: element.clientHeight }))
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  const waiting = lines.newest - anchor
  const resume = () => {
    scroller.current?.scrollTo(0, 0)
    setScroll((now) => ({ ...now, top: 0 }))
    onPause(false)
  }
  const rows = Array.from({ length: Math.max(0, to - from) }, (_, index) => lines.at(anchor - from - index))
  return (
    <div class="tape-body">
      <section
        class="tape-scroll"
        data-tape
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls it
        tabIndex={0}
        aria-label="Newest first"
        onScroll={({ currentTarget }) => setScroll({ top: currentTarget.scrollTop, height: currentTarget.clientHeight })}
      >
        <ul class="tape-space" style={{ height: `${count * ROW_PX}px` }}>
          {rows.map(
            (line) =>
              line && (
                <TapeRow
                  key={line.nth}
                  line={line}
                  top={(anchor - line.nth) * ROW_PX}
                  head={headFor(line, feed.head)}
                  onOpen={onOpen}
                />
              ),
          )}
        </ul>
        {count === 0 && <p class="empty">{emptyWords(feed, nowMs)}</p>}
      </section>
      {isHeld && (
        <button type="button" class="waiting" onClick={resume}>
          {waiting > 0 ? `${formatCount(waiting)} new ↑` : isPaused ? 'Paused: resume' : 'Back to the newest ↑'}
        </button>
      )}
    </div>
  )
}

/** The number of the line on top. It stays while the list waits. */
function useAnchor({ lines }: BoardFeed, isHeld: boolean): number {
  const anchor = useRef<number | null>(null)
  if (!isHeld) anchor.current = null
  else anchor.current ??= lines.newest
  // What was dropped from the list cannot be shown; the relay still has it.
  return Math.max(anchor.current ?? lines.newest, (lines.all[0]?.nth ?? 1) - 1)
}

function emptyWords(feed: BoardFeed, nowMs: number): string {
  const last = feed.lastUpdates.get('*')
  if (feed.lines.all.length > 0) return 'So much is new that the page had to drop what was shown here. Resume to see the newest.'
  if (feed.state?.phase !== 'live') return 'Connecting …'
  const since = last === undefined ? '' : ` The last message came ${formatDuration(nowMs - Date.parse(last))} ago.`
  return `Nothing yet. A quiet market is normal: a line appears when a token moves.${since}`
}

/** Only what a line needs of the heads, so that the others need not be drawn again. */
const headFor = (line: TapeLine, head: Head | null): Head | null => (line.isSealed ? head : null)

type RowProps = {
  readonly line: TapeLine
  readonly top: number
  readonly head: Head | null
  readonly onOpen: (line: TapeLine) => void
}

const TapeRow = memo(({ line, top, head, onOpen }: RowProps) => {
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
      <button type="button" onClick={() => onOpen(line)}>
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

/** A small clock; the title and the sentence of the line say why. */
const LateMark = ({ detail }: { readonly detail: string }) => (
  <>
    <svg class="clock" viewBox="0 0 12 12" aria-hidden="true">
      <circle cx="6" cy="6" r="5" />
      <path d="M6 3v3l2 1.5" />
    </svg>
    late <span class="faint">{detail}</span>
  </>
)
