import { quantity } from '../../lib/hex.ts'
import { redactDeep } from '../../lib/redact.ts'
import { methods } from '../../protocol/json-rpc-methods.ts'
import { ANSWER_BOUND_BYTES, type RawRequestFn } from '../chain/rpc/endpoint-pool.ts'
import { UpstreamError } from '../chain/rpc/upstream-error.ts'
import { FairQueue } from '../edge/limits/fair-queue.ts'
import { UpstreamQuota } from '../edge/limits/upstream-quota.ts'
import type { Host } from '../host.ts'
import { AnswerCache } from './answer-cache.ts'
import { type ChainVersion, isStillValid, leastValidityOf, maxAgeMs, validityOf } from './answer-validity.ts'
import type { ChainState } from './chain-state.ts'
import { errorCodes, limitExceeded, RpcError } from './rpc-error.ts'
import type { ValidatedCall } from './validated-call.ts'

/** Limits of calls that run and that wait. Calls of clients are `quick` or `slow`, those of the relay itself `internal`. */
const full = limitExceeded('too many calls wait for the upstream; come back in a moment', 503)
const queueBounds = {
  quick: { runningBound: 16, queuedBound: 500, full },
  slow: { runningBound: 8, queuedBound: 100, full },
  internal: { runningBound: 8, queuedBound: 100, full },
}

const FORBIDDEN_STATUS = 403

const upstreamBusy = limitExceeded('the upstream is over its rate limit now; come back in a moment')

type Options = Pick<Host, 'uptime'> & {
  readonly forward: RawRequestFn
  /** Serves the methods that public endpoints refuse; null if no endpoint is configured for them. */
  readonly forwardReceipts: RawRequestFn | null
  readonly chainState: ChainState
  readonly chainId: () => number | null
  readonly redact: (text: string) => string
}

type InFlightCall = { readonly version: ChainVersion; readonly requestedAt: number; readonly answer: Promise<Buffer> }

/** Answers calls from the cache or from upstream. Equal calls that overlap share one upstream request. */
export class SharedAnswers {
  readonly #options: Options
  readonly #cache = new AnswerCache()
  readonly #inFlight = new Map<string, InFlightCall>()
  readonly #queues: Readonly<Record<keyof typeof queueBounds, FairQueue>>
  readonly #quota = new UpstreamQuota()
  readonly #receiptsQuota = new UpstreamQuota()

  constructor(options: Options) {
    this.#options = options
    const openQueue = (kind: keyof typeof queueBounds) => new FairQueue(queueBounds[kind], options.uptime)
    this.#queues = { quick: openQueue('quick'), slow: openQueue('slow'), internal: openQueue('internal') }
  }

  /** Returns the result in JSON; throws an `RpcError` if there is none. */
  answer(call: ValidatedCall, client = ''): Buffer | Promise<Buffer> {
    return this.#answer(call, () => this.#requestForClient(call, client))
  }

  /** Answers a call of the relay itself, which does not wait behind calls of clients. */
  answerForAll(call: ValidatedCall): Buffer | Promise<Buffer> {
    return this.#answer(call, () => this.#queues.internal.run(() => this.#request(call), ''))
  }

  #answer(call: ValidatedCall, request: () => Promise<Buffer>): Buffer | Promise<Buffer> {
    const { chainState, chainId, uptime } = this.#options
    const chainNumber = call.method === 'eth_chainId' ? chainId() : null
    if (chainNumber !== null) return Buffer.from(`"${quantity(chainNumber)}"`)
    return this.#cache.get(call.key, chainState, uptime()) ?? this.#share(call, request)
  }

  #share(call: ValidatedCall, request: () => Promise<Buffer>): Promise<Buffer> {
    const { chainState, uptime } = this.#options
    const { key } = call
    const inFlight = this.#inFlight.get(key)
    const sharedValidity = leastValidityOf(call, chainState.head)
    // A client that asks after a change of the chain must not get an answer requested before it.
    if (
      inFlight &&
      isStillValid(sharedValidity, inFlight.version, chainState) &&
      uptime() < inFlight.requestedAt + maxAgeMs[sharedValidity]
    )
      return inFlight.answer
    const { head } = chainState
    const requestedAt = uptime()
    const version = { reorgCount: chainState.reorgCount, headCount: chainState.headCount, pendingCount: chainState.pendingCount }
    const answer = request().then((result) => {
      const likelyValidity = validityOf(call, result, head, chainState)
      // While the relay receives no heads, no new head would invalidate the answer.
      const storedValidity = likelyValidity === 'head' && chainState.isDisconnected ? 'pending' : likelyValidity
      // An answer that became outdated must not replace a valid one.
      if (storedValidity && isStillValid(storedValidity, version, chainState))
        this.#cache.set(key, result, { validity: storedValidity, version, requestedAt })
      return result
    })
    const ownCall = { version, requestedAt, answer }
    this.#inFlight.set(key, ownCall)
    const remove = () => {
      if (this.#inFlight.get(key) === ownCall) this.#inFlight.delete(key)
    }
    answer.then(remove, remove)
    return answer
  }

  #requestForClient(call: ValidatedCall, client: string): Promise<Buffer> {
    const isSlow = call.method === 'eth_getLogs' || !methods[call.method].public
    return this.#queues[isSlow ? 'slow' : 'quick'].run(() => {
      if (!this.#quotaFor(call).take(this.#options.uptime())) throw upstreamBusy
      return this.#request(call)
    }, client)
  }

  async #request(call: ValidatedCall): Promise<Buffer> {
    try {
      return await this.#upstreamFor(call)(call.method, call.params)
    } catch (failure) {
      if (!(failure instanceof UpstreamError)) throw failure
      this.#quotaFor(call).recordError(failure, this.#options.uptime())
      throw this.#errorFrom(failure)
    }
  }

  #upstreamFor({ method }: ValidatedCall): RawRequestFn {
    const { forward, forwardReceipts } = this.#options
    return methods[method].public ? forward : (forwardReceipts ?? forward)
  }

  #quotaFor(call: ValidatedCall): UpstreamQuota {
    return this.#upstreamFor(call) === this.#options.forwardReceipts ? this.#receiptsQuota : this.#quota
  }

  /** Returns the error of the upstream, redacted, or an error of the relay if the upstream returned none. */
  #errorFrom({ detail, kind }: UpstreamError): RpcError {
    const { redact } = this.#options
    if (detail) {
      const status = detail.status === FORBIDDEN_STATUS ? FORBIDDEN_STATUS : 200
      return new RpcError(detail.code, redact(detail.message), status, redactDeep(detail.data, redact))
    }
    if (kind === 'forbidden')
      return new RpcError(errorCodes.methodNotFound, 'the upstream does not answer this method', FORBIDDEN_STATUS)
    if (kind === 'too_large')
      return new RpcError(errorCodes.serverError, `the answer is longer than ${ANSWER_BOUND_BYTES} bytes; ask for less`)
    if (kind === 'busy') return upstreamBusy
    return new RpcError(errorCodes.serverError, 'the upstream does not answer now; try again in a moment')
  }
}
