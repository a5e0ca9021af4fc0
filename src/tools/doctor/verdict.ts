import type { SourceName } from '../../protocol/fields.ts'
import type { ServiceStatus } from '../../protocol/service-status.ts'
import { noPendingAdvice } from './finding.ts'
import type { Trial } from './source-trial.ts'

type Reason = ServiceStatus['reason']

/** `source` and `reason` are words of `/v1/status`. */
export type Verdict = {
  readonly ok: boolean
  readonly source: SourceName
  readonly reason: Reason
  readonly message: string
  readonly advice: string | null
}

const sources: Readonly<Record<SourceName, string>> = {
  pendingLogs: 'the node pushes pre-confirmed logs',
  poll: 'the relay polls pre-confirmed logs',
  sealed: 'the relay publishes each log when its block is sealed',
  down: 'nothing arrives',
}

type Meaning = { readonly why: string | null; readonly advice: string | null }

const polled =
  'polled updates are PENDING_POLL later than pushed ones; for pushed ones, set UPSTREAM_WS_URL to a node with pendingLogs'
const meanings: Readonly<Record<Reason, Meaning>> = {
  ok: { why: null, advice: null },
  silent: { why: 'the socket accepts pendingLogs and pushes nothing', advice: polled },
  refused: { why: 'the socket refuses pendingLogs', advice: polled },
  behind: { why: 'the node does not keep up with the chain', advice: 'use a faster node in UPSTREAM_RPC_URL and UPSTREAM_WS_URL' },
  no_pending: { why: 'the node pre-confirms nothing', advice: noPendingAdvice },
  unreachable: { why: 'no node in UPSTREAM_RPC_URL answers', advice: 'check UPSTREAM_RPC_URL and UPSTREAM_WS_URL' },
  stale_head: { why: 'the chain stands still', advice: 'compare the head with that of another node' },
  no_list: { why: 'no list could be read, or it is empty', advice: 'check STOCKS_API_URL (--stocks)' },
  wrong_chain: { why: 'every node is of another chain', advice: 'check CHAIN_ID, NETWORK and the URLs' },
}

/** Meanings of a reason that differ with the source, by source and reason. */
const special: Readonly<Record<string, Meaning>> = {
  'poll ok': { why: 'no UPSTREAM_WS_URL is set', advice: polled },
  'poll unreachable': { why: 'no socket in UPSTREAM_WS_URL works', advice: polled },
  'poll behind': { why: 'the socket pushes pre-confirmed logs too late', advice: polled },
  'sealed behind': { why: 'the node shows pre-confirmations far behind the head', advice: 'use another node in UPSTREAM_RPC_URL' },
}

type Facts = { readonly hasTokens: boolean; readonly isReachable: boolean }

/** As in `/v1/status`, a wrong chain or a missing list takes precedence over the source's own reason. */
export function verdictOf(
  { source, reason: ownReason, isWrongChain, isDecided }: Trial,
  { hasTokens, isReachable }: Facts,
): Verdict {
  const reason = isWrongChain ? 'wrong_chain' : hasTokens ? ownReason : 'no_list'
  const meaning = special[`${source} ${reason}`] ?? meanings[reason]
  const explanation = reason === ownReason ? [sources[source], meaning.why] : [meaning.why]
  const isTooShort = !isDecided && isReachable && reason === 'unreachable'
  return {
    ok: !isWrongChain && hasTokens && source !== 'down',
    source,
    reason,
    message: `${source}, reason ${reason}: ${explanation.filter((part) => part !== null).join(', since ')}`,
    advice: isTooShort ? `${meaning.advice}, or give it more time (--timeout)` : meaning.advice,
  }
}
