import type { HourScore, ServiceStatus } from '../../../protocol/service-status.ts'
import { mapFormats, variantsOf } from '../../../protocol/transports.ts'
import { Notes } from '../../tape/notes.ts'
import { NotLeadingError } from '../../tape/tape.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { TapeScorer } from './tape-scorer.ts'
import { TimePerSource, timePerSourceNote } from './time-per-source.ts'

/** Interval at which the time of each source is saved beside the tape. A crash loses at most this much time. */
const UPTIME_SAVE_MS = 10_000

export async function openStatus(context: EdgeContext, onFailure: (failure: unknown) => void) {
  const status = await StatusService.open(context)
  const saveTimer = setInterval(() => void status.save().catch(onFailure), UPTIME_SAVE_MS)
  status.catchUp().catch(onFailure)
  return {
    read: () => status.read(),
    close: (): Promise<void> => {
      clearInterval(saveTimer)
      return status.close()
    },
  }
}

export class StatusService {
  readonly #context: EdgeContext
  readonly #scorer: TapeScorer
  readonly #timePerSource: TimePerSource
  readonly #unfollow: () => void

  private constructor(context: EdgeContext, scorer: TapeScorer) {
    const { tape, current, wallTime } = context
    this.#context = context
    this.#scorer = scorer
    this.#timePerSource = new TimePerSource(tape.note(timePerSourceNote) ?? [], current.source, wallTime())
    this.#unfollow = tape.follow((batch) => {
      for (const { update } of batch) if (update.type === 'status') this.#timePerSource.setSource(update.source, wallTime())
    })
  }

  /** Resolves when a short tape, or the first pages of a long one, have been read. `catchUp` reads the other pages. */
  static async open(context: EdgeContext): Promise<StatusService> {
    return new StatusService(context, await TapeScorer.open(context.tape, context.wallTime()))
  }

  catchUp(): Promise<void> {
    return this.#scorer.read()
  }

  async save(): Promise<void> {
    const { tape, wallTime } = this.#context
    const notes = new Notes().set(timePerSourceNote, this.#timePerSource.note(wallTime()))
    await tape.append([], notes).catch((failure: unknown) => {
      if (!(failure instanceof NotLeadingError)) throw failure
    })
  }

  async close(): Promise<void> {
    this.#scorer.close()
    this.#unfollow()
    await this.save()
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
    const { rows: messages, bytes } = tape.measure()
    const ends = { oldest: hub.position(tape.oldest()), oldest_time: tape.oldestTime(), end: hub.position(tape.end()) }
    return { epoch: tape.epoch, ...ends, messages, bytes, durable: tape.isDurable }
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
