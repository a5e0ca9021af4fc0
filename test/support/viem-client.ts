import {
  createPublicClient,
  http,
  type PublicClient,
  RpcRequestError,
  type WebSocketTransport,
  type WebSocketTransportConfig,
  webSocket,
} from 'viem'
import { onTestFinished } from 'vitest'
import { type Door, type Subject, sevenMethods, tags, until } from './rpc-scenarios.ts'

/** The ways in which viem asks. */
export const viemWays = ['http', 'http in batches', 'webSocket'] as const
type Way = (typeof viemWays)[number]

/** As many as one batch may hold. */
const BATCH_SIZE = 50

/** A client as viem makes it, pointed at a door; closed with the test. */
export function viemOn(door: Door, way: Way): PublicClient {
  switch (way) {
    case 'http':
      return createPublicClient({ transport: http(door.url) })
    case 'http in batches':
      return createPublicClient({ transport: http(door.url, { batch: { batchSize: BATCH_SIZE } }) })
    case 'webSocket':
      return viemSocket(door)
  }
}

/** A client over a WebSocket, closed with the test. */
export function viemSocket(
  { wsUrl }: Pick<Door, 'wsUrl'>,
  config: WebSocketTransportConfig = {},
): PublicClient<WebSocketTransport> {
  const client = createPublicClient({ transport: webSocket(wsUrl, config) })
  onTestFinished(async () => (await client.transport.getRpcClient()).close())
  return client
}

/** Resolves when a client has so many subscriptions, none of them among those that it had before. */
export async function subscribed(
  client: PublicClient<WebSocketTransport>,
  count: number,
  before: readonly unknown[] = [],
): Promise<readonly unknown[]> {
  const { subscriptions } = await client.transport.getRpcClient()
  const fresh = () => [...subscriptions.values()].filter((one) => !before.includes(one))
  await until(() => fresh().length === count, `${count} subscriptions`)
  return fresh()
}

/** What a raw subscription brings. */
export type Notified = Readonly<Record<string, unknown>>

/** Subscribes as a client does that knows of no such kind; what comes, in order. */
export async function heardOn(client: PublicClient<WebSocketTransport>, params: readonly unknown[]) {
  const results: Notified[] = []
  const failures: unknown[] = []
  await client.transport.subscribe({
    // To viem there are no pending logs.
    params: params as never,
    onData: ({ result }) => results.push(result),
    onError: (failure: unknown) => failures.push(failure),
  })
  return { results, failures }
}

type At = { blockTag: (typeof tags)[number] } | { blockNumber: bigint } | { blockHash: `0x${string}` }

/** What viem reads of everything that can be asked about, at every block: values, and errors in the node's words. */
export async function readByViem(client: PublicClient, subject: Subject): Promise<Readonly<Record<string, unknown>>> {
  const { number, hash } = subject.block
  const ats: At[] = [...tags.map((blockTag) => ({ blockTag })), { blockNumber: BigInt(number) }, { blockHash: hash }]
  const all = [
    { getChainId: client.getChainId(), getBlockNumber: client.getBlockNumber({ cacheTime: 0 }) },
    ...ats.map((at) => readAt(client, subject, at)),
    ...sevenMethods(subject).map((call) => ({ [JSON.stringify(call)]: client.request(call as never) })),
  ].flatMap(Object.entries<Promise<unknown>>)
  return Object.fromEntries(await Promise.all(all.map(async ([name, answer]) => [name, await outcomeOf(answer)])))
}

function readAt(client: PublicClient, { account, token, slot }: Subject, at: At): Record<string, Promise<unknown>> {
  const state = {
    getStorageAt: client.getStorageAt({ address: token, slot, ...at }),
    getTransactionCount: client.getTransactionCount({ address: account, ...at }),
    getCode: client.getCode({ address: token, ...at }),
    getBalance: client.getBalance({ address: account, ...at }),
  }
  const blocks = 'blockHash' in at ? { getLogs: client.getLogs(at) } : blocksAt(client, token, at)
  const named = Object.entries({ ...state, ...blocks }).map(([name, answer]) => [
    `${name} ${Object.values(at)}`,
    answer,
  ])
  return Object.fromEntries(named)
}

function blocksAt(client: PublicClient, address: Subject['token'], at: Exclude<At, { blockHash: unknown }>) {
  const edge = 'blockTag' in at ? at.blockTag : at.blockNumber
  return {
    getBlock: client.getBlock(at),
    'getBlock in full': client.getBlock({ ...at, includeTransactions: true }),
    getLogs: client.getLogs({ address, fromBlock: edge, toBlock: edge }),
  }
}

/** What came of a question: a value, or the error that the node gave. */
export const outcomeOf = (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    (value) => ({ value }),
    (failure: unknown) => {
      for (let cause = failure; cause instanceof Error; cause = cause.cause)
        if (cause instanceof RpcRequestError) return { code: cause.code, details: cause.details, data: cause.data }
      return { failure: failure instanceof Error ? failure.name : failure }
    },
  )
