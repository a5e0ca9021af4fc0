import { ANSWER_BOUND_BYTES } from '../chain/rpc/endpoint-pool.ts'
import type { ChainState } from './chain-state.ts'
import { errorCodes, limitExceeded, RpcError } from './rpc-error.ts'
import { type ClientRequest, type InvalidRequest, isInvalidRequest, parseRpcBody, type RpcBody } from './rpc-request-parser.ts'
import type { SharedAnswers } from './shared-answers.ts'
import { readCall } from './validated-call.ts'

/** The answer to a body. It has no chunks if the body contains only notifications. */
export type Reply = {
  readonly status: number
  readonly chunks: readonly Buffer[]
  /** Bytes to release when the client has received the answer. */
  readonly reservedBytes: number
}

export type RpcBackend = { readonly answers: SharedAnswers; readonly chainState: ChainState }

export type Caller = {
  /** The name of the client in the queues of waiting calls. */
  readonly client: string
  /** Counts requests against the rate, except `prepaid` ones; returns for each whether it is allowed. */
  readonly takeRate: (methods: readonly string[], prepaid?: number) => readonly boolean[]
  /** Whether the relay answers the method itself, by `runLocal`. */
  readonly isLocal: (method: string) => boolean
  readonly runLocal: (method: string, params: unknown) => string
  /** Reserves bytes for a long result; false if there is no room. */
  readonly reserve: (bytes: number) => boolean
  /** Whether an error of a single request may set the HTTP status. */
  readonly hasHttpStatus: boolean
}

type Result = Buffer | RpcError

/** A body counts as one request per this number of characters, or as the number of its requests if that is higher. */
const CHARS_PER_REQUEST = 16_384
/** Limit of a result that needs no reservation of bytes. */
const SMALL_BOUND_BYTES = 65_536
const OPEN_BRACKET = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE_BRACKET = Buffer.from(']')
const CLOSE_BRACE = Buffer.from('}')
const rateLimited = limitExceeded('too many requests; slow down', 429)
const batchTooLarge = new RpcError(
  errorCodes.serverError,
  `the answers to this batch are longer than ${ANSWER_BOUND_BYTES} bytes in all`,
)
const noCapacity = limitExceeded('too many long answers are under way; come back in a moment', 503)

/** Answers a body. Local calls run in the step that calls `write`, so a subscription notifies only after its id is sent. */
export async function answerBody(text: string, backend: RpcBackend, caller: Caller, write: (reply: Reply) => void): Promise<void> {
  const prepaid = Math.floor(text.length / CHARS_PER_REQUEST)
  if (prepaid > 0 && caller.takeRate(Array.from({ length: prepaid }, () => '')).includes(false))
    return write(errorReply(rateLimited))
  let body: RpcBody
  try {
    body = parseRpcBody(text)
  } catch (failure) {
    // A body that cannot be read counts as one request.
    const error = caller.takeRate([''], prepaid).includes(false) ? rateLimited : errorFrom(failure)
    return write(errorReply(error))
  }
  const { isBatch, requests } = body
  const isAllowed = allowedRequests(requests, caller, prepaid)
  const batchBudget = new BatchBudget()
  const results = await Promise.all(
    requests.map(async (request, index) =>
      isAllowed[index] ? batchBudget.fit(await callNode(request, backend, caller)) : rateLimited,
    ),
  )
  const answers: (readonly Buffer[])[] = []
  let status = isAllowed.includes(false) ? rateLimited.status : 200
  let reservedBytes = 0
  for (const [index, request] of requests.entries()) {
    const result = reserveFor(results[index] ?? runLocalCall(request, caller), caller)
    if (isLong(result)) reservedBytes += result.length
    // A notification gets no answer, so only the HTTP status can report that it exceeded the rate.
    if (!isInvalidRequest(request) && request.id === null && !(result === rateLimited && caller.hasHttpStatus)) continue
    if (result instanceof RpcError && !isBatch) status = result.status
    answers.push(encodeResponse(request, result, isBatch || !caller.hasHttpStatus))
  }
  const chunks = isBatch ? joinBatch(answers) : answers.flat()
  // Many short results may be long together.
  const shortBytes = chunks.reduce((sum, { length }) => sum + length, 0) - reservedBytes
  if (shortBytes <= SMALL_BOUND_BYTES) return write({ status, chunks, reservedBytes })
  write(
    caller.reserve(shortBytes)
      ? { status, chunks, reservedBytes: reservedBytes + shortBytes }
      : { ...errorReply(noCapacity), reservedBytes },
  )
}

/** Limits the bytes of all long results of a batch. A result that does not fit becomes an error at once. */
class BatchBudget {
  #leftBytes = ANSWER_BOUND_BYTES

  fit(result: Result | null): Result | null {
    if (!isLong(result)) return result
    if (result.length > this.#leftBytes) return batchTooLarge
    this.#leftBytes -= result.length
    return result
  }
}

const reserveFor = (result: Result, caller: Caller): Result =>
  !isLong(result) || caller.reserve(result.length) ? result : noCapacity

const isLong = (result: Result | null): result is Buffer => result instanceof Buffer && result.length > SMALL_BOUND_BYTES

/** Returns for each request whether it is within the rate. A batch of invalid requests counts as one request. */
function allowedRequests(requests: RpcBody['requests'], caller: Caller, prepaid: number): readonly boolean[] {
  if (!requests.every(isInvalidRequest)) {
    const methods = requests.map((request) => (isInvalidRequest(request) ? '' : request.method))
    return caller.takeRate(methods, prepaid)
  }
  const [isAllowed = true] = caller.takeRate([''], prepaid)
  return requests.map(() => isAllowed)
}

/** Returns the answer of the node; null for local calls and for notifications. */
async function callNode(
  request: ClientRequest | InvalidRequest,
  { answers, chainState }: RpcBackend,
  caller: Caller,
): Promise<Result | null> {
  if (isInvalidRequest(request)) return request.error
  if (caller.isLocal(request.method)) return null
  try {
    const call = readCall(request.method, request.params, chainState)
    // A notification is not forwarded, because no call has side effects.
    return request.id === null ? null : await answers.answer(call, caller.client)
  } catch (failure) {
    return errorFrom(failure)
  }
}

const NULL_RESULT = Buffer.from('null')

function runLocalCall(request: ClientRequest | InvalidRequest, caller: Caller): Result {
  if (isInvalidRequest(request) || !caller.isLocal(request.method)) return NULL_RESULT
  // The client of a notification would never learn the id, and could not end the subscription.
  if (request.id === null && request.method === 'eth_subscribe') return NULL_RESULT
  try {
    return Buffer.from(caller.runLocal(request.method, request.params))
  } catch (failure) {
    return errorFrom(failure)
  }
}

const errorFrom = (failure: unknown): RpcError =>
  failure instanceof RpcError ? failure : new RpcError(errorCodes.internalError, 'something failed on this side; try again')

function encodeResponse({ id }: ClientRequest | InvalidRequest, result: Result, hasNoStatus: boolean): readonly Buffer[] {
  if (result instanceof RpcError) return [encodeError(id, hasNoStatus ? withoutStatus(result) : result)]
  return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`), result, CLOSE_BRACE]
}

/** An answer without an HTTP status of its own reports by the error code that a method is refused. */
const withoutStatus = (error: RpcError): RpcError =>
  error.status === 403 ? new RpcError(errorCodes.methodNotFound, error.message, error.status, error.data) : error

/** Returns the answer to a body without a readable id. */
export const errorReply = (error: RpcError): Reply => ({
  status: error.status,
  chunks: [encodeError(null, error)],
  reservedBytes: 0,
})

const encodeError = (id: string | null, error: RpcError): Buffer =>
  Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":${error.json}}`)

const joinBatch = (answers: readonly (readonly Buffer[])[]): readonly Buffer[] =>
  answers.length === 0
    ? []
    : [OPEN_BRACKET, ...answers.flatMap((answer, index) => (index === 0 ? answer : [COMMA, ...answer])), CLOSE_BRACKET]
