import { EventEmitter, once } from 'node:events'
import { onTestFinished } from 'vitest'
import { type RawData, WebSocket } from 'ws'
import { z } from 'zod'
import type { TestStack } from '../../support/test-stack.ts'

/** Longer than any answer takes; reaching it is a failure, never a pause. */
const WAIT_TIMEOUT_MS = 10_000

const Id = z.union([z.string(), z.number(), z.null()])
const Result = z.strictObject({ jsonrpc: z.literal('2.0'), id: Id, result: z.json() })
const Failure = z.strictObject({
  jsonrpc: z.literal('2.0'),
  id: Id,
  error: z.strictObject({ code: z.int(), message: z.string().min(1), data: z.json().optional() }),
})
const Answer = z.union([Result, Failure])

/** The id of an answer, with its error code or `result`. */
type AnswerSummary = readonly [id: unknown, outcome: number | 'result']
const summarize = (json: unknown): AnswerSummary => {
  const answer = Answer.parse(json)
  return [answer.id, 'error' in answer ? answer.error.code : 'result']
}
/** The answer to a request, or the answers to a batch; null where there is none. */
export function answerSummary(text: string | null): AnswerSummary | readonly AnswerSummary[] | null {
  const json: unknown = text === null ? null : JSON.parse(text)
  if (json === null) return null
  return Array.isArray(json) ? json.map(summarize) : summarize(json)
}

/** Posts a body to `/rpc`. */
export async function post({ relay }: Pick<TestStack, 'relay'>, body: string | Uint8Array<ArrayBuffer>) {
  const response = await fetch(`${relay.url}/rpc`, { method: 'POST', body })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** A WebSocket to `/rpc` that keeps all it receives. */
export class RawRpcSocket {
  readonly socket: WebSocket
  readonly receivedTexts: string[] = []
  /** How the relay closed it. */
  closeCode: number | null = null
  #takenCount = 0
  readonly #changes = new EventEmitter().setMaxListeners(0)

  static async open({ relay }: Pick<TestStack, 'relay'>) {
    const socket = new WebSocket(`${relay.url.replace('http', 'ws')}/rpc`)
    const rawSocket = new RawRpcSocket(socket)
    onTestFinished(() => socket.terminate())
    await once(socket, 'open')
    return rawSocket
  }

  constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('message', (data: RawData, isBinary) => {
      this.receivedTexts.push(isBinary ? 'a binary message' : String(data))
      this.#changes.emit('change')
    })
    socket.on('close', (code) => {
      this.closeCode = code
      this.#changes.emit('change')
    })
    socket.on('error', () => {})
  }

  send(message: string | Uint8Array, options: { binary?: boolean; fin?: boolean } = {}): void {
    this.socket.send(message, { binary: false, ...options })
  }

  /** The next message that was not taken yet. */
  async next(): Promise<string> {
    await this.until(() => this.receivedTexts.length > this.#takenCount, 'a message')
    const text = this.receivedTexts[this.#takenCount] ?? ''
    this.#takenCount += 1
    return text
  }

  /** The code with which the relay closes. */
  async waitForClose(): Promise<number | null> {
    await this.until(() => this.closeCode !== null, 'the end of the connection')
    return this.closeCode
  }

  async until(condition: () => boolean, description: string): Promise<void> {
    const signal = AbortSignal.timeout(WAIT_TIMEOUT_MS)
    const fail = (why: string): never => {
      throw new Error(`${why} ${description}; received ${this.receivedTexts.slice(-3).join(' ')}`)
    }
    while (!condition()) {
      if (this.closeCode !== null) fail(`closed with ${this.closeCode} before`)
      await once(this.#changes, 'change', { signal }).catch(() => fail('waited in vain for'))
    }
  }
}
