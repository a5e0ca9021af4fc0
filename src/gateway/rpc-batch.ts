import { ANSWER_BOUND_BYTES } from '../chain/rpc/client.ts'
import type { Answers } from './answers.ts'
import { readCall } from './call.ts'
import type { ChainState } from './chain-state.ts'
import { type ClientRequest, type InvalidRequest, isInvalidRequest, type RpcBody, readRpcBody } from './request.ts'
import { errorCodes, RpcError } from './rpc-error.ts'

/** What a body is answered with: pieces that belong together, none where nothing is said, and the HTTP status. */
export type Reply = {
  readonly status: number
  readonly chunks: readonly Buffer[]
  /** What was held for long results, to be given back when they are taken. */
  readonly reservedBytes: number
}

/** What answers questions for the node, and how far the chain is by now. */
export type RpcBackend = { readonly answers: Answers; readonly chainState: ChainState }

/** Who asks, by which carrier. */
export type Caller = {
  /** Who it is: whoever asks much waits behind whoever asks little. */
  readonly client: string
  /** Counts requests by their methods against the rate; says of each whether it may be answered. */
  readonly takeRate: (methods: readonly string[]) => readonly boolean[]
  /** Whether a call is carried out on the spot instead of being asked of the node. */
  readonly isLocal: (method: string) => boolean
  /** Carries such a call out: its result in JSON. */
  readonly runLocal: (method: string, params: unknown) => string
  /** Makes room for a long result until it was taken; false if there is none. */
  readonly reserve: (bytes: number) => boolean
  /** Whether a refusal has a status of its own, which only an HTTP answer to one request has. */
  readonly hasHttpStatus: boolean
}

type Result = Buffer | RpcError

/** To read so much of a body is work like one request. */
const CHARS_PER_REQUEST = 16_384
/** A result up to this needs no room of its own. */
const SMALL_BOUND_BYTES = 65_536

const OPEN_BRACKET = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE_BRACKET = Buffer.from(']')
const CLOSE_BRACE = Buffer.from('}')
const rateLimited = new RpcError(errorCodes.limitExceeded, 'too many requests; come back slower', 429)
const batchTooLarge = new RpcError(
  errorCodes.serverError,
  `the answers to this batch are longer than ${ANSWER_BOUND_BYTES} bytes in all`,
)
const noCapacity = new RpcError(
  errorCodes.limitExceeded,
  'too many long answers are under way; come back in a moment',
  503,
)

/**
 * Answers a body. `write` is called in the very step in which calls are carried out on the spot, so that nothing that
 * they bring about is heard before their answer.
 */
export async function answerBody(
  text: string,
  backend: RpcBackend,
  caller: Caller,
  write: (reply: Reply) => void,
): Promise<void> {
  const extraRequests = Math.floor(text.length / CHARS_PER_REQUEST)
  if (extraRequests > 0 && caller.takeRate(Array.from({ length: extraRequests }, () => '')).includes(false))
    return write(errorReply(rateLimited))
  let body: RpcBody
  try {
    body = readRpcBody(text)
  } catch (failure) {
    // What cannot be read was work all the same.
    const error = caller.takeRate(['']).includes(false) ? rateLimited : errorFrom(failure)
    return write(errorReply(error))
  }
  const { isBatch, requests } = body
  const isAllowed = allowedRequests(requests, caller)
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
    // Only a status can say to whoever wants no answer that there were too many.
    if (!isInvalidRequest(request) && request.id === null && !(result === rateLimited && caller.hasHttpStatus)) continue
    if (result instanceof RpcError && !isBatch) status = result.status
    answers.push(encodeResponse(request, result, isBatch || !caller.hasHttpStatus))
  }
  const chunks = isBatch ? joinBatch(answers) : answers.flat()
  // What is short by itself may be long together.
  const shortBytes = chunks.reduce((sum, { length }) => sum + length, 0) - reservedBytes
  if (shortBytes <= SMALL_BOUND_BYTES) return write({ status, chunks, reservedBytes })
  write(
    caller.reserve(shortBytes)
      ? { status, chunks, reservedBytes: reservedBytes + shortBytes }
      : { ...errorReply(noCapacity), reservedBytes },
  )
}

/** What the long results of a batch may hold together; one that does not fit beside the others is let go as it comes. */
class BatchBudget {
  #leftBytes = ANSWER_BOUND_BYTES

  fit(result: Result | null): Result | null {
    if (!isLong(result)) return result
    if (result.length > this.#leftBytes) return batchTooLarge
    this.#leftBytes -= result.length
    return result
  }
}

/** A result, if there is room for it beside what others have yet to take. */
const reserveFor = (result: Result, caller: Caller): Result =>
  !isLong(result) || caller.reserve(result.length) ? result : noCapacity

const isLong = (result: Result | null): result is Buffer =>
  result instanceof Buffer && result.length > SMALL_BOUND_BYTES

/** Which of them may be answered. Where all are refused anyway, that is one thing to do. */
function allowedRequests(requests: RpcBody['requests'], caller: Caller): readonly boolean[] {
  if (!requests.every(isInvalidRequest))
    return caller.takeRate(requests.map((request) => (isInvalidRequest(request) ? '' : request.method)))
  const [isAllowed = true] = caller.takeRate([''])
  return requests.map(() => isAllowed)
}

/** The node's answer; null where the call is carried out on the spot, or not at all. */
async function callNode(
  request: ClientRequest | InvalidRequest,
  { answers, chainState }: RpcBackend,
  caller: Caller,
): Promise<Result | null> {
  if (isInvalidRequest(request)) return request.fault
  if (caller.isLocal(request.method)) return null
  try {
    const call = readCall(request.method, request.params, chainState)
    // No question changes anything: what nobody wants to know is not asked.
    return request.id === null ? null : await answers.answer(call, caller.client)
  } catch (failure) {
    return errorFrom(failure)
  }
}

const NULL_RESULT = Buffer.from('null')

function runLocalCall(request: ClientRequest | InvalidRequest, caller: Caller): Result {
  if (isInvalidRequest(request) || !caller.isLocal(request.method)) return NULL_RESULT
  // An id that nobody is told is of no use.
  if (request.id === null && request.method === 'eth_subscribe') return NULL_RESULT
  try {
    return Buffer.from(caller.runLocal(request.method, request.params))
  } catch (failure) {
    return errorFrom(failure)
  }
}

const errorFrom = (failure: unknown): RpcError =>
  failure instanceof RpcError
    ? failure
    : new RpcError(errorCodes.internalError, 'something failed on this side; try again')

function encodeResponse(
  { id }: ClientRequest | InvalidRequest,
  result: Result,
  hasNoStatus: boolean,
): readonly Buffer[] {
  if (result instanceof RpcError) return [encodeError(id, hasNoStatus ? withoutStatus(result) : result)]
  return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`), result, CLOSE_BRACE]
}

/** A method that is refused by status is refused by code where there is no status. */
const withoutStatus = (error: RpcError): RpcError =>
  error.status === 403 ? new RpcError(errorCodes.methodNotFound, error.message, error.status, error.data) : error

/** What is answered where not even an id could be read. */
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
