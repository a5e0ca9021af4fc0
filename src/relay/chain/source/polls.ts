import type { Hex } from '../../../lib/hex.ts'
import type { Logs } from '../logs/read-logs.ts'
import type { BlockReader } from '../rpc/block-reader.ts'
import { type Header, isSealed, type SealedHeader } from '../rpc/header.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import { fingerprintOf, judgePending, type PendingMemory } from './pending-block.ts'
import { isSealedOnly, type SourceState } from './source-state.ts'

/** What a poll reads, in this order. */
export type PollResult =
  /** A read began. */
  | { readonly type: 'polling'; readonly poll: 'pending' | 'head' }
  | { readonly type: 'latest'; readonly header: SealedHeader }
  /** The pending block was judged; `block` is the one being built, if that is pre-confirmed. */
  | { readonly type: 'pending'; readonly memory: PendingMemory; readonly block: Header | null }
  | { readonly type: 'polled_logs'; readonly logs: Logs; readonly closesGap: boolean }
  /** The poll is complete for these addresses. `memory` is null if it did not read the pending block. */
  | { readonly type: 'covered'; readonly addresses: readonly Hex[]; readonly memory: PendingMemory | null }

type PollInputs = {
  readonly node: BlockReader
  readonly state: SourceState
  readonly memory: PendingMemory
  readonly addresses: readonly Hex[]
  /** Whether a block is known to be sealed. */
  readonly knowsSealed: (block: Header) => boolean
  readonly now: () => number
  readonly emit: (result: PollResult) => void
  readonly signal: AbortSignal
}

/** Reads the newest sealed block. */
export async function pollHead({ node, addresses, emit, signal }: PollInputs): Promise<void> {
  emit({ type: 'polling', poll: 'head' })
  emit({ type: 'latest', header: await readLatest(node, signal) })
  emit({ type: 'covered', addresses, memory: null })
}

/** Which logs to read with the pending block: none, those of a block that changed, or all at once after a subscription. */
type WantedLogs = 'none' | 'of_changed_block' | 'to_close_gap'

/** Reads the pending block and, if it changed, the head and the logs. False if the head came too late to judge the block by. */
export async function pollPending(inputs: PollInputs, wanted: WantedLogs): Promise<boolean> {
  const { node, state, addresses, now, emit, signal } = inputs
  emit({ type: 'polling', poll: 'pending' })
  const answer = await readPending(node, signal)
  const pending = answer === 'refused' ? null : answer
  const memory = wanted === 'to_close_gap' ? { ...inputs.memory, fingerprint: '' } : inputs.memory
  const fingerprint = fingerprintOf(pending)
  const isUnchanged = wanted !== 'none' && pending !== null && fingerprint === memory.fingerprint && addresses === memory.addresses
  if (isUnchanged && !isSealedOnly(state) && now() - state.headPolledAt < state.silenceMs) {
    emit({ type: 'pending', memory, block: memory.status === 'preconfirmed' ? pending : null })
    return true
  }
  emit({ type: 'polling', poll: 'head' })
  const requestedAt = now()
  const latest = await readLatest(node, signal)
  emit({ type: 'latest', header: latest })
  // While this request hung the chain moved on, and the pending block of before says nothing about the node.
  if (now() - requestedAt > state.silenceMs) return false
  // The latest block may come from a node that lags behind the one that shows a sealed block as pending.
  const known = pending !== null && inputs.knowsSealed(pending) ? { ...memory, repeatsSealed: true } : memory
  const judged = answer === 'refused' ? { ...memory, status: 'latest' as const } : judgePending(known, answer, latest, state.head)
  const isPreconfirmed = judged.status === 'preconfirmed'
  emit({ type: 'pending', memory: { ...judged, fingerprint: '' }, block: isPreconfirmed ? pending : null })
  if (wanted !== 'none' && !isUnchanged && isPreconfirmed) {
    const logs = await readPendingLogs(node, latest, addresses, signal)
    emit({ type: 'polled_logs', logs, closesGap: wanted === 'to_close_gap' })
  }
  emit({ type: 'covered', addresses, memory: { ...judged, addresses, fingerprint: wanted === 'none' ? '' : fingerprint } })
  return true
}

/** A node that does not support the tag refuses it, and has no pending block. */
async function readPending(node: BlockReader, signal: AbortSignal): Promise<Header | 'refused' | null> {
  try {
    return await node.header('pending', signal)
  } catch (failure) {
    if (failure instanceof UpstreamError && failure.isAnswered) return 'refused'
    throw failure
  }
}

export async function readLatest(node: BlockReader, signal?: AbortSignal): Promise<SealedHeader> {
  const latest = await node.header('latest', signal)
  if (!isSealed(latest)) throw new UpstreamError('unreadable', 'no latest block')
  return latest
}

/** The pre-confirmed logs. They are read from the newest sealed block on, since nodes require a range that exists. */
async function readPendingLogs(
  node: BlockReader,
  { number }: SealedHeader,
  addresses: readonly Hex[],
  signal: AbortSignal,
): Promise<Logs> {
  const { logs, unreadable } = await node.logsInRange(number, 'pending', addresses, signal)
  return { logs: logs.filter(({ blockNumber }) => blockNumber > number), unreadable }
}
