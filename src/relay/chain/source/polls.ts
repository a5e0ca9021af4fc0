import type { Host } from '../../host.ts'
import { settleableLogs } from '../blocks/block-logs.ts'
import type { ReadFilter } from '../logs/log-filter.ts'
import type { Logs } from '../logs/log-parser.ts'
import { type Header, isSealed, type SealedHeader } from '../rpc/block-header.ts'
import type { ChainReader } from '../rpc/chain-reader.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import { fingerprintOf, judgePending, type PendingMemory } from './pending-status.ts'
import { isSealedOnly } from './source-decisions.ts'
import type { SourceState } from './source-evidence.ts'

/** The results of a poll, in this order. */
export type PollResult =
  /** A read of the pending block or of the head began. */
  | { readonly type: 'polling'; readonly poll: 'pending' | 'head' }
  | { readonly type: 'latest'; readonly header: SealedHeader }
  /** The pending block was judged; `block` is null if the node pre-confirms none. */
  | { readonly type: 'pending'; readonly memory: PendingMemory; readonly block: Header | null }
  | { readonly type: 'polled_logs'; readonly logs: Logs; readonly closesGap: boolean }
  /** The poll is complete for these filters. `memory` is null if the poll did not read the pending block. */
  | { readonly type: 'covered'; readonly filters: readonly ReadFilter[]; readonly memory: PendingMemory | null }

type PollInputs = Pick<Host, 'now'> & {
  readonly node: ChainReader
  readonly state: SourceState
  readonly memory: PendingMemory
  readonly filters: readonly ReadFilter[]
  readonly knowsSealed: (block: Header) => boolean
  readonly emit: (result: PollResult) => void
  readonly signal: AbortSignal
}

export async function pollHead({ node, filters, emit, signal }: PollInputs): Promise<void> {
  emit({ type: 'polling', poll: 'head' })
  emit({ type: 'latest', header: await readLatest(node, signal) })
  emit({ type: 'covered', filters, memory: null })
}

/** Reads the pending block and, unless it is unchanged, the head and the wanted logs. False if the head was too late. */
export async function pollPending(inputs: PollInputs, wanted: 'none' | 'of_changed_block' | 'to_close_gap'): Promise<boolean> {
  const { node, state, filters, now, emit, signal } = inputs
  emit({ type: 'polling', poll: 'pending' })
  const answer = await readPending(node, signal)
  const pending = answer === 'refused' ? null : answer
  const memory = wanted === 'to_close_gap' ? { ...inputs.memory, fingerprint: '' } : inputs.memory
  const fingerprint = fingerprintOf(pending)
  const isUnchanged = wanted !== 'none' && pending !== null && fingerprint === memory.fingerprint && filters === memory.filters
  if (isUnchanged && !isSealedOnly(state) && now() - state.headPolledAt < state.silenceMs) {
    emit({ type: 'pending', memory, block: memory.status === 'preconfirmed' ? pending : null })
    return true
  }
  emit({ type: 'polling', poll: 'head' })
  const requestedAt = now()
  const latest = await readLatest(node, signal)
  emit({ type: 'latest', header: latest })
  // The head took too long, so the pending block that was read before it says nothing about the node any more.
  if (now() - requestedAt > state.silenceMs) return false
  // A lagging node may have answered for the latest block, while another one showed a sealed block as pending.
  const known = pending !== null && inputs.knowsSealed(pending) ? { ...memory, repeatsSealed: true } : memory
  const judged = answer === 'refused' ? { ...memory, status: 'latest' as const } : judgePending(known, answer, latest, state.head)
  const isPreconfirmed = judged.status === 'preconfirmed'
  emit({ type: 'pending', memory: { ...judged, fingerprint: '' }, block: isPreconfirmed ? pending : null })
  if (wanted !== 'none' && !isUnchanged && isPreconfirmed) {
    // The range starts at the newest sealed block, since nodes require a block that exists.
    const closesGap = wanted === 'to_close_gap'
    // No filter waits for the logs of another one.
    const readings = filters.map(async (filter) => {
      const found = await readPendingLogs(node, latest.number, filter, signal)
      const { unreadable } = found
      // A transaction with an unreadable log is left out, because another log of the answer may contradict that one.
      const pendingLogs = settleableLogs(found).logs.filter(({ blockNumber }) => blockNumber > latest.number)
      emit({ type: 'polled_logs', logs: { logs: pendingLogs, unreadable }, closesGap })
    })
    // A failed poll waits for its other reads too, since their logs count, and no read may outlive the poll.
    await Promise.allSettled(readings)
    await Promise.all(readings)
  }
  emit({ type: 'covered', filters, memory: { ...judged, filters, fingerprint: wanted === 'none' ? '' : fingerprint } })
  return true
}

/** Reads the logs from a block on. If a filter with topics cannot be read, its logs are published when their block is settled. */
async function readPendingLogs(node: ChainReader, from: number, filter: ReadFilter, signal: AbortSignal): Promise<Logs> {
  try {
    return await node.logsInRange(from, 'pending', [filter], signal)
  } catch (failure) {
    if (!filter.topics || !(failure instanceof UpstreamError)) throw failure
    return { logs: [], unreadable: 0 }
  }
}

/** A node that does not support the `pending` tag refuses it. */
async function readPending(node: ChainReader, signal: AbortSignal): Promise<Header | 'refused' | null> {
  try {
    return await node.header('pending', signal)
  } catch (failure) {
    if (failure instanceof UpstreamError && failure.isAnswered) return 'refused'
    throw failure
  }
}

export async function readLatest(node: ChainReader, signal?: AbortSignal): Promise<SealedHeader> {
  const latest = await node.header('latest', signal)
  if (!isSealed(latest)) throw new UpstreamError('unreadable', 'no latest block')
  return latest
}
