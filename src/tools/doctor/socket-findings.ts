import { type NamedOutcome, type Outcome, ok, skip, warn } from './finding.ts'
import type { SocketReport } from './socket-probe.ts'
import type { Trial } from './source-trial.ts'

/** What a socket did, as findings. The trial shows what there was to push meanwhile. */
export function socketFindings(report: SocketReport, trial: Trial, hasTokens: boolean): readonly NamedOutcome[] {
  return [
    ['heads', headsOutcome(report, trial)],
    ['pending_logs', pendingLogsOutcome(report, trial, hasTokens)],
  ]
}

function headsOutcome({ heads, isHeadsRefused, endedWith, watchedMs }: SocketReport, { hasNewBlocks }: Trial): Outcome {
  if (heads.length > 0) return ok('newHeads is accepted and pushes', true)
  const advice = 'the relay polls the head instead, which costs more requests: use another node in UPSTREAM_WS_URL'
  if (isHeadsRefused) return warn('newHeads is refused', advice, false)
  if (endedWith !== null) return skip(`the socket ended: ${endedWith}`)
  if (!hasNewBlocks) return skip(`newHeads is accepted, and no block came in ${secondsOf(watchedMs)} s`)
  return warn(`newHeads is accepted, and no head came in ${secondsOf(watchedMs)} s`, advice, false)
}

function pendingLogsOutcome(report: SocketReport, { sealedLogs }: Trial, hasTokens: boolean): Outcome {
  const { subscribed, refusal, pushedLogs, firstLogMs, shape, endedWith, watchedMs } = report
  const elsewhere =
    'name a node in UPSTREAM_WS_URL that pushes pre-confirmed logs; Base has none since Denim, so there nothing is lost'
  if (refusal !== null) return warn(`pendingLogs is refused: ${refusal}`, `the relay polls instead: ${elsewhere}`, 'refused')
  if (pushedLogs > 0) {
    const how = shape === 'list' ? 'all pending logs in each message (the older shape)' : 'one log in each message'
    return ok(`pendingLogs pushes: first log after ${firstLogMs} ms, ${how}`, shape)
  }
  if (subscribed === null) {
    const reason = endedWith ?? `no answer in ${secondsOf(watchedMs)} s`
    return warn(`pendingLogs is not accepted: ${reason}`, 'the relay polls instead: check UPSTREAM_WS_URL', 'unanswered')
  }
  const accepted = `pendingLogs is accepted, and nothing came in ${secondsOf(watchedMs)} s`
  if (!hasTokens) return warn(`${accepted}; without a list that proves nothing`, 'set STOCKS_API_URL (--stocks)', 'quiet')
  if (sealedLogs > 0) return warn(`${accepted}, while ${sealedLogs} logs were sealed: it is silent`, elsewhere, 'silent')
  return warn(
    `${accepted}; no listed token moved, so that proves nothing`,
    'run the doctor again while the market trades, or for longer (--timeout)',
    'quiet',
  )
}

const secondsOf = (ms: number): number => Math.round(ms / 100) / 10
