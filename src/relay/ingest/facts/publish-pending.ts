import { getOrAdd } from '../../../lib/bounded-map.ts'
import type { PendingLog } from '../../chain/logs/log-memory.ts'
import type { Log } from '../../chain/logs/log-parser.ts'
import { advancePosition, applyPendingLog } from '../apply-to-tokens.ts'
import type { Moment } from '../batch-values.ts'
import { applyDue, observeClaimedTime } from '../chain-time.ts'
import { raiseHead } from '../head-and-status.ts'
import type { IngestState } from '../ingest-state.ts'
import { type LogSubject, subjectOf } from '../log-subject.ts'
import { applyPendingRound } from '../nav-rounds.ts'
import { withTradeQuote } from '../pools/pool-quotes.ts'
import {
  addAll,
  type EventOutput,
  NOTHING,
  type Outputs,
  outputsOfParts,
  PUBLISHED_PER_TURN,
  type Publication,
  withoutFacts,
} from '../publication.ts'
import { amend, correctMultipliers } from './amend.ts'
import { hasSameDetail, isSameContent } from './fact.ts'
import type { Ledger } from './ledger.ts'
import { makeFact } from './make-fact.ts'

type PendingLogs = { readonly pendingLogs: readonly PendingLog[]; readonly repeated: number }

/** Publishes new pre-confirmed logs, and amends known keys. Thousands of logs take several turns. */
export function* publishPending(state: IngestState, { pendingLogs, repeated }: PendingLogs, moment: Moment): Outputs {
  const hasOtherKeys = otherKeysIn(state.ledger)
  yield* outputsOfParts(pendingLogs, PUBLISHED_PER_TURN, (part) => publishPart(state, part, hasOtherKeys, moment))
  yield { publications: NOTHING, repeated }
}

function publishPart(
  state: IngestState,
  pendingLogs: readonly PendingLog[],
  hasOtherKeys: HasOtherKeys,
  moment: Moment,
): EventOutput {
  const publications: Publication[] = []
  const counts = { repeated: 0, unlisted: 0, unreadable: 0 }
  let pending: number | null = null
  for (const pendingLog of pendingLogs) {
    const { log } = pendingLog.decodedLog
    const subject = subjectOf(state, pendingLog.decodedLog)
    if (state.feedAddresses.has(log.address)) {
      addAll(publications, withoutFacts(applyPendingRound(state, log, moment)))
    } else if (typeof subject === 'string') {
      counts[subject] += 1
    } else if (subject && !subject.isFollowed) {
      counts.unlisted += 1
    } else if (subject && !isOpen(state.ledger, log)) {
      counts.repeated += 1
    } else if (subject) {
      const blockTime = { number: log.blockNumber, timestamp: log.blockTimestamp }
      addAll(publications, observeClaimedTime(state, blockTime, false, moment))
      if (mustWait(pendingLog, hasOtherKeys)) continue
      const isMultiplierChanged = applyPendingLog(state, pendingLog.decodedLog, moment)
      const publication = publishLog(state, subject, pendingLog, moment)
      // Most logs are no swaps.
      if (publication && pendingLog.decodedLog.decoded.event === 'Swap')
        addAll(publications, withTradeQuote(state, publication, pendingLog.decodedLog, moment))
      else if (publication) publications.push(publication)
      else if (!pendingLog.isKnown) counts.repeated += 1
      if (publication && publication.draft.type !== 'amend') pending = Math.max(log.blockNumber, pending ?? 0)
      // The log may have scheduled a multiplier that is due already.
      if (isMultiplierChanged) addAll(publications, [...applyDue(state, moment), ...correctMultipliers(state, log.address, moment)])
      advancePosition(state, log.blockNumber, log.logIndex)
    }
  }
  // The highest block with a new key is being built.
  raiseHead(state, { pending })
  return { publications, ...counts }
}

/** Whether a log may still be published or amended before its block is settled. */
function isOpen(ledger: Ledger, { blockNumber, key }: Log): boolean {
  const published = ledger.find(blockNumber, key)
  return published ? published.state === 'open' : ledger.canPublish(blockNumber, key)
}

/** Whether a log has to wait: an announcement waits for its end, a log that explains one of an earlier run for its block. */
function mustWait({ decodedLog, transaction }: PendingLog, hasOtherKeys: HasOtherKeys): boolean {
  const { event } = decodedLog.decoded
  if (event === 'Announcement') return !decodedLog.isClosed
  return (event === 'Memo' || event === 'Seized' || event === 'EndAnnouncement') && hasOtherKeys(transaction, decodedLog.log)
}

/** Whether the ledger has keys of a transaction that are not among the transaction's received logs. */
type HasOtherKeys = (transaction: PendingLog['transaction'], log: Log) => boolean

/** Looks up each transaction once. Publishing the received logs of a transaction does not change the answer. */
function otherKeysIn(ledger: Ledger): HasOtherKeys {
  const found = new Map<PendingLog['transaction'], boolean>()
  return (transaction, { transactionHash }) =>
    getOrAdd(found, transaction, () => ledger.hasOtherKeys(transactionHash, new Set(transaction.map(({ log }) => log.key))))
}

/** Publishes a new key, or amends a known one. Returns null if neither is needed or allowed. */
function publishLog(state: IngestState, subject: LogSubject, pendingLog: PendingLog, moment: Moment): Publication | null {
  const { decodedLog, via, receivedAt, isKnown } = pendingLog
  const { log } = decodedLog
  const { ledger, tokens, chainTime } = state
  const token = tokens.get(subject.token)
  if (!token) return null
  const fact = makeFact(
    decodedLog,
    { token, venue: subject.venue },
    { via, sealed: false, late: false, receivedAt, chainTime },
    moment,
  )
  const before = ledger.find(log.blockNumber, log.key)
  if (!before) return { draft: fact, fact: ledger.add(fact, 'open', state.tapeEnd, moment.at) }
  const isSame = isSameContent(before.draft, fact) && hasSameDetail(before.draft, fact)
  const canAmend = (isKnown || via === 'pendingLogs') && fact.address === before.draft.address
  return !isSame && canAmend ? amend(state, before, fact, moment) : null
}
