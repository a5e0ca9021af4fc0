import { type Log, readLogs } from '../../../src/chain/logs/log-schema.ts'
import type { LogFilter } from '../../../src/chain/rpc/methods.ts'
import type { Heard } from '../../../src/chain/source/source.ts'
import { Wire } from '../../../src/gateway/log-feed.ts'
import { type Kind, type Notice, Subscribers } from '../../../src/gateway/subscriber-index.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { apple, pendingLog, secondOf, tesla, type WireLog, word, ZERO_WORD } from '../chain/node-json.ts'

/** Which of several chains a block is of. */
export type Fork = 'a' | 'b'
const FORK = { a: 0xa_0000_0000, b: 0xb_0000_0000 } as const

/** The hash of a block of one of the chains. */
export const hashOf = (number: number, fork: Fork = 'a'): Hex => word(FORK[fork] + number)

/** A log as the source gives it; `more` says what else about it is so, in a node's words. */
export function logOf(about: Parameters<typeof pendingLog>[0], more: WireLog = {}): Log {
  const [log] = readLogs({ ...pendingLog(about), ...more }).logs
  if (!log) throw new Error('a log that cannot be read')
  return log
}

export const preconfirmed = (log: Log): Heard => ({ type: 'log', log, via: 'pendingLogs', receivedAt: 0 })

export const headed = (sealed: number): Heard => ({ type: 'head', sealed, pending: null, timestamp: null })

type Sealing = {
  readonly number: number
  readonly logs?: readonly Log[]
  readonly fork?: Fork
  readonly asked?: readonly Hex[]
  /** The newest settled block where it is not this one. */
  readonly newest?: number
}

/** A block is settled. */
export function sealed({ number, logs = [], fork = 'a', asked = [apple, tesla], newest = number }: Sealing): Heard {
  const hash = hashOf(number, fork)
  const block = { number, hash, timestamp: secondOf(number), logs, asked, via: 'sealed' as const }
  return { type: 'sealed', blocks: [block], newest, cursor: { number, hash } }
}

type WireResult = { blockNumber: string; logIndex: string; data: string; blockHash: string; removed: boolean }

/** What a notification says of a log, in a word: block and place, what moved, of which chain, and whether it is taken back. */
function inShort(result: unknown): string {
  const { blockNumber, logIndex, data, blockHash, removed } = result as WireResult
  const number = Number(blockNumber)
  const fork = (['a', 'b'] as const).find((one) => hashOf(number, one) === blockHash)
  const where = blockHash === ZERO_WORD ? 'pending' : (fork ?? blockHash)
  return `${removed ? '-' : '+'}${number}.${Number(logIndex)}=${BigInt(data.slice(0, 66))} ${where}`
}

/** One who was told: everything, in order. */
export class Listener {
  readonly id: string
  readonly #notices: Notice[] = []

  constructor(id = '0x1') {
    this.id = id
  }

  notify(notice: Notice): void {
    this.#notices.push(notice)
  }

  /** How much was told. */
  get count(): number {
    return this.#notices.length
  }

  get results(): readonly unknown[] {
    return this.resultsFrom(0)
  }

  get told(): readonly string[] {
    return this.toldFrom(0)
  }

  resultsFrom(place: number): readonly unknown[] {
    return this.#notices
      .slice(place)
      .map((notice) => JSON.parse(String(notice.bytes(this.id, (text) => Buffer.from(text)))).params.result)
  }

  toldFrom(place: number): readonly string[] {
    return this.resultsFrom(place).map(inShort)
  }
}

/** The logs of two listed tokens, for those who listen to them. */
export function openWire(listed: readonly Hex[] = [apple, tesla]) {
  const subscribers = new Subscribers()
  const lists = new Set(listed)
  const wire = new Wire({ subscribers, lists: (address) => lists.has(address) })
  return {
    wire,
    lists,
    hear: (...some: readonly Heard[]) => {
      for (const one of some) wire.hear(one)
    },
    listen: (kind: Kind = 'pendingLogs', filter: LogFilter = {}): Listener => {
      const subscriber = new Listener()
      subscribers.add({ kind, subscriber, ...wire.now }, filter)
      return subscriber
    },
  }
}
