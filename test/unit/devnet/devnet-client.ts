import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { z } from 'zod'
import type { Hex } from '../../../src/devnet/chain/hex.ts'
import { type Devnet, type DevnetOptions, startDevnet } from '../../../src/devnet/devnet.ts'

const Answer = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.unknown(),
  result: z.unknown().optional(),
  error: z.object({ code: z.int(), message: z.string() }).optional(),
})
export type Answer = z.infer<typeof Answer>

/** A devnet where nothing happens by itself, stopped with the test. */
export const manual = async (options: DevnetOptions = {}): Promise<Devnet> => {
  const devnet = await startDevnet({ pace: 'manual', ...options })
  onTestFinished(() => devnet.stop())
  return devnet
}

/** Posts a body, and reads the status and the JSON that come back. */
export const post = async (devnet: Devnet, body: unknown, headers: Record<string, string> = {}) => {
  const response = await fetch(devnet.rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const json: unknown = await response.json()
  return { status: response.status, headers: response.headers, json }
}

/** Calls a method; its whole answer. */
export const ask = async (
  devnet: Devnet,
  method: string,
  ...params: unknown[]
): Promise<Answer & { status: number }> => {
  const { status, json } = await post(devnet, { jsonrpc: '2.0', id: 1, method, params })
  return { status, ...Answer.parse(json) }
}

/** Calls a method; its result. */
export const read = async (devnet: Devnet, method: string, ...params: unknown[]): Promise<unknown> => {
  const { result, error } = await ask(devnet, method, ...params)
  if (error) throw new Error(`${error.code} ${error.message}`)
  return result
}

/** The logs that a filter finds. */
export const logs = async (devnet: Devnet, filter: Record<string, unknown>) =>
  z.array(AnyLog).parse(await read(devnet, 'eth_getLogs', filter))

export const Log = z.strictObject({
  address: z.string(),
  topics: z.array(z.string()),
  data: z.string(),
  blockNumber: z.string(),
  blockTimestamp: z.string(),
  transactionHash: z.string(),
  transactionIndex: z.string(),
  blockHash: z.string(),
  logIndex: z.string(),
  removed: z.boolean(),
})

/** A log of a chain whose blocks may share a second. */
const AnyLog = Log.extend({ blockTimestampMs: z.string().optional() })

export const Block = z.looseObject({
  number: z.string().nullable(),
  hash: z.string().nullable(),
  parentHash: z.string(),
  logsBloom: z.string(),
  gasUsed: z.string(),
  timestamp: z.string(),
  transactions: z.array(z.unknown()),
})

const Notification = z.object({
  method: z.literal('eth_subscription'),
  params: z.object({ subscription: z.string(), result: z.unknown() }),
})

/** A socket to a devnet, and everything it has been sent. */
export const listen = async (devnet: Devnet) => {
  const socket = new WebSocket(devnet.wsUrl)
  const answers: Answer[] = []
  const answered = new Map<number, Answer>()
  const results: unknown[] = []
  const wakers = new Set<() => void>()
  socket.on('message', (data) => {
    const json: unknown = JSON.parse(String(data))
    const notification = Notification.safeParse(json)
    if (notification.success) results.push(notification.data.params.result)
    else {
      const answer = Answer.parse(json)
      answers.push(answer)
      if (typeof answer.id === 'number') answered.set(answer.id, answer)
    }
    for (const wake of wakers) wake()
  })
  await once(socket, 'open')
  onTestFinished(() => socket.terminate())

  const until = (condition: () => boolean) =>
    new Promise<void>((resolve) => {
      const wake = () => {
        if (!condition()) return
        wakers.delete(wake)
        resolve()
      }
      wakers.add(wake)
      wake()
    })
  let asked = 0
  const call = async (method: string, ...params: unknown[]): Promise<Answer> => {
    asked += 1
    const id = asked
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    await until(() => answered.has(id))
    return Answer.parse(answered.get(id))
  }
  return {
    socket,
    answers,
    /** What subscriptions have brought, in order. */
    results,
    until,
    call,
    subscribe: (...params: unknown[]) => call('eth_subscribe', ...params),
    /** Everything sent before this has arrived once it resolves, so that what is not there was not sent. */
    settled: () => call('eth_chainId'),
  }
}

/** Puts a transfer to Carol into the next flashblock; the hash that it will have. */
export const send = (devnet: Devnet, raw: bigint): Hex => devnet.transfer({ symbol: 'AAPLc', to: CAROL, raw })

/** What each of some logs moved. */
export const amounts = (results: readonly unknown[]): number[] =>
  z
    .array(Log)
    .parse(results)
    .map((log) => Number(log.data))

export const CAROL: Hex = `0x${'ca'.repeat(20)}`
export const ALICE = `0x${'a1'.repeat(20)}`
export const BOB = `0x${'b0'.repeat(20)}`
export const ZERO = `0x${'0'.repeat(40)}` as const
export const ZERO_HASH = `0x${'0'.repeat(64)}` as const
