import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { PerTickQueue } from '../limits/per-tick-queue.ts'
import { isTaken, markLate } from '../transport/socket-takeover.ts'

/** Bytes that Node's parser gets at once. It reports every request in them before anything else can happen. */
const SLICE_BYTES = 1_024
/** Requests of all connections that begin in one turn of the event loop after they waited for an earlier one. */
const BEGUN_PER_TICK = 16

const NOTHING = Buffer.alloc(0)

type AnswerRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => void

type HttpConnection = {
  /** Node's own reader; undefined if a release of Node has none, and then only the parser is not slowed down. */
  readonly parse: ((bytes: Buffer) => void) | undefined
  /** Whether a request has begun whose answer is not sent. */
  isAnswering: boolean
  /** The requests that begin after it, in order: at most those in one slice. */
  waiting: (() => void)[]
  /** Bytes that the parser does not have yet, while it has those before them. */
  rest: Buffer
  /** Bytes that certainly belong to the body of the last request, so that no other one can begin in them. */
  bodyLeft: number
  /** Whether it has sent more requests than it may. What follows is discarded. */
  isOver: boolean
}

/**
 * Lets the requests of a connection begin one after the other. One packet may hold a thousand of them, and Node would
 * start all at once. Until nothing waits, the connection is not read, so that TCP holds back what follows.
 */
export class PipelinedRequests {
  readonly #answer: AnswerRequest
  readonly #connections = new WeakMap<Duplex, HttpConnection>()
  readonly #ticks = new PerTickQueue(BEGUN_PER_TICK)
  readonly #onData: (this: Socket, bytes: Buffer) => void

  constructor(answer: AnswerRequest) {
    this.#answer = answer
    const read = (socket: Socket, bytes: Buffer) => this.#read(socket, bytes)
    // One function for all sockets, since each listener keeps its own for as long as it is connected.
    this.#onData = function onData(bytes) {
      read(this, bytes)
    }
  }

  /** Takes the place of Node's reader. */
  add(socket: Socket): void {
    const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[]
    this.#connections.set(socket, { parse, isAnswering: false, waiting: [], rest: NOTHING, bodyLeft: 0, isOver: false })
    if (!parse) return
    socket.off('data', parse)
    socket.on('data', this.#onData)
  }

  /** Begins a request at once, or when the answers before it are sent. */
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

  /** Lets go of a connection that is no longer Node's, and calls back when the answers to earlier requests are sent. */
  release(socket: Socket, then: () => void): void {
    const connection = this.#connections.get(socket)
    this.#connections.delete(socket)
    if (!connection) return then()
    socket.off('data', this.#onData)
    if (connection.rest.length > 0) socket.unshift(connection.rest)
    // The answer that is under way on a taken connection is the stream itself.
    if (connection.isAnswering && !isTaken(socket)) connection.waiting.push(then)
    else then()
  }

  /** Discards what follows a request that is one too many. */
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

  /** Node pauses a connection whose client does not read its answers, or whose request is not read as fast as it is sent. */
  #mayRead(socket: Socket, connection: HttpConnection): boolean {
    return connection.waiting.length === 0 && !connection.isOver && !socket.isPaused() && this.#isOpen(socket)
  }

  #isOpen(socket: Socket): boolean {
    return !socket.destroyed && this.#connections.has(socket)
  }

  #onAnswered(socket: Socket, connection: HttpConnection): void {
    connection.isAnswering = false
    if (socket.destroyed) connection.waiting = []
    else if (connection.waiting.length > 0 || socket.isPaused()) this.#ticks.run(() => this.#goOn(socket, connection))
  }

  #goOn(socket: Socket, connection: HttpConnection): void {
    if (socket.destroyed || connection.isAnswering) return
    connection.waiting.shift()?.()
    // Node resumes a connection itself where it waits for the client to read.
    if (connection.waiting.length === 0 && !socket.writableNeedDrain && this.#isOpen(socket)) socket.resume()
  }
}
