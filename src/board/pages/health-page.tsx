import type { HourScore, ServiceStatus } from '../../sdk/client/index.ts'
import type { BoardFeed, Interruption } from '../feed/board-feed.ts'
import { BackLink } from '../shared/navigation.tsx'
import { formatBlock, formatCount, formatRight, formatShare, UNKNOWN } from '../shared/number-text.ts'
import { ScrollTable } from '../shared/scroll-table.tsx'
import { reasonSentence, sourceNames, sourceWords } from '../shared/state-words.ts'
import { formatAge, formatClock, formatDuration, formatMoment } from '../shared/time-text.ts'
import { periodWords, recordOf, troubleOf } from '../tape/pulse-strip.tsx'

type HealthProps = { readonly feed: BoardFeed; readonly nowMs: number }

export function HealthPage({ feed, nowMs }: HealthProps) {
  const { status, state, head } = feed
  const isLive = state?.phase === 'live'
  const source = state?.source ?? status?.source
  const reason = status && status.reason !== 'ok' ? reasonSentence(status.reason, source) : ''
  // Without a connection the page cannot know how far behind the relay is.
  const lag = isLive ? (status?.lag_ms ?? null) : null
  const since = status?.started_at ? formatMoment(status.started_at, nowMs) : UNKNOWN
  // This page is a listener too, and may have connected after the relay was asked.
  const listeners = status
    ? formatCount(Math.max(feed.state?.phase === 'live' ? 1 : 0, sumOf(Object.values(status.clients))))
    : UNKNOWN
  return (
    <article class="health-page">
      <header>
        <BackLink />
        <h1>Health</h1>
        <p>{healthSentence(feed, nowMs)}</p>
      </header>
      <HourBars hours={(status?.score ?? []).slice(-SHOWN_HOURS)} />
      <Facts
        facts={[
          [
            'Source',
            source ? sourceNames[source] : UNKNOWN,
            source ? [`${source}: ${sourceWords[source]}`, reason].filter(Boolean).join('; ') : '',
          ],
          ['Since', since, 'in this mode'],
          ['Lag', lag === null ? UNKNOWN : formatDuration(lag), 'age of the newest block whose logs were read'],
          ['Pending', formatBlock(head?.pending), 'the block that is being built'],
          ['Sealed', formatBlock(head?.sealed), 'the newest block with a hash'],
          ['Safe', formatBlock(head?.safe), 'a reorg below it is unlikely'],
          ['Final', formatBlock(head?.finalized), 'nothing below it changes'],
          [
            'Token list',
            status?.stocks.count == null ? UNKNOWN : `${status.stocks.count} tokens`,
            isLive ? listAge(status) : 'not known without a connection',
          ],
          ['Listeners', listeners, 'connected to this relay now'],
        ]}
      />
      <Score hours={(status?.score ?? []).toReversed()} />
      <OwnConnection feed={feed} nowMs={nowMs} />
    </article>
  )
}

const HOUR_MS = 3_600_000
/** Every so many hours, a bar has its time. */
const LABELLED_HOURS = 6
/** Hours that have a bar. */
const SHOWN_HOURS = 24

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0)

/** Says in a few words how reliable the numbers are now, and how many were sealed. */
function healthSentence(feed: BoardFeed, nowMs: number): string {
  const trouble = troubleOf(feed, nowMs)
  const { sealed, judged, late, amended, leadMs } = recordOf(feed)
  const corrected = amended === 0 ? '' : `, ${formatCount(amended)} with a correction`
  const ahead = leadMs === null ? '' : `, with a median lead of ${formatDuration(leadMs)}`
  const lateText = late === 0 ? '' : `${formatRight(judged, judged + late)} lines came before their block. Of these, `
  const record =
    judged === 0
      ? 'No pre-confirmation has been judged yet'
      : `${periodWords(feed)}: ${lateText}${formatRight(sealed, judged)} pre-confirmations came true${corrected}${ahead}`
  return `${trouble === null ? 'Healthy now' : trouble.text}. ${record}.`
}

/** One bar for each of the last hours: sealed lines, late ones, retracted ones, and whether the source was down. */
function HourBars({ hours }: { readonly hours: readonly HourScore[] }) {
  const totalOf = ({ sealed, late, retracted }: HourScore) => sealed + late + retracted
  const most = Math.max(1, ...hours.map(totalOf))
  const newest = hours.at(-1)?.hour
  const times = newest === undefined ? [] : Array.from({ length: SHOWN_HOURS }, (_, nth) => Date.parse(newest) - nth * HOUR_MS)
  return (
    <figure class="hours" aria-label="The last hours">
      <ol class="hour-bars">
        {times.toReversed().map((time) => (
          <HourBar
            key={time}
            time={time}
            hour={hours.find(({ hour }) => Date.parse(hour) === time)}
            most={most}
            hasLabel={isLabelled(time, times[0] ?? time)}
          />
        ))}
      </ol>
      <figcaption class="legend">
        <span class="legend-sealed">sealed</span>
        <span class="legend-late">late</span>
        <span class="legend-retracted">retracted</span>
        <span class="legend-down">source down</span>
        {hours.length > 0 && <span>one bar an hour; the highest has {formatCount(most)} lines</span>}
      </figcaption>
    </figure>
  )
}

/** The newest hour has its time below it, and every sixth that is not too near to it. */
const isLabelled = (time: number, newest: number): boolean =>
  time === newest || (new Date(time).getHours() % LABELLED_HOURS === 0 && newest - time >= (LABELLED_HOURS - 1) * HOUR_MS)

type HourBarProps = {
  readonly time: number
  readonly hour: HourScore | undefined
  readonly most: number
  readonly hasLabel: boolean
}

/** An hour in which the relay did not run, or that it does not count any more, has a stub. */
function HourBar({ time, hour, most, hasLabel }: HourBarProps) {
  const clock = formatClock(new Date(time).toISOString()).slice(0, 5)
  const words = hour ? hourWords(hour) : `${clock}: not counted`
  return (
    <li class={hour ? '' : 'none'} title={words} data-down={(hour && hour.seconds.down >= DOWN_MIN_S) || undefined}>
      {hour && <span class="unseen">{words}</span>}
      {hasLabel && <small aria-hidden="true">{clock}</small>}
      {hour &&
        (['retracted', 'late', 'sealed'] as const).map((part) => (
          <i key={part} class={part} style={{ height: `${(100 * hour[part]) / most}%` }} />
        ))}
    </li>
  )
}

function hourWords(hour: HourScore): string {
  const counts = (['sealed', 'late', 'retracted'] as const).map((part) => `${formatCount(hour[part])} ${part}`)
  const down = hour.seconds.down >= DOWN_MIN_S ? [`down for ${formatDuration(hour.seconds.down * 1_000)}`] : []
  return `${formatClock(hour.hour).slice(0, 5)}: ${[...counts, ...down].join(', ')}`
}

const Facts = ({ facts }: { readonly facts: readonly (readonly [name: string, value: string, detail: string])[] }) => (
  <dl class="facts-list">
    {facts.map(([name, value, detail]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>
          <b class="figure">{value}</b> <span class="faint">{detail}</span>
        </dd>
      </div>
    ))}
  </dl>
)

const listAge = (status: ServiceStatus | null): string =>
  status?.stocks.age_s == null ? 'not read yet' : `read ${formatAge(status.stocks.age_s * 1_000)} ago`

/** Time for which a source must be down in an hour to be marked. A source that starts is down for less. */
const DOWN_MIN_S = 1
/** A count is marked if it is at least one in this number of facts of its hour. */
const NOTICEABLE_ONE_IN = 50
const isNoticeable = (count: number, { published }: HourScore): boolean => count > 0 && count * NOTICEABLE_ONE_IN >= published

const leadText = (ms: number | null): string => (ms === null ? UNKNOWN : `${(ms / 1_000).toFixed(1)} s`)

type ScoreColumn = readonly [title: string, textOf: (hour: HourScore) => string, isMarked?: (hour: HourScore) => boolean]

const scoreColumns: readonly ScoreColumn[] = [
  ['Pre-confirmed', ({ published }) => formatCount(published)],
  ['Sealed', ({ sealed }) => formatCount(sealed)],
  ['Retracted', ({ retracted }) => formatCount(retracted), (hour) => isNoticeable(hour.retracted, hour)],
  ['Amended', ({ amended }) => formatCount(amended), (hour) => isNoticeable(hour.amended, hour)],
  ['Late', ({ late }) => formatCount(late), (hour) => isNoticeable(hour.late, hour)],
  ['Backfilled', ({ backfilled }) => formatCount(backfilled)],
  ['Early and right', ({ sealed, retracted, late }) => formatShare(sealed, sealed + retracted + late)],
  ['Lead, median', ({ lead_ms }) => leadText(lead_ms.p50)],
  ['Lead, 95 %', ({ lead_ms }) => leadText(lead_ms.p95)],
  [
    'Down',
    ({ seconds }) => (seconds.down === 0 ? '0' : formatDuration(seconds.down * 1_000)),
    ({ seconds }) => seconds.down >= DOWN_MIN_S,
  ],
]

function Score({ hours }: { readonly hours: readonly HourScore[] }) {
  return (
    <section aria-label="Pre-confirmations">
      <h2>
        Lines by hour{' '}
        <small>
          each message counts in its own hour; amended lines were corrected, backfilled ones read more than a minute after their
          block
        </small>
      </h2>
      {hours.length === 0 ? (
        <p class="faint">Still being counted.</p>
      ) : (
        <ScrollTable label="By hour" name="score" titles={['Hour', ...scoreColumns.map(([title]) => title)]}>
          {hours.map((hour) => (
            <tr key={hour.hour}>
              <th scope="row">{formatClock(hour.hour).slice(0, 5)}</th>
              {scoreColumns.map(([title, textOf, isMarked]) => (
                <td key={title} class={isMarked?.(hour) ? 'attention' : ''}>
                  {textOf(hour)}
                </td>
              ))}
            </tr>
          ))}
        </ScrollTable>
      )}
    </section>
  )
}

function OwnConnection({ feed, nowMs }: HealthProps) {
  const { state, interruptions } = feed
  const gaps = feed.lines.all.filter(({ content }) => content.type === 'gap')
  const transport = state?.transport ? `over ${state.transport === 'sse' ? 'SSE' : 'WebSocket'}` : ''
  return (
    <section aria-label="This page">
      <h2>
        This page <small>its own connection to the relay</small>
      </h2>
      <Facts
        facts={[
          ['Connection', state?.phase ?? 'connecting', transport],
          ['Open for', formatDuration(Date.now() - feed.openedMs), 'this stream'],
          ['Interruptions', formatCountOrNone(interruptions.length), interruptionsWords(interruptions)],
          ['Gaps', formatCountOrNone(gaps.length), gaps.length === 0 ? 'nothing is missing' : 'marked in the tape'],
          ['Position', state?.position ?? UNKNOWN, 'where a new connection resumes'],
        ]}
      />
      <ol class="timeline">
        {interruptions.toReversed().map((interruption) => (
          <li key={interruption.fromMs}>{interruptionWords(interruption, nowMs)}</li>
        ))}
      </ol>
    </section>
  )
}

const formatCountOrNone = (count: number): string => (count === 0 ? 'none' : formatCount(count))

function interruptionsWords(interruptions: readonly Interruption[]): string {
  if (interruptions.length === 0) return 'since the page opened'
  return interruptions.at(-1)?.untilMs === null ? 'the last one is not over' : 'each resumed at its last position'
}

function interruptionWords({ fromMs, untilMs, reason }: Interruption, nowMs: number): string {
  const start = formatMoment(new Date(fromMs).toISOString(), nowMs)
  const end = untilMs === null ? 'not over yet' : `resumed after ${formatDuration(untilMs - fromMs)}`
  return `${start}: ${end}${reason === null ? '' : ` (${reason})`}`
}
