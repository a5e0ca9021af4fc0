import type { PendingLog } from '../../chain/logs/log-memory.ts'
import { advancePosition, applyPendingLog } from '../apply-to-tokens.ts'
import type { Moment } from '../batch-values.ts'
import { applyDue, observeClaimedTime } from '../chain-time.ts'
import type { IngestState } from '../ingest-state.ts'
import { applyPendingRound } from '../nav-rounds.ts'
import { addAll, type Publication, withoutFacts } from '../publication.ts'
import { amend, correctMultipliers } from './amend.ts'
import { hasSameDetail, isSameContent } from './compare-facts.ts'
import type { Ledger } from './ledger.ts'
import { makeFact } from './make-fact.ts'

/** Publishes new pre-confirmed logs, and amends known keys. The returned `pending` is the highest block with a new key. */
export function publishPending(state: IngestState, pendingLogs: readonly PendingLog[], moment: Moment) {
  const publications: Publication[] = []
  const hasOtherKeys = otherKeysIn(state.ledger)
  let [pending, repeated, unlisted]: [number | null, number, number] = [null, 0, 0]
  for (const pendingLog of pendingLogs) {
    const { log } = pendingLog.decodedLog
    const token = state.tokens.get(log.address)
    if (state.feedAddresses.has(log.address)) {
      addAll(publications, withoutFacts(applyPendingRound(state, log, moment)))
    } else if (!token || token.state === 'delisted') {
      unlisted += 1
    } else if (!isOpen(state.ledger, log)) {
      repeated += 1
    } else {
      const blockTime = { number: log.blockNumber, timestamp: log.blockTimestamp }
      addAll(publications, observeClaimedTime(state, blockTime, false, moment))
      if (mustWait(pendingLog, hasOtherKeys)) continue
      const isMultiplierChanged = applyPendingLog(state, pendingLog.decodedLog, moment)
      const publication = publishLog(state, pendingLog, moment)
      if (publication) publications.push(publication)
      else if (!pendingLog.isKnown) repeated += 1
      if (publication && publication.draft.type !== 'amend') pending = Math.max(log.blockNumber, pending ?? 0)
      // The log may have scheduled a multiplier that is due already.
      if (isMultiplierChanged) addAll(publications, [...applyDue(state, moment), ...correctMultipliers(state, log.address, moment)])
      advancePosition(state, log.blockNumber, log.logIndex)
    }
  }
  return { publications, pending, repeated, unlisted }
}

/** Whether a log may still be published or amended before its block is settled. */
function isOpen(ledger: Ledger, { blockNumber, key }: PendingLog['decodedLog']['log']): boolean {
  const published = ledger.find(blockNumber, key)
  return published ? published.state === 'open' : ledger.canPublish(blockNumber, key)
}

/** Whether a log has to wait: an announcement waits for its end, a log that explains one of an earlier run for its block. */
function mustWait({ decodedLog, transaction }: PendingLog, hasOtherKeys: HasOtherKeys): boolean {
  const { event } = decodedLog.decoded
  if (event === 'Announcement') return !decodedLog.isClosed
  return (event === 'Memo' || event === 'Seized' || event === 'EndAnnouncement') && hasOtherKeys(transaction)
}

/** Whether the ledger has keys of a transaction that are not among the transaction's received logs. */
type HasOtherKeys = (transaction: PendingLog['transaction']) => boolean

/** Looks up each transaction once. Publishing the received logs of a transaction does not change the answer. */
function otherKeysIn(ledger: Ledger): HasOtherKeys {
  const found = new Map<PendingLog['transaction'], boolean>()
  return (transaction) => {
    const [first] = transaction
    const known = found.get(transaction)
    if (known !== undefined || !first) return known ?? false
    const hasOthers = ledger.hasOtherKeys(first.log.transactionHash, new Set(transaction.map(({ log }) => log.key)))
    found.set(transaction, hasOthers)
    return hasOthers
  }
}

/** Publishes a new key, or amends a known one. Returns null if neither is needed or allowed. */
function publishLog(state: IngestState, pendingLog: PendingLog, moment: Moment): Publication | null {
  const { decodedLog, via, receivedAt, isKnown } = pendingLog
  const { log } = decodedLog
  const { ledger, tokens, chainTime } = state
  const token = tokens.get(log.address)
  if (!token) return null
  const fact = makeFact(decodedLog, token, { via, sealed: false, late: false, receivedAt, chainTime }, moment)
  const before = ledger.find(log.blockNumber, log.key)
  if (!before) return { draft: fact, fact: ledger.add(fact, 'open', state.tapeEnd, moment.at) }
  const isSame = isSameContent(before.draft, fact) && hasSameDetail(before.draft, fact)
  const canAmend = (isKnown || via === 'pendingLogs') && fact.address === before.draft.address
  return !isSame && canAmend ? amend(state, before, fact, moment) : null
}
