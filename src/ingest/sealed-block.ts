import { type DecodedLog, decodeLogs } from '../chain/logs/fold-transaction.ts'
import type { Log } from '../chain/logs/log-schema.ts'
import type { SealedBlock } from '../chain/sealed/block-logs.ts'
import type { Hex } from '../protocol/fields.ts'
import type { IngestContext } from './context.ts'
import { enrich } from './enrich.ts'
import { contentOf, detailOf, factLocation } from './fact.ts'
import type { BlockContents, PublishedFact } from './ledger.ts'
import { openKeyNotes } from './restore.ts'
import { blockFieldOf, retractDraft, sealDraft } from './settle.ts'

/**
 * Where a sealed block stands among the others: what is first told with it may be late, and the newest may be far above.
 * `isNext`: all before it is settled, so that nothing can have ended what was scheduled until then.
 */
type SettleOptions = { readonly late: boolean; readonly newest: number; readonly isNext: boolean }

/** A block is sealed: what it holds ends what was told of it, and puts right what follows from it elsewhere. */
export function settleBlock(context: IngestContext, block: SealedBlock, { late, newest, isNext }: SettleOptions): void {
  const time = isNext ? block.timestamp : null
  if (isNext) context.advanceTime(time)
  else context.observeBlockTime(block)
  const correctedAddresses = settleFacts(context, block, { late, time })
  if (isNext) context.advanceTime(time)
  // What a reorganisation goes on to settle is put right there; beside the newest blocks nothing else comes by.
  const isAffected = (number: number, { state }: PublishedFact) =>
    state === 'open' || number < block.number || newest > block.number
  for (const address of correctedAddresses) context.correctMultipliers(address, isAffected)
}

/** Tells it in the order that the contract names. The tokens of which it shows another multiplier than was thought. */
function settleFacts(
  context: IngestContext,
  block: SealedBlock,
  { late, time }: { readonly late: boolean; readonly time: number | null },
): readonly Hex[] {
  const { outbox, ledger, tokenState } = context
  tokenState.applySealedRounds(block)
  const { decodedLogs, foldedLogs } = decodeLogs(listedLogsOf(context, block))
  const logsByAddress = Map.groupBy(decodedLogs, ({ log }) => log.address)
  const correctedAddresses = block.addresses.filter((address) =>
    tokenState.applySealedBlock(block.number, address, logsByAddress.get(address) ?? []),
  )
  tokenState.applyDueSchedules(time)
  const messageContext = { ...context.messageContext, block: blockFieldOf(block) }
  const contents = { facts: factsOf(context, decodedLogs, block, late), parts: foldedLogs.map(partLocation) }
  const settlement = ledger.settle(
    { ...messageContext.block, hash: block.hash },
    contents,
    new Set(block.addresses),
    context.tapeEnd,
  )
  for (const retraction of settlement.retractions) {
    outbox.publish(retractDraft(retraction, messageContext))
    outbox.setNote(openKeyNotes.at(retraction.published.key), null)
  }
  for (const { published, of, fact } of settlement.amendments) context.amend(published, of, fact.draft)
  const lateKeys = new Set<string>()
  for (const { published, fact, isMoved: isKnown } of settlement.additions) {
    published.seq = outbox.nextSeq
    const draft = isKnown ? { ...fact.draft, late: false } : fact.draft
    if (draft.late) lateKeys.add(published.key)
    outbox.publish(draft)
  }
  for (const seal of settlement.seals) {
    outbox.publish(sealDraft(seal, lateKeys, messageContext))
    for (const { key } of seal.logs) outbox.setNote(openKeyNotes.at(key), null)
  }
  return correctedAddresses
}

/** Its logs, each once, of the tokens that are listed or of which something was told of it before. */
function listedLogsOf(context: IngestContext, { number, hash, logs, timestamp }: SealedBlock): readonly Log[] {
  const publishedAddresses = new Set(context.ledger.at(number).map(({ address }) => address))
  // A node may say the same log twice.
  const uniqueLogs = new Map(logs.map((log) => [log.key, log]))
  return [...uniqueLogs.values()].flatMap((log) => {
    if (context.tokenState.isFeedAddress(log.address)) return []
    const token = context.findToken(log.address)
    if (!token || (token.state === 'delisted' && !publishedAddresses.has(log.address))) {
      context.count.unlisted()
      return []
    }
    return [{ ...log, blockHash: hash, blockTimestamp: log.blockTimestamp ?? timestamp }]
  })
}

function factsOf(
  context: IngestContext,
  decodedLogs: readonly DecodedLog[],
  { via }: SealedBlock,
  late: boolean,
): BlockContents['facts'] {
  const publishContext = context.publishContext({ via, sealed: true, late, receivedAt: context.now })
  return decodedLogs.flatMap((decodedLog) => {
    const token = context.findToken(decodedLog.log.address)
    if (!token) return []
    const draft = enrich(decodedLog, token, publishContext)
    return [{ ...factLocation(draft), content: contentOf(draft), detail: detailOf(draft), draft }]
  })
}

const partLocation = ({ key, address, transactionHash: tx, transactionIndex: txIndex, logIndex }: Log) => ({
  ...{ key, address, tx, txIndex, logIndex },
})
