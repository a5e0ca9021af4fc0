import { quantity } from '../../lib/hex.ts'
import { parseShallowJson } from '../../lib/json.ts'
import { redactDeep } from '../../lib/redact.ts'
import { methods } from '../../protocol/json-rpc-methods.ts'
import { ANSWER_BOUND_BYTES, type RawRequestFn } from '../chain/rpc/endpoint-pool.ts'
import { UpstreamError } from '../chain/rpc/upstream-error.ts'
import { AnswerCache, type ChainVersion, isStillValid, maxAgeMs, type Validity } from './answer-cache.ts'
import type { ChainState } from './chain-state.ts'
import { FairQueue } from './fair-queue.ts'
import { errorCodes, RpcError } from './rpc-error.ts'
import { UpstreamQuota } from './upstream-quota.ts'
import type { ValidatedCall } from './validated-call.ts'

/** This near to the head, another node behind the same name may lack the last blocks of a range. */
const LATEST_BLOCKS = 8
/** This near to the head, a block whose hash we do not know may be replaced without our noticing. */
const RECENT_BLOCKS = 64
/** An empty answer counts as final below the safe block or this deep. A lagging node also answers empty. */
const FINAL_DEPTH_BLOCKS = 1_024
/** Calls that run at once and calls that wait. Slow methods have a queue of their own. */
const QUICK_BOUNDS = { runningBound: 16, queuedBound: 500 }
const SLOW_BOUNDS = { runningBound: 8, queuedBound: 100 }
/** The bounds of the relay's own calls, made for all subscribers. */
const INTERNAL_BOUNDS = { runningBound: 8, queuedBound: 100 }

/** The answers of a node where there is nothing, and where it does not know better. */
const emptyResult = /^(null|\[\]|"0x0*")$/
const EMPTY_RESULT_BOUND_BYTES = 68

/** The status with which a public endpoint refuses a method. */
const FORBIDDEN_STATUS = 403

const upstreamBusy = new RpcError(errorCodes.limitExceeded, 'the upstream is over its rate limit now; come back in a moment')

type Options = {
  readonly forward: RawRequestFn
  /** Serves what public endpoints refuse; null where no such endpoint is configured. */
  readonly forwardReceipts: RawRequestFn | null
  readonly chainState: ChainState
  /** The chain id, once it is known. */
  readonly chainId: () => number | null
  /** Removes endpoint secrets from a text. */
  readonly redact: (text: string) => string
  readonly uptime: () => number
}

/** A call that is under way, and when it was made. */
type InFlightCall = { readonly version: ChainVersion; readonly requestedAt: number; readonly answer: Promise<Buffer> }

/** Answers calls: from the cache while it is valid, once for all concurrent equal calls, else from upstream. */
export class Answers {
  readonly #options: Options
  readonly #cache = new AnswerCache()
  readonly #inFlight = new Map<string, InFlightCall>()
  readonly #quickQueue: FairQueue
  readonly #slowQueue: FairQueue
  readonly #internalQueue: FairQueue
  readonly #quota = new UpstreamQuota()
  readonly #receiptsQuota = new UpstreamQuota()

  constructor(options: Options) {
    this.#options = options
    this.#quickQueue = new FairQueue(QUICK_BOUNDS, options.uptime)
    this.#slowQueue = new FairQueue(SLOW_BOUNDS, options.uptime)
    this.#internalQueue = new FairQueue(INTERNAL_BOUNDS, options.uptime)
  }

  /** The result in JSON; throws an `RpcError` where there is none. */
  answer(call: ValidatedCall, client = ''): Buffer | Promise<Buffer> {
    return this.#answer(call, () => this.#requestForClient(call, client))
  }

  /** The same for the relay's own calls: they do not wait behind calls of clients. */
  answerForAll(call: ValidatedCall): Buffer | Promise<Buffer> {
    return this.#answer(call, () => this.#internalQueue.run(() => this.#request(call), ''))
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
    // A client that asks after the chain moved must not get an answer requested before.
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
      // While no head is received, a new head would not invalidate the answer.
      const storedValidity = likelyValidity === 'head' && chainState.isDisconnected ? 'pending' : likelyValidity
      // An answer that is outdated by now must not replace a valid one.
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

  /** How long an answer stays valid whose call was made at this head; null if it must not be cached. */
  #validityOf({ method, scope }: ValidatedCall, result: Buffer, head: number | null): Validity | null {
    switch (scope.at) {
      case 'pending':
        return 'pending'
      case 'head':
        return method === 'eth_blockNumber' && Number(parseShallowJson(result) ?? 0) < (head ?? 0) ? null : 'head'
      case 'chain':
        return 'sealed'
      case 'hash':
        // A node that lacks the block now may have it in a moment.
        return isNull(result) ? null : isEmptyResult(result) ? 'head' : 'sealed'
      case 'number':
        if (head === null || scope.number > head) return null
        if (isEmptyResult(result) && scope.number > head - LATEST_BLOCKS) return isNull(result) ? null : 'pending'
        if (method === 'eth_getBlockByNumber' && this.#isOtherBlock(scope.number, result)) return null
        return this.#isTrusted(scope, result, head) ? 'sealed' : 'head'
    }
  }

  /** Whether the answering node had the block, and a reorganisation of that block would be noticed. */
  #isTrusted({ number, several }: { number: number; several: boolean }, result: Buffer, head: number): boolean {
    const { chainState } = this.#options
    if (isEmptyResult(result)) return number <= Math.max(chainState.safe ?? 0, head - FINAL_DEPTH_BLOCKS)
    if (several) return number <= head - LATEST_BLOCKS
    return chainState.hashOf(number) !== null || number <= head - RECENT_BLOCKS
  }

  /** Whether the block is not the one we know: the node is on a chain that is gone, or not ours yet. */
  #isOtherBlock(number: number, result: Buffer): boolean {
    const hash = this.#options.chainState.hashOf(number)
    return hash !== null && !isEmptyResult(result) && !result.includes(hash)
  }

  #requestForClient(call: ValidatedCall, client: string): Promise<Buffer> {
    const { uptime } = this.#options
    const isSlow = call.method === 'eth_getLogs' || !methods[call.method].public
    return (isSlow ? this.#slowQueue : this.#quickQueue).run(() => {
      if (!this.#quotaFor(call).take(uptime())) throw upstreamBusy
      return this.#request(call)
    }, client)
  }

  async #request(call: ValidatedCall): Promise<Buffer> {
    const { uptime } = this.#options
    const { method, params } = call
    try {
      return await this.#upstreamFor(call)(method, params)
    } catch (failure) {
      if (!(failure instanceof UpstreamError)) throw failure
      this.#quotaFor(call).recordError(failure, uptime())
      throw this.#errorFrom(failure)
    }
  }

  #upstreamFor({ method }: ValidatedCall): RawRequestFn {
    const { forward, forwardReceipts } = this.#options
    return methods[method].public ? forward : (forwardReceipts ?? forward)
  }

  /** The quota that a call counts against. */
  #quotaFor(call: ValidatedCall): UpstreamQuota {
    return this.#upstreamFor(call) === this.#options.forwardReceipts ? this.#receiptsQuota : this.#quota
  }

  /** The upstream's own error, redacted; where it gave none, an error of ours. */
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
