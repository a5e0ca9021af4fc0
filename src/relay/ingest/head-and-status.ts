import type { Head } from '../../protocol/fields.ts'
import type { SealedBlock } from '../chain/blocks/sealed-block.ts'
import type { SourceStatusNote } from '../notes/published-notes.ts'
import type { Moment } from './batch-values.ts'
import type { BlockTime, IngestState } from './ingest-state.ts'
import { forAllTokens, NOTHING, type Publication } from './publication.ts'

const headNames = ['pending', 'sealed', 'safe', 'finalized'] as const

/** Raises the block numbers of the head. A lower number never replaces a higher one. */
export function raiseHead(
  state: IngestState,
  { sealed = null, pending = null, safe = null, finalized = null }: Partial<Head>,
): void {
  const { head } = state
  const highestSealed = higher(head.sealed, sealed)
  const highestPending = higher(head.pending, pending)
  const raised: Head = {
    // If the highest pending block is sealed already, the number of the pending block is unknown.
    pending: highestPending !== null && highestSealed !== null && highestPending <= highestSealed ? null : highestPending,
    sealed: highestSealed,
    safe: higher(head.safe, safe),
    finalized: higher(head.finalized, finalized),
  }
  if (headNames.some((name) => raised[name] !== head[name])) state.head = raised
}

/** Records the time of the newest settled block, from which the status page derives the lag. */
export function recordNewestSettled(state: IngestState, { number, timestamp }: BlockTime): void {
  if (timestamp === null || number <= (state.newestSettled?.number ?? -1)) return
  state.newestSettled = { number, timestamp }
}

export function applyFinality(
  state: IngestState,
  { stage, block }: { readonly stage: 'safe' | 'finalized'; readonly block: Pick<SealedBlock, 'number' | 'hash' | 'timestamp'> },
  { time, blockOf }: Moment,
): readonly Publication[] {
  const { number, hash, timestamp } = block
  if (stage === 'safe') state.ledger.setSafe(number)
  raiseHead(state, { [stage]: number, sealed: number })
  return [forAllTokens({ type: 'finality', stage, block: blockOf(number, hash, timestamp) }, time)]
}

export function applyStatus(
  state: IngestState,
  { source, reason }: Pick<SourceStatusNote, 'source' | 'reason'>,
  { time }: Moment,
): readonly Publication[] {
  if (state.status?.source === source && state.status.reason === reason) return NOTHING
  state.status = { source, reason, started_at: time }
  return [forAllTokens({ type: 'status', source, started_at: time, reason, head: state.head }, time)]
}

const higher = (before: number | null, now: number | null): number | null =>
  before === null || (now !== null && now > before) ? now : before
