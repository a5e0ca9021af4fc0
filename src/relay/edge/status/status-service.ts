import type { HourScore, ServiceStatus } from '../../../protocol/service-status.ts'
import { mapFormats, variantsOf } from '../../../protocol/transports.ts'
import { TimePerSource, timePerSourceNote } from '../../notes/time-per-source.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { TapeScorer } from './tape-scorer.ts'

export class StatusService {
  readonly #context: EdgeContext
  readonly #scorer: TapeScorer
  readonly #timePerSource: TimePerSource
  readonly #unfollow: () => void

  private constructor(context: EdgeContext, scorer: TapeScorer) {
    const { tape, current, wallTime } = context
    this.#context = context
    this.#scorer = scorer
    this.#timePerSource = new TimePerSource(tape.notes.note(timePerSourceNote) ?? [], current.source, wallTime())
    this.#unfollow = tape.follow((batch, notes) => {
      for (const { update } of batch) if (update.type === 'status') this.#timePerSource.setSource(update.source, wallTime())
      const saved = notes.note(timePerSourceNote)
      if (saved) this.#timePerSource.fill(saved, wallTime())
    })
  }

  /** Resolves when a short tape, or the first pages of a long one, have been read. Later turns read the other pages. */
  static async open(context: EdgeContext, onFailure: (failure: unknown) => void): Promise<StatusService> {
    const scorer = await TapeScorer.open(context.tape, context.wallTime())
    scorer.read().catch(onFailure)
    return new StatusService(context, scorer)
  }

  close(): void {
    this.#scorer.close()
    this.#unfollow()
  }

  read(): ServiceStatus {
    const { current, chainId, demo, now, wallTime } = this.#context
    return {
      chain_id: chainId(),
      demo: demo(),
      source: current.source,
      reason: this.#reason(),
      started_at: current.startedAt,
      head: current.head,
      lag_ms: current.newestSettled && Math.max(0, now() - current.newestSettled.timestamp * 1_000),
      stocks: this.#stocks(),
      tape: this.#tape(),
      clients: this.#clients(),
      score: this.#score(wallTime()),
    }
  }

  /** A wrong chain or a missing list takes precedence over the source's own reason. */
  #reason(): ServiceStatus['reason'] {
    const { current, isWrongChain } = this.#context
    if (isWrongChain()) return 'wrong_chain'
    return current.hasTokens ? current.reason : 'no_list'
  }

  #tape(): ServiceStatus['tape'] {
    const { hub, tape } = this.#context
    const { epoch, size, oldestTime, isDurable } = tape
    const ends = { oldest: hub.position(tape.oldest()), oldest_time: oldestTime, end: hub.position(tape.end()) }
    return { epoch, ...ends, messages: size.rows, bytes: size.bytes, durable: isDurable }
  }

  #stocks(): ServiceStatus['stocks'] {
    const { current, now, wallTime } = this.#context
    const { listReadAt, listed } = current
    if (listReadAt === null || listed === null) return { read_at: null, age_s: null, count: null }
    const ageMs = Math.max(0, now() - listReadAt)
    return { read_at: new Date(wallTime() - ageMs).toISOString(), age_s: Math.floor(ageMs / 1_000), count: listed.length }
  }

  #clients(): ServiceStatus['clients'] {
    const { clients } = this.#context
    const counts = mapFormats((_format, name) => clients.count(variantsOf(name)))
    return { ws: clients.count(['ws']), ...counts, rpc: clients.count(['rpc']) }
  }

  #score(nowMs: number): HourScore[] | null {
    const hours = this.#scorer.hours(nowMs)
    return hours?.map((row) => ({ ...row, seconds: this.#timePerSource.seconds(Date.parse(row.hour), nowMs) })) ?? null
  }
}
