import { expect, onTestFinished } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { Update } from '../../../../src/protocol/updates.ts'
import type { SealedBlock } from '../../../../src/relay/chain/blocks/sealed-block.ts'
import { LogMemory } from '../../../../src/relay/chain/logs/log-memory.ts'
import { type Log, parseLogs } from '../../../../src/relay/chain/logs/log-parser.ts'
import type { ChainEvent } from '../../../../src/relay/chain/source/source.ts'
import type { FeedSetting } from '../../../../src/relay/config/feed-settings.ts'
import { foldBatch, type IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import { type LogCounts, type Reduction, reduce } from '../../../../src/relay/ingest/reduce.ts'
import { restoreState } from '../../../../src/relay/ingest/restore-state.ts'
import type { TestTape } from '../../../support/local-tape.ts'
import { blockHash, pendingLog, timestampOf } from '../chain/node-json.ts'
import { openTestTape } from '../tape/test-tape.ts'
import { APPLE, apple, NOON, parsedList, polledList, type StockRecord, TESLA } from '../tokens/stock-records.ts'

export type LogPosition = {
  readonly block: number
  readonly index?: number
  readonly address?: Hex
  readonly raw?: bigint
  /** The transaction, if it is not the default of the position. */
  readonly tx?: Hex
}

/** The log of a node's answer. */
export const readLog = (nodeLog: Record<string, unknown>): Log => {
  const [log] = parseLogs(nodeLog).logs
  if (!log) throw new Error('no log')
  return log
}

/** A pre-confirmed log as a node sends it. */
export const logAt = ({ tx, address = APPLE as Hex, ...position }: LogPosition): Log => {
  const nodeLog = pendingLog({ ...position, address })
  return readLog(tx ? { ...nodeLog, transactionHash: tx } : nodeLog)
}

/** A pre-confirmed log as the reducer receives it. */
export const pendingLogEvent = (
  position: LogPosition,
  { via = 'pendingLogs', ...overrides }: { via?: 'pendingLogs' | 'poll' } & Partial<Log> = {},
): Extract<ChainEvent, { type: 'logs' }> => transactionEvent([{ ...logAt(position), ...overrides }], via)

/** Pre-confirmed logs that arrive together. */
export const transactionEvent = (
  logs: readonly Log[],
  via: 'pendingLogs' | 'poll' = 'pendingLogs',
): Extract<ChainEvent, { type: 'logs' }> => ({ type: 'logs', logs, via, receivedAt: NOON })

/** Logs of one pushed message. */
export const push = (...logs: readonly Log[]) => transactionEvent(logs)

type SealedChainEvent = Extract<ChainEvent, { type: 'sealed' }>
type SealedEventOptions = Partial<Pick<SealedBlock, 'hash' | 'via' | 'timestamp' | 'filters'>> & {
  /** The contracts whose logs were read. */
  readonly addresses?: readonly Hex[]
  readonly newest?: number
  readonly cursor?: number
  readonly restartCursor?: number
}

/** A sealed block with these logs and no others of its addresses. */
export const sealedEvent = (number: number, positions: readonly Omit<LogPosition, 'block'>[], options?: SealedEventOptions) =>
  sealedEventOfLogs(
    number,
    positions.map((position) => logAt({ ...position, block: number })),
    options,
  )

export const sealedEventOfLogs = (
  number: number,
  logs: readonly Log[],
  {
    hash = blockHash(number),
    addresses = [APPLE as Hex, TESLA as Hex],
    filters = [{ addresses }],
    via = 'sealed',
    timestamp = timestampOf(number),
    newest = number,
    cursor = number,
    restartCursor = cursor,
  }: SealedEventOptions = {},
): SealedChainEvent => {
  const sealedLogs = logs.map((log) => ({ ...log, blockHash: hash }))
  const block: SealedBlock = { number, hash, timestamp, logs: sealedLogs, filters, via }
  const cursorAt = (at: number) => ({ number: at, hash: at === number ? hash : null })
  return { type: 'sealed', holes: [], blocks: [block], newest, cursor: cursorAt(cursor), restartCursor: cursorAt(restartCursor) }
}

/** The same block, but it has more logs, which cannot be read. */
export const partial = (event: SealedChainEvent): SealedChainEvent => ({
  ...event,
  blocks: event.blocks.map((block) => ({ ...block, unreadable: 1 })),
})

/** Blocks that cannot be read. All before the block after `cursor` are settled. */
export const holeEvent = (from: number, to: number, cursor = to): SealedChainEvent => ({
  type: 'sealed',
  holes: [{ blocks: { from, to }, reason: 'pruned' }],
  blocks: [],
  newest: cursor,
  cursor: { number: cursor, hash: null },
  restartCursor: { number: cursor, hash: null },
})

export const listEvent = (...records: readonly StockRecord[]): IngestEvent => ({
  type: 'list',
  list: polledList(parsedList(...records)),
})
export const subscribedEvent: IngestEvent = { type: 'subscribed', filters: [{ addresses: [APPLE as Hex, TESLA as Hex] }] }
export const statusEvent = (source: 'pendingLogs' | 'poll' | 'sealed' | 'down'): IngestEvent => ({
  type: 'status',
  source,
  reason: source === 'sealed' ? 'no_pending' : source === 'down' ? 'unreachable' : 'ok',
})

/** The newest block, by its number, as it was asked for. */
export const headEvent = (block: number): IngestEvent => ({
  type: 'head',
  sealed: block,
  pending: null,
  timestamp: timestampOf(block),
})
/** Two answers that agree on the newest block. */
export const agreedHead = (block: number): readonly IngestEvent[] => [headEvent(block), headEvent(block)]

/** A small batch is reduced in one part. */
const reduceAtOnce = (...batch: Parameters<typeof reduce>): Reduction => {
  const { done, value } = reduce(...batch).next()
  if (!done) throw new Error('the batch is reduced in parts')
  return value
}

/** The state restored from a tape, what is published from it, and what is counted. */
export const openReducer = async (
  tape: TestTape,
  clock = { now: NOON },
  feeds: readonly FeedSetting[] = [],
  worth: Partial<Pick<Parameters<typeof restoreState>[1], 'quotes' | 'hasRegistry' | 'sessionAt'>> = {},
) => {
  const counts = { repeated: 0, unlisted: 0, unreadable: 0 }
  const state = await restoreState(tape, {
    ...{
      navStaleAfterMs: 93_600_000,
      feeds,
      quotes: { pools: [], mainCurrency: null, poolMinDepth: { units: 1_000n, scale: 0 } },
      hasRegistry: true,
      sessionAt: null,
    },
    ...worth,
  })
  const memory = new LogMemory()
  const reduceEvents = (...events: readonly IngestEvent[]) => {
    const reduction = reduceAtOnce(state, foldBatch({ at: clock.now, wallTime: clock.now, events }, memory))
    for (const name of ['repeated', 'unlisted', 'unreadable'] satisfies (keyof LogCounts)[]) counts[name] += reduction.counts[name]
    return reduction
  }
  const publish = (...batch: readonly IngestEvent[]) => tape.writer.append(reduceEvents(...batch))
  /** Writes the first parts of a large block, as the pipeline does. Returns how many updates each has. */
  const publishParts = async (bound: number, ...events: readonly IngestEvent[]) => {
    const steps = reduce(state, foldBatch({ at: clock.now, wallTime: clock.now, events }, memory))
    const sizes: number[] = []
    for (let done: boolean | undefined = false; !done && sizes.length < bound; ) {
      const step = steps.next()
      const { updates } = step.value
      await tape.writer.append(step.value)
      if (updates.length > 0) sizes.push(updates.length)
      done = step.done
    }
    return sizes
  }
  return { state, counts, reduceEvents, publish, publishParts, clock }
}

type Opening = {
  /** What the first run publishes before the test. */
  readonly first?: readonly IngestEvent[]
  readonly feeds?: readonly FeedSetting[]
  readonly worth?: Parameters<typeof openReducer>[3]
  readonly retentionMs?: number
}

/** A reducer with listed tokens on a tape of its own. Each published update fits the contract, and is told by `tell`. */
export const openIngest = async <T>(
  tell: (update: Update) => T,
  { first = [listEvent(apple()), subscribedEvent, statusEvent('pendingLogs')], feeds = [], worth = {}, retentionMs }: Opening = {},
) => {
  const openedTape = await openTestTape(retentionMs === undefined ? {} : { tapeRetentionMs: retentionMs })
  onTestFinished(() => openedTape.close())
  const open = async (tape: TestTape, settings: { feeds?: readonly FeedSetting[]; worth?: Opening['worth'] } = {}) => {
    const reducer = await openReducer(tape, openedTape.clock, settings.feeds ?? feeds, { ...worth, ...settings.worth })
    const publish = async (...batch: readonly IngestEvent[]): Promise<readonly T[]> =>
      (await reducer.publish(...batch)).map(({ update, text }) => {
        expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
        return tell(update)
      })
    return { ...reducer, publish }
  }
  const opened = await open(openedTape.tape)
  await opened.publish(...first)
  return {
    ...opened,
    openedTape,
    updates: () => readUpdates(openedTape.tape),
    /** The next run on the same tape, maybe with other settings. */
    restart: (settings?: Parameters<typeof open>[1]) => open(openedTape.tape, settings),
    /** The next run after a crash. */
    crash: async () => open(await openedTape.crash()),
  }
}

type Told = { readonly publish: (...batch: readonly IngestEvent[]) => Promise<readonly string[]> }
/** Events that arrive together and all that is told then, separated by commas; or how the run ends before the next one. */
export type Step = readonly [IngestEvent | readonly IngestEvent[], told: string] | 'restart' | 'crash'

/** Plays the steps one after another. */
export async function play<Run extends Told & Record<'restart' | 'crash', () => Promise<Told>>>(
  ingest: Run,
  steps: readonly Step[],
): Promise<void> {
  let run: Told = ingest
  for (const step of steps) {
    if (typeof step === 'string') run = await ingest[step]()
    else expect((await run.publish(...[step[0]].flat())).join(', ')).toBe(step[1])
  }
}

export const readUpdates = async (tape: TestTape): Promise<readonly Update[]> =>
  (await tape.readAfter(0, 100_000)).map(({ update }) => update)

/** The published keys in order, each as often as it was published. */
export const publishedKeys = async (tape: TestTape): Promise<readonly string[]> =>
  (await readUpdates(tape)).flatMap((update) => ('key' in update && 'stage' in update && update.key ? [update.key] : []))
