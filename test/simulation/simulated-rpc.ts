import { ChainIdentity } from '../../src/relay/chain/rpc/chain-identity.ts'
import {
  EndpointPool,
  type Exchange,
  type RequestBatchFn,
  type RequestFn,
  type UntilItsTurn,
} from '../../src/relay/chain/rpc/endpoint-pool.ts'
import { turnsInOrder } from '../../src/relay/chain/rpc/limited-requests.ts'
import { UpstreamError } from '../../src/relay/chain/rpc/upstream-error.ts'
import type { IngestInputs } from '../../src/relay/ingest/open-ingest.ts'
import { waitOn } from '../support/virtual-time.ts'
import type { ActiveFaults } from './active-faults.ts'
import { SeededRandom } from './seeded-random.ts'
import { answerWithLies, isOfOtherChain, SIMULATED_CHAIN } from './simulated-lies.ts'
import type { SimulatedNode } from './simulated-node.ts'
import { falseTime, type JsonObject } from './simulated-node-json.ts'
import type { Settings } from './simulation-settings.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** The real client's values: backoff after a failure, and the deadline of a request. */
const MIN_BACKOFF_MS = 250
const MAX_BACKOFF_MS = 30_000
const DEADLINE_MS = 5_000
const SECOND_MS = 1_000

/** A node that answers under a URL, and the faults on the way to it. */
export type SimulatedEndpoint = { readonly activeFaults: ActiveFaults; readonly node: SimulatedNode }

type Options = {
  readonly settings: Settings
  readonly clock: VirtualClock
  readonly endpoints: readonly [SimulatedEndpoint, ...SimulatedEndpoint[]]
}

/** What the node answers, and after how long. */
type RequestOutcome = { readonly afterMs: number; readonly answer: unknown; readonly failure: unknown }

/** What a run of the relay hands to the real client. */
type ClientInputs = {
  readonly now: () => number
  readonly random: () => number
  readonly log: (kind: string, detail: unknown) => void
}

/** How the client compares its endpoints. Nothing waits for the answers. */
const comparisonMethods: ReadonlySet<string> = new Set(['eth_blockNumber', 'eth_chainId'])

type Question = { readonly method: string; readonly params: readonly unknown[] }

/** The same block at another time. */
const withFalseTime = (block: unknown, random: SeededRandom): unknown =>
  block === null ? null : { ...(block as JsonObject), timestamp: falseTime((block as JsonObject).timestamp, random) }

/** A value of another type than the method returns. */
const wrongAnswer = (random: SeededRandom, method: string): unknown =>
  random.pick<unknown>(method === 'eth_getLogs' ? [null, 'logs', 42, {}] : ['answer', 42, [], { number: 7 }])

/** How `eth_getLogs` fails while everything else is answered. The last kind hangs, the one after it answers for another block. */
const logsFailures: readonly UpstreamError[] = [
  new UpstreamError('busy', 'HTTP 429'),
  new UpstreamError('unknown', '-32000 internal error'),
  new UpstreamError('forbidden', 'HTTP 403'),
  new UpstreamError('unreachable', 'The operation was aborted due to timeout'),
]
const LOGS_HANG = 3
const LOGS_OF_ANOTHER_BLOCK = 4

/**
 * The way to the nodes and back: slow, broken, or blocked for a while after each failure. With one endpoint a model stands in for
 * the relay's client, unless another chain comes behind it; with several the client itself chooses among them.
 */
export class SimulatedRpc {
  readonly #options: Options
  readonly #requestTimes: number[] = []
  #requestCount = 0
  #failures = 0
  #backoffUntil = 0
  readonly #pendingRequests = new Set<{ readonly signal: AbortSignal | undefined; readonly method: string }>()
  /** The endpoints that told the relay that they are of another chain. */
  readonly #named = new Set<SimulatedEndpoint>()
  /** The relay's own limit per second. */
  readonly #untilItsTurn: UntilItsTurn
  /** The most requests in flight, and in one second, since they were last read. */
  #peaks = { inFlight: 0, perSecond: 0 }

  constructor(options: Options) {
    this.#options = options
    this.#untilItsTurn = turnsInOrder(options.clock)
  }

  /** What one run of the relay asks with. */
  clientFor({ now, random, log }: ClientInputs): Pick<IngestInputs, 'request' | 'requestBatch' | 'leaveEndpoint' | 'confirmChain'> {
    const { endpoints } = this.#options
    this.#requestTimes.length = 0
    if (endpoints.length === 1 && !endpoints[0].activeFaults.occurs('otherChain'))
      return { request: this.requestOfFirst, requestBatch: this.#requestBatchOfFirst, confirmChain: () => Promise.resolve() }
    const urls = endpoints.map((_, nth) => `http://endpoint-${nth}`)
    const exchange = (url: string) => this.#exchangeWith(endpoints[urls.indexOf(url)] ?? endpoints[0])
    return new EndpointPool({
      ...{ urls, now, random, log, exchange, untilItsTurn: this.#untilItsTurn },
      chain: new ChainIdentity(SIMULATED_CHAIN, ''),
    })
  }

  readonly requestOfFirst: RequestFn = async (method, params, signal) => {
    const [outcome] = await this.#askFirst([{ method, params }], signal, () => true)
    return outcome?.answer
  }

  readonly #requestBatchOfFirst: RequestBatchFn = async (batch, signal) => {
    const outcomes = await this.#askFirst(batch, signal, (failure) => !isNodeError(failure))
    return outcomes.map(({ answer, failure }) =>
      failure === null ? { ok: true, result: answer } : { ok: false, error: failure as UpstreamError },
    )
  }

  /** Asks the first endpoint unless it failed just now. `isThrown`: whether a failure concerns all questions. */
  async #askFirst(
    questions: readonly Question[],
    signal: AbortSignal | undefined,
    isThrown: (failure: unknown) => boolean,
  ): Promise<readonly RequestOutcome[]> {
    const { clock, endpoints } = this.#options
    await this.#untilItsTurn(signal)
    const random = this.#countRequest()
    if (clock.elapsedMs < this.#backoffUntil) throw new UpstreamError('unreachable', 'every endpoint failed just now')
    try {
      const outcomes = await this.#ask(endpoints[0], random, questions, signal)
      const failed = outcomes.find(({ failure }) => failure !== null && isThrown(failure))
      if (failed) throw failed.failure
      this.#failures = 0
      return outcomes
    } catch (failure) {
      this.#backOff(failure, random)
      throw failure
    }
  }

  #exchangeWith(endpoint: SimulatedEndpoint): Exchange {
    return async (payload, signal) => {
      const questions = 'id' in payload ? [payload] : payload
      const outcomes = await this.#ask(endpoint, this.#countRequest(), questions, signal)
      const answers: object[] = []
      for (const [nth, { answer, failure }] of outcomes.entries()) {
        const content = failure === null ? { result: answer } : answerOfFailure(failure)
        if (content instanceof Response) return { response: content, body: Buffer.alloc(0) }
        answers.push({ jsonrpc: '2.0', id: questions[nth]?.id, ...content })
      }
      return { response: new Response(), body: Buffer.from(JSON.stringify('id' in payload ? answers[0] : answers)) }
    }
  }

  #countRequest(): SeededRandom {
    const { clock, settings } = this.#options
    this.#requestCount += 1
    this.#requestTimes.push(clock.elapsedMs)
    while ((this.#requestTimes[0] ?? 0) < clock.elapsedMs - SECOND_MS) this.#requestTimes.shift()
    this.#peaks.perSecond = Math.max(this.#peaks.perSecond, this.#requestTimes.length)
    return new SeededRandom(settings.seed, 'question', this.#requestCount)
  }

  /** The answers to questions that are sent at once. */
  async #ask(
    endpoint: SimulatedEndpoint,
    random: SeededRandom,
    questions: readonly Question[],
    signal?: AbortSignal,
  ): Promise<readonly RequestOutcome[]> {
    const { clock, settings } = this.#options
    const halfway = (settings.latencyMs * (0.5 + random.next())) / 2
    const pending = { signal, method: questions[0]?.method ?? '' }
    this.#pendingRequests.add(pending)
    this.#peaks.inFlight = Math.max(this.#peaks.inFlight, this.inFlight)
    try {
      await waitOn(clock, halfway, signal)
      const outcomes = questions.map((question) => this.#answerAtNode(endpoint, random, question))
      const isOther = isOfOtherChain({ ...endpoint, elapsedMs: clock.elapsedMs })
      await waitOn(clock, Math.max(...outcomes.map(({ afterMs }) => afterMs)) + halfway, signal)
      const isNamed = questions.some(({ method }, nth) => method === 'eth_chainId' && outcomes[nth]?.failure === null)
      if (isNamed && isOther) this.#named.add(endpoint)
      return outcomes
    } finally {
      this.#pendingRequests.delete(pending)
    }
  }

  /** The client compares the heads of its endpoints beside all requests, and nothing waits for that. */
  get inFlight(): number {
    return [...this.#pendingRequests].filter(({ signal, method }) => !signal?.aborted && !comparisonMethods.has(method)).length
  }

  get requestCount(): number {
    return this.#requestCount
  }

  /** Whether another chain answered in the past `ms`, from an endpoint that did not tell the relay so. */
  wasOfUnnamedChainWithin(ms: number): boolean {
    const { clock, endpoints } = this.#options
    const { elapsedMs } = clock
    return endpoints.some((endpoint) => isOfOtherChain({ ...endpoint, elapsedMs }, ms) && !this.#named.has(endpoint))
  }

  /** Each moment counts, not only the one at which somebody looks. A second includes requests that the backoff refused. */
  takePeaks(): { readonly inFlight: number; readonly perSecond: number } {
    const peaks = this.#peaks
    this.#peaks = { inFlight: 0, perSecond: 0 }
    return peaks
  }

  #answerAtNode({ activeFaults, node }: SimulatedEndpoint, random: SeededRandom, { method, params }: Question): RequestOutcome {
    const { settings, clock } = this.#options
    const rolls = [random.next() * 100, random.next() * 100, random.next() * 100] as const
    // A relay that cannot ask for a block by its hash cannot tell which machine of a name answers.
    const uneven = random.chance(50) && settings.byHash ? activeFaults.amount('halfTheNodesLag') : null
    const fails = (failure: UpstreamError, afterMs = 0): RequestOutcome => ({ afterMs, answer: null, failure })
    if (activeFaults.isActive('unreachable')) return fails(new UpstreamError('unreachable', 'connection refused'))
    if (rolls[0] < (activeFaults.amount('flaky') ?? 0)) return fails(new UpstreamError('unreachable', 'HTTP 502'))
    if (rolls[1] < (activeFaults.amount('htmlAnswers') ?? 0)) return fails(new UpstreamError('unreadable', 'not JSON-RPC'))
    const backoffMs = activeFaults.amount('rateLimited')
    if (backoffMs !== null) return fails(new UpstreamError('busy', 'HTTP 429', backoffMs * SECOND_MS))
    if (rolls[2] < (activeFaults.amount('hangingAnswers') ?? 0))
      return fails(new UpstreamError('unreachable', 'The operation was aborted due to timeout'), DEADLINE_MS)
    const logsFail = method === 'eth_getLogs' ? activeFaults.amount('logsFail') : null
    const logsFailure = logsFailures[logsFail ?? LOGS_OF_ANOTHER_BLOCK]
    if (logsFailure) return fails(logsFailure, logsFail === LOGS_HANG ? DEADLINE_MS : 0)
    const frozenMs = clock.elapsedMs - (activeFaults.activeSince('endpointFrozen') ?? clock.elapsedMs)
    const behindMs = Math.max(activeFaults.amount('nodeLags') ?? 0, uneven ?? 0, frozenMs)
    const afterMs = activeFaults.amount('slowAnswers') ?? 0
    try {
      const asked = logsFail === LOGS_OF_ANOTHER_BLOCK ? node.aboutAnotherBlock(params) : params
      const truth = (...question: readonly [string, readonly unknown[]]) => node.answer(...question, behindMs)
      const answer = answerWithLies(truth, { method, params: asked }, { activeFaults, elapsedMs: clock.elapsedMs, random })
      const isLater = random.fork('false time').chance(activeFaults.amount('falseTimes') ?? 0)
      if (isLater && params[0] === 'pending') return { afterMs, answer: withFalseTime(answer, random.fork('later')), failure: null }
      const isWrong = random.fork('wrong').chance(activeFaults.amount('wrongAnswers') ?? 0)
      return { afterMs, answer: isWrong ? wrongAnswer(random.fork('shape'), method) : answer, failure: null }
    } catch (failure) {
      return { afterMs, answer: null, failure }
    }
  }

  #backOff(failure: unknown, random: SeededRandom): void {
    if (!(failure instanceof UpstreamError) || !failure.isRetryable || failure.isRequestSpecific) return
    const { clock } = this.#options
    const backoffMs = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** Math.min(this.#failures, 16)) * (0.5 + random.next())
    this.#failures += 1
    this.#backoffUntil = clock.elapsedMs + Math.max(backoffMs, failure.retryAfterMs ?? 0)
  }
}

/** Whether the node answered with an error of JSON-RPC, which concerns one question alone. */
const isNodeError = (failure: unknown): boolean => failure instanceof UpstreamError && /^-\d+ /.test(failure.message)

/** What the real client receives: an HTTP status, a JSON-RPC error, or a connection that breaks. */
function answerOfFailure(failure: unknown): Response | { readonly error: { readonly code: number; readonly message: string } } {
  if (!(failure instanceof UpstreamError)) throw failure
  const { message, retryAfterMs } = failure
  const [, status] = /^HTTP (\d{3})$/.exec(message) ?? []
  const headers = retryAfterMs === null ? {} : { 'retry-after': String(retryAfterMs / SECOND_MS) }
  if (status !== undefined) return new Response(null, { status: Number(status), headers })
  const [, code, text] = /^(-\d+) (.*)$/.exec(message) ?? []
  if (code === undefined || text === undefined) throw new Error(message)
  return { error: { code: Number(code), message: text } }
}
