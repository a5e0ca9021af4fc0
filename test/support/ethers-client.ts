import { type JsonRpcApiProvider, JsonRpcProvider, WebSocketProvider } from 'ethers'
import { onTestFinished } from 'vitest'
import { blockTagNames, callsOfAllMethods, type QuerySubject, type RpcEndpoint } from './rpc-scenarios.ts'

/** The ways in which ethers asks: over HTTP, by default, several questions in one request. */
export const ethersTransports = ['http', 'http one by one', 'webSocket'] as const
type EthersTransport = (typeof ethersTransports)[number]

/** So many questions are asked at once: ethers puts what is asked together into one batch. */
const BATCH_SIZE = 50

/** A provider as ethers makes it, pointed at a door; gone with the test. */
export function ethersProviderFor({ url, wsUrl }: RpcEndpoint, transport: EthersTransport): JsonRpcApiProvider {
  // What it remembers by itself would not be asked twice.
  const options = { cacheTimeout: -1, pollingInterval: 20 }
  const provider =
    transport === 'webSocket'
      ? new WebSocketProvider(wsUrl, undefined, options)
      : new JsonRpcProvider(url, undefined, {
          ...options,
          ...(transport === 'http one by one' && { batchMaxCount: 1 }),
        })
  onTestFinished(() => provider.destroy())
  return provider
}

type NamedQuery = readonly [name: string, ask: () => Promise<unknown>]

/** What ethers reads of everything that can be asked about, at every block: values, and errors in the node's words. */
export async function readWithEthers(
  provider: JsonRpcApiProvider,
  subject: QuerySubject,
): Promise<Readonly<Record<string, unknown>>> {
  const queries = queriesFor(provider, subject)
  const read: Record<string, unknown> = {}
  for (let index = 0; index < queries.length; index += BATCH_SIZE) {
    const batch = queries.slice(index, index + BATCH_SIZE)
    const outcomes = await Promise.all(batch.map(async ([name, ask]) => [name, await outcomeOf(ask())]))
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

/** What came of a question: a value, or the error that the node gave. */
const outcomeOf = (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    (value) => ({ value: JSON.parse(JSON.stringify(value ?? null)) }),
    (failure) => ({ code: failure.code, error: failure.error ?? failure.info?.error ?? failure.message }),
  )
