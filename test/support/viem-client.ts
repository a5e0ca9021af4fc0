import { createPublicClient, http, type PublicClient, RpcRequestError, type WebSocketTransport, webSocket } from 'viem'
import { onTestFinished } from 'vitest'
import { blockTagNames, callsOfAllMethods, type QuerySubject, type RpcEndpoint, until } from './rpc-scenarios.ts'

/** How viem sends requests. */
export const viemTransports = ['http', 'http in batches', 'webSocket'] as const
type ViemTransport = (typeof viemTransports)[number]

/** The most that one batch may contain. */
const BATCH_SIZE = 50

/** A viem client for an endpoint. It is closed after the test. */
export function viemClientFor(endpoint: RpcEndpoint, transport: ViemTransport): PublicClient {
  switch (transport) {
    case 'http':
      return createPublicClient({ transport: http(endpoint.url) })
    case 'http in batches':
      return createPublicClient({ transport: http(endpoint.url, { batch: { batchSize: BATCH_SIZE } }) })
    case 'webSocket':
      return viemWebSocketClient(endpoint)
  }
}

/** A client over a WebSocket, closed after the test. */
export function viemWebSocketClient({ wsUrl }: RpcEndpoint): PublicClient<WebSocketTransport> {
  const client = createPublicClient({ transport: webSocket(wsUrl) })
  onTestFinished(async () => (await client.transport.getRpcClient()).close())
  return client
}

/** Resolves when a client has this many subscriptions. */
export async function waitForSubscriptions(client: PublicClient<WebSocketTransport>, count: number): Promise<void> {
  const { subscriptions } = await client.transport.getRpcClient()
  await until(() => subscriptions.size === count, `${count} subscriptions`)
}

type BlockReference = { blockTag: (typeof blockTagNames)[number] } | { blockNumber: bigint } | { blockHash: `0x${string}` }

/** Everything that viem can read, at every block: values, and the node's errors. */
export async function readWithViem(client: PublicClient, subject: QuerySubject): Promise<Readonly<Record<string, unknown>>> {
  const { number, hash } = subject.block
  const blockReferences: BlockReference[] = [
    ...blockTagNames.map((blockTag) => ({ blockTag })),
    { blockNumber: BigInt(number) },
    { blockHash: hash },
  ]
  const all = [
    { getChainId: client.getChainId(), getBlockNumber: client.getBlockNumber({ cacheTime: 0 }) },
    ...blockReferences.map((at) => readStateAt(client, subject, at)),
    ...callsOfAllMethods(subject).map((call) => ({ [JSON.stringify(call)]: client.request(call as never) })),
  ].flatMap(Object.entries<Promise<unknown>>)
  return Object.fromEntries(await Promise.all(all.map(async ([name, answer]) => [name, await outcomeOf(answer)])))
}

function readStateAt(
  client: PublicClient,
  { account, token, slot }: QuerySubject,
  at: BlockReference,
): Record<string, Promise<unknown>> {
  const state = {
    getStorageAt: client.getStorageAt({ address: token, slot, ...at }),
    getTransactionCount: client.getTransactionCount({ address: account, ...at }),
    getCode: client.getCode({ address: token, ...at }),
    getBalance: client.getBalance({ address: account, ...at }),
  }
  const blocks = 'blockHash' in at ? { getLogs: client.getLogs(at) } : readBlocksAt(client, token, at)
  const named = Object.entries({ ...state, ...blocks }).map(([name, answer]) => [`${name} ${Object.values(at)}`, answer])
  return Object.fromEntries(named)
}

function readBlocksAt(client: PublicClient, address: QuerySubject['token'], at: Exclude<BlockReference, { blockHash: unknown }>) {
  const boundary = 'blockTag' in at ? at.blockTag : at.blockNumber
  return {
    getBlock: client.getBlock(at),
    'getBlock in full': client.getBlock({ ...at, includeTransactions: true }),
    getLogs: client.getLogs({ address, fromBlock: boundary, toBlock: boundary }),
  }
}

/** The result of a request: a value, or the node's error. */
export const outcomeOf = (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    (value) => ({ value }),
    (failure: unknown) => {
      for (let cause = failure; cause instanceof Error; cause = cause.cause)
        if (cause instanceof RpcRequestError) return { code: cause.code, details: cause.details, data: cause.data }
      return { failure: failure instanceof Error ? failure.name : failure }
    },
  )
