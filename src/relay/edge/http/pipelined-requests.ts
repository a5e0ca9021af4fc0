import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { PerTickQueue } from '../limits/per-tick-queue.ts'
import { isTaken, markLate } from '../transport/socket-takeover.ts'

/** Limit of the bytes, except of a body, that Node's parser gets at once. It reports all requests in them at once. */
const SLICE_BYTES = 1_024
/** Limit of the queued requests, of all connections, that begin in one turn of the event loop. */
const BEGUN_PER_TICK = 16

const NOTHING = Buffer.alloc(0)

type AnswerRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => void

type HttpConnection = {
  /** Node's own reader. If a release of Node has none, requests still queue, but the parser gets all bytes at once. */
  readonly parse: ((bytes: Buffer) => void) | undefined
  /** Whether an answer is being made or sent. */
  isAnswering: boolean
  /** Requests that wait for the current answer, in order. They are at most the requests in SLICE_BYTES. */
  waiting: (() => void)[]
  /** Received bytes that the parser has not read yet, while it reads earlier ones. */
  rest: Buffer
  /** Number of bytes that the body of the last request still lacks. No other request can begin in these bytes. */
  bodyLeft: number
  /** Whether the client has sent more requests than allowed. All further bytes are discarded. */
  isOver: boolean
}

/** Begins the requests of a connection one after the other: one packet may contain a thousand, and Node would start all at once. */
export class PipelinedRequests {
  readonly #answer: AnswerRequest
  readonly #connections = new WeakMap<Duplex, HttpConnection>()
  readonly #ticks = new PerTickQueue(BEGUN_PER_TICK)
  readonly #onData: (this: Socket, bytes: Buffer) => void

  constructor(answer: AnswerRequest) {
    this.#answer = answer
    const read = (socket: Socket, bytes: Buffer) => this.#read(socket, bytes)
    // All sockets share one function, because a function per socket would use memory as long as the client is connected.
    this.#onData = function onData(bytes) {
      read(this, bytes)
    }
  }

  /** Replaces Node's reader on this socket. */
  add(socket: Socket): void {
    const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[]
    this.#connections.set(socket, { parse, isAnswering: false, waiting: [], rest: NOTHING, bodyLeft: 0, isOver: false })
    if (!parse) return
    socket.off('data', parse)
    socket.on('data', this.#onData)
  }

  run(incoming: IncomingMessage, outgoing: ServerResponse, answer = this.#answer): void {
    const { socket } = incoming
    const connection = this.#connections.get(socket)
    if (!connection) return answer(incoming, outgoing)
    connection.bodyLeft = Number(incoming.headers['content-length'] ?? 0)
    const begin = () => {
      connection.isAnswering = true
      outgoing.once('close', () => this.#onAnswered(socket, connection))
      answer(incoming, outgoing)
    }
    if (!connection.isAnswering) return begin()
    markLate(incoming)
    connection.waiting.push(begin)
  }

  /** Stops reading a connection that is no longer HTTP. Calls back after the answers to earlier requests were sent. */
  release(socket: Socket, then: () => void): void {
    const connection = this.#connections.get(socket)
    this.#connections.delete(socket)
    if (!connection) return then()
    socket.off('data', this.#onData)
    if (connection.rest.length > 0) socket.unshift(connection.rest)
    // On a connection that was taken for a stream, the open answer is the stream itself, which does not end.
    if (connection.isAnswering && !isTaken(socket)) connection.waiting.push(then)
    else then()
  }

  end(socket: Duplex): void {
    const connection = this.#connections.get(socket)
    if (connection) connection.isOver = true
  }

  #read(socket: Socket, bytes: Buffer): void {
    const connection = this.#connections.get(socket)
    if (!connection || connection.isOver) return
    connection.rest = bytes
    while (connection.rest.length > 0 && this.#mayRead(socket, connection)) {
      const slice = connection.rest.subarray(0, Math.max(SLICE_BYTES, connection.bodyLeft))
      connection.rest = connection.rest.subarray(slice.length)
      connection.parse?.(slice)
      connection.bodyLeft = Math.max(0, connection.bodyLeft - slice.length)
    }
    const { rest } = connection
    connection.rest = NOTHING
    if (!this.#isOpen(socket)) return
    if (connection.waiting.length > 0) socket.pause()
    if (rest.length > 0 && !connection.isOver) socket.unshift(rest)
  }

  /** Whether the parser may have more bytes. Node pauses the socket if the client, or the reader of a request body, is slow. */
  #mayRead(socket: Socket, connection: HttpConnection): boolean {
    return connection.waiting.length === 0 && !connection.isOver && !socket.isPaused() && this.#isOpen(socket)
  }

  #isOpen(socket: Socket): boolean {
    return !socket.destroyed && this.#connections.has(socket)
  }

  #onAnswered(socket: Socket, connection: HttpConnection): void {
    connection.isAnswering = false
    if (socket.destroyed) connection.waiting = []
    else if (connection.waiting.length > 0 || socket.isPaused()) this.#ticks.run(() => this.#continue(socket, connection))
  }

  #continue(socket: Socket, connection: HttpConnection): void {
    if (socket.destroyed || connection.isAnswering) return
    connection.waiting.shift()?.()
    // While the client has unread answers, Node itself resumes the socket later.
    if (connection.waiting.length === 0 && !socket.writableNeedDrain && this.#isOpen(socket)) socket.resume()
  }
}
