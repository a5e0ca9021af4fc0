import type { Hex } from '../../../../../src/lib/hex.ts'
import type { LogFilter } from '../../../../../src/protocol/json-rpc-methods.ts'
import { type Log, parseLogs } from '../../../../../src/relay/chain/logs/log-parser.ts'
import type { ChainEvent } from '../../../../../src/relay/chain/source/source.ts'
import { LogNotifier } from '../../../../../src/relay/gateway/subscriptions/log-notifier.ts'
import { SubscriptionGroups, type SubscriptionName } from '../../../../../src/relay/gateway/subscriptions/subscription-groups.ts'
import type { SubscriptionNotice } from '../../../../../src/relay/gateway/subscriptions/subscription-notice.ts'
import { apple, type NodeLog, pendingLog, tesla, timestampOf, word, ZERO_WORD } from '../../chain/node-json.ts'

/** The chain that a block belongs to. */
export type Fork = 'a' | 'b'
const FORK_OFFSET = { a: 0xa_0000_0000, b: 0xb_0000_0000 } as const

/** The hash of a block of one of the chains. */
export const hashOf = (number: number, fork: Fork = 'a'): Hex => word(FORK_OFFSET[fork] + number)

/** A log as the source emits it; `more` holds further fields of the node. */
export function readNodeLog(fields: Parameters<typeof pendingLog>[0], overrides: NodeLog = {}): Log {
  const [log] = parseLogs({ ...pendingLog(fields), ...overrides }).logs
  if (!log) throw new Error('a log that cannot be read')
  return log
}

export const pendingLogEvent = (log: Log): ChainEvent => ({ type: 'logs', logs: [log], via: 'pendingLogs', receivedAt: 0 })

export const headEvent = (sealedEvent: number): ChainEvent => ({
  type: 'head',
  sealed: sealedEvent,
  pending: null,
  timestamp: null,
})

type SealedEventOptions = {
  readonly number: number
  readonly logs?: readonly Log[]
  readonly fork?: Fork
  readonly addresses?: readonly Hex[]
  /** The newest settled block if it is not this one. */
  readonly newest?: number
}

/** The settling of a block. */
export function sealedEvent({
  number,
  logs = [],
  fork = 'a',
  addresses = [apple, tesla],
  newest = number,
}: SealedEventOptions): ChainEvent {
  const hash = hashOf(number, fork)
  const block = { number, hash, timestamp: timestampOf(number), logs, filters: [{ addresses }], via: 'sealed' as const }
  return { type: 'sealed', holes: [], blocks: [block], newest, cursor: { number, hash }, restartCursor: { number, hash } }
}

type LogResult = { blockNumber: string; logIndex: string; data: string; blockHash: string; removed: boolean }

/** A notification in a word: block, index and amount, then the chain of its block, or a question mark before it has one. */
function summarise(result: unknown): string {
  const { blockNumber, logIndex, data, blockHash, removed } = result as LogResult
  const number = Number(blockNumber)
  const fork = (['a', 'b'] as const).find((one) => hashOf(number, one) === blockHash)
  const stage = blockHash === ZERO_WORD ? '?' : (fork ?? blockHash)
  return `${removed ? '-' : '+'}${number}.${Number(logIndex)}=${BigInt(data.slice(0, 66))}${stage}`
}

/** A subscriber that records everything in order. */
export class RecordingSubscriber {
  readonly id: string
  readonly #notices: SubscriptionNotice[] = []
  readonly #onNotice: () => void

  constructor(id = '0x1', onNotice: () => void = () => {}) {
    this.id = id
    this.#onNotice = onNotice
  }

  notify(notice: SubscriptionNotice): void {
    this.#onNotice()
    this.#notices.push(notice)
  }

  /** How many notices it received. */
  get count(): number {
    return this.#notices.length
  }

  get results(): readonly unknown[] {
    return this.resultsFrom(0)
  }

  get summaries(): readonly string[] {
    return this.summariesFrom(0)
  }

  resultsFrom(index: number): readonly unknown[] {
    return this.#notices
      .slice(index)
      .map((notice) => JSON.parse(String(notice.bytes(this.id, (text) => Buffer.from(text)))).params.result)
  }

  summariesFrom(index: number): readonly string[] {
    return this.resultsFrom(index).map(summarise)
  }
}

/** The logs of two listed tokens, with a subscriber. */
export function openLogNotifier(listed: readonly Hex[] = [apple, tesla]) {
  const subscribers = new SubscriptionGroups()
  const listedAddresses = new Set(listed)
  const logNotifier = new LogNotifier({ subscribers, isListed: (address) => listedAddresses.has(address) })
  return {
    listedAddresses,
    receive: (...events: readonly ChainEvent[]) => {
      for (const event of events) logNotifier.receive(event)
    },
    subscribe: (kind: SubscriptionName = 'pendingLogs', filter: LogFilter = {}, onNotice?: () => void) => {
      const subscriber = new RecordingSubscriber('0x1', onNotice)
      subscribers.add({ kind, subscriber, ...logNotifier.subscriptionStart }, filter)
      return subscriber
    },
  }
}
