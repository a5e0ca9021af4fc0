import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished } from 'vitest'
import { type RawData, WebSocket } from 'ws'
import { z } from 'zod'
import { methods } from '../../../src/chain/rpc/methods.ts'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { openTestStack, type TestLifecycle, type TestStack } from '../../support/test-stack.ts'

/** Longer than any answer takes; reaching it is a failure, never a pause. */
const WAIT_TIMEOUT_MS = 10_000

/** With these a relay asks its node nothing by itself for a minute, and counts nobody's requests. */
const quietSettings = {
  RPC_RATE: '1000000',
  SILENCE_MS: '3600000',
  PENDING_POLL_MS: '60000',
  FINALITY_POLL_MS: '3600000',
  STOCKS_REFRESH_MS: '3600000',
}

/** A world for all tests of a file, in which whatever the node is asked was asked by a client. */
export function quietStackForFile(): () => TestStack {
  const cleanups: (() => unknown)[] = []
  let stack: TestStack | undefined
  beforeAll(async () => {
    const onTestFinished: TestLifecycle['onTestFinished'] = (cleanup) => void cleanups.unshift(cleanup as () => unknown)
    stack = await openTestStack(quietSettings, { onTestFinished })
  })
  afterAll(async () => {
    for (const cleanup of cleanups) await cleanup()
  })
  return () => {
    if (!stack) throw new Error('the world is not open')
    return stack
  }
}

/** Each test of the file fails if the node was asked something while it ran. */
export function expectNoUpstreamRequests(stack: () => TestStack): void {
  let countsBefore: Record<string, number>
  beforeEach(() => {
    countsBefore = upstreamRequestCounts(stack().devnet)
  })
  afterEach(() => {
    expect(upstreamRequestCounts(stack().devnet), 'the node was asked something').toEqual(countsBefore)
  })
}

/** How often the node was asked each of what clients may ask. */
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
/** An answer to one request: a result or an error, never both, and nothing beside them. */
export type Answer = { readonly id: z.infer<typeof Id>; readonly result?: unknown; readonly error?: { code: number } }

/** The one answer that a text holds. */
export const parseAnswer = (text: string): Answer => Answer.parse(JSON.parse(text))
/** The answers to a batch. */
export const parseAnswers = (text: string): readonly Answer[] => z.array(Answer).min(1).parse(JSON.parse(text))

/** What an answer says in few words: its id, and the code of its error or `result`. */
export const answerSummary = ({ id, error }: Answer): readonly [id: unknown, told: number | 'result'] => [
  id,
  error?.code ?? 'result',
]

/** The id of an answer as it is written there. */
export function rawIdOf(text: string): string {
  let written = 'nowhere'
  JSON.parse(text, (key, value: unknown, { source }: { source?: string } = {}) => {
    if (key === 'id') written = source ?? 'not a plain value'
    return value
  })
  return written
}

/** Posts a body to `/rpc`; what comes back. */
export async function post({ relay }: Pick<TestStack, 'relay'>, body: string | Uint8Array<ArrayBuffer>) {
  const response = await fetch(`${relay.url}/rpc`, { method: 'POST', body })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** A WebSocket to `/rpc`, and all that is said over it. */
export class RawRpcSocket {
  readonly socket: WebSocket
  readonly receivedTexts: string[] = []
  /** How the other side closed it. */
  closeCode: number | null = null
  #takenCount = 0
  #requestCount = 0
  readonly #watchers = new Set<() => void>()

  static async open(
    { relay }: Pick<TestStack, 'relay'>,
    { onTestFinished: atEnd }: TestLifecycle = { onTestFinished },
  ) {
    const socket = new WebSocket(`${relay.url.replace('http', 'ws')}/rpc`)
    const rawSocket = new RawRpcSocket(socket)
    atEnd(() => socket.terminate())
    await once(socket, 'open')
    return rawSocket
  }

  constructor(socket: WebSocket) {
    this.socket = socket
    const check = () => {
      for (const watcher of this.#watchers) watcher()
    }
    socket.on('message', (data: RawData, isBinary) => {
      this.receivedTexts.push(isBinary ? 'a binary message' : String(data))
      check()
    })
    socket.on('close', (code) => {
      this.closeCode = code
      check()
    })
    socket.on('error', check)
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

  /** What is said to a message up to the answer of a question that follows it. */
  async answersTo(message: string | Uint8Array, options: { binary?: boolean } = {}): Promise<readonly string[]> {
    this.send(message, options)
    this.#requestCount += 1
    const id = `after ${this.#requestCount}`
    this.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_chainId' }))
    const isLast = (text: string) => text.includes(id)
    await this.until(() => this.receivedTexts.slice(this.#takenCount).some(isLast), `the answer ${id}`)
    const said = this.receivedTexts.slice(this.#takenCount)
    this.#takenCount = this.receivedTexts.length
    return said.filter((text) => !isLast(text))
  }

  /** The code with which the other side closed, once it has. */
  async waitForClose(): Promise<number | null> {
    await this.until(() => this.closeCode !== null, 'the end of the connection')
    return this.closeCode
  }

  until(condition: () => boolean, description: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (callback: () => void) => {
        clearTimeout(timeout)
        this.#watchers.delete(check)
        callback()
      }
      const fail = (why: string) =>
        reject(new Error(`${why} ${description}; heard ${this.receivedTexts.slice(-3).join(' ')}`))
      const timeout = setTimeout(() => settle(() => fail('waited in vain for')), WAIT_TIMEOUT_MS)
      const check = () => {
        if (condition()) settle(resolve)
        else if (this.closeCode !== null) settle(() => fail(`closed with ${this.closeCode} before`))
      }
      this.#watchers.add(check)
      check()
    })
  }
}

/** One way to `/rpc`. */
type RpcCaller = {
  /** What is answered to a body. */
  readonly answer: (body: string) => Promise<string>
  /** All that is said to a body: one text, or nothing. */
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

/** Both ways to `/rpc`. */
export const rpcTransports = [
  ['HTTP', httpCaller],
  ['WebSocket', webSocketCaller],
] as const
