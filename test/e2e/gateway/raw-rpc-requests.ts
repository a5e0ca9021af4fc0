import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished } from 'vitest'
import { type RawData, WebSocket } from 'ws'
import { z } from 'zod'
import { methods } from '../../../src/chain/rpc/methods.ts'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { type Ending, openWorld, type World } from '../../support/test-stack.ts'

/** Longer than any answer takes; reaching it is a failure, never a pause. */
const PATIENCE_MS = 10_000

/** With these a relay asks its node nothing by itself for a minute, and counts nobody's requests. */
const quiet = {
  RPC_RATE: '1000000',
  SILENCE_MS: '3600000',
  PENDING_POLL_MS: '60000',
  FINALITY_POLL_MS: '3600000',
  STOCKS_REFRESH_MS: '3600000',
}

/** A world for all tests of a file, in which whatever the node is asked was asked by a client. */
export function quietWorldOfFile(): () => World {
  const endings: (() => unknown)[] = []
  let world: World | undefined
  beforeAll(async () => {
    const onTestFinished: Ending['onTestFinished'] = (ending) => void endings.unshift(ending as () => unknown)
    world = await openWorld(quiet, { onTestFinished })
  })
  afterAll(async () => {
    for (const ending of endings) await ending()
  })
  return () => {
    if (!world) throw new Error('the world is not open')
    return world
  }
}

/** Each test of the file fails if the node was asked something while it ran. */
export function expectNothingAsked(world: () => World): void {
  let asked: Record<string, number>
  beforeEach(() => {
    asked = askedOf(world().devnet)
  })
  afterEach(() => {
    expect(askedOf(world().devnet), 'the node was asked something').toEqual(asked)
  })
}

/** How often the node was asked each of what clients may ask. */
const askedOf = ({ requests }: Devnet): Record<string, number> =>
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
export const answerIn = (text: string): Answer => Answer.parse(JSON.parse(text))
/** The answers to a batch. */
export const answersIn = (text: string): readonly Answer[] => z.array(Answer).min(1).parse(JSON.parse(text))

/** What an answer says in few words: its id, and the code of its error or `result`. */
export const gist = ({ id, error }: Answer): readonly [id: unknown, told: number | 'result'] => [
  id,
  error?.code ?? 'result',
]

/** The id of an answer as it is written there. */
export function writtenId(text: string): string {
  let written = 'nowhere'
  JSON.parse(text, (key, value: unknown, { source }: { source?: string } = {}) => {
    if (key === 'id') written = source ?? 'not a plain value'
    return value
  })
  return written
}

/** Posts a body to `/rpc`; what comes back. */
export async function post({ relay }: Pick<World, 'relay'>, body: string | Uint8Array<ArrayBuffer>) {
  const response = await fetch(`${relay.url}/rpc`, { method: 'POST', body })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** A WebSocket to `/rpc`, and all that is said over it. */
export class RpcLine {
  readonly socket: WebSocket
  readonly heard: string[] = []
  /** How the other side closed it. */
  closed: number | null = null
  #taken = 0
  #asked = 0
  readonly #watchers = new Set<() => void>()

  static async open({ relay }: Pick<World, 'relay'>, { onTestFinished: atEnd }: Ending = { onTestFinished }) {
    const socket = new WebSocket(`${relay.url.replace('http', 'ws')}/rpc`)
    const line = new RpcLine(socket)
    atEnd(() => socket.terminate())
    await once(socket, 'open')
    return line
  }

  constructor(socket: WebSocket) {
    this.socket = socket
    const look = () => {
      for (const watcher of this.#watchers) watcher()
    }
    socket.on('message', (data: RawData, isBinary) => {
      this.heard.push(isBinary ? 'a binary message' : String(data))
      look()
    })
    socket.on('close', (code) => {
      this.closed = code
      look()
    })
    socket.on('error', look)
  }

  send(message: string | Uint8Array, options: { binary?: boolean; fin?: boolean } = {}): void {
    this.socket.send(message, { binary: false, ...options })
  }

  /** The next message that was not taken yet. */
  async next(): Promise<string> {
    await this.until(() => this.heard.length > this.#taken, 'a message')
    const text = this.heard[this.#taken] ?? ''
    this.#taken += 1
    return text
  }

  /** What is said to a message up to the answer of a question that follows it. */
  async saidTo(message: string | Uint8Array, options: { binary?: boolean } = {}): Promise<readonly string[]> {
    this.send(message, options)
    this.#asked += 1
    const id = `after ${this.#asked}`
    this.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_chainId' }))
    const isLast = (text: string) => text.includes(id)
    await this.until(() => this.heard.slice(this.#taken).some(isLast), `the answer ${id}`)
    const said = this.heard.slice(this.#taken)
    this.#taken = this.heard.length
    return said.filter((text) => !isLast(text))
  }

  /** The code with which the other side closed, once it has. */
  async closing(): Promise<number | null> {
    await this.until(() => this.closed !== null, 'the end of the connection')
    return this.closed
  }

  until(holds: () => boolean, what: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(impatient)
        this.#watchers.delete(look)
        act()
      }
      const fail = (why: string) => reject(new Error(`${why} ${what}; heard ${this.heard.slice(-3).join(' ')}`))
      const impatient = setTimeout(() => settle(() => fail('waited in vain for')), PATIENCE_MS)
      const look = () => {
        if (holds()) settle(resolve)
        else if (this.closed !== null) settle(() => fail(`closed with ${this.closed} before`))
      }
      this.#watchers.add(look)
      look()
    })
  }
}

/** One way to `/rpc`. */
type Caller = {
  /** What is answered to a body. */
  readonly answer: (body: string) => Promise<string>
  /** All that is said to a body: one text, or nothing. */
  readonly said: (body: string | Uint8Array<ArrayBuffer>) => Promise<string | null>
}

const overHttp = async (world: Pick<World, 'relay'>): Promise<Caller> => {
  const said = async (body: string | Uint8Array<ArrayBuffer>) => {
    const { status, text } = await post(world, body)
    if (status !== (text === '' ? 204 : 200)) throw new Error(`HTTP ${status}: ${text}`)
    return text === '' ? null : text
  }
  return { said, answer: async (body) => (await said(body)) ?? 'nothing' }
}

const overWebSocket = async (world: Pick<World, 'relay'>): Promise<Caller> => {
  const line = await RpcLine.open(world)
  return {
    async answer(body) {
      line.send(body)
      return line.next()
    },
    async said(body) {
      const [first = null, ...others] = await line.saidTo(body)
      if (others.length > 0) throw new Error(`more than one answer: ${others.join(' ')}`)
      return first
    },
  }
}

/** Both ways to `/rpc`. */
export const carriers = [
  ['HTTP', overHttp],
  ['WebSocket', overWebSocket],
] as const
