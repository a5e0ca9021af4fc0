import type { ComponentProps } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Gap, Update } from '../../sdk/client/index.ts'
import type { BoardFeed } from '../feed/board-feed.ts'
import type { BoardFilter } from '../shared/board-route.ts'
import { CopyButton } from '../shared/copy-button.tsx'
import { HexLink } from '../shared/hex-link.tsx'
import { changeFilter, PageLink, replacePage } from '../shared/navigation.tsx'
import { formatAmount, formatBlock, shortHex } from '../shared/number-text.ts'
import { relayUrl } from '../shared/page-settings.ts'
import { Sheet } from '../shared/sheet.tsx'
import { stageWords } from '../shared/state-words.ts'
import { formatTapeTime } from '../shared/time-text.ts'
import { CodeBlock, visibleJson } from '../shared/visible-text.tsx'
import type { TapeLine } from './tape-lines.ts'
import { gapWords, isMissing, lineRemark, lineText, ZERO_ADDRESS } from './tape-texts.ts'

type FactSheetProps = {
  readonly id: string
  readonly feed: BoardFeed
  /** The lines of the tape beside it, newest last. */
  readonly lines: readonly TapeLine[]
  readonly onClose: () => void
}

export function FactSheet(props: FactSheetProps) {
  const { id, feed, lines, onClose } = props
  const content = feed.lines.find(id)?.content
  const at = lines.findIndex((line) => line.id === id)
  const step = (distance: number) => {
    const next = at === -1 ? undefined : lines[at + distance]
    if (next && next.id !== id) replacePage({ name: 'fact', key: next.id })
  }
  const steps = [
    ['j', -1, '↓', 'Older line'],
    ['k', 1, '↑', 'Newer line'],
  ] as const
  const shell: ShellProps = {
    onClose,
    onKey: (pressed) => step(steps.find(([key]) => key === pressed)?.[1] ?? 0),
    tools: steps.map(([key, distance, sign, label]) => (
      <button
        type="button"
        key={key}
        aria-label={label}
        title={`${label} (${key})`}
        disabled={at === -1 || !lines[at + distance]}
        onClick={() => step(distance)}
      >
        {sign}
      </button>
    )),
  }
  return content?.type === 'gap' ? <GapSheet gap={content} shell={shell} /> : <LifeSheet {...{ id, feed, shell }} />
}

type ShellProps = Pick<ComponentProps<typeof Sheet>, 'onClose' | 'onKey' | 'tools'>

function GapSheet({ gap, shell }: { readonly gap: Gap; readonly shell: ShellProps }) {
  return (
    <Sheet title={`Messages ${isMissing(gap.reason) ? 'are' : 'may be'} missing`} {...shell}>
      <p>Why: {gapWords[gap.reason]}.</p>
      <p class="key">
        after {gap.after ?? 'an unknown position'}, up to {gap.through}
      </p>
      <p>
        {gap.backfill === null ? (
          'The relay no longer has these messages. Those still on its tape follow here.'
        ) : (
          <a href={new URL(gap.backfill.replace(/^\//, ''), relayUrl()).href}>Read what was left out</a>
        )}
      </p>
    </Sheet>
  )
}

function LifeSheet({ id, feed, shell }: Pick<FactSheetProps, 'id' | 'feed'> & { readonly shell: ShellProps }) {
  const line = feed.lines.find(id)
  const { events, stage, failure } = useFact(id, feed, line)
  const tx = events.flatMap((update) => ('tx' in update && update.tx ? [update.tx.hash] : []))[0]
  const address = events[0]?.address ?? null
  const { symbol, type } = line ? lineText(line) : (events[0] ?? { symbol: '', type: 'Fact' })
  const title = [symbol === '*' ? '' : symbol, type].filter(Boolean).join(' ')
  const tokenSymbol = symbol === '*' || address === null ? null : symbol
  return (
    <Sheet title={title} note={stage !== '' && <span class={`stage-word ${stage}`}>{stageText(stage)}</span>} {...shell}>
      {line && <FactSummary line={line} />}
      {failure !== null && <p class="attention">{failure}</p>}
      {events.length > 0 && <FactLife events={events} />}
      <dl class="parties">
        {line && <Parties line={line} filter={feed.filter} />}
        {(['tx', 'address'] as const).map((kind) => {
          const hex = kind === 'tx' ? tx : address
          return (
            hex && (
              <div key={kind}>
                <dt>{kind === 'tx' ? 'transaction' : 'token'}</dt>
                <dd>
                  <HexLink kind={kind} label="" hex={hex} isWhole />
                </dd>
              </div>
            )
          )
        })}
        <div>
          <dt>{isKey(id) ? 'key' : 'position'}</dt>
          <dd class="key">
            {id}{' '}
            <CopyButton label="Copy the key" text={() => id}>
              Copy
            </CopyButton>
          </dd>
        </div>
      </dl>
      <p class="links">
        {tokenSymbol && <PageLink page={{ name: 'symbol', symbol: tokenSymbol }}>Open {tokenSymbol}</PageLink>}
        <CopyButton label="Copy link" text={() => location.href}>
          Copy link
        </CopyButton>
      </p>
      {events.map((update) => (
        <details key={update.id} open={!isKey(id)}>
          <summary>Raw {update.type} message</summary>
          <CodeBlock text={visibleJson(update, 2)} />
        </details>
      ))}
    </Sheet>
  )
}

/** Its value is first, then how much it is. The addresses of a movement are in a list of their own. */
function FactSummary({ line }: { readonly line: TapeLine }) {
  const { symbol, figure, value, detail } = lineText(line)
  const { content } = line
  const remark = lineRemark(line)
  const amount = 'raw' in content ? `${figure || '0'} ${symbol}` : figure
  const isOther = 'shares' in content && 'key' in content && content.shares !== content.amount
  const shares = isOther ? `${formatAmount(content.shares)} shares` : ''
  const [first, ...others] = [value, amount, shares].filter(Boolean)
  return (
    <p class={`summary ${line.retraction ? 'struck' : ''}`}>
      <b class="figure">{first}</b> {others.length > 0 && <span>{others.join(' · ')}</span>}
      {!('from' in content || 'owner' in content) && (
        <>
          <br />
          <span class="faint">{detail}</span>
        </>
      )}
      {remark !== null && <span class="remark">{remark}</span>}
    </p>
  )
}

const partyNames = ['from', 'to', 'owner', 'spender', 'sender', 'recipient'] as const

/** The addresses of a fact, whole, each with a way to see all that concerns it. */
function Parties({ line: { content }, filter }: { readonly line: TapeLine; readonly filter: BoardFilter }) {
  const given = content as Readonly<Record<string, unknown>>
  const parties = partyNames.flatMap((name) => {
    const hex = given[name]
    return typeof hex === 'string' && !ZERO_ADDRESS.test(hex) ? [{ name, hex }] : []
  })
  return (
    <>
      {parties.map(({ name, hex }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <HexLink kind="address" label="" hex={hex} isWhole />
            <button type="button" class="copy" onClick={() => changeFilter({ ...filter, account: [hex] })}>
              Filter
            </button>
          </dd>
        </div>
      ))}
    </>
  )
}

type ReadFact = {
  readonly id?: string
  readonly events: readonly Update[]
  readonly stage: string
  readonly failure: string | null
}
const unread: ReadFact = { events: [], stage: '', failure: null }

/** Reads the messages of a key, and again when its line changes. For a position, reads the message at that position. */
function useFact(id: string, feed: BoardFeed, line: unknown): ReadFact {
  const [read, setRead] = useState(unread)
  useEffect(() => {
    const abort = new AbortController()
    const load = async () => {
      const path = isKey(id)
        ? `v1/events/${encodeURIComponent(id)}`
        : `v1/events?types=*&order=desc&limit=1&through=${encodeURIComponent(id)}`
      const response = await fetch(new URL(path, feed.client.url), { headers: feed.headers, signal: abort.signal })
      const body = await response.json()
      if (!response.ok) return setRead({ ...unread, id, failure: body.message })
      if (isKey(id)) return setRead({ ...body, id, failure: null })
      const events = body.events.filter((update: Update) => update.id === id)
      setRead({ ...unread, id, events, failure: events.length > 0 ? null : 'There is no message at this position.' })
    }
    load().catch(
      () =>
        !abort.signal.aborted &&
        setRead((now) => ({
          ...(now.id === id ? now : unread),
          id,
          failure: 'The relay cannot be reached: this is what the page has.',
        })),
    )
    return () => abort.abort()
    // Each message about a fact makes a new `line`, so the fact is read again.
  }, [id, feed, line])
  // Until the next fact is read, nothing of the one before is shown for it.
  return read.id === id ? read : unread
}

const stageText = (stage: string): string => (stageWords as Readonly<Record<string, string>>)[stage] ?? stage

const isKey = (id: string): boolean => id.includes('-')

function FactLife({ events }: { readonly events: readonly Update[] }) {
  const start = Date.parse(events[0]?.time ?? '')
  return (
    <ol class="life">
      {events.map((update) => {
        const later = Date.parse(update.time) - start
        return (
          <li key={update.id} class={update.type}>
            <time dateTime={update.time}>{formatTapeTime(update.time)}</time>
            <span class="figure">{later > 0 ? `+${(later / 1_000).toFixed(3)} s` : ''}</span>
            <b>{lifeWords(update)}</b>
            <span>{lifeDetail(update)}</span>
          </li>
        )
      })}
    </ol>
  )
}

function lifeWords(update: Update): string {
  if (update.type === 'seal') return 'sealed'
  if (update.type === 'retract') return 'retracted'
  if (update.type === 'amend') return 'amended'
  if ('stage' in update && update.stage === 'preconfirmed') return 'pre-confirmed'
  return 'late' in update && update.late ? 'sealed, late' : update.type
}

function lifeDetail(update: Update): string {
  if (update.type === 'retract') return update.reason.replace('_', ' ')
  if (update.type === 'amend') return update.changed.join(', ')
  if (!('block' in update) || !update.block) return ''
  const { number, hash } = update.block
  return `block ${formatBlock(number)}${hash === null ? '' : ` ${shortHex(hash)}`}`
}
