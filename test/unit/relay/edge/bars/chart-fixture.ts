import { onTestFinished } from 'vitest'
import type { Draft } from '../../../../../src/protocol/updates.ts'
import { openApp } from '../../../../../src/relay/edge/http/http-app.ts'
import type { EdgeContext } from '../../../../../src/relay/edge/live/edge-context.ts'
import { barTimesNote, blockTradesNotes, tokenKeyOf } from '../../../../../src/relay/notes/bar-notes.ts'
import { listOrderNote } from '../../../../../src/relay/notes/published-notes.ts'
import { barRowOf } from '../../../../../src/relay/tape/bars/bar-row.ts'
import { type NotedTrade, poolMinutesOf } from '../../../../../src/relay/tokens/minute-bars.ts'
import { openLocalTape } from '../../../../support/local-tape.ts'
import { assertDocumented } from '../../../../support/openapi-validator.ts'
import { findUdfError } from '../../../../support/udf-schemas.ts'
import { apple, notesOfTokens, tesla } from '../../tape/update-drafts.ts'
import { openEdge } from '../edge-fixture.ts'

/** The first second of a day in UTC. */
export const DAY = 1_795_132_800
const NOW_MS = (DAY + 3 * 86_400) * 1_000

export const nav = { price: '100', updated_at: null, age_s: null, state: 'fresh', stale_after_s: 60, frozen: null } as const

/** The price of each trade of a minute, in chain order. */
export type Minute = { readonly start: number; readonly prices: readonly (string | null)[] }

const tradeOf = (price: string | null, block: number, logIndex: number): NotedTrade => ({
  ...{ block, logIndex, pool: tesla, side: 'buy', amount: '1.5', shares: '1.5', currencyAmount: '2', price },
  ...{ basisBps: null, basis: null, nav, key: `${block}-${logIndex}`, isMain: true, isSealed: true, second: null },
})

const tradesOf = ({ start, prices }: Minute) => prices.map((price, index) => tradeOf(price, start, index))

const listedTokens = [
  { address: apple, symbol: 'AAPLc', isin: 'US0378331005', formerSymbols: [], record: { name: 'Apple <b>Inc.</b>' } },
  { address: tesla, symbol: 'TSLAc', isin: null, formerSymbols: [], record: { name: 'Tesla' } },
]

/** An edge that serves charts of closed minutes, of one open minute, and of messages. */
export async function openCharts({
  minutes = [],
  open,
  messages = [],
  tokens = listedTokens,
  authorize = () => null,
}: {
  readonly minutes?: readonly Minute[]
  readonly open?: Minute
  readonly messages?: readonly Draft[]
  readonly tokens?: readonly { readonly address: `0x${string}`; readonly symbol: string }[]
  readonly authorize?: EdgeContext['authorize']
}) {
  const now = () => NOW_MS
  const tape = openLocalTape({
    ...{ dataDir: ':memory:', tapeRetentionMs: 86_400_000 * 30, tapeMaxMessages: 1_000_000, now, random: () => 0.5 },
  })
  const edge = openEdge({ existingTape: tape })
  onTestFinished(async () => {
    await edge.close()
    await tape.close()
  })
  const notes = notesOfTokens(tokens)
  notes.set(
    listOrderNote,
    tokens.map(({ address }) => address),
  )
  const openFrom = open?.start ?? DAY + 3 * 86_400
  notes.set(barTimesNote, { keptFrom: openFrom, openFrom })
  if (open)
    notes.set(
      blockTradesNotes.at(tokenKeyOf(apple, 1)),
      tradesOf(open).map((trade) => ({ ...trade, second: open.start })),
    )
  const bars = minutes.map((minute) =>
    barRowOf({
      ...{ address: apple, start: minute.start, edition: 1, revision: 1, partial: null, closedBy: 1 },
      pools: poolMinutesOf(tradesOf(minute)),
    }),
  )
  await tape.writer.append({ first: tape.next, updates: messages, notes, bars, keepAfter: Number.POSITIVE_INFINITY })
  const context = { ...edge.context, now, wallTime: now, authorize }
  context.current.apply(notes)
  const app = openApp({ context, nodeRoutes: [] } as never)
  const reads: number[] = []
  const readBars = tape.readBars.bind(tape)
  tape.readBars = (address, range) => {
    const found = readBars(address, range)
    reads.push(found.length)
    return found
  }
  const fetch = (path: string, init: RequestInit = {}) =>
    app.fetch(new Request(`http://relay/udf/${path}`, init), {
      incoming: { headers: {} },
      outgoing: {},
    } as never) as Promise<Response>
  /** Asks as a chart does. The answer fits the published description of UDF, and the relay's own document. */
  const ask = async (path: string) => {
    const response = await fetch(path)
    const body = await response.text()
    const name = path.split('?')[0] ?? ''
    const type = response.headers.get('content-type')
    assertDocumented({ path: `/udf/${name}`, status: response.status, type, text: body })
    const answer: unknown = JSON.parse(body)
    const error = name === 'time' ? null : findUdfError(response.status === 200 ? (name as 'history') : 'error', answer)
    if (error !== null) throw new Error(`${error}: ${body}`)
    return { status: response.status, answer: answer as never }
  }
  return { fetch, ask, tape, reads, answerTo: async (path: string) => (await ask(path)).answer }
}
