import { EventEmitter, once } from 'node:events'
import { afterEach, beforeEach, expect, onTestFinished } from 'vitest'
import { type RawData, WebSocket } from 'ws'
import { z } from 'zod'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { methods } from '../../../src/protocol/json-rpc-methods.ts'
import { openTestStack, type TestStack } from '../../support/test-stack.ts'
import { openedOnce } from './node-and-gateway.ts'

/** Longer than any answer takes; reaching it is a failure, never a pause. */
const WAIT_TIMEOUT_MS = 10_000

/** A stack for a file, where the relay itself sends no requests for a minute: clients cause all that the node gets. */
export const quietStackForFile = (): (() => TestStack) =>
  openedOnce((lifecycle) =>
    openTestStack({ RPC_RATE: '1000000', SILENCE: '1h', PENDING_POLL: '1m', FINALITY_POLL: '1h', STOCKS_REFRESH: '1h' }, lifecycle),
  )

/** Makes each test of the file or block fail if the node received a request while it ran. */
export function expectNoUpstreamRequests(stack: () => TestStack): void {
  let countsBefore: Record<string, number>
  beforeEach(() => {
    countsBefore = upstreamRequestCounts(stack().devnet)
  })
  afterEach(() => {
    expect(upstreamRequestCounts(stack().devnet), 'requests that the node received').toEqual(countsBefore)
  })
}

/** How often the node received each method that clients may call. */
const upstreamRequestCounts = ({ requests }: Devnet): Record<string, number> =>
  Object.fromEntries(
    [...Object.keys(methods), 'eth_subscribe', 'eth_unsubscribe', 'unknown'].map((name) => [
      name,
      requests[name as keyof typeof requests],
    ]),
  )

const Id = z.union([z.string(), z.number(), z.null()])
const Result = z.strictObject({ jsonrpc: z.literal('2.0'), id: Id, result: z.json() })
const Failure = z.strictObject({
  jsonrpc: z.literal('2.0'),
  id: Id,
  error: z.strictObject({ code: z.int(), message: z.string().min(1), data: z.json().optional() }),
})
const Answer = z.union([Result, Failure])
/** An answer to one request: a result or an error, never both and no other field. */
type Answer = { readonly id: z.infer<typeof Id>; readonly result?: unknown; readonly error?: { code: number } }

export const parseAnswer = (text: string): Answer => Answer.parse(JSON.parse(text))
export const parseAnswers = (text: string): readonly Answer[] => z.array(Answer).min(1).parse(JSON.parse(text))

/** The id of an answer, with its error code or `result`. */
export type AnswerSummary = readonly [id: unknown, outcome: number | 'result']
const summarize = ({ id, error }: Answer): AnswerSummary => [id, error?.code ?? 'result']
export const answerSummary = (text: string): AnswerSummary => summarize(parseAnswer(text))

/** What a client sends, a string as it is, and the answer: several for a batch in any order, null for none. */
export type RpcExchange = [
  name: string,
  body: unknown,
  expected: AnswerSummary | readonly AnswerSummary[] | null,
  ...fragments: string[],
]
export const bodyText = (body: unknown): string => (typeof body === 'string' ? body : JSON.stringify(body))

/** Checks the answer of an exchange, which must contain the fragments. */
export function expectExchange(reply: string | null, [, , expected, ...fragments]: RpcExchange): void {
  const summaries = reply?.startsWith('[') ? parseAnswers(reply).map(summarize) : reply && answerSummary(reply)
  expect(sorted(summaries)).toEqual(sorted(expected))
  for (const fragment of fragments) expect(reply).toContain(fragment)
}
const sorted = (summaries: unknown) =>
  Array.isArray(summaries) && Array.isArray(summaries[0])
    ? summaries.map((summary) => JSON.stringify(summary)).toSorted()
    : summaries

/** The text of an answer's id. */
export function rawIdOf(text: string): string {
  let raw = 'missing'
  JSON.parse(text, (key, value: unknown, { source }: { source?: string } = {}) => {
    if (key === 'id') raw = source ?? 'not a plain value'
    return value
  })
  return raw
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
  #requestCount = 0
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

  /** What arrives after a message, up to the answer of a request that follows it. */
  async answersTo(message: string | Uint8Array, options: { binary?: boolean } = {}): Promise<readonly string[]> {
    this.send(message, options)
    this.#requestCount += 1
    const id = `after ${this.#requestCount}`
    this.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_chainId' }))
    const isLast = (text: string) => text.includes(id)
    await this.until(() => this.receivedTexts.slice(this.#takenCount).some(isLast), `the answer ${id}`)
    const received = this.receivedTexts.slice(this.#takenCount)
    this.#takenCount = this.receivedTexts.length
    return received.filter((text) => !isLast(text))
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

/** One way to send a body to `/rpc`. */
export type RpcCaller = {
  /** The answer to a body, once it comes. */
  readonly answer: (body: string) => Promise<string>
  /** The answer to a body that needs no request to the node; null for none. */
  readonly replyTo: (body: string | Uint8Array<ArrayBuffer>) => Promise<string | null>
}

const httpCaller = async (stack: Pick<TestStack, 'relay'>): Promise<RpcCaller> => {
  const replyTo = async (body: string | Uint8Array<ArrayBuffer>) => {
    const { status, text } = await post(stack, body)
    if (status !== (text === '' ? 204 : 200)) throw new Error(`HTTP ${status}: ${text}`)
    return text === '' ? null : text
  }
  return { replyTo, answer: async (body) => (await replyTo(body)) ?? 'nothing' }
}

const webSocketCaller = async (stack: Pick<TestStack, 'relay'>): Promise<RpcCaller> => {
  const rawSocket = await RawRpcSocket.open(stack)
  return {
    async answer(body) {
      rawSocket.send(body)
      return rawSocket.next()
    },
    async replyTo(body) {
      const [first = null, ...others] = await rawSocket.answersTo(body)
      if (others.length > 0) throw new Error(`more than one answer: ${others.join(' ')}`)
      return first
    },
  }
}

/** Both transports of `/rpc`. */
export const rpcTransports = [
  ['HTTP', httpCaller],
  ['WebSocket', webSocketCaller],
] as const
