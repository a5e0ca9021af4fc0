import { expect } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import type { StoredBar } from '../../../src/protocol/bars/bars-query.ts'
import { listenNdjson, type Message, type MessageOf } from '../../support/test-listener.ts'
import type { TestLifecycle } from '../../support/test-stack.ts'
import { ReturningReader } from '../slow/reconnecting-readers.ts'
import { exactBarsOf } from './exact-bars.ts'
import { contentOf, fetchBars, makeBlock, poolsOf, startMinute } from './traded-minutes.ts'

/** A client that resumes with its position after each end of its connection, here or at another process. */
export class BarClient extends ReturningReader {
  constructor(test: TestLifecycle, urlOf: () => string, types: string) {
    const query = `symbols=*&types=${types}&snapshot=false&heartbeat=1`
    super(test, `a client of ${types}`, (last) => listenNdjson(`${urlOf()}/v1/stream?${query}&since=${last ?? 'start'}`))
  }

  get messages(): readonly Message[] {
    return this.connections.flatMap(({ messages }) => messages)
  }

  messagesOf<Type extends Message['type']>(type: Type): readonly MessageOf<Type>[] {
    return this.messages.filter((message): message is MessageOf<Type> => message.type === type)
  }

  /** The newest bar of each minute, as a program keeps them. */
  get kept(): readonly ReturnType<typeof contentOf>[] {
    const byMinute = new Map(this.messagesOf('bar').map((bar) => [`${bar.start} ${bar.symbol}`, contentOf(bar)]))
    return [...byMinute].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, bar]) => bar)
  }

  waitForBar(start: number, revision = 1, symbol = 'AAPLc'): Promise<void> {
    const isIt = (bar: MessageOf<'bar'>) =>
      bar.symbol === symbol && Date.parse(bar.start) === start * 1_000 && bar.revision === revision
    return this.until(() => this.messagesOf('bar').some(isIt), `revision ${revision} of the bar of ${start}`)
  }

  waitForSource(): Promise<void> {
    return this.until(() => this.messagesOf('status').at(-1)?.source === 'pendingLogs', 'pendingLogs')
  }

  async waitForPools(devnet: Devnet): Promise<void> {
    const isFollowed = (id: string) => this.messagesOf('venue').some(({ venue }) => venue.pool === id)
    await this.waitForSource()
    await this.until(() => [...poolsOf(devnet), ...poolsOf(devnet, 'TSLAc')].every(isFollowed), 'each pool to be followed')
  }

  /** Makes a trade. Resolves once this client has it. */
  async trade(devnet: Devnet, price: string, symbol = 'AAPLc'): Promise<MessageOf<'trade'>> {
    const hash = devnet.swap(symbol, { price })
    devnet.makeFlashblock()
    const found = () => this.messagesOf('trade').find(({ tx }) => tx.hash === hash)
    await this.until(() => found() !== undefined, `the trade ${hash}`)
    return found() ?? expect.unreachable()
  }
}

/** Two clients: of bars alone, and of everything. */
export async function openClients(test: TestLifecycle, devnet: Devnet, urlOf: () => string) {
  const [bars, all] = [new BarClient(test, urlOf, 'bar'), new BarClient(test, urlOf, '*')]
  await all.waitForPools(devnet)
  startMinute(devnet)
  return { bars, all }
}

/** Makes a minute with a trade in each of its blocks, and not the block after it. Returns its start. */
export async function makeMinute(devnet: Devnet, all: BarClient): Promise<number> {
  const start = startMinute(devnet)
  for (const symbol of ['AAPLc', 'TSLAc', 'AAPLc']) {
    // A swap to the price that a pool has already is none.
    const price = (symbol === 'AAPLc' ? 310 : 390) + (all.messagesOf('trade').length % 20)
    await all.trade(devnet, String(price), symbol)
    makeBlock(devnet)
  }
  return start
}

const withoutState = ({ state: _, ...bar }: StoredBar) => bar

/**
 * The bars that the client kept are the history of each of these addresses, and what an independent calculation makes of the
 * trades of the other client.
 */
export async function expectHistory({ bars, all }: { bars: BarClient; all: BarClient }, urls: readonly string[], count: number) {
  const { kept } = bars
  expect(kept).toHaveLength(count)
  for (const url of urls) expect((await fetchBars(url, '')).bars.map(withoutState), url).toEqual(kept)
  expect(all.kept).toEqual(kept)
  const exact = new Map(exactBarsOf(all.messages).map((bar) => [`${bar.start} ${bar.symbol}`, bar]))
  for (const { revision, partial, ...bar } of kept) if (bar.trades > 0) expect(bar).toEqual(exact.get(`${bar.start} ${bar.symbol}`))
}
