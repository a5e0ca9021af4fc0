import { EventEmitter, once } from 'node:events'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { z } from 'zod'
import { type Devnet, type DevnetOptions, startDevnet } from '../../../src/devnet/devnet.ts'
import type { DevnetSubscriptionKind } from '../../../src/devnet/faults/faults.ts'
import type { ScriptedChainSettings } from '../../../src/devnet/scripted-chain.ts'
import type { Hex } from '../../../src/lib/hex.ts'

const RpcAnswer = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.unknown(),
  result: z.unknown().optional(),
  error: z.object({ code: z.int(), message: z.string() }).optional(),
})
export type RpcAnswer = z.infer<typeof RpcAnswer>

/** A chain of the demo, with two flashblocks in each block. */
export const demoSettings = (seed: string): ScriptedChainSettings => ({
  ...{ seed, chainId: 84_532_001, blockMs: 2_000, flashblockMs: 1_000, transactionsPerFlashblock: 1, pastMs: 0, calendar: true },
})

/** A devnet at manual pace, stopped after the test. */
export const startManualDevnet = async (options: DevnetOptions = {}): Promise<Devnet> => {
  const devnet = await startDevnet({ pace: 'manual', ...options })
  onTestFinished(() => devnet.stop())
  return devnet
}

/** Posts a body, and returns the status, the headers and the JSON of the answer. */
export const post = async (devnet: Devnet, body: unknown, headers: Record<string, string> = {}) => {
  const response = await fetch(devnet.rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const json: unknown = await response.json()
  return { status: response.status, headers: response.headers, json }
}

/** Calls a method and returns the whole answer. */
export const rpcCall = async (devnet: Devnet, method: string, ...params: unknown[]): Promise<RpcAnswer & { status: number }> => {
  const { status, json } = await post(devnet, { jsonrpc: '2.0', id: 1, method, params })
  return { status, ...RpcAnswer.parse(json) }
}

/** Calls a method and returns its result; throws for an error. */
export const rpcResult = async (devnet: Devnet, method: string, ...params: unknown[]): Promise<unknown> => {
  const { result, error } = await rpcCall(devnet, method, ...params)
  if (error) throw new Error(`${error.code} ${error.message}`)
  return result
}

/** Calls a contract, and returns the words of the answer. */
export const callWords = async (devnet: Devnet, to: string, data: string, at: string): Promise<readonly bigint[]> => {
  const answer = z.string().parse(await rpcResult(devnet, 'eth_call', { to, data }, at))
  return [...answer.slice(2).matchAll(/.{64}/g)].map(([word]) => BigInt(`0x${word}`))
}

export const getLogs = async (devnet: Devnet, filter: Record<string, unknown>) =>
  z.array(TimedLogSchema).parse(await rpcResult(devnet, 'eth_getLogs', filter))

export const LogSchema = z.strictObject({
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
const TimedLogSchema = LogSchema.extend({ blockTimestampMs: z.string().optional() })

export const BlockSchema = z.looseObject({
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

/** A socket to a devnet, with everything it has received. */
export const openSocket = async (devnet: Pick<Devnet, 'wsUrl'>) => {
  const socket = new WebSocket(devnet.wsUrl)
  const answers = new Map<unknown, RpcAnswer>()
  const notifications: unknown[] = []
  const received = new EventEmitter()
  socket.on('message', (data) => {
    const json: unknown = JSON.parse(String(data))
    const notification = Notification.safeParse(json)
    if (notification.success) notifications.push(notification.data.params.result)
    else answers.set((json as RpcAnswer).id, RpcAnswer.parse(json))
    received.emit('message')
  })
  await once(socket, 'open')
  onTestFinished(() => socket.terminate())

  const waitUntil = async (condition: () => boolean) => {
    while (!condition()) await once(received, 'message')
  }
  let lastId = 0
  const call = async (method: string, ...params: unknown[]): Promise<RpcAnswer> => {
    const id = ++lastId
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    await waitUntil(() => answers.has(id))
    return RpcAnswer.parse(answers.get(id))
  }
  return {
    socket,
    /** Results of all subscriptions, in order of arrival. */
    notifications,
    waitUntil,
    call,
    subscribe: (...params: unknown[]) => call('eth_subscribe', ...params),
    /** Resolves once everything that the devnet sent before has arrived. */
    flush: () => call('eth_chainId'),
  }
}

/** Puts a transfer to Carol into the next flashblock and returns its hash. */
export const sendTransfer = (devnet: Devnet, raw: bigint): Hex => devnet.transfer({ symbol: 'AAPLc', to: CAROL, raw })

/** Makes a flashblock with a transfer of each amount to Carol, and returns its logs. */
export const makeTransfers = (devnet: Devnet, ...amounts: readonly number[]) => {
  for (const amount of amounts) sendTransfer(devnet, BigInt(amount))
  return devnet.makeFlashblock()
}

/** Makes a block with a transfer of each amount to Carol. */
export const sealTransfers = (devnet: Devnet, ...amounts: readonly number[]) => {
  makeTransfers(devnet, ...amounts)
  return devnet.seal()
}

/** A socket with these subscriptions. */
export const openSubscribed = async (devnet: Devnet, ...kinds: readonly DevnetSubscriptionKind[]) => {
  const link = await openSocket(devnet)
  for (const kind of kinds) await link.subscribe(kind)
  return link
}

/** The amount in each log. */
export const amounts = (notifications: readonly unknown[]): number[] =>
  z
    .array(LogSchema)
    .parse(notifications)
    .map((log) => Number(log.data))

export const CAROL: Hex = `0x${'ca'.repeat(20)}`
export const ALICE = `0x${'a1'.repeat(20)}`
export const BOB = `0x${'b0'.repeat(20)}`
export const ZERO = `0x${'0'.repeat(40)}` as const
export const ZERO_HASH = `0x${'0'.repeat(64)}` as const
