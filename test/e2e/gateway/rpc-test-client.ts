import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { z } from 'zod'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import type { TestStack } from '../../support/test-stack.ts'
import { RawRpcSocket } from './raw-rpc-requests.ts'

const SubscriptionMessage = z.object({
  method: z.literal('eth_subscription'),
  params: z.object({ subscription: z.string(), result: z.unknown() }),
})
const RpcAnswer = z.object({
  id: z.int(),
  result: z.unknown().optional(),
  error: z.object({ code: z.int(), message: z.string() }).optional(),
})
type RpcAnswer = z.infer<typeof RpcAnswer>

type NotifiedLog = { readonly data: string; readonly blockHash: string; readonly removed: boolean }

/** A subscription and all that it brought. */
export type TestSubscription = {
  readonly id: string
  readonly results: readonly unknown[]
  readonly logs: readonly NotifiedLog[]
  /** Resolves once at least this many results arrived. */
  waitForResults(count: number): Promise<void>
}

type OpenOptions = { readonly headers?: Record<string, string>; readonly autoPong?: boolean; readonly query?: string }

/** A JSON-RPC client over WebSocket, of the relay or of a node. */
export class RpcTestClient {
  readonly rawSocket: RawRpcSocket
  /** How the other side closed. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  readonly #answers = new Map<number, RpcAnswer>()
  readonly #results = new Map<string, unknown[]>()
  #lastId = 0

  static async open(at: string | Pick<TestStack, 'relay'>, { query = '', ...options }: OpenOptions = {}): Promise<RpcTestClient> {
    const url = typeof at === 'string' ? at : `${at.relay.url.replace('http', 'ws')}/rpc${query}`
    const client = new RpcTestClient(new WebSocket(url, options))
    onTestFinished(() => client.rawSocket.socket.terminate())
    await once(client.rawSocket.socket, 'open')
    return client
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

  /** A request with an id of its own, for a batch. */
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

  /** Opens one subscription for each list of parameters. */
  async subscribeAll(...all: readonly (readonly unknown[])[]): Promise<TestSubscription[]> {
    const subscriptions: TestSubscription[] = []
    for (const params of all) subscriptions.push(await this.subscribe(...params))
    return subscriptions
  }

  /** The subscription with an id. */
  subscribed(id: string): TestSubscription {
    const results = this.#resultsOf(id)
    return {
      id,
      results,
      logs: results as NotifiedLog[],
      waitForResults: (count) => this.rawSocket.until(() => results.length >= count, `${count} results of ${id}`),
    }
  }

  /** Resolves after everything that was sent before has arrived, so what is missing then was not sent. */
  flush(): Promise<RpcAnswer> {
    return this.call('eth_chainId')
  }

  #receive(message: unknown): void {
    const notification = SubscriptionMessage.safeParse(message).data?.params
    if (notification) return void this.#resultsOf(notification.subscription).push(notification.result)
    const answer = RpcAnswer.safeParse(message).data
    if (answer) this.#answers.set(answer.id, answer)
  }

  #resultsOf(subscription: string): unknown[] {
    const results = this.#results.get(subscription) ?? []
    this.#results.set(subscription, results)
    return results
  }
}

/** A log in short: its amount, whether it has a block, and whether it is removed. */
const logSummary = ({ data, blockHash, removed }: NotifiedLog): string =>
  `${removed ? '-' : '+'}${BigInt(data)}${/[^0x]/.test(blockHash) ? ' sealed' : ''}`

export const logSummaries = ({ logs }: TestSubscription): string[] => logs.map(logSummary)

/** Transfers these amounts in one flashblock. */
export function transferAmounts({ devnet }: { readonly devnet: Devnet }, ...amounts: readonly number[]) {
  const hashes = amounts.map((raw) => devnet.transfer({ symbol: 'AAPLc', raw: BigInt(raw) }))
  devnet.makeFlashblock()
  return hashes
}
