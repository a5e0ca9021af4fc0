import { readTogether, type Saying } from '../chain/logs/fold-transaction.ts'
import type { Log } from '../chain/logs/log-schema.ts'
import type { Desk } from './context.ts'
import { type Hearing, join } from './enrich.ts'
import { contentOf, detailOf, placeOf } from './fact.ts'
import type { Told } from './ledger.ts'
import { type HeardLog, Overheard } from './pending-logs.ts'

/** The blocks before were often sealed a moment ago and are just being settled: what they hold was pre-confirmed, too. */
const LIVE_BLOCKS = 2

/** Tells what is pre-confirmed: at once, with what was heard of its transaction before, and owed an end. */
export class Preconfirmed {
  readonly #desk: Desk
  readonly #overheard = new Overheard()

  constructor(desk: Desk) {
    this.#desk = desk
  }

  /** What is settled is pre-confirmed no more. */
  settled(newest: number): void {
    this.#overheard.settled(newest)
  }

  /** Logs of one transaction. Whether something was told that had not been. */
  tell(logs: readonly HeardLog[]): boolean {
    const { keeper } = this.#desk
    for (const { log } of logs) this.#quote(log)
    const news = logs.filter((heard) => !keeper.quotes(heard.log.address) && this.#isNews(heard))
    const [first] = news
    if (!first) return false
    for (const { log } of news) this.#desk.hears(timeOf(log), LIVE_BLOCKS)
    const before = new Set(this.#overheard.of(first.log).keys())
    for (const heard of news) this.#overheard.add(heard)
    const heard = this.#overheard.of(first.log)
    const { sayings } = readTogether([...heard.values()].map(({ log }) => log))
    let told = false
    for (const saying of sayings) {
      if (this.#waits(saying, heard)) continue
      const { log, via, receivedAt } = heard.get(saying.log.key) ?? first
      const moved = keeper.says(saying)
      const hearing = this.#desk.hearing({ via, sealed: false, late: false, receivedAt })
      if (this.#say(saying, hearing, before.has(log.key))) told = true
      this.#desk.hears(timeOf(log), LIVE_BLOCKS)
      if (moved) this.#desk.correct(log.address, () => true)
      keeper.reaches({ block: log.blockNumber, logIndex: log.logIndex })
    }
    return told
  }

  /** A round of a feed: what is settled by now has been told with its block, or is not so. */
  #quote(log: Log): void {
    const { settled } = this.#desk.ledger
    if (settled === null || log.blockNumber > settled) this.#desk.keeper.quote(log)
  }

  /** Whether a log is of a listed token, and says something that was not heard before. */
  #isNews({ log, via }: HeardLog): boolean {
    const { count, ledger } = this.#desk
    const token = this.#desk.token(log.address)
    if (!token || token.state === 'delisted') {
      count.foreign()
      return false
    }
    const before = this.#overheard.of(log).get(log.key)
    // Of polls the first wins: behind one name may stand several nodes, and each would take back what the other said.
    const repeats = before !== undefined && (via !== 'pendingLogs' || sameLog(before.log, log))
    const told = ledger.find(log.blockNumber, log.key)
    const isOpen = told ? told.state === 'open' : before !== undefined || ledger.admits(log.blockNumber, log.key)
    if (!repeats && isOpen) return true
    count.repeated()
    return false
  }

  /**
   * Whether a saying is told only when more is heard, or when its block is settled: an announcement whose end did not come
   * yet, and what is part of something else that a former life told.
   */
  #waits({ log, said, closed }: Saying, heard: ReadonlyMap<string, unknown>): boolean {
    if (said.event === 'Announcement') return !closed
    const isPart = said.event === 'Memo' || said.event === 'Seized' || said.event === 'EndAnnouncement'
    return isPart && this.#desk.ledger.tellsMore(log.transactionHash, heard)
  }

  /** `known`: the log itself was heard before, and what is new is what was heard with it. Whether its key is new. */
  #say(saying: Saying, hearing: Hearing, known: boolean): boolean {
    const { count, ledger, sheet } = this.#desk
    const { log } = saying
    const token = this.#desk.token(log.address)
    if (!token) return false
    const draft = join(saying, token, hearing)
    const [content, detail] = [contentOf(draft), detailOf(draft)]
    const before = ledger.find(log.blockNumber, log.key)
    if (!before) {
      const { symbol, type } = draft
      const told: Told = { ...placeOf(draft), symbol, type, content, detail, state: 'open', seq: sheet.next }
      sheet.tell(draft)
      ledger.tell(log.blockNumber, told, this.#desk.end)
      this.#desk.owe(told, log.blockNumber)
      return true
    }
    const same = content === before.content && detail === before.detail
    const mayAmend = known || hearing.via === 'pendingLogs'
    if (!same && mayAmend && draft.address === before.address) {
      this.#desk.amend(before, before.type, draft)
      this.#desk.owe(before, log.blockNumber)
    } else if (!(same && known)) count.repeated()
    return false
  }
}

const timeOf = ({ blockNumber, blockTimestamp }: Log) => ({ number: blockNumber, timestamp: blockTimestamp })

const sameLog = (one: Log, other: Log): boolean =>
  one.address === other.address && one.data === other.data && one.topics.join() === other.topics.join()
