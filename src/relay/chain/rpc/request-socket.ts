import { WebSocket } from 'ws'
import { z } from 'zod'
import { parseShallowJson } from '../../../lib/safe-json.ts'
import { type JsonRpcRequest, requestText } from './request-text.ts'
import { answerIdOf } from './slice-result.ts'
import { classifyHandshake, UpstreamError } from './upstream-error.ts'

const HANDSHAKE_BOUND_MS = 5_000
const WAITING_BOUND = 1_000

/** A request that waits for its answer, or a batch of `count` requests with consecutive ids. */
type Waiting = { readonly count: number; readonly resolve: (answer: Buffer) => void; readonly reject: (failure: unknown) => void }

/** Sends JSON-RPC requests over one WebSocket. The first request opens it, and so does the first one after a loss. */
export class RequestSocket {
  readonly #url: string
  readonly #answerBoundBytes: number
  readonly #waiting = new Map<number, Waiting>()
  #socket: WebSocket | null = null
  #answerCount = 0

  constructor(url: string, answerBoundBytes: number) {
    this.#url = url
    this.#answerBoundBytes = answerBoundBytes
  }

  /** Returns the answer in the bytes that the node sent. A batch waits under the id of its first request. */
  exchange(payload: JsonRpcRequest | readonly JsonRpcRequest[], signal: AbortSignal): Promise<Buffer> {
    signal.throwIfAborted()
    if (this.#waiting.size >= WAITING_BOUND) throw new UpstreamError('busy', `${WAITING_BOUND} requests wait for their answers`)
    const [id, count] = 'id' in payload ? [payload.id, 1] : [payload[0]?.id ?? 0, payload.length]
    this.#socket ??= this.#open()
    const socket = this.#socket
    const answersBefore = this.#answerCount
    const abort = () => {
      this.#waiting.get(id)?.reject(signal.reason)
      // A connection that was lost without a close looks like a slow node, so a socket without any answer since is closed.
      if (this.#answerCount === answersBefore && isTimeout(signal.reason))
        this.#lose(socket, new UpstreamError('unreachable', 'no answer'))
    }
    const answer = new Promise<Buffer>((resolve, reject) => this.#waiting.set(id, { count, resolve, reject }))
    signal.addEventListener('abort', abort)
    const send = () => this.#waiting.has(id) && socket.send(requestText(payload))
    if (socket.readyState === WebSocket.OPEN) send()
    else socket.once('open', send)
    return answer.finally(() => {
      this.#waiting.delete(id)
      signal.removeEventListener('abort', abort)
    })
  }

  #open(): WebSocket {
    const socket = new WebSocket(this.#url, {
      handshakeTimeout: HANDSHAKE_BOUND_MS,
      maxPayload: this.#answerBoundBytes,
      perMessageDeflate: false,
      followRedirects: false,
    })
    // Each request that waits for the socket to open adds a listener for `open`.
    socket.setMaxListeners(WAITING_BOUND)
    // An idle socket must not keep the process alive.
    socket.on('upgrade', (response) => response.socket.unref())
    socket.on('message', (data) => this.#receive(Buffer.isBuffer(data) ? data : Buffer.from(String(data))))
    socket.on('unexpected-response', (_, response) => this.#lose(socket, classifyHandshake(response)))
    socket.on('error', (failure) => this.#lose(socket, errorOf(failure)))
    socket.on('close', (code) => this.#lose(socket, new UpstreamError('unreachable', `closed with ${code}`)))
    return socket
  }

  #receive(answer: Buffer): void {
    this.#answerCount += 1
    const id = answer[0] === OPEN_BRACKET ? firstIdOf(answer) : (answerIdOf(answer) ?? parsedIdOf(answer))
    this.#waitingFor(id)?.resolve(answer)
  }

  /** Returns the request that this answers. An error without an id answers the only waiting request, or else the only batch. */
  #waitingFor(id: number | null): Waiting | undefined {
    const known = id === null ? undefined : this.#waiting.get(id)
    if (known) return known
    const waiting = [...this.#waiting]
    if (id !== null) return waiting.find(([first, { count }]) => id > first && id < first + count)?.[1]
    const batches = waiting.filter(([, { count }]) => count > 1)
    const [only, ...others] = waiting.length === 1 ? waiting : batches
    return others.length === 0 ? only?.[1] : undefined
  }

  #lose(socket: WebSocket, failure: UpstreamError): void {
    if (this.#socket !== socket) return
    this.#socket = null
    for (const { reject } of this.#waiting.values()) reject(failure)
    // A socket that is terminated while it opens still emits an error, which would crash the process if unhandled.
    socket
      .removeAllListeners()
      .on('error', () => {})
      .terminate()
  }
}

const AnswerId = z.object({ id: z.int() })

const OPEN_BRACKET = '['.charCodeAt(0)

/** Returns the first id in the answer to a batch; null if there is none. */
function firstIdOf(answer: Buffer): number | null {
  const items = z.array(z.unknown()).safeParse(parseShallowJson(answer)).data ?? []
  return items.map((item) => AnswerId.safeParse(item).data?.id).find((id) => id !== undefined) ?? null
}

/** Returns the id of an answer with an unexpected envelope, such as an error; null if it has none. */
const parsedIdOf = (answer: Buffer): number | null => AnswerId.safeParse(parseShallowJson(answer)).data?.id ?? null

/** `ws` closes the socket if an answer is too long. Its request is unknown, so all waiting requests fail as too large. */
const errorOf = (failure: Error): UpstreamError =>
  'code' in failure && failure.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH'
    ? new UpstreamError('too_large', 'the answer is too long')
    : new UpstreamError('unreachable', failure.message)

const isTimeout = (reason: unknown): boolean => reason instanceof DOMException && reason.name === 'TimeoutError'
