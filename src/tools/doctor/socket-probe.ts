import { filter, from, fromEvent, ignoreElements, interval, lastValueFrom, merge, switchMap, takeUntil, tap } from 'rxjs'
import { z } from 'zod'
import type { Hex } from '../../lib/hex.ts'
import { parseShallowJson } from '../../lib/safe-json.ts'
import { type LinkSignal, SubscriptionSocket } from '../../relay/chain/link/subscription-socket.ts'
import { parseLogs } from '../../relay/chain/logs/log-parser.ts'
import { Header, isSealed } from '../../relay/chain/rpc/block-header.ts'
import { ChainIdentity } from '../../relay/chain/rpc/chain-identity.ts'
import type { LogKind } from '../../relay/log-lines.ts'
import { type NamedOutcome, type Outcome, ok, reasonOf, skip, warn } from './finding.ts'
import type { SeenHead } from './head-lag.ts'
import type { Trial } from './source-trial.ts'

type SocketInputs = {
  readonly url: string
  readonly addresses: Promise<readonly Hex[]>
  /** Resolves when no more heads are needed. */
  readonly mayEnd: Promise<unknown>
  readonly deadline: AbortSignal
}

const Pushed = z.object({ method: z.literal('eth_subscription'), params: z.object({ result: z.unknown() }) })
const Refusal = z.object({ subscription: z.string(), reason: z.string(), code: z.number().nullable() })
/** Stands for the tokens if there is no list, because for a node an empty list of addresses means all addresses. */
export const ANY_ADDRESS: Hex = `0x${'0'.repeat(39)}1`
const COMPLETE_CHECK_MS = 50
/** Limit of the heads that are kept. No chain has more blocks in the time of an examination. */
const HEADS_BOUND = 1_000

/** Subscribes as the relay does, until heads and logs have arrived or the time is up. */
export async function probeSocket({ url, addresses, mayEnd, deadline }: SocketInputs): Promise<SocketReport> {
  const report = new SocketReport()
  const startedAt = performance.now()
  const socket = new SubscriptionSocket(url, {
    chain: new ChainIdentity(null, ''),
    now: () => performance.now(),
    log: (kind, detail) => report.warn(kind, detail),
    onMessage: (json) => report.readShape(json),
  })
  void addresses.then((list) => socket.setFilters([{ addresses: list.length > 0 ? list : [ANY_ADDRESS] }]))
  const complete = from(mayEnd).pipe(
    switchMap(() => interval(COMPLETE_CHECK_MS)),
    filter(() => report.isComplete),
  )
  const watched = socket.signals.pipe(
    tap((signal) => report.take(signal)),
    takeUntil(merge(complete, fromEvent(deadline, 'abort'))),
    ignoreElements(),
  )
  report.endedWith = await lastValueFrom(watched, { defaultValue: null }).catch(reasonOf)
  report.watchedMs = performance.now() - startedAt
  socket.unsubscribe()
  return report
}

/** A socket as it behaved while it was watched. */
export class SocketReport {
  readonly heads: SeenHead[] = []
  isHeadsRefused = false
  /** Kind of the subscription to logs that the node accepted; null before it accepted one. */
  subscribed: 'pendingLogs' | 'logs' | null = null
  #subscribedAt: number | null = null
  /** Why the node refused pre-confirmed logs; null if it did not. */
  refusal: string | null = null
  pushedLogs = 0
  /** Time from the subscription to the first log. */
  firstLogMs: number | null = null
  /** `one`: one log in each message. `list`: the older shape, all pending logs in each message. */
  shape: 'one' | 'list' | null = null
  /** Why the socket ended by itself; null if it did not. */
  endedWith: string | null = null
  watchedMs = 0

  get isComplete(): boolean {
    return (this.heads.length > 0 || this.isHeadsRefused) && (this.pushedLogs > 0 || this.refusal !== null)
  }

  take(signal: LinkSignal): void {
    if (signal.type === 'head') {
      const header = Header.safeParse(signal.header).data ?? null
      if (isSealed(header) && this.heads.length < HEADS_BOUND) this.heads.push({ number: header.number, at: performance.now() })
    } else if (signal.type === 'live') {
      this.#subscribedAt ??= performance.now()
      this.subscribed = signal.subscription
    } else if (signal.type === 'log' && signal.subscription === 'pendingLogs') {
      this.firstLogMs ??= Math.round(performance.now() - (this.#subscribedAt ?? performance.now()))
      this.pushedLogs += parseLogs(signal.log).logs.length
    }
  }

  warn(kind: LogKind, detail: unknown): void {
    if (kind !== 'subscription_refused') return
    const { subscription, reason, code } = Refusal.parse(detail)
    if (subscription === 'newHeads') this.isHeadsRefused = true
    if (subscription === 'pendingLogs') this.refusal = `${code ?? ''} ${reason}`.trim()
  }

  /** Reads the shape from the text of a message, because the source combines logs that arrive together. */
  readShape(json: Buffer): void {
    if (this.shape !== null) return
    const result = Pushed.safeParse(parseShallowJson(json)).data?.params.result
    if (Array.isArray(result)) this.shape = 'list'
    else if (result !== undefined && parseLogs(result).logs.length > 0) this.shape = 'one'
  }
}

/** Returns the findings of a socket. The trial shows how many blocks and logs the socket could have pushed. */
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
  if (!hasNewBlocks) return skip(`newHeads is accepted, and the chain had no new block in ${secondsOf(watchedMs)} s`)
  return warn(`newHeads is accepted, and no head arrived in ${secondsOf(watchedMs)} s`, advice, false)
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
  const accepted = `pendingLogs is accepted, and no log arrived in ${secondsOf(watchedMs)} s`
  if (!hasTokens) return warn(`${accepted}; without a list that proves nothing`, 'set STOCKS_API_URL (--stocks)', 'quiet')
  if (sealedLogs > 0) return warn(`${accepted}, while ${sealedLogs} logs were sealed: it is silent`, elsewhere, 'silent')
  return warn(
    `${accepted}; no listed token moved, so that proves nothing`,
    'run the doctor again while the market trades, or for longer (--timeout)',
    'quiet',
  )
}

const secondsOf = (ms: number): number => Math.round(ms / 100) / 10
