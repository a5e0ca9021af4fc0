import { type JsonRpcApiProvider, JsonRpcProvider, WebSocketProvider } from 'ethers'
import { onTestFinished } from 'vitest'
import { type Door, type Subject, sevenMethods, tags } from './rpc-scenarios.ts'

/** The ways in which ethers asks: over HTTP, by default, several questions in one request. */
export const ethersWays = ['http', 'http one by one', 'webSocket'] as const
type Way = (typeof ethersWays)[number]

/** So many questions are asked at once: ethers puts what is asked together into one batch. */
const AT_ONCE = 50

/** A provider as ethers makes it, pointed at a door; gone with the test. */
export function ethersOn({ url, wsUrl }: Door, way: Way): JsonRpcApiProvider {
  // What it remembers by itself would not be asked twice.
  const options = { cacheTimeout: -1, pollingInterval: 20 }
  const provider =
    way === 'webSocket'
      ? new WebSocketProvider(wsUrl, undefined, options)
      : new JsonRpcProvider(url, undefined, { ...options, ...(way === 'http one by one' && { batchMaxCount: 1 }) })
  onTestFinished(() => provider.destroy())
  return provider
}

type Question = readonly [name: string, ask: () => Promise<unknown>]

/** What ethers reads of everything that can be asked about, at every block: values, and errors in the node's words. */
export async function readByEthers(
  provider: JsonRpcApiProvider,
  subject: Subject,
): Promise<Readonly<Record<string, unknown>>> {
  const questions = questionsOf(provider, subject)
  const read: Record<string, unknown> = {}
  for (let at = 0; at < questions.length; at += AT_ONCE) {
    const some = questions.slice(at, at + AT_ONCE)
    const outcomes = await Promise.all(some.map(async ([name, ask]) => [name, await outcomeOf(ask())]))
    Object.assign(read, Object.fromEntries(outcomes))
  }
  return read
}

function questionsOf(provider: JsonRpcApiProvider, subject: Subject): readonly Question[] {
  const { account, token, slot, block } = subject
  const blocks = [...tags, block.number]
  return [
    ['getNetwork', () => provider.getNetwork()],
    ['getBlockNumber', () => provider.getBlockNumber()],
    ['getLogs of a block', () => provider.getLogs({ blockHash: block.hash, address: token })],
    ...blocks.flatMap((at): readonly Question[] => [
      [`getBlock ${at}`, () => provider.getBlock(at)],
      [`getBlock in full ${at}`, async () => (await provider.getBlock(at, true))?.prefetchedTransactions],
      [`getLogs ${at}`, () => provider.getLogs({ fromBlock: at, toBlock: at, address: token })],
    ]),
    ...[...blocks, block.hash].flatMap((at): readonly Question[] => [
      [`getStorage ${at}`, () => provider.getStorage(token, slot, at)],
      [`getTransactionCount ${at}`, () => provider.getTransactionCount(account, at)],
      [`getCode ${at}`, () => provider.getCode(token, at)],
      [`getBalance ${at}`, async () => String(await provider.getBalance(account, at))],
    ]),
    ...sevenMethods(subject).map(
      ({ method, params }): Question => [JSON.stringify([method, params]), () => provider.send(method, [...params])],
    ),
  ]
}

/** What came of a question: a value, or the error that the node gave. */
const outcomeOf = (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    (value) => ({ value: JSON.parse(JSON.stringify(value ?? null)) }),
    (failure) => ({ code: failure.code, error: failure.error ?? failure.info?.error ?? failure.message }),
  )
