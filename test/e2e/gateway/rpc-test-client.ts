import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { z } from 'zod'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import type { World } from '../../support/test-stack.ts'
import { RpcLine } from './raw-rpc-requests.ts'

/** With these nobody's requests are too many, nor those who come from here. */
export const generous = { RPC_RATE: '1000000', CLIENTS_PER_ADDRESS_BOUND: '5000' }

const Told = z.object({
  method: z.literal('eth_subscription'),
  params: z.object({ subscription: z.string(), result: z.unknown() }),
})
const Answer = z.object({
  id: z.int(),
  result: z.unknown().optional(),
  error: z.object({ code: z.int(), message: z.string() }).optional(),
})
export type Answer = z.infer<typeof Answer>

/** A log as it is notified. */
export const WireLog = z.looseObject({
  address: z.string(),
  topics: z.array(z.string()),
  data: z.string(),
  blockNumber: z.string(),
  blockHash: z.string(),
  transactionHash: z.string(),
  logIndex: z.string(),
  removed: z.boolean(),
})
export type WireLog = z.infer<typeof WireLog>

/** What was subscribed to, and all that it brought. */
export type Subscribed = {
  readonly id: string
  readonly results: readonly unknown[]
  readonly logs: readonly WireLog[]
  /** Resolves once so many results came. */
  hear(count: number): Promise<void>
}

type Opening = { readonly headers?: Record<string, string>; readonly autoPong?: boolean; readonly query?: string }

/** A client of a node over WebSocket, who does not know whether it is one: its answers, and what it subscribed to. */
export class RpcEar {
  readonly line: RpcLine
  /** How the other side closed. */
  readonly ended: Promise<{ readonly code: number; readonly reason: string }>
  readonly #answers = new Map<number, Answer>()
  readonly #results = new Map<string, unknown[]>()
  #lastId = 0

  static async open(at: string | Pick<World, 'relay'>, { query = '', ...options }: Opening = {}): Promise<RpcEar> {
    const url = typeof at === 'string' ? at : `${at.relay.url.replace('http', 'ws')}/rpc${query}`
    const ear = new RpcEar(new WebSocket(url, options))
    onTestFinished(() => ear.line.socket.terminate())
    await once(ear.line.socket, 'open')
    return ear
  }

  constructor(socket: WebSocket) {
    socket.on('message', (data) => {
      for (const message of [JSON.parse(String(data))].flat()) this.#take(message)
    })
    this.ended = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: String(reason) }))
    })
    this.line = new RpcLine(socket)
  }

  send(method: string, ...params: readonly unknown[]): number {
    this.line.send(JSON.stringify(this.request(method, ...params)))
    return this.#lastId
  }

  /** A request, to be sent in a batch. */
  request(method: string, ...params: readonly unknown[]) {
    this.#lastId += 1
    return { jsonrpc: '2.0', id: this.#lastId, method, params }
  }

  async answer(id: number): Promise<Answer> {
    await this.line.until(() => this.#answers.has(id), `the answer ${id}`)
    return this.#answers.get(id) as Answer
  }

  call(method: string, ...params: readonly unknown[]): Promise<Answer> {
    return this.answer(this.send(method, ...params))
  }

  async subscribe(...params: readonly unknown[]): Promise<Subscribed> {
    const { result, error } = await this.call('eth_subscribe', ...params)
    if (typeof result !== 'string') throw new Error(`${error?.code} ${error?.message}`)
    return this.subscribed(result)
  }

  /** What came under an id. */
  subscribed(id: string): Subscribed {
    const results = this.#results.get(id) ?? []
    this.#results.set(id, results)
    return {
      id,
      results,
      get logs() {
        return z.array(WireLog).parse(results)
      },
      hear: (count) => this.line.until(() => results.length >= count, `${count} results of ${id}`),
    }
  }

  /** Everything said before this has arrived once it resolves, so that what is not there was not said. */
  settled(): Promise<Answer> {
    return this.call('eth_chainId')
  }

  #take(message: unknown): void {
    const told = Told.safeParse(message).data?.params
    if (told) {
      const results = this.#results.get(told.subscription) ?? []
      this.#results.set(told.subscription, results)
      results.push(told.result)
      return
    }
    const answer = Answer.safeParse(message).data
    if (answer) this.#answers.set(answer.id, answer)
  }
}

/** What a log says in a word: what moved, whether it has a block, and whether it is taken back. */
export const inShort = ({ data, blockHash, removed }: WireLog): string =>
  `${removed ? '-' : '+'}${BigInt(data)}${/[^0x]/.test(blockHash) ? ' sealed' : ''}`

/** Transfers these amounts in one flashblock. */
export function move({ devnet }: { readonly devnet: Devnet }, ...raws: readonly number[]) {
  const hashes = raws.map((raw) => devnet.transfer({ symbol: 'AAPLc', raw: BigInt(raw) }))
  devnet.flash()
  return hashes
}
