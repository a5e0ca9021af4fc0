import type { RpcLines } from '../../gateway/sockets.ts'
import type { HourScore, ServiceStatus } from '../../protocol/status.ts'
import { noteNames, type WatchNote } from '../../tape/tape.ts'
import type { House } from '../live/session.ts'
import { Scorekeeper } from './score-tracker.ts'
import { Watch } from './source-uptime.ts'

/** How often the watch is written down: so much of it is lost at most if this ends without a word. */
export const WATCH_EVERY_MS = 10_000

/** Says how the service is. */
export class Status {
  readonly #house: House
  readonly #lines: Pick<RpcLines, 'present'>
  readonly #keeper: Scorekeeper
  readonly #watch: Watch
  readonly #unfollow: () => void

  private constructor(house: House, lines: Pick<RpcLines, 'present'>, keeper: Scorekeeper) {
    const { tape, view, now } = house
    this.#house = house
    this.#lines = lines
    this.#keeper = keeper
    // The note is our own: it is read back, not checked again.
    this.#watch = new Watch((tape.note(noteNames.watch) as WatchNote | undefined) ?? [], view.source, now())
    this.#unfollow = tape.follow((turn) => {
      for (const { update } of turn) if (update.type === 'status') this.#watch.turn(update.source, now())
    })
  }

  /** Opens when a short tape is read; of a long one the rest is read by `begin`. */
  static async open(house: House, lines: Pick<RpcLines, 'present'>): Promise<Status> {
    return new Status(house, lines, await Scorekeeper.open(house.tape, house.now()))
  }

  begin(): Promise<void> {
    return this.#keeper.read()
  }

  /** Writes the watch down beside the tape. */
  async keep(): Promise<void> {
    await this.#house.tape.append([], new Map([[noteNames.watch, this.#watch.note(this.#house.now())]]))
  }

  async close(): Promise<void> {
    this.#keeper.close()
    this.#unfollow()
    await this.keep()
  }

  read(): ServiceStatus {
    const { hub, view, tape, chainId, now } = this.#house
    const at = now()
    return {
      chain_id: chainId(),
      source: view.source,
      reason: view.reason,
      since: view.since,
      head: view.head,
      lag_ms: view.sealedAt === null ? null : Math.max(0, at - view.sealedAt),
      stocks: this.#stocks(at),
      tape: { epoch: tape.epoch, oldest: hub.position(tape.oldest()), end: hub.position(tape.end()) },
      clients: this.#clients(),
      score: this.#score(at),
    }
  }

  #stocks(at: number): ServiceStatus['stocks'] {
    const { readAt, listed } = this.#house.view
    if (readAt === null || listed === null) return { read_at: null, age_s: null, count: null }
    return {
      read_at: new Date(readAt).toISOString(),
      age_s: Math.max(0, Math.floor((at - readAt) / 1_000)),
      count: listed.length,
    }
  }

  #clients(): ServiceStatus['clients'] {
    const { ws, sse, 'sse-named': named, ndjson, text } = this.#house.hub.present
    return { ws, sse: sse + named, ndjson, text, rpc: this.#lines.present }
  }

  #score(at: number): HourScore[] | null {
    const hours = this.#keeper.hours(at)
    return hours?.map((row) => ({ ...row, seconds: this.#watch.seconds(Date.parse(row.hour), at) })) ?? null
  }
}
