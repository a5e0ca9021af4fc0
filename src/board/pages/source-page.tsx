import type { ServiceStatus } from '../../sdk/client/index.ts'
import type { BoardFeed, Interruption } from '../feed/board-feed.ts'
import { formatBlock, formatCount, formatShare, UNKNOWN } from '../shared/number-text.ts'
import { BackLink } from '../shared/page-link.tsx'
import { reasonSentence, sourceSentence } from '../shared/state-words.ts'
import { formatClock, formatDuration, formatMoment } from '../shared/time-text.ts'

type SourceProps = { readonly feed: BoardFeed; readonly nowMs: number }

/** Where the data comes from, how well it went, and what this page itself received. */
export function SourcePage({ feed, nowMs }: SourceProps) {
  const { status, state, head } = feed
  const source = state?.source ?? status?.source
  const reason = status && status.reason !== 'ok' ? reasonSentence(status.reason) : ''
  // Without a connection the page cannot know how far behind the relay is.
  const lag = state?.phase === 'live' ? (status?.lag_ms ?? null) : null
  return (
    <article class="source-page">
      <header>
        <BackLink />
        <h1>The source</h1>
      </header>
      <dl class="facts-list">
        <Fact
          name="Source"
          value={source ?? UNKNOWN}
          detail={source ? [sourceSentence(source), reason].filter(Boolean).join(': ') : ''}
        />
        <Fact
          name="Since"
          value={status?.started_at ? formatMoment(status.started_at, nowMs) : UNKNOWN}
          detail="this source and reason"
        />
        <Fact
          name="Lag"
          value={lag === null ? UNKNOWN : formatDuration(lag)}
          detail="age of the newest block whose logs were read"
        />
        <Fact name="Pending" value={formatBlock(head?.pending)} detail="the block that is being built" />
        <Fact name="Sealed" value={formatBlock(head?.sealed)} detail="the newest block with a hash" />
        <Fact name="Safe" value={formatBlock(head?.safe)} detail="a reorg below it is unlikely" />
        <Fact name="Final" value={formatBlock(head?.finalized)} detail="nothing below it changes" />
        <Fact
          name="Token list"
          value={status?.stocks.count == null ? UNKNOWN : `${status.stocks.count} tokens`}
          detail={state?.phase === 'live' ? listAge(status) : 'not known without a connection'}
        />
        <Fact name="Listeners" value={status ? formatCount(sumOf(status)) : UNKNOWN} detail="connected to this relay now" />
      </dl>
      <Score status={status} />
      <OwnConnection feed={feed} nowMs={nowMs} />
    </article>
  )
}

const Fact = ({ name, value, detail }: { readonly name: string; readonly value: string; readonly detail: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>
      <b class="figure">{value}</b> <span class="faint">{detail}</span>
    </dd>
  </div>
)

const listAge = (status: ServiceStatus | null): string =>
  status?.stocks.age_s == null ? 'not read yet' : `read ${formatDuration(status.stocks.age_s * 1_000)} ago`

/** A source that starts is down for a moment. */
const DOWN_MIN_S = 1
/** From one in fifty on a reader should see it. */
const isNoticeable = (count: number, of: number): boolean => count * 50 >= of && count > 0

const sumOf = ({ clients }: ServiceStatus): number => Object.values(clients).reduce((sum, count) => sum + count, 0)

/** What became of the pre-confirmations, hour by hour. */
function Score({ status }: { readonly status: ServiceStatus | null }) {
  const hours = (status?.score ?? []).toReversed()
  return (
    <section aria-label="Pre-confirmations">
      <h2>
        Pre-confirmations by hour <small>how many were sealed as they were first published</small>
      </h2>
      {hours.length === 0 ? (
        <p class="faint">Still being counted.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls it
        <section class="scroll" tabIndex={0} aria-label="By hour">
          <table class="score">
            <thead>
              <tr>
                {[
                  'Hour',
                  'Pre-confirmed',
                  'Sealed',
                  'Retracted',
                  'Amended',
                  'Late',
                  'Backfilled',
                  'Share',
                  'Lead p50',
                  'Lead p95',
                  'Down',
                ].map((title) => (
                  <th key={title} scope="col">
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {hours.map((hour) => (
                <tr key={hour.hour}>
                  <th scope="row">{formatClock(hour.hour).slice(0, 5)}</th>
                  {[hour.published, hour.sealed].map((count, index) => (
                    <td key={index}>{formatCount(count)}</td>
                  ))}
                  {[hour.retracted, hour.amended, hour.late].map((count, index) => (
                    <td key={index} class={isNoticeable(count, hour.published) ? 'attention' : ''}>
                      {formatCount(count)}
                    </td>
                  ))}
                  <td>{formatCount(hour.backfilled)}</td>
                  <td>{formatShare(hour.sealed, hour.sealed + hour.retracted)}</td>
                  <td>{hour.lead_ms.p50 === null ? UNKNOWN : `${hour.lead_ms.p50} ms`}</td>
                  <td>{hour.lead_ms.p95 === null ? UNKNOWN : `${hour.lead_ms.p95} ms`}</td>
                  <td class={hour.seconds.down >= DOWN_MIN_S ? 'attention' : ''}>
                    {hour.seconds.down === 0 ? '0' : formatDuration(hour.seconds.down * 1_000)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </section>
  )
}

/** Breaks, resumes and gaps of this page, as they were. */
function OwnConnection({ feed, nowMs }: SourceProps) {
  const { state, interruptions } = feed
  const gaps = feed.lines.all.filter(({ content }) => content.type === 'gap')
  return (
    <section aria-label="This page">
      <h2>
        This page <small>its own connection to the relay</small>
      </h2>
      <dl class="facts-list">
        <Fact
          name="Connection"
          value={state?.phase ?? 'connecting'}
          detail={state?.transport ? `over ${state.transport === 'sse' ? 'SSE' : 'WebSocket'}` : ''}
        />
        <Fact name="Open for" value={formatDuration(Date.now() - feed.openedMs)} detail="this stream" />
        <Fact name="Interruptions" value={String(interruptions.length)} detail={interruptionsWords(interruptions)} />
        <Fact name="Gaps" value={String(gaps.length)} detail={gaps.length === 0 ? 'nothing is missing' : 'marked in the tape'} />
        <Fact name="Position" value={state?.position ?? UNKNOWN} detail="where a new connection resumes" />
      </dl>
      <ol class="timeline">
        {interruptions.toReversed().map((interruption) => (
          <li key={interruption.fromMs}>{interruptionWords(interruption, nowMs)}</li>
        ))}
      </ol>
    </section>
  )
}

function interruptionsWords(interruptions: readonly Interruption[]): string {
  if (interruptions.length === 0) return 'none'
  return interruptions.at(-1)?.untilMs === null ? 'the last one is not over' : 'each resumed at its last position'
}

function interruptionWords({ fromMs, untilMs, reason }: Interruption, nowMs: number): string {
  const start = formatMoment(new Date(fromMs).toISOString(), nowMs)
  const end = untilMs === null ? 'not over yet' : `resumed after ${formatDuration(untilMs - fromMs)}`
  return `${start}: ${end}${reason === null ? '' : ` (${reason})`}`
}
