import type { SourceName } from '../../protocol/fields.ts'
import type { ServiceStatus } from '../../protocol/status.ts'
import type { Trial } from './source-trial.ts'

type Reason = ServiceStatus['reason']

/** Whether the relay can run, and on which source. The words are those of `/v1/status`. */
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

const reasons: Readonly<Record<Reason, string | null>> = {
  ok: null,
  silent: 'the socket accepts pendingLogs and pushes nothing',
  refused: 'the socket refuses pendingLogs',
  behind: 'the node does not keep up with the chain',
  no_pending: 'the node pre-confirms nothing',
  unreachable: 'no node in UPSTREAM_RPC_URL answers',
  stale_head: 'the chain stands still',
  no_list: 'no list could be read, or it is empty',
  wrong_chain: 'every node is of another chain',
}

const polled =
  'updates come PENDING_POLL later than pushed ones; to have them pushed, set UPSTREAM_WS_URL to a node with pendingLogs'
const advice: Readonly<Record<Reason, string | null>> = {
  ok: null,
  silent: polled,
  refused: polled,
  behind: 'use a faster node in UPSTREAM_RPC_URL and UPSTREAM_WS_URL',
  no_pending:
    'nothing to change where the chain has no pre-confirmations (Base has none since Denim); else use a node that has them',
  unreachable: 'check UPSTREAM_RPC_URL and UPSTREAM_WS_URL',
  stale_head: 'compare the head with that of another node',
  no_list: 'check STOCKS_API_URL (--stocks)',
  wrong_chain: 'check CHAIN_ID, NETWORK and the URLs',
}

/** Some reasons mean another thing beside these sources. */
const special: Readonly<Record<string, { readonly why: string | null; readonly advice: string }>> = {
  'poll ok': { why: 'no UPSTREAM_WS_URL is set', advice: polled },
  'poll unreachable': { why: 'no socket in UPSTREAM_WS_URL works', advice: polled },
  'poll behind': { why: 'the socket pushes pre-confirmed logs too late', advice: polled },
  'sealed behind': { why: 'the node shows pre-confirmations far behind the head', advice: 'use another node in UPSTREAM_RPC_URL' },
}

type Facts = { readonly hasTokens: boolean; readonly isReachable: boolean }

/** As in the status of the relay, a chain or a list that is missing explains more than what the source says of itself. */
export function verdictOf(
  { source, reason: ownReason, isWrongChain, isDecided }: Trial,
  { hasTokens, isReachable }: Facts,
): Verdict {
  const reason = isWrongChain ? 'wrong_chain' : hasTokens ? ownReason : 'no_list'
  const meaning = special[`${source} ${reason}`] ?? { why: reasons[reason], advice: advice[reason] }
  const explanation = reason === ownReason ? [sources[source], meaning.why] : [meaning.why]
  const isTooShort = !isDecided && isReachable && reason === 'unreachable'
  return {
    ok: !isWrongChain && hasTokens && source !== 'down',
    ...{ source, reason },
    message: `${source}, reason ${reason}: ${explanation.filter((part) => part !== null).join(', since ')}`,
    advice: isTooShort ? `${meaning.advice}, or give it more time (--timeout)` : meaning.advice,
  }
}
