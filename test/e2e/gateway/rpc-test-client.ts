import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { z } from 'zod'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import type { TestStack } from '../../support/test-stack.ts'
import { RawRpcSocket } from './raw-rpc-requests.ts'

/** With these nobody's requests are too many, nor those who come from here. */
export const highLimits = { RPC_RATE: '1000000', CLIENTS_PER_ADDRESS_BOUND: '5000' }

const SubscriptionMessage = z.object({
  method: z.literal('eth_subscription'),
  params: z.object({ subscription: z.string(), result: z.unknown() }),
})
const RpcAnswer = z.object({
  id: z.int(),
  result: z.unknown().optional(),
  error: z.object({ code: z.int(), message: z.string() }).optional(),
})
export type RpcAnswer = z.infer<typeof RpcAnswer>

/** A log as it is notified. */
export const NotifiedLog = z.looseObject({
  address: z.string(),
  topics: z.array(z.string()),
  data: z.string(),
  blockNumber: z.string(),
  blockHash: z.string(),
  transactionHash: z.string(),
  logIndex: z.string(),
  removed: z.boolean(),
})
export type NotifiedLog = z.infer<typeof NotifiedLog>

/** What was subscribed to, and all that it brought. */
export type TestSubscription = {
  readonly id: string
  readonly results: readonly unknown[]
  readonly logs: readonly NotifiedLog[]
  /** Resolves once so many results came. */
  waitForResults(count: number): Promise<void>
}

type OpenOptions = { readonly headers?: Record<string, string>; readonly autoPong?: boolean; readonly query?: string }

/** A client of a node over WebSocket, who does not know whether it is one: its answers, and what it subscribed to. */
export class RpcTestClient {
  readonly rawSocket: RawRpcSocket
  /** How the other side closed. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  readonly #answers = new Map<number, RpcAnswer>()
  readonly #results = new Map<string, unknown[]>()
  #lastId = 0

  static async open(
    at: string | Pick<TestStack, 'relay'>,
    { query = '', ...options }: OpenOptions = {},
  ): Promise<RpcTestClient> {
    const url = typeof at === 'string' ? at : `${at.relay.url.replace('http', 'ws')}/rpc${query}`
    const listener = new RpcTestClient(new WebSocket(url, options))
    onTestFinished(() => listener.rawSocket.socket.terminate())
    await once(listener.rawSocket.socket, 'open')
    return listener
  }

  constructor(socket: WebSocket) {
    socket.on('message', (data) => {
      for (const message of [JSON.parse(String(data))].flat()) this.#receive(message)
    })
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: String(reason) }))
    })
    this.rawSocket = new RawRpcSocket(socket)
  }

  send(method: string, ...params: readonly unknown[]): number {
    this.rawSocket.send(JSON.stringify(this.request(method, ...params)))
    return this.#lastId
  }

  /** A request, to be sent in a batch. */
  request(method: string, ...params: readonly unknown[]) {
    this.#lastId += 1
    return { jsonrpc: '2.0', id: this.#lastId, method, params }
  }

  async answer(id: number): Promise<RpcAnswer> {
    await this.rawSocket.until(() => this.#answers.has(id), `the answer ${id}`)
    return this.#answers.get(id) as RpcAnswer
  }

  call(method: string, ...params: readonly unknown[]): Promise<RpcAnswer> {
    return this.answer(this.send(method, ...params))
  }

  async subscribe(...params: readonly unknown[]): Promise<TestSubscription> {
    const { result, error } = await this.call('eth_subscribe', ...params)
    if (typeof result !== 'string') throw new Error(`${error?.code} ${error?.message}`)
    return this.subscribed(result)
  }

  /** What came under an id. */
  subscribed(id: string): TestSubscription {
    const results = this.#results.get(id) ?? []
    this.#results.set(id, results)
    return {
      id,
      results,
      get logs() {
        return z.array(NotifiedLog).parse(results)
      },
      waitForResults: (count) => this.rawSocket.until(() => results.length >= count, `${count} results of ${id}`),
    }
  }

  /** Everything said before this has arrived once it resolves, so that what is not there was not said. */
  flush(): Promise<RpcAnswer> {
    return this.call('eth_chainId')
  }

  #receive(message: unknown): void {
    const published = SubscriptionMessage.safeParse(message).data?.params
    if (published) {
      const results = this.#results.get(published.subscription) ?? []
      this.#results.set(published.subscription, results)
      results.push(published.result)
      return
    }
    const answer = RpcAnswer.safeParse(message).data
    if (answer) this.#answers.set(answer.id, answer)
  }
}

/** What a log says in a word: what moved, whether it has a block, and whether it is taken back. */
export const logSummary = ({ data, blockHash, removed }: NotifiedLog): string =>
  `${removed ? '-' : '+'}${BigInt(data)}${/[^0x]/.test(blockHash) ? ' sealed' : ''}`

/** Transfers these amounts in one flashblock. */
export function transferAmounts({ devnet }: { readonly devnet: Devnet }, ...amounts: readonly number[]) {
  const hashes = amounts.map((raw) => devnet.transfer({ symbol: 'AAPLc', raw: BigInt(raw) }))
  devnet.makeFlashblock()
  return hashes
}
