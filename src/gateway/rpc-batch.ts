import { ANSWER_BOUND_BYTES } from '../chain/rpc/client.ts'
import type { Answers } from './answers.ts'
import { readQuestion } from './call.ts'
import type { Moment } from './chain-state.ts'
import { type Envelope, isMisfit, type Misfit, type Request, readEnvelope } from './request.ts'
import { codes, Fault } from './rpc-error.ts'

/** What a body is answered with: pieces that belong together, none where nothing is said, and the HTTP status. */
export type Reply = {
  readonly status: number
  readonly pieces: readonly Buffer[]
  /** What was held for long results, to be given back when they are taken. */
  readonly held: number
}

/** What answers questions for the node, and how far the chain is by now. */
export type Service = { readonly answers: Answers; readonly moment: Moment }

/** Who asks, by which carrier. */
export type Caller = {
  /** Who it is: whoever asks much waits behind whoever asks little. */
  readonly who: string
  /** Counts requests by their methods against the rate; says of each whether it may be answered. */
  readonly counts: (methods: readonly string[]) => readonly boolean[]
  /** Whether a call is carried out on the spot instead of being asked of the node. */
  readonly isLocal: (method: string) => boolean
  /** Carries such a call out: its result in JSON. */
  readonly carryOut: (method: string, params: unknown) => string
  /** Makes room for a long result until it was taken; false if there is none. */
  readonly holds: (bytes: number) => boolean
  /** Whether a refusal has a status of its own, which only an HTTP answer to one request has. */
  readonly hasStatus: boolean
}

type Result = Buffer | Fault

/** To read so much of a body is work like one request. */
const REQUEST_CHARS = 16_384
/** A result up to this needs no room of its own. */
const SMALL_BYTES = 65_536

const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const SHUT = Buffer.from(']')
const BRACE = Buffer.from('}')
const tooMany = new Fault(codes.limit, 'too many requests; come back slower', 429)
const tooLong = new Fault(codes.server, `the answers to this batch are longer than ${ANSWER_BOUND_BYTES} bytes in all`)
const noRoom = new Fault(codes.limit, 'too many long answers are under way; come back in a moment', 503)

/**
 * Answers a body. `write` is called in the very step in which calls are carried out on the spot, so that nothing that
 * they bring about is heard before their answer.
 */
export async function reply(
  text: string,
  service: Service,
  caller: Caller,
  write: (reply: Reply) => void,
): Promise<void> {
  const weight = Math.floor(text.length / REQUEST_CHARS)
  if (weight > 0 && caller.counts(Array.from({ length: weight }, () => '')).includes(false))
    return write(refusalOf(tooMany))
  let envelope: Envelope
  try {
    envelope = readEnvelope(text)
  } catch (failure) {
    // What cannot be read was work all the same.
    const fault = caller.counts(['']).includes(false) ? tooMany : faultOf(failure)
    return write(refusalOf(fault))
  }
  const { batch, requests } = envelope
  const may = countsOf(requests, caller)
  const room = new Room()
  const results = await Promise.all(
    requests.map(async (one, at) => (may[at] ? room.bounded(await ask(one, service, caller)) : tooMany)),
  )
  const answers: (readonly Buffer[])[] = []
  let status = may.includes(false) ? tooMany.status : 200
  let held = 0
  for (const [at, one] of requests.entries()) {
    const result = roomFor(results[at] ?? carryOut(one, caller), caller)
    if (isLong(result)) held += result.length
    // Only a status can say to whoever wants no answer that there were too many.
    if (!isMisfit(one) && one.id === null && !(result === tooMany && caller.hasStatus)) continue
    if (result instanceof Fault && !batch) status = result.status
    answers.push(written(one, result, batch || !caller.hasStatus))
  }
  const pieces = batch ? listed(answers) : answers.flat()
  // What is short by itself may be long together.
  const rest = pieces.reduce((sum, { length }) => sum + length, 0) - held
  if (rest <= SMALL_BYTES) return write({ status, pieces, held })
  write(caller.holds(rest) ? { status, pieces, held: held + rest } : { ...refusalOf(noRoom), held })
}

/** What the long results of a batch may hold together; one that does not fit beside the others is let go as it comes. */
class Room {
  #left = ANSWER_BOUND_BYTES

  bounded(result: Result | null): Result | null {
    if (!isLong(result)) return result
    if (result.length > this.#left) return tooLong
    this.#left -= result.length
    return result
  }
}

/** A result, if there is room for it beside what others have yet to take. */
const roomFor = (result: Result, caller: Caller): Result =>
  !isLong(result) || caller.holds(result.length) ? result : noRoom

const isLong = (result: Result | null): result is Buffer => result instanceof Buffer && result.length > SMALL_BYTES

/** Which of them may be answered. Where all are refused anyway, that is one thing to do. */
function countsOf(requests: Envelope['requests'], caller: Caller): readonly boolean[] {
  if (!requests.every(isMisfit)) return caller.counts(requests.map((one) => (isMisfit(one) ? '' : one.method)))
  const [may = true] = caller.counts([''])
  return requests.map(() => may)
}

/** The node's answer; null where the call is carried out on the spot, or not at all. */
async function ask(one: Request | Misfit, { answers, moment }: Service, caller: Caller): Promise<Result | null> {
  if (isMisfit(one)) return one.fault
  if (caller.isLocal(one.method)) return null
  try {
    const question = readQuestion(one.method, one.params, moment)
    // No question changes anything: what nobody wants to know is not asked.
    return one.id === null ? null : await answers.answer(question, caller.who)
  } catch (failure) {
    return faultOf(failure)
  }
}

const NOTHING = Buffer.from('null')

function carryOut(one: Request | Misfit, caller: Caller): Result {
  if (isMisfit(one) || !caller.isLocal(one.method)) return NOTHING
  // An id that nobody is told is of no use.
  if (one.id === null && one.method === 'eth_subscribe') return NOTHING
  try {
    return Buffer.from(caller.carryOut(one.method, one.params))
  } catch (failure) {
    return faultOf(failure)
  }
}

const faultOf = (failure: unknown): Fault =>
  failure instanceof Fault ? failure : new Fault(codes.internal, 'something failed on this side; try again')

function written({ id }: Request | Misfit, result: Result, isInline: boolean): readonly Buffer[] {
  if (result instanceof Fault) return [refusal(id, isInline ? inline(result) : result)]
  return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`), result, BRACE]
}

/** A method that is refused by status is refused by code where there is no status. */
const inline = (fault: Fault): Fault =>
  fault.status === 403 ? new Fault(codes.method, fault.message, fault.status, fault.data) : fault

/** What is answered where not even an id could be read. */
export const refusalOf = (fault: Fault): Reply => ({ status: fault.status, pieces: [refusal(null, fault)], held: 0 })

const refusal = (id: string | null, fault: Fault): Buffer =>
  Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":${fault.text}}`)

const listed = (answers: readonly (readonly Buffer[])[]): readonly Buffer[] =>
  answers.length === 0 ? [] : [OPEN, ...answers.flatMap((answer, at) => (at === 0 ? answer : [COMMA, ...answer])), SHUT]
