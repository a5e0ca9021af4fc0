import type { Hex } from '../../../lib/hex.ts'
import type { Block } from '../../../protocol/fields.ts'
import type { DraftOf } from '../../../protocol/updates.ts'
import type { SealedBlock } from '../../chain/blocks/sealed-block.ts'
import type { DecodedLog } from '../../chain/logs/fold-logs.ts'
import { completeFor } from '../../chain/logs/log-filter.ts'
import type { FoldedBlock } from '../../chain/logs/log-memory.ts'
import type { Log } from '../../chain/logs/log-parser.ts'
import { applyDueSchedules, applySealedLogs, currentValue } from '../apply-to-tokens.ts'
import type { Moment } from '../batch-values.ts'
import { advanceTime, observeBlockTime } from '../chain-time.ts'
import type { IngestState } from '../ingest-state.ts'
import { type LogSubject, subjectOf } from '../log-subject.ts'
import { settleRounds } from '../nav-rounds.ts'
import { withTradeQuote } from '../pools/pool-quotes.ts'
import { addAll, NEXT_TURN, type Outputs, PUBLISHED_PER_TURN, type Publication, UNPLACED, withoutFacts } from '../publication.ts'
import { amendment, correctMultipliers } from './amend.ts'
import { contractOf, type FactDraft, type PublishedFact } from './fact.ts'
import type { BlockContents, Settlement } from './ledger.ts'
import { isMovementPublishedAs, makeFact, type Origin } from './make-fact.ts'

export type DecodedBlock = Omit<SealedBlock, 'logs'> & FoldedBlock

type SettleOptions = {
  /** Whether a fact that is first published when its block is settled counts as late. */
  readonly late: boolean
  readonly newest: number
  /** Whether all blocks before this one are settled. If so, no unread log can have cancelled a schedule that is due. */
  readonly settlesAllBefore: boolean
}

/** Tokens for which a partly readable block is complete: none. It cannot prove that a fact is missing, so it retracts nothing. */
const NO_ADDRESSES: ReadonlySet<Hex> = new Set()

const NO_CHANGES: Settlement = { retractions: [], amendments: [], additions: [], seals: [] }

/**
 * Compares a sealed block with the published facts: publishes, amends, retracts and seals. A large block takes several turns, and
 * each part is written by itself. The last part has all seals, so a restart settles a partly written block again.
 */
export function* settleBlock(state: IngestState, block: DecodedBlock, options: SettleOptions, moment: Moment): Outputs {
  const isLarge = block.decodedLogs.length > PUBLISHED_PER_TURN
  // Decoding the logs of a large block has used up this turn.
  if (isLarge) yield NEXT_TURN
  const { opening, facts, parts, queried, correctedAddresses, counts } = applyLogs(state, block, options, moment)
  // A block that corrects facts of other blocks is written at once: after a crash, nothing would show that an amend is missing.
  const isSplit = correctedAddresses.length === 0
  yield { publications: opening, ...counts }
  if (isLarge && isSplit) yield NEXT_TURN
  const blockField = moment.blockOf(block.number, block.hash, block.timestamp)
  const [contents, complete] = block.unreadable
    ? [partialContents(state, block, { facts, parts }), NO_ADDRESSES]
    : [{ facts, parts }, queried]
  const settlement = isPartialReplacement(state, block)
    ? NO_CHANGES
    : state.ledger.settle({ ...blockField, hash: block.hash }, contents, complete, state.tapeEnd)
  if (isLarge && isSplit) yield NEXT_TURN
  let publications: Publication[] = []
  for (const publication of publishFacts(state, settlement, block, blockField, moment)) {
    publications.push(publication)
    if (publications.length < PUBLISHED_PER_TURN || !isSplit) continue
    yield { publications }
    yield NEXT_TURN
    publications = []
  }
  addAll(publications, publishSeals(state, settlement, blockField, moment))
  if (options.settlesAllBefore) addAll(publications, advanceTime(state, block, moment))
  // If this is the newest block, sealed facts of higher blocks stay as they are, because those blocks are settled again.
  const isAffected = ({ state, draft }: PublishedFact) =>
    state === 'open' || draft.block.number < block.number || options.newest > block.number
  for (const address of correctedAddresses) addAll(publications, correctMultipliers(state, address, moment, isAffected))
  yield { publications }
}

/** Whether a partly readable block replaces a settled one. Its unreadable logs may contain any fact of the replaced block. */
const isPartialReplacement = ({ ledger }: IngestState, { unreadable = 0, hash, number }: DecodedBlock): boolean =>
  unreadable > 0 && ledger.isReplaced(hash, number)

/** Whether a block settles a token. A partly readable one does not if an earlier reading, maybe with more logs, has sealed it. */
function isSettleable(state: IngestState, block: DecodedBlock, address: Hex): boolean {
  const { unreadable, hash, number } = block
  return !unreadable || !(isPartialReplacement(state, block) || state.ledger.isSealedBy(hash, number, address))
}

/** Contents of a partly readable block that can be settled. Omits a folded log that is published as a fact, which stays as is. */
const partialContents = (state: IngestState, block: DecodedBlock, { facts, parts }: BlockContents): BlockContents => ({
  facts: facts.filter(({ address }) => isSettleable(state, block, address)),
  parts: parts.filter(({ address, key }) => isSettleable(state, block, address) && !state.ledger.find(block.number, key)),
})

function applyLogs(state: IngestState, block: DecodedBlock, { late, settlesAllBefore }: SettleOptions, moment: Moment) {
  const time = settlesAllBefore ? block.timestamp : null
  const queried = completeFor(block.filters)
  // Facts of this block are excluded, because the settlement amends them as sealed ones.
  const isElsewhere = ({ draft }: PublishedFact) => draft.block.number !== block.number || !queried.has(contractOf(draft))
  const timeBefore = settlesAllBefore ? advanceTime(state, block, moment, isElsewhere) : observeBlockTime(state, block, moment)
  const { listed, parts, rounds, counts } = listedLogsOf(state, block)
  const roundDrafts = settleRounds(state, block, rounds, moment)
  const logsByAddress = Map.groupBy(
    listed.map(({ decodedLog }) => decodedLog),
    ({ log }) => log.address,
  )
  const touched = new Set([...logsByAddress.keys(), ...state.changedByLogs].filter((address) => queried.has(address)))
  // Tokens that the block does not settle publish no logs, so these logs do not change them either.
  const correctedAddresses = [...touched]
    .sort()
    .filter((address) => isSettleable(state, block, address))
    .filter((address) => applySealedLogs(state, block, address, logsByAddress.get(address) ?? [], moment))
  // Schedules that this block added, and that are due at the block's time, take effect before its facts are published.
  const scheduleDrafts =
    time === null ? [] : [...state.scheduled].flatMap((address) => applyDueSchedules(state, address, time, moment).drafts)
  const origin: Origin = { via: block.via, sealed: true, late, receivedAt: moment.at, chainTime: state.chainTime }
  const facts = factsOf(state, listed, origin, moment)
  const opening = [...timeBefore, ...withoutFacts([...roundDrafts, ...scheduleDrafts])]
  return { opening, facts, parts, queried, correctedAddresses, counts }
}

/** Publishes retracts, amends and new facts in the order of the contract. The seals are published after them. */
function* publishFacts(
  state: IngestState,
  settlement: Settlement,
  { decodedLogs }: DecodedBlock,
  block: Block,
  moment: Moment,
): Generator<Publication> {
  for (const retraction of settlement.retractions) yield retract(state, retraction, block, moment)
  const swaps = new Map<string, DecodedLog>()
  for (const decodedLog of decodedLogs) if (decodedLog.decoded.event === 'Swap') swaps.set(decodedLog.log.key, decodedLog)
  const withQuote = (publication: Publication, { draft: { key } }: PublishedFact) => {
    const swap = swaps.get(key)
    return swap ? withTradeQuote(state, publication, swap, moment) : [publication]
  }
  for (const { published, before } of settlement.amendments)
    yield* withQuote(amendment(state, published, before, moment), published)
  for (const fact of settlement.additions) yield* withQuote({ draft: fact.draft, fact }, fact)
}

function publishSeals(
  state: IngestState,
  { additions, seals }: Settlement,
  block: Block,
  { time }: Moment,
): readonly Publication[] {
  const lateKeys = new Set(additions.flatMap(({ draft }) => (draft.late ? [draft.key] : [])))
  const drafts = seals.map(({ address, symbol: publishedSymbol, keys, types, digest }): DraftOf<'seal'> => {
    const symbol = state.tokens.get(address)?.symbol ?? publishedSymbol ?? address
    const late_keys = lateKeys.size === 0 ? [] : keys.filter((key) => lateKeys.has(key))
    return { type: 'seal', symbol, address, time, block, keys, types, late_keys, count: keys.length, digest }
  })
  return withoutFacts(drafts)
}

function retract(state: IngestState, retraction: Settlement['retractions'][number], block: Block, { time }: Moment): Publication {
  const { published, reason, replacedBy: replaced_by } = retraction
  const { address, key, type: fact_type, symbol: publishedSymbol } = published.draft
  const symbol = state.tokens.get(address)?.symbol ?? publishedSymbol
  const restored = currentValue(state, address, fact_type)
  return {
    draft: { type: 'retract', symbol, address, time, key, fact_type, fact_id: UNPLACED, reason, replaced_by, restored, block },
    fact: published,
  }
}

type SubjectLog = { readonly decodedLog: DecodedLog; readonly subject: LogSubject }

/** Returns the logs that are followed or have published facts in this block, and the rounds of the price feeds. */
function listedLogsOf(state: IngestState, block: DecodedBlock) {
  const { feedAddresses, ledger } = state
  const counts = { unlisted: 0, unreadable: 0 }
  const listed: SubjectLog[] = []
  const rounds: Log[] = []
  for (const decodedLog of block.decodedLogs) {
    const { log } = decodedLog
    if (feedAddresses.has(log.address)) {
      rounds.push(log)
      continue
    }
    const subject = subjectOf(state, decodedLog)
    if (typeof subject === 'string') counts[subject] += 1
    else if (subject && (subject.isFollowed || ledger.hasFactOf(subject.venue?.pool.id ?? log.address, block.number)))
      listed.push({ decodedLog, subject })
    else if (subject) counts.unlisted += 1
  }
  const parts = block.parts.filter(({ address }) => isListed(state, address, block.number))
  counts.unlisted += block.parts.length - parts.length
  return { listed, parts, rounds, counts }
}

function isListed({ tokens, ledger }: IngestState, address: Hex, block: number): boolean {
  const token = tokens.get(address)
  return token !== undefined && (token.state !== 'delisted' || ledger.hasFactOf(address, block))
}

function factsOf(state: IngestState, logs: readonly SubjectLog[], origin: Origin, moment: Moment): readonly FactDraft[] {
  const facts: FactDraft[] = []
  for (const { decodedLog, subject } of logs) {
    const { blockNumber, key } = decodedLog.log
    const token = state.tokens.get(subject.token)
    if (!token) continue
    const published = state.ledger.find(blockNumber, key)?.draft
    const isPublished = published && isMovementPublishedAs(published, decodedLog, token, origin.chainTime, moment)
    facts.push(isPublished ? published : makeFact(decodedLog, { token, venue: subject.venue }, origin, moment))
  }
  return facts
}
