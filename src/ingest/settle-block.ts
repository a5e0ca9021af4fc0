import { addressSetOf } from '../chain/logs/address-set.ts'
import type { DecodedLog } from '../chain/logs/fold-logs.ts'
import type { FoldedBlock } from '../chain/logs/log-folder.ts'
import type { SealedBlock } from '../chain/sealed/block-logs.ts'
import type { Block, Hex } from '../protocol/fields.ts'
import type { DraftOf } from '../protocol/updates.ts'
import { amendment, correctMultipliers } from './amend.ts'
import { advanceTime, observeBlockTime } from './chain-time.ts'
import { enrich, isMovementPublishedAs, type Origin } from './enrich.ts'
import type { FactDraft, PublishedFact } from './fact.ts'
import { blockFieldOf } from './head.ts'
import type { IngestState } from './ingest-state.ts'
import type { Settlement } from './ledger.ts'
import type { Moment } from './moment.ts'
import { settleRounds } from './nav-rounds.ts'
import { NOTHING, type Publication, UNPLACED, withoutFacts } from './publication.ts'
import { applyDueSchedules, applySealedLogs, currentValue } from './token-updates.ts'

/** A sealed block whose logs are decoded and folded. */
export type DecodedBlock = Omit<SealedBlock, 'logs'> & FoldedBlock

/**
 * `late`: a fact that this block publishes first counts as late. `newest`: the newest sealed block. `settlesAllBefore`: all blocks
 * before this one are settled, so no unread log can have cancelled a schedule that is due.
 */
type SettleOptions = { readonly late: boolean; readonly newest: number; readonly settlesAllBefore: boolean }

/** What settling a block publishes, and how many of its logs are of unlisted tokens. */
type SettledBlock = { readonly publications: readonly Publication[]; readonly unlisted: number }

/** Reconciles what was published with a sealed block: publishes, amends, retracts and seals. */
export function settleBlock(state: IngestState, block: DecodedBlock, options: SettleOptions, moment: Moment): SettledBlock {
  const { late, newest, settlesAllBefore } = options
  const time = settlesAllBefore ? block.timestamp : null
  const queried = addressSetOf(block.addresses)
  // The facts of this block are amended with it, as sealed ones.
  const isElsewhere = ({ draft }: PublishedFact) => draft.block.number !== block.number || !queried.has(draft.address)
  const timeBefore = settlesAllBefore ? advanceTime(state, block, moment, isElsewhere) : observeBlockTime(state, block, moment)
  const { decodedLogs, parts, rounds, unlisted } = listedLogsOf(state, block)
  const roundDrafts = settleRounds(state, block, rounds, moment)
  const logsByAddress = Map.groupBy(decodedLogs, ({ log }) => log.address)
  const touched = new Set([...logsByAddress.keys(), ...state.changedByLogs].filter((address) => queried.has(address)))
  const correctedAddresses = [...touched]
    .sort()
    .filter((address) => applySealedLogs(state, block.number, address, logsByAddress.get(address) ?? [], moment))
  // Schedules that the block added and that are due at its own time take effect before its facts are published.
  const scheduleDrafts =
    time === null ? [] : [...state.scheduled].flatMap((address) => applyDueSchedules(state, address, time, moment).drafts)
  const facts = factsOf(
    state,
    decodedLogs,
    { via: block.via, sealed: true, late, receivedAt: moment.at, chainTime: state.chainTime },
    moment,
  )
  const blockField = blockFieldOf(block)
  const settlement = state.ledger.settle({ ...blockField, hash: block.hash }, { facts, parts }, queried, state.tapeEnd)
  const settled = publishSettlement(state, settlement, blockField, moment)
  const timeAfter = settlesAllBefore ? advanceTime(state, block, moment) : NOTHING
  // Sealed facts above the newest block belong to a replaced chain: their blocks are settled again. A backfilled block
  // also corrects the facts above it, because their blocks are not settled again.
  const isAffected = ({ state, draft }: PublishedFact) =>
    state === 'open' || draft.block.number < block.number || newest > block.number
  const corrections = correctedAddresses.flatMap((address) => correctMultipliers(state, address, moment, isAffected))
  const publications = [timeBefore, withoutFacts([...roundDrafts, ...scheduleDrafts]), settled, timeAfter, corrections].flat()
  return { publications, unlisted }
}

/** Publishes in the order that the contract names. */
function publishSettlement(
  state: IngestState,
  { retractions, amendments, additions, seals }: Settlement,
  block: Block,
  moment: Moment,
): readonly Publication[] {
  const lateKeys = new Set(additions.flatMap(({ draft }) => (draft.late ? [draft.key] : [])))
  return [
    ...retractions.map((retraction) => retract(state, retraction, block, moment)),
    ...amendments.map(({ published, before }) => amendment(state, published, before, moment)),
    ...additions.map((fact) => ({ draft: fact.draft, fact })),
    ...seals.map((seal) => ({ draft: sealDraft(state, seal, lateKeys, block, moment), fact: null })),
  ]
}

function retract(
  state: IngestState,
  { published, reason, by }: Settlement['retractions'][number],
  block: Block,
  { time }: Moment,
): Publication {
  const { address, key, type: of, symbol: publishedSymbol } = published.draft
  const symbol = state.tokens.get(address)?.symbol ?? publishedSymbol
  const now = currentValue(state, address, of)
  return { draft: { type: 'retract', symbol, address, time, key, of, was: UNPLACED, reason, by, now, block }, fact: published }
}

function sealDraft(
  { tokens }: IngestState,
  { address, symbol: publishedSymbol, keys, types, digest }: Settlement['seals'][number],
  lateKeys: ReadonlySet<string>,
  block: Block,
  { time }: Moment,
): DraftOf<'seal'> {
  const symbol = tokens.get(address)?.symbol ?? publishedSymbol ?? address
  const late_keys = lateKeys.size === 0 ? [] : keys.filter((key) => lateKeys.has(key))
  return { type: 'seal', symbol, address, time, block, keys, types, late_keys, count: keys.length, digest }
}

/** The logs of tokens that are listed or that already have published facts in this block, and the rounds of the price feeds. */
function listedLogsOf({ tokens, feedAddresses, ledger }: IngestState, block: DecodedBlock) {
  const isRound = ({ address }: { readonly address: Hex }) => feedAddresses.has(address)
  const isListed = ({ address }: { readonly address: Hex }) => {
    const token = tokens.get(address)
    return token !== undefined && (token.state !== 'delisted' || ledger.hasFactOf(address, block.number))
  }
  const logs = block.decodedLogs.filter(({ log }) => !isRound(log))
  const decodedLogs = logs.filter(({ log }) => isListed(log))
  const parts = block.parts.filter(isListed)
  return {
    decodedLogs,
    parts,
    rounds: block.decodedLogs.flatMap(({ log }) => (isRound(log) ? [log] : [])),
    unlisted: logs.length - decodedLogs.length + block.parts.length - parts.length,
  }
}

function factsOf(state: IngestState, decodedLogs: readonly DecodedLog[], origin: Origin, moment: Moment): readonly FactDraft[] {
  const facts: FactDraft[] = []
  for (const decodedLog of decodedLogs) {
    const { address, blockNumber, key } = decodedLog.log
    const token = state.tokens.get(address)
    if (!token) continue
    const published = state.ledger.find(blockNumber, key)?.draft
    const isPublished = published && isMovementPublishedAs(published, decodedLog, token, origin.chainTime, moment)
    facts.push(isPublished ? published : enrich(decodedLog, token, origin, moment))
  }
  return facts
}
