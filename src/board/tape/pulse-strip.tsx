import { ConnectionError, type ServiceStatus, type Source } from '../../sdk/client/index.ts'
import type { BoardFeed } from '../feed/board-feed.ts'
import type { AlertState } from '../feed/use-alerts.ts'
import type { BoardRoute } from '../shared/board-route.ts'
import { PageLink } from '../shared/navigation.tsx'
import { formatCount, formatRight } from '../shared/number-text.ts'
import { reasonSentence, sessionWords, sourceWords } from '../shared/state-words.ts'
import { formatClock, formatDuration, formatMoment, zoneName } from '../shared/time-text.ts'
import type { TapeLine, TapeLines } from './tape-lines.ts'
import { isMissing } from './tape-texts.ts'

type StripProps = { readonly feed: BoardFeed; readonly nowMs: number; readonly alertState: AlertState }

/** The page that is served says it too, so that it stays where it is when the script begins. */
const TAGLINE = 'Tokenized stocks: what each is worth, how far to trust it'

/** Age of the newest block from which a live feed is slow: the node may be stuck. */
const SLOW_MS = 10_000

/** Shows what the page is, and whether the feed is alive. Its second line says what is wrong, most important first. */
export function Strip({ feed, nowMs, alertState }: StripProps) {
  const { state, status } = feed
  const source = state?.source ?? status?.source ?? null
  const lag = status?.lag_ms ?? null
  const isLive = state?.phase === 'live'
  const trouble = troubleOf(feed, nowMs, alertState)
  return (
    <>
      <PageLink
        page={{ name: 'health' }}
        class={`pulse ${lookOf(isLive, source, trouble)}`}
        source={source}
        title={source === null ? undefined : sourceWords[source]}
      >
        <span class="pulse-dot" aria-hidden="true" />
        <b>{isLive && source === 'pendingLogs' && trouble?.word ? trouble.word : phaseWord(feed, source)}</b>
        {isLive && lag !== null && source !== 'down' && (
          <span class={lag >= SLOW_MS ? 'attention' : ''}>
            · <span class="wide-word">newest block </span>
            <span class="pulse-age">
              {formatDuration(lag)}
              <span class="wide-word"> old</span>
            </span>
          </span>
        )}
      </PageLink>
      <SessionText feed={feed} nowMs={nowMs} />
      <div class="strip-line">
        <p class="tagline">{TAGLINE}</p>
        <p class={`trouble ${trouble?.level ?? ''}`} role="status">
          {trouble && <span>{trouble.text}</span>}
          {trouble && (trouble.page || feed.failure === null) && (
            <PageLink page={trouble.page ?? { name: 'health' }}>{trouble.action ?? 'Health'} ›</PageLink>
          )}
          {trouble?.dismiss && (
            <button type="button" onClick={trouble.dismiss}>
              Dismiss
            </button>
          )}
        </p>
        <PageLink
          page={{ name: 'health' }}
          class="strip-score"
          title={`${periodWords(feed)}: how many lines that were published before their block were sealed with it`}
        >
          <ScoreText feed={feed} />
        </PageLink>
      </div>
    </>
  )
}

/** Says what is wrong, the most important first; null if all is well. */
export const troubleOf = (feed: BoardFeed, nowMs: number, alertState?: AlertState): Trouble | null =>
  connectionTrouble(feed) ??
  sourceTrouble(feed, nowMs) ??
  gapTrouble(feed, nowMs) ??
  (alertState ? alertTrouble(alertState) : null) ??
  factTrouble(feed)

/** How live a feed is with each source. */
const liveWords: Readonly<Record<Source, string>> = { pendingLogs: 'Live', poll: 'Slow', sealed: 'Blocks only', down: 'No source' }

export function phaseWord({ state, status, failure, needsKey, interruptions }: BoardFeed, source: Source | null): string {
  if (failure !== null) return needsKey ? 'Key needed' : 'Refused'
  if (status?.reason === 'no_list') return 'No list yet'
  if (state?.phase === 'live') return liveWords[source ?? 'pendingLogs']
  return interruptions.length > 0 ? 'Reconnecting' : 'Connecting'
}

/** Returns the look of the dot: `good`, `fair` in trouble, `bad` or `off` without data, and empty before the stream begins. */
function lookOf(isLive: boolean, source: Source | null, trouble: Trouble | null): string {
  if (!isLive) return trouble === null ? '' : trouble.level === 'fair' ? 'fair' : 'off'
  if (source === 'down') return 'bad'
  return source === 'pendingLogs' && trouble === null ? 'good' : 'fair'
}

/** Names of markets, which the feed calls by their codes. */
const marketNames: Readonly<Record<string, string>> = { XNYS: 'NYSE', XNAS: 'Nasdaq' }

function SessionText({ feed, nowMs }: Pick<StripProps, 'feed' | 'nowMs'>) {
  const session = feed.book.all()[0]?.session
  if (!session) return <p class="strip-session" />
  const { market, ends_at } = session
  // A trading day begins with a session at night.
  const isClosed = session.state === 'closed'
  return (
    <p class="strip-session" title={`${market}: the exchange on which the stocks are listed`}>
      {marketNames[market] ?? market} {sessionWords({ ...session, reason: null }).replace(/^market /, '')}
      {session.reason !== null && <span class="wide-word"> ({session.reason})</span>}
      {ends_at !== null && (
        <>
          {isClosed ? ' · overnight ' : ' until '}
          {isClosed && <span class="wide-word">session from </span>}
          {formatMoment(ends_at, nowMs)}
          <span class="wide-word"> {zoneName(ends_at)}</span>
        </>
      )}
    </p>
  )
}

/**
 * Sums up the hours that the relay has counted: how many pre-confirmed lines were sealed, of how many that were judged. The page may
 * know of retractions before the relay is asked again.
 */
export function recordOf({
  status,
  lines,
}: {
  readonly status: ServiceStatus | null
  readonly lines: Pick<TapeLines, 'retractedCount'>
}) {
  const hours = status?.score ?? []
  const sum = (name: 'sealed' | 'retracted' | 'late' | 'amended') => hours.reduce((total, hour) => total + hour[name], 0)
  const sealed = sum('sealed')
  const leadMs = hours.findLast(({ lead_ms }) => lead_ms.p50 !== null)?.lead_ms.p50 ?? null
  const retracted = hours.length === 0 ? 0 : Math.max(sum('retracted'), lines.retractedCount)
  return { sealed, retracted, judged: sealed + retracted, late: sum('late'), amended: sum('amended'), leadMs }
}

/** The hours that the record sums up. */
export function periodWords({ status }: Pick<BoardFeed, 'status'>): string {
  const hours = status?.score?.length ?? 0
  return hours > 1 ? `Last ${hours} h` : 'Last hour'
}

/** A lead that has a digit in tenths of a second. */
const LEAD_MS = 100

function ScoreText({ feed }: Pick<StripProps, 'feed'>) {
  const { sealed, retracted, judged, late, leadMs } = recordOf(feed)
  if (judged === 0) return null
  const early = Math.floor((100 * judged) / (judged + late))
  // A share says enough where there is no room, and a few of many do not.
  const [right = '', of] = formatRight(sealed, judged).split(' of ')
  const isShare = right.endsWith('%')
  return (
    <>
      <span class="long-word period">{periodWords(feed)}: </span>
      <b>
        {right}
        <span class={isShare ? 'wide-word' : ''}> of {of}</span>
      </b>
      <span class="wide-word"> pre-confirmations</span>
      {/* A phone has no room for both words. */}
      <span class={retracted > 0 ? 'wide-word' : ''}> came true</span>
      {retracted > 0 && <span class="bad">, {formatCount(retracted)} retracted</span>}
      {leadMs !== null && leadMs >= LEAD_MS && (
        <span class="long-word">
          {' · '}
          {early < 100 && `${early} % of lines `}
          {formatDuration(leadMs)} ahead of the block
        </span>
      )}
      <span class="chevron"> ›</span>
    </>
  )
}

type Trouble = {
  readonly level: 'bad' | 'fair'
  readonly text: string
  /** The state of the feed in a word, in place of `Live`. */
  readonly word?: string
  /** Page that says more, if it is not the one about the source, and the words that lead there. */
  readonly page?: BoardRoute['page']
  readonly action?: string
  /** Takes the trouble out of the strip, if it stays there until a reader has seen it. */
  readonly dismiss?: () => void
}

/** After this time without an answer, the page says so. */
const PATIENCE_MS = 4_000

function connectionTrouble({ state, status, failure, needsKey, interruptions, openedMs, book, filter }: BoardFeed): Trouble | null {
  if (failure !== null)
    return { level: 'bad', text: needsKey ? 'This relay needs a key' : 'The relay refuses this selection: nothing is streamed' }
  if (status?.reason === 'no_list')
    return { level: 'fair', text: 'The token list has not been read yet: there are no symbols and no NAV' }
  const open = interruptions.at(-1)
  if (open && open.untilMs === null) {
    const wait = state?.retryAt == null ? '' : ` within ${formatDuration(Math.max(0, state.retryAt.getTime() - Date.now()))}`
    const since = formatClock(new Date(open.fromMs).toISOString())
    return {
      level: 'bad',
      text: `Connection lost: all you see is from ${since}. Trying again${wait}; what is missed will be marked`,
    }
  }
  if (state?.phase === 'live')
    return book.all().length > 0 || filter.symbols.length > 0
      ? null
      : { level: 'fair', text: 'The token list is empty: no token is followed now', word: 'No tokens' }
  if (state?.error && state.attempts > 1 && !(state.error instanceof ConnectionError))
    return { level: 'bad', text: `There is no stream yet, and the page tries again: ${state.error.message}` }
  const silentMs = Date.now() - openedMs
  return silentMs < PATIENCE_MS
    ? null
    : { level: 'bad', text: `The relay has not answered for ${formatDuration(silentMs)}: the page tries again` }
}

function sourceTrouble({ state, status }: BoardFeed, nowMs: number): Trouble | null {
  const source = state?.source ?? status?.source
  const reason = status?.reason && status.reason !== 'ok' ? `: ${reasonSentence(status.reason, source)}` : ''
  const since = status?.started_at ? ` since ${formatMoment(status.started_at, nowMs)}` : ''
  if (source === 'down')
    return { level: 'bad', text: `Source down${since}${reason}. Nothing new arrives; history and NAV still work` }
  if (source === 'poll') return { level: 'fair', text: `Slower than usual${since}${reason}. Lines may come late` }
  return source === 'sealed'
    ? { level: 'fair', text: `Nothing is pre-confirmed${since}${reason}. Each line comes with its block` }
    : null
}

function gapTrouble(feed: BoardFeed, nowMs: number): Trouble | null {
  if (feed.gap === null) return null
  const { id, atMs } = feed.gap
  const content = feed.lines.find(id)?.content
  const isSure = content?.type !== 'gap' || isMissing(content.reason)
  const moment = formatMoment(new Date(atMs).toISOString(), nowMs)
  const text = `Messages ${isSure ? 'are' : 'may be'} missing at ${moment}`
  return { level: 'fair', text, page: { name: 'fact', key: id }, action: 'Show the gap', dismiss: () => feed.dismissGap() }
}

function alertTrouble({ notice, dismiss }: AlertState): Trouble | null {
  if (notice === null) return null
  const { symbol, text } = notice
  return {
    level: 'fair',
    text,
    ...(symbol === null ? {} : { page: { name: 'symbol', symbol }, action: `Open ${symbol}` }),
    dismiss,
  }
}

function factTrouble({ state, lines }: BoardFeed): Trouble | null {
  const rejected = (state?.rejected ?? []).map(
    ({ symbol, suggest }) => `No symbol “${symbol}”${suggest.length > 0 ? `, but ${suggest.join(', ')}` : ''}`,
  )
  if (rejected.length > 0) return { level: 'fair', text: rejected.join('; ') }
  const text = unreliableText(lines.all)
  return text === null ? null : { level: 'fair', text, word: 'Unreliable' }
}

/** Limit on the newest lines by which the source is judged. */
const JUDGED_LINES = 300
const FACTS_MIN = 50
const SHARE_MIN = 0.02

/** Reports a source that announced many facts that were not sealed, or that did not announce many sealed facts. */
function unreliableText(lines: readonly TapeLine[]): string | null {
  const facts = lines
    .slice(-JUDGED_LINES)
    .filter(({ content, isSealed, retraction }) => 'ingest' in content && (isSealed || retraction))
  if (facts.length < FACTS_MIN) return null
  const countOf = (isOne: (line: TapeLine) => boolean) => facts.filter(isOne).length
  const retracted = countOf(({ retraction }) => retraction !== null)
  const late = countOf(({ content }) => 'ingest' in content && content.late && content.ingest.source !== 'backfill')
  if (Math.max(retracted, late) / facts.length < SHARE_MIN) return null
  const parts = [retracted > 0 && `${formatCount(retracted)} were retracted`, late > 0 && `${formatCount(late)} came late`]
  return `Unreliable source: of the newest ${facts.length} lines ${parts.filter(Boolean).join(' and ')}`
}
