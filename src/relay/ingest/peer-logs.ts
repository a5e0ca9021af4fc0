import { from, merge, Observable, type SchedulerLike } from 'rxjs'
import { z } from 'zod'
import { type Hex, readHex } from '../../lib/hex.ts'
import { parseShallowJson } from '../../lib/safe-json.ts'
import type { ChainEvent } from '../chain/source/source.ts'
import type { TapePeers } from '../tape/tape.ts'

/** Limits of age and number of the logs that a new leader publishes first: the last leader may have stopped before it did. */
const [RECENT_MS, RECENT_LOGS_BOUND] = [5_000, 10_000]

type PeerEvent = Extract<ChainEvent, { type: 'logs' }>

/** Sends the pre-confirmed logs of each ingester to the leader, which so has every log as soon as any of them. */
export class PeerLogs {
  readonly #peers: Pick<TapePeers, 'send' | 'listen'>
  readonly #clock: SchedulerLike
  #recent: PeerEvent[] = []
  #recentLogs = 0

  constructor(peers: Pick<TapePeers, 'send' | 'listen'>, clock: SchedulerLike) {
    this.#peers = peers
    this.#clock = clock
  }

  /** Sends the logs of an event to the leader. Keeps recent logs, because this process may lead next. */
  share(event: ChainEvent): void {
    if (event.type !== 'logs') return
    this.#recent.push(event)
    this.#recentLogs += event.logs.length
    this.#forgetOld()
    this.#send(event)
  }

  /** Splits logs that are too long for one message. The leader reads a single log that is too long when its block is sealed. */
  #send({ logs, via }: Pick<PeerEvent, 'logs' | 'via'>): void {
    if (this.#peers.send(Buffer.from(JSON.stringify({ logs, via }))) || logs.length <= 1) return
    const middle = Math.ceil(logs.length / 2)
    for (const half of [logs.slice(0, middle), logs.slice(middle)]) this.#send({ logs: half, via })
  }

  /** Logs that a leader publishes: first the recent logs of this process, then those that other ingesters send. */
  get logs(): Observable<PeerEvent> {
    this.#forgetOld()
    const recent = this.#recent.splice(0)
    this.#recentLogs = 0
    const received = new Observable<PeerEvent>((subscriber) => {
      const listening = this.#peers.listen((bytes) => {
        const message = Message.safeParse(parseShallowJson(Buffer.from(bytes)))
        // Clocks of other machines differ, so this process sets the time.
        if (message.success) subscriber.next({ type: 'logs', ...message.data, receivedAt: this.#clock.now() })
      })
      return () => void listening.then((stop) => stop())
    })
    return merge(from(recent), received)
  }

  #forgetOld(): void {
    const since = this.#clock.now() - RECENT_MS
    for (;;) {
      const [oldest] = this.#recent
      if (!oldest || (oldest.receivedAt >= since && this.#recentLogs <= RECENT_LOGS_BOUND)) return
      this.#recent.shift()
      this.#recentLogs -= oldest.logs.length
    }
  }
}

const hex = z.custom<Hex>((value) => readHex(value, null) === value)
const PeerLog = z.object({
  key: z.string(),
  address: hex,
  topics: z.array(hex),
  data: hex,
  blockNumber: z.int().min(0),
  blockHash: hex.nullable(),
  blockTimestamp: z.int().nullable(),
  transactionHash: hex,
  transactionIndex: z.int(),
  logIndex: z.int(),
  removed: z.boolean(),
  more: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).exactOptional(),
})
const Message = z.object({ logs: z.array(PeerLog), via: z.enum(['pendingLogs', 'poll']) })
