import { quantity } from '../../lib/hex.ts'
import { parseShallowJson } from '../../lib/json.ts'
import { redactDeep } from '../../lib/redact.ts'
import { methods } from '../../protocol/json-rpc-methods.ts'
import { ANSWER_BOUND_BYTES, type RawRequestFn } from '../chain/rpc/endpoint-pool.ts'
import { UpstreamError } from '../chain/rpc/upstream-error.ts'
import { AnswerCache, type ChainVersion, isStillValid, maxAgeMs, type Validity } from './answer-cache.ts'
import type { ChainState } from './chain-state.ts'
import { FairQueue } from './fair-queue.ts'
import { errorCodes, limitExceeded, RpcError } from './rpc-error.ts'
import { UpstreamQuota } from './upstream-quota.ts'
import type { ValidatedCall } from './validated-call.ts'

/** Distance from the head within which another node behind the load balancer may lack the last blocks of a range. */
const LATEST_BLOCKS = 8
/** Distance from the head within which a reorg may replace a block. It is unnoticed if the hash of the block is unknown. */
const RECENT_BLOCKS = 64
/** An empty answer is trusted only up to the `safe` block or this far below the head: a lagging node also answers empty. */
const FINAL_DEPTH_BLOCKS = 1_024
/** Limits of calls that run and that wait. Calls of clients are `quick` or `slow`, those of the relay itself `internal`. */
const queueBounds = {
  quick: { runningBound: 16, queuedBound: 500 },
  slow: { runningBound: 8, queuedBound: 100 },
  internal: { runningBound: 8, queuedBound: 100 },
}

/** Matches the answer of a node that has no such value, or does not have it yet. */
const emptyResult = /^(null|\[\]|"0x0*")$/
const EMPTY_RESULT_BOUND_BYTES = 68
const FORBIDDEN_STATUS = 403

const upstreamBusy = limitExceeded('the upstream is over its rate limit now; come back in a moment')

type Options = {
  readonly forward: RawRequestFn
  /** Serves the methods that public endpoints refuse; null if no endpoint is configured for them. */
  readonly forwardReceipts: RawRequestFn | null
  readonly chainState: ChainState
  readonly chainId: () => number | null
  readonly redact: (text: string) => string
  readonly uptime: () => number
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
    const sharedValidity = this.#sharedValidity(call)
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
      const likelyValidity = this.#validityOf(call, result, head)
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

  #sharedValidity({ scope }: ValidatedCall): Validity {
    if (scope.at === 'pending') return 'pending'
    const { head } = this.#options.chainState
    const isOld = scope.at === 'number' && head !== null && scope.number <= head - RECENT_BLOCKS
    return scope.at === 'chain' || isOld ? 'sealed' : 'head'
  }

  /** Returns the validity of an answer that was requested at this head; null if the answer must not be cached. */
  #validityOf({ method, scope }: ValidatedCall, result: Buffer, head: number | null): Validity | null {
    switch (scope.at) {
      case 'pending':
        return 'pending'
      case 'head':
        return method === 'eth_blockNumber' && Number(parseShallowJson(result) ?? 0) < (head ?? 0) ? null : 'head'
      case 'chain':
        return 'sealed'
      case 'hash':
        // A node without the block may receive it in a moment.
        return isNull(result) ? null : isEmptyResult(result) ? 'head' : 'sealed'
      case 'number':
        if (head === null || scope.number > head) return null
        if (isEmptyResult(result) && scope.number > head - LATEST_BLOCKS) return isNull(result) ? null : 'pending'
        if (method === 'eth_getBlockByNumber' && this.#isOtherBlock(scope.number, result)) return null
        return this.#isTrusted(scope, result, head) ? 'sealed' : 'head'
    }
  }

  /** Whether an answer is valid until a reorg: the node had the block, and the relay would notice its replacement. */
  #isTrusted({ number, several }: { number: number; several: boolean }, result: Buffer, head: number): boolean {
    const { chainState } = this.#options
    if (isEmptyResult(result)) return number <= Math.max(chainState.safe ?? 0, head - FINAL_DEPTH_BLOCKS)
    if (several) return number <= head - LATEST_BLOCKS
    return chainState.hashOf(number) !== null || number <= head - RECENT_BLOCKS
  }

  /** Whether the block has another hash than the known one: the node is on another branch. */
  #isOtherBlock(number: number, result: Buffer): boolean {
    const hash = this.#options.chainState.hashOf(number)
    return hash !== null && !isEmptyResult(result) && !result.includes(hash)
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

const isNull = (result: Buffer): boolean => result.length === 4 && result.toString('latin1') === 'null'

const isEmptyResult = (result: Buffer): boolean =>
  result.length <= EMPTY_RESULT_BOUND_BYTES && emptyResult.test(result.toString('latin1'))
