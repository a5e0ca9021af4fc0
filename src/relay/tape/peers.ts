import { from, merge, Observable, type SchedulerLike } from 'rxjs'
import { z } from 'zod'
import { type Hex, readHex } from '../../lib/hex.ts'
import { parseShallowJson } from '../../lib/json.ts'
import type { ChainEvent } from '../chain/source/source.ts'

/** A new leader also publishes what it received in this time before, up to this number of logs: the last leader may not have. */
const [RECENT_MS, RECENT_LOGS_BOUND] = [5_000, 10_000]

/** Carries messages between the ingesters that share a tape. A message without a receiver is lost. */
export type PeerChannel = {
  /** Returns false if the message is too long. */
  readonly send: (bytes: Uint8Array) => boolean
  readonly listen: (receive: (bytes: Uint8Array) => void) => Promise<() => void>
}

type PeerEvent = Extract<ChainEvent, { type: 'logs' }>

/** The pre-confirmed logs that each ingester receives, for the one that publishes: it has every log as soon as any of them. */
export class Peers {
  readonly #channel: PeerChannel
  readonly #clock: SchedulerLike
  #recent: PeerEvent[] = []
  #recentLogs = 0

  constructor(channel: PeerChannel, clock: SchedulerLike) {
    this.#channel = channel
    this.#clock = clock
  }

  /** Sends the logs of an event to the leader, and keeps them for a while. */
  share(event: ChainEvent): void {
    if (event.type !== 'logs') return
    this.#recent.push(event)
    this.#recentLogs += event.logs.length
    this.#forgetOld()
    this.#send(event)
  }

  /** In as many messages as it takes. The leader reads a log that is too long for any when its block is sealed. */
  #send({ logs, via }: Pick<PeerEvent, 'logs' | 'via'>): void {
    if (this.#channel.send(Buffer.from(JSON.stringify({ logs, via }))) || logs.length <= 1) return
    const middle = Math.ceil(logs.length / 2)
    for (const half of [logs.slice(0, middle), logs.slice(middle)]) this.#send({ logs: half, via })
  }

  /** For a leader: what this process received last, and then what the others receive. */
  get logs(): Observable<PeerEvent> {
    this.#forgetOld()
    const recent = this.#recent.splice(0)
    this.#recentLogs = 0
    return merge(from(recent), this.#received())
  }

  #received(): Observable<PeerEvent> {
    return new Observable((subscriber) => {
      const listening = this.#channel.listen((bytes) => {
        const message = Message.safeParse(parseShallowJson(Buffer.from(bytes)))
        // Clocks of other machines differ, so the time is when it came here.
        if (message.success) subscriber.next({ type: 'logs', ...message.data, receivedAt: this.#clock.now() })
      })
      return () => void listening.then((stop) => stop())
    })
  }

  #forgetOld(): void {
    const since = this.#clock.now() - RECENT_MS
    let count = this.#recent.findIndex(({ receivedAt }) => receivedAt >= since)
    if (count === -1) count = this.#recent.length
    let kept = this.#recentLogs - sum(this.#recent.slice(0, count))
    for (; kept > RECENT_LOGS_BOUND && count < this.#recent.length; count += 1) kept -= this.#recent[count]?.logs.length ?? 0
    this.#recent.splice(0, count)
    this.#recentLogs = kept
  }
}

const sum = (events: readonly PeerEvent[]): number => events.reduce((total, { logs }) => total + logs.length, 0)

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
