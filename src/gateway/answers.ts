import { firstValueFrom } from 'rxjs'
import { ANSWER_BOUND_BYTES, type RawRequestFn } from '../chain/rpc/client.ts'
import { UpstreamError } from '../chain/rpc/error.ts'
import { methods } from '../chain/rpc/methods.ts'
import { AnswerCache, type ChainVersion, isStillValid, maxAgeMs, type Validity } from './answer-cache.ts'
import type { ValidatedCall } from './call.ts'
import type { ChainState } from './chain-state.ts'
import { FairQueue } from './fair-queue.ts'
import { redactDeep } from './redact.ts'
import { errorCodes, RpcError } from './rpc-error.ts'
import { UpstreamQuota } from './upstream-quota.ts'

/** So near to the head a node behind the same name may lack the last blocks of a range. */
const LATEST_BLOCKS = 8
/** So near to the head a block that was never heard of may be replaced without a word. */
const RECENT_BLOCKS = 64
/** That there is nothing is believed of what is safe, or lies so deep: a node that is far behind says so too. */
const FINAL_DEPTH_BLOCKS = 1_024
/** Questions that are asked at once, and that wait for their turn; those that take long have a lane of their own. */
const QUICK_BOUNDS = { runningBound: 16, queuedBound: 500 }
const SLOW_BOUNDS = { runningBound: 8, queuedBound: 100 }
/** What the relay itself asks, for all who hear of it. */
const INTERNAL_BOUNDS = { runningBound: 8, queuedBound: 100 }

/** What a node answers where there is nothing, and where it does not know better. */
const emptyResult = /^(null|\[\]|"0x0*")$/
const EMPTY_RESULT_BOUND_BYTES = 68

/** The status by which a public endpoint refuses a method. */
const FORBIDDEN_STATUS = 403

const upstreamBusy = new RpcError(errorCodes.limitExceeded, 'the upstream is asked too much now; come back in a moment')

type Options = {
  readonly forward: RawRequestFn
  /** Who serves what public endpoints refuse; null where nobody else does. */
  readonly forwardReceipts: RawRequestFn | null
  readonly chainState: ChainState
  /** The chain, once it is known. */
  readonly chainId: () => number | null
  /** Takes out of a text what nobody else may read. */
  readonly redact: (text: string) => string
  readonly uptime: () => number
}

/** A question that is under way, and when it was asked. */
type InFlightCall = { readonly version: ChainVersion; readonly requestedAt: number; readonly answer: Promise<Buffer> }

/** Answers questions: from memory while that holds, once for all who ask the same at the same time, else from upstream. */
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

  /** The result in JSON, for `who` asks; throws a `Fault` where there is none. */
  answer(call: ValidatedCall, client = ''): Buffer | Promise<Buffer> {
    return this.#answer(call, () => this.#requestForClient(call, client))
  }

  /** The same, asked for everybody: no other question of a client stands before it. */
  answerForAll(call: ValidatedCall): Buffer | Promise<Buffer> {
    return this.#answer(call, () => this.#internalQueue.run(() => this.#request(call), ''))
  }

  #answer(call: ValidatedCall, request: () => Promise<Buffer>): Buffer | Promise<Buffer> {
    const { chainState, chainId, uptime } = this.#options
    const chainNumber = call.method === 'eth_chainId' ? chainId() : null
    if (chainNumber !== null) return Buffer.from(`"0x${chainNumber.toString(16)}"`)
    return this.#cache.get(call.key, chainState, uptime()) ?? this.#share(call, request)
  }

  #share(call: ValidatedCall, request: () => Promise<Buffer>): Promise<Buffer> {
    const { chainState, uptime } = this.#options
    const { key } = call
    const inFlight = this.#inFlight.get(key)
    const sharedValidity = this.#sharedValidity(call)
    // Whoever asks after the chain moved must not be given what was asked before.
    if (
      inFlight &&
      isStillValid(sharedValidity, inFlight.version, chainState) &&
      uptime() < inFlight.requestedAt + maxAgeMs[sharedValidity]
    )
      return inFlight.answer
    const { head } = chainState
    const requestedAt = uptime()
    const version = {
      reorgCount: chainState.reorgCount,
      headCount: chainState.headCount,
      pendingCount: chainState.pendingCount,
    }
    const answer = request().then((result) => {
      const likelyValidity = this.#validityOf(call, result, head)
      // A head that nobody hears of must not make old answers new.
      const storedValidity = likelyValidity === 'head' && chainState.isDisconnected ? 'pending' : likelyValidity
      // What does not hold any more must not take the place of what does.
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

  /** How long an answer keeps to a question that was asked when the head was this; null where it does not. */
  #validityOf({ method, scope }: ValidatedCall, result: Buffer, head: number | null): Validity | null {
    switch (scope.at) {
      case 'pending':
        return 'pending'
      case 'head':
        return method === 'eth_blockNumber' && Number(JSON.parse(String(result))) < (head ?? 0) ? null : 'head'
      case 'chain':
        return 'sealed'
      case 'hash':
        // Whoever does not know a block yet may know it in a moment.
        return isNull(result) ? null : isEmptyResult(result) ? 'head' : 'sealed'
      case 'number':
        if (head === null || scope.number > head) return null
        if (isEmptyResult(result) && scope.number > head - LATEST_BLOCKS) return isNull(result) ? null : 'pending'
        if (method === 'eth_getBlockByNumber' && this.#isOtherBlock(scope.number, result)) return null
        return this.#isTrusted(scope, result, head) ? 'sealed' : 'head'
    }
  }

  /** Whether an answer is that of a node that knows what it was asked about, and it would be noticed if that changed. */
  #isTrusted({ number, several }: { number: number; several: boolean }, result: Buffer, head: number): boolean {
    const { chainState } = this.#options
    if (isEmptyResult(result)) return number <= Math.max(chainState.safe ?? 0, head - FINAL_DEPTH_BLOCKS)
    if (several) return number <= head - LATEST_BLOCKS
    return chainState.hashOf(number) !== null || number <= head - RECENT_BLOCKS
  }

  /** Whether a block is not the one that was heard of: whoever gave it stands on a chain that is no more, or not yet. */
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
      return await firstValueFrom(this.#upstreamFor(call)(method, params))
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

  /** Whose quota a question is of. */
  #quotaFor(call: ValidatedCall): UpstreamQuota {
    return this.#upstreamFor(call) === this.#options.forwardReceipts ? this.#receiptsQuota : this.#quota
  }

  /** What the upstream said, in its own words; where it said nothing, in ours. */
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
