import {
  concatMap,
  connect,
  defer,
  EMPTY,
  exhaustMap,
  filter,
  interval,
  map,
  merge,
  type Observable,
  ReplaySubject,
  Subject,
  scan,
  switchMap,
  tap,
  timer,
} from 'rxjs'
import { observe, WakeUp, wait } from '../../../lib/async-loop.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { Head } from '../../../protocol/fields.ts'
import type { Host } from '../../host.ts'
import { readLogs } from '../blocks/block-logs.ts'
import type { Cursor, OpenKeys } from '../blocks/sealed-block.ts'
import type { LinkInputs } from '../link/reconnecting-link.ts'
import type { LinkSignal } from '../link/subscription-socket.ts'
import { matchesAny, type ReadFilter } from '../logs/log-filter.ts'
import type { FindLog } from '../logs/log-parser.ts'
import type { Header } from '../rpc/block-header.ts'
import { ChainReader } from '../rpc/chain-reader.ts'
import type { ConfirmChain, RequestFn } from '../rpc/endpoint-pool.ts'
import { limitedRequests } from '../rpc/limited-requests.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import { isKnown, startSealed } from '../sealed/sealed-state.ts'
import { settleChain } from '../sealed/settle-chain.ts'
import type { SettleContext } from '../sealed/settle-reads.ts'
import { findBlock } from '../sealed/settled-blocks.ts'
import type { ChainEvent } from './chain-event.ts'
import { pollFinality } from './finality-poll.ts'
import { type PollResult, pollHead, pollPending } from './polls.ts'
import { isUnread } from './refused-filters.ts'
import { duePoll, isCheckDue, isEndpointLeft, isLinkLeft, isProbeDue, UNPROVEN_POLL_MS } from './source-decisions.ts'
import { type SourceInput, type SourceProgress, sourceStep, startProgress } from './source-step.ts'

export type { ChainEvent } from './chain-event.ts'

const SILENCE_CHECK_MS = 250
/** Interval between the questions whether the node answers a filter that is left out. */
const ASK_AGAIN_MS = 10_000

export type SourceOptions = Pick<Host, 'clock' | 'log'> & {
  readonly request: RequestFn
  readonly confirmChain: ConfirmChain
  /** Opens the upstream socket; null to poll everything. */
  readonly link: ((inputs: LinkInputs) => Observable<LinkSignal>) | null
  /** Number of URLs that the link tries in turn; default 1. */
  readonly linkCount?: number
  /** Makes `request` ask other endpoints first for a while. Returns whether it does now. */
  readonly leaveEndpoint?: () => boolean
  /** The logs to read: those of whole contracts first, then those of pool managers, which the node may refuse. */
  readonly filters: Observable<readonly ReadFilter[]>
  /** The filters that the node refused in the previous run, and settled blocks with keys that are still open. */
  readonly leftOut?: readonly ReadFilter[]
  readonly outdated?: readonly number[]
  readonly openKeys: OpenKeys
  readonly findLog?: FindLog
  readonly cursor: Cursor | null
  /** The block above which the first run began to settle, if known. */
  readonly began?: number | null
  /** The head of the previous run. */
  readonly head: Head
  readonly pendingPollMs: number
  readonly silenceMs: number
  readonly finalityPollMs: number
  readonly backfillLimitMs: number
  /** How far back settling begins without a cursor, and what is called with the block after which it begins; default: at the head. */
  readonly backfillFirstMs?: number
  readonly readFirstState?: SettleContext['readFirstState']
  /** Called with the number of messages and logs that cannot be read. */
  readonly onUnreadable?: (count: number) => void
}

/** Returns the events of the chain. Pre-confirmed logs are pushed while the link is trusted, and polled otherwise. */
export const source = (options: SourceOptions): Observable<ChainEvent> =>
  defer(() => {
    const { filters, link, linkCount = 1, leftOut = [], clock, silenceMs, finalityPollMs, head, log, onUnreadable } = options
    const sealed = startSealed({ ...options, safe: head.safe })
    let progress = startProgress({ links: link ? linkCount : 0, silenceMs, sealed, leftOut, at: clock.now() })
    const sealedChanged = new WakeUp()
    const requests = new Subject<SourceInput>()
    const [probes, reconnects] = [new Subject<void>(), new Subject<void>()]
    const request = reportRequests(options.request, (type) => requests.next({ type }))
    const node = new ChainReader(request, options.findLog)
    // Settling and backfill share a limit. Polls show whether the node answers, and never wait for that limit.
    const blocks = new ChainReader(limitedRequests(request), options.findLog)
    const openKeys = keysToSettle(options.openKeys, () => progress)
    const settling = settleChain({ ...options, openKeys, node: blocks, state: () => progress.sealed, changed: sealedChanged })
    const polling = { ...options, node, progress: () => progress, probes, reconnects }
    return filters.pipe(
      connect(
        (shared) =>
          merge<SourceInput[]>(
            requests,
            settling.pipe(map((answer): SourceInput => ({ type: 'answer', answer }))),
            pollFinality({ node, pollIntervalMs: finalityPollMs, published: head, clock, log }),
            shared.pipe(map((filters): SourceInput => ({ type: 'filters', filters }))),
            timer(ASK_AGAIN_MS, ASK_AGAIN_MS, clock).pipe(exhaustMap(() => askRefused(polling))),
            link ? withGapsClosed(link({ filters: shared, probes, reconnects }), polling) : EMPTY,
            timer(0, options.pendingPollMs, clock).pipe(exhaustMap(() => pollDue(polling))),
            interval(SILENCE_CHECK_MS, clock).pipe(map((): SourceInput => ({ type: 'tick' }))),
            interval(SILENCE_CHECK_MS, clock).pipe(exhaustMap(() => checkUnanswered(polling))),
          ),
        // A link that reconnects needs the last filters.
        { connector: () => new ReplaySubject(1) },
      ),
      scan((before, input) => sourceStep(before, input, clock.now()), progress),
      tap((next) => {
        const { sealed: before, unreadable } = progress
        progress = next
        if (next.sealed !== before) sealedChanged.notify()
        if (next.unreadable > unreadable) onUnreadable?.(next.unreadable - unreadable)
      }),
      concatMap(({ events }) => events),
    )
  })

type PresentOptions = Omit<
  SourceOptions,
  'openKeys' | 'cursor' | 'head' | 'request' | 'confirmChain' | 'leaveEndpoint' | 'backfillFirstMs' | 'readFirstState'
> & { readonly endpoints: Pick<SourceOptions, 'request' | 'confirmChain' | 'leaveEndpoint'> }

/** Returns a source that starts at the head: nothing was settled before, and no key is open. */
export const sourceFromNow = ({ endpoints, ...options }: PresentOptions): Observable<ChainEvent> =>
  source({
    ...options,
    ...endpoints,
    openKeys: { at: () => [], publishedBlocksBetween: () => [], sealedInPreviousRun: [] },
    cursor: null,
    head: { pending: null, sealed: null, safe: null, finalized: null },
  })

/** Reports each request and each answer. Unanswered requests show that the upstream is down. */
const reportRequests =
  (request: RequestFn, report: (type: 'requested' | 'answered') => void): RequestFn =>
  async (method, params, signal) => {
    report('requested')
    try {
      const answer = await request(method, params, signal)
      report('answered')
      return answer
    } catch (failure) {
      if (failure instanceof UpstreamError && failure.isAnswered) report('answered')
      throw failure
    }
  }

type Polling = Pick<SourceOptions, 'leaveEndpoint' | 'clock' | 'log' | 'openKeys'> & {
  readonly node: ChainReader
  readonly progress: () => SourceProgress
  readonly probes: Subject<void>
  readonly reconnects: Subject<void>
}

const pollInputs = ({ node, progress, clock }: Polling, emit: (input: PollResult) => void, signal: AbortSignal) => {
  const { state, memory, sealed } = progress()
  const knowsSealed = (block: Header) => isKnown(progress().sealed, block)
  return { node, state, memory, filters: sealed.filters, knowsSealed, now: () => clock.now(), emit, signal }
}

const pollDue = (polling: Polling): Observable<SourceInput> =>
  observe<SourceInput>(async (emit, signal) => {
    const { clock, log, progress } = polling
    const at = clock.now()
    improveUpstream(polling, emit, at)
    const due = duePoll(progress().state, at)
    const inputs = pollInputs(polling, emit, signal)
    try {
      if (due === 'head') await pollHead(inputs)
      else if (due !== null) await pollPending(inputs, due === 'pending' ? 'none' : 'of_changed_block')
    } catch (failure) {
      signal.throwIfAborted()
      if (!(failure instanceof UpstreamError)) throw failure
      log('poll_failed', { reason: failure.message })
    }
  })

/** Leaves a node that performs badly, or retries a subscription. */
function improveUpstream(polling: Polling, emit: (input: SourceInput) => void, at: number): void {
  const { progress, probes, reconnects, leaveEndpoint } = polling
  if (isEndpointLeft(progress().state, at) && leaveEndpoint?.() !== false) emit({ type: 'left', what: 'endpoint' })
  if (isLinkLeft(progress().state, at)) {
    emit({ type: 'left', what: 'link' })
    reconnects.next()
  } else if (isProbeDue(progress().state, progress().pushed.length === progress().subscribed.length, at)) {
    emit({ type: 'probed' })
    probes.next()
  }
}

/** Polls the head while another request hangs: a node that answers this poll is not down. */
const checkUnanswered = (polling: Polling): Observable<SourceInput> =>
  observe<SourceInput>(async (emit, signal) => {
    if (!isCheckDue(polling.progress().state, polling.clock.now())) return
    try {
      await pollHead(pollInputs(polling, emit, signal))
    } catch (failure) {
      signal.throwIfAborted()
      if (!(failure instanceof UpstreamError)) throw failure
    }
  })

/** Hides the keys of contracts of which nothing is read, because a block proves nothing about them then. */
const keysToSettle = (openKeys: OpenKeys, progress: () => SourceProgress): OpenKeys => ({
  at: (block) => {
    const { refused } = progress()
    const keys = openKeys.at(block)
    return refused.leftOut.size > 0 ? keys.filter(({ address }) => !isUnread(refused, address)) : keys
  },
  publishedBlocksBetween: (from, to) => openKeys.publishedBlocksBetween(from, to),
  sealedInPreviousRun: openKeys.sealedInPreviousRun,
})

/** Asks whether the node answers the filters that are left out, in both forms in which blocks are read. */
const askRefused = (polling: Polling): Observable<SourceInput> =>
  observe<SourceInput>(async (emit, signal) => {
    const { node, progress, probes, openKeys } = polling
    for (const [contract, { filter, isAnswered }] of progress().refused.leftOut) {
      const { number, hash = null } = progress().sealed.blocks.newest ?? {}
      if (number === undefined || hash === null || isAnswered) continue
      try {
        await readLogs(node, { number, hash }, [filter], signal)
        await node.logsInRange(number, number, [filter], signal)
      } catch (failure) {
        signal.throwIfAborted()
        if (!(failure instanceof UpstreamError)) throw failure
        continue
      }
      emit({ type: 'filter_answered', contract, outdated: outdatedBlocks(openKeys, progress(), contract) })
      probes.next()
    }
  })

/** Returns the settled blocks with published logs of a contract that were settled without its filter. */
function outdatedBlocks(openKeys: OpenKeys, { sealed }: SourceProgress, contract: Hex): readonly number[] {
  const { blocks } = sealed
  return openKeys.publishedBlocksBetween(0, blocks.newest?.number ?? -1).filter((number) => {
    const filters = findBlock(blocks, number)?.filters ?? []
    return openKeys.at(number).some((key) => key.address === contract && !matchesAny(filters, key))
  })
}

/** Adds one poll after each subscription, since logs from before the subscription may be missing. */
const withGapsClosed = (link: Observable<LinkSignal>, polling: Polling): Observable<SourceInput> =>
  link.pipe(
    connect((signals) =>
      merge<SourceInput[]>(
        signals,
        signals.pipe(
          filter((signal) => signal.type === 'down' || (signal.type === 'live' && signal.subscription === 'pendingLogs')),
          switchMap(({ type }) => (type === 'live' ? closeGap(polling) : EMPTY)),
        ),
      ),
    ),
  )

/** Repeats the poll after a subscription until the node answers it in time. */
const closeGap = (polling: Polling): Observable<SourceInput> =>
  observe<SourceInput>(async (emit, signal) => {
    for (;;) {
      try {
        if (await pollPending(pollInputs(polling, emit, signal), 'to_close_gap')) return
      } catch (failure) {
        signal.throwIfAborted()
        if (!(failure instanceof UpstreamError)) throw failure
      }
      await wait(UNPROVEN_POLL_MS, polling.clock, signal)
    }
  })
