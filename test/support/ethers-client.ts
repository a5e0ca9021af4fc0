import { type JsonRpcApiProvider, JsonRpcProvider, WebSocketProvider } from 'ethers'
import { onTestFinished } from 'vitest'
import { blockTagNames, callsOfAllMethods, type QuerySubject, type RpcEndpoint } from './rpc-scenarios.ts'

/** How ethers sends requests: over HTTP (by default in batches) or over WebSocket. */
export const ethersTransports = ['http', 'http one by one', 'webSocket'] as const
type EthersTransport = (typeof ethersTransports)[number] | 'http in long batches'

/** Concurrent requests. ethers joins them into one batch. */
const BATCH_SIZE = 50

/** An ethers provider for an endpoint. It is destroyed after the test. */
export function ethersProviderFor({ url, wsUrl }: RpcEndpoint, transport: EthersTransport): JsonRpcApiProvider {
  // Without its own cache, ethers sends every request.
  const options = { cacheTimeout: -1, pollingInterval: 20 }
  const batchMaxCount = transport === 'http one by one' ? 1 : transport === 'http in long batches' ? 200 : null
  const provider =
    transport === 'webSocket'
      ? new WebSocketProvider(wsUrl, undefined, options)
      : new JsonRpcProvider(url, undefined, { ...options, ...(batchMaxCount && { batchMaxCount }) })
  onTestFinished(() => provider.destroy())
  return provider
}

type NamedQuery = readonly [name: string, run: () => Promise<unknown>]

/** Everything that ethers can read, at every block: values, and the node's errors. */
export async function readWithEthers(
  provider: JsonRpcApiProvider,
  subject: QuerySubject,
): Promise<Readonly<Record<string, unknown>>> {
  const queries = queriesFor(provider, subject)
  const read: Record<string, unknown> = {}
  for (let index = 0; index < queries.length; index += BATCH_SIZE) {
    const batch = queries.slice(index, index + BATCH_SIZE)
    const outcomes = await Promise.all(batch.map(async ([name, run]) => [name, await outcomeOf(run())]))
    Object.assign(read, Object.fromEntries(outcomes))
  }
  return read
}

function queriesFor(provider: JsonRpcApiProvider, subject: QuerySubject): readonly NamedQuery[] {
  const { account, token, slot, block } = subject
  const blocks = [...blockTagNames, block.number]
  return [
    ['getNetwork', () => provider.getNetwork()],
    ['getBlockNumber', () => provider.getBlockNumber()],
    ['getLogs of a block', () => provider.getLogs({ blockHash: block.hash, address: token })],
    ...blocks.flatMap((index): readonly NamedQuery[] => [
      [`getBlock ${index}`, () => provider.getBlock(index)],
      [`getBlock in full ${index}`, async () => (await provider.getBlock(index, true))?.prefetchedTransactions],
      [`getLogs ${index}`, () => provider.getLogs({ fromBlock: index, toBlock: index, address: token })],
    ]),
    ...[...blocks, block.hash].flatMap((index): readonly NamedQuery[] => [
      [`getStorage ${index}`, () => provider.getStorage(token, slot, index)],
      [`getTransactionCount ${index}`, () => provider.getTransactionCount(account, index)],
      [`getCode ${index}`, () => provider.getCode(token, index)],
      [`getBalance ${index}`, async () => String(await provider.getBalance(account, index))],
    ]),
    ...callsOfAllMethods(subject).map(
      ({ method, params }): NamedQuery => [JSON.stringify([method, params]), () => provider.send(method, [...params])],
    ),
  ]
}

/** The result of a request: a value, or the node's error. */
const outcomeOf = (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    (value) => ({ value: JSON.parse(JSON.stringify(value ?? null)) }),
    (failure) => ({ code: failure.code, error: failure.error ?? failure.info?.error ?? failure.message }),
  )
