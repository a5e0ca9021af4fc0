import { createHash } from 'node:crypto'
import { type DecodedLog, decodeLogs } from '../chain/logs/fold-logs.ts'
import type { Log } from '../chain/logs/log-schema.ts'
import type { SealedBlock } from '../chain/sealed/block-logs.ts'
import type { Block, Hex } from '../protocol/fields.ts'
import type { DraftOf } from '../protocol/updates.ts'
import type { IngestContext } from './context.ts'
import { enrich } from './enrich.ts'
import { contentOf, detailOf, factLocation } from './fact.ts'
import type { BlockContents, PublishedFact, Settlement } from './ledger.ts'
import { openKeyNotes } from './restore.ts'

/** The digest of a block's keys: long enough to notice a difference, short enough to read out. */
const DIGEST_BYTES = 16

/**
 * `late`: a fact that this block publishes first counts as late. `newest`: the newest sealed block. `settlesAllBefore`: all blocks
 * before this one are settled, so no unread log can have cancelled a schedule that is due.
 */
type SettleOptions = { readonly late: boolean; readonly newest: number; readonly settlesAllBefore: boolean }

/** Reconciles what was published with a sealed block: publishes, amends, retracts and seals. */
export function settleBlock(context: IngestContext, block: SealedBlock, { late, newest, settlesAllBefore }: SettleOptions): void {
  const time = settlesAllBefore ? block.timestamp : null
  if (settlesAllBefore) context.advanceTime(time)
  else context.observeBlockTime(block)
  const correctedAddresses = settleFacts(context, block, { late, time })
  if (settlesAllBefore) context.advanceTime(time)
  // Sealed facts above the newest block belong to a replaced chain: their blocks are settled again. A backfilled block
  // also corrects the facts above it, because their blocks are not settled again.
  const isAffected = (number: number, { state }: PublishedFact) =>
    state === 'open' || number < block.number || newest > block.number
  for (const address of correctedAddresses) context.correctMultipliers(address, isAffected)
}

/** Returns the tokens whose multiplier history the block changed. */
function settleFacts(
  context: IngestContext,
  block: SealedBlock,
  { late, time }: { readonly late: boolean; readonly time: number | null },
): readonly Hex[] {
  const { ledger, tokenState } = context
  tokenState.applySealedRounds(block)
  const { decodedLogs, foldedLogs } = decodeLogs(listedLogsOf(context, block))
  const logsByAddress = Map.groupBy(decodedLogs, ({ log }) => log.address)
  const correctedAddresses = block.addresses.filter((address) =>
    tokenState.applySealedBlock(block.number, address, logsByAddress.get(address) ?? []),
  )
  tokenState.applyDueSchedules(time)
  const blockField = blockFieldOf(block)
  const contents = { facts: factsOf(context, decodedLogs, block, late), parts: foldedLogs.map(partLocation) }
  const addresses = new Set(block.addresses)
  const settlement = ledger.settle({ ...blockField, hash: block.hash }, contents, addresses, context.tapeEnd)
  publishSettlement(context, settlement, blockField)
  return correctedAddresses
}

/** Publishes in the order that the contract names. */
function publishSettlement(context: IngestContext, settlement: Settlement, block: Block): void {
  const { outbox } = context
  for (const retraction of settlement.retractions) {
    outbox.publish(retractDraft(context, retraction, block))
    outbox.setNote(openKeyNotes.at(retraction.published.key), null)
  }
  for (const { published, of, fact } of settlement.amendments) context.amend(published, of, fact.draft)
  const lateKeys = new Set<string>()
  for (const { published, fact, isMoved } of settlement.additions) {
    published.seq = outbox.nextSeq
    // A moved fact was published in time, under its old key.
    const draft = isMoved ? { ...fact.draft, late: false } : fact.draft
    if (draft.late) lateKeys.add(published.key)
    outbox.publish(draft)
  }
  for (const seal of settlement.seals) {
    outbox.publish(sealDraft(context, seal, lateKeys, block))
    for (const { key } of seal.logs) outbox.setNote(openKeyNotes.at(key), null)
  }
}

function retractDraft(
  context: IngestContext,
  { published, reason, by }: Settlement['retractions'][number],
  block: Block,
): DraftOf<'retract'> {
  const { address, key, type } = published
  return {
    type: 'retract',
    symbol: context.symbolOf(address, published.symbol),
    address,
    time: context.nowIso,
    key,
    of: type,
    was: context.positionOf(published.seq),
    reason,
    by,
    now: context.tokenState.currentValue(address, type),
    block,
  }
}

function sealDraft(
  context: IngestContext,
  { address, symbol, logs }: Settlement['seals'][number],
  lateKeys: ReadonlySet<string>,
  block: Block,
): DraftOf<'seal'> {
  const keys = logs.map(({ key }) => key)
  const digest = createHash('sha256').update(keys.join('\n')).digest('hex')
  return {
    type: 'seal',
    symbol: context.symbolOf(address, symbol ?? address),
    address,
    time: context.nowIso,
    block,
    keys,
    types: logs.map(({ type }) => type),
    late_keys: keys.filter((key) => lateKeys.has(key)),
    count: keys.length,
    digest: digest.slice(0, 2 * DIGEST_BYTES),
  }
}

export const blockFieldOf = ({ number, hash, timestamp }: Pick<SealedBlock, 'number' | 'hash' | 'timestamp'>): Block => ({
  number,
  hash,
  timestamp: timestamp === null ? null : new Date(timestamp * 1_000).toISOString(),
})

/** Each log once, of tokens that are listed or that already have published facts in this block. */
function listedLogsOf(context: IngestContext, { number, hash, logs, timestamp }: SealedBlock): readonly Log[] {
  const publishedAddresses = new Set(context.ledger.at(number).map(({ address }) => address))
  // A node may return the same log twice.
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
