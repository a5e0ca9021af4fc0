import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, type TestContext, vi } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { childrenOf, createTempFolder, spawnRelay, startCommand, upstreamOf } from '../../support/child-program.ts'
import { hasNats } from '../../support/nats-server.ts'
import { openCluster } from '../../support/relay-cluster.ts'
import { DeployedRelay } from '../slow/deployed-relay.ts'
import { BarClient, expectHistory, makeMinute, openClients } from './bar-clients.ts'
import { makeBlock, openTradedDevnet, poolSettings, startMinute } from './traded-minutes.ts'

/**
 * Users of other feeds complain that bars of the stream are not those of the history. Here a client that listens to bars, and
 * returns with its position, keeps the history, and the trades that it could listen to make the same bars.
 */

vi.setConfig({ testTimeout: 120_000 })

const WAIT = { timeout: 30_000, interval: 50 }

const stocktape = (...args: readonly string[]) => promisify(execFile)(startCommand[0], [...startCommand.slice(1), ...args])

/** A relay with a file, and two clients. */
async function openDeployed(test: TestContext) {
  const devnet = await openTradedDevnet({}, test)
  const DATA_DIR = join(await createTempFolder(test), 'tape')
  const relay = await DeployedRelay.open(test, devnet, { DATA_DIR, STOCKS_REFRESH: '1s', ...poolSettings(devnet) })
  return { devnet, DATA_DIR, relay, clients: await openClients(test, devnet, () => relay.url) }
}

/** Resolves when the relay that was started last listens to blocks and pending logs. */
const waitForSubscriptions = (devnet: Devnet): Promise<boolean> =>
  devnet.until(() => devnet.subscriptions().newHeads > 0 && devnet.subscriptions().pendingLogs > 0)

describe('the complaint', () => {
  it('"historical data never matches streaming data, its volume is many times as high" is none after a kill -9 within a minute', async (test) => {
    const { devnet, relay, clients } = await openDeployed(test)
    const { bars, all } = clients
    const first = await makeMinute(devnet, all)
    makeBlock(devnet)
    await bars.waitForBar(first)
    // A sealed trade, two that only the next process sees end, and one that only the chain has seen.
    const start = startMinute(devnet)
    await all.trade(devnet, '330')
    makeBlock(devnet)
    const dropped = await all.trade(devnet, '331')
    await all.trade(devnet, '329')
    relay.signal('SIGKILL')
    await relay.waitForExit()
    devnet.faults.drop(dropped.tx.hash)
    makeBlock(devnet)
    const unseen = devnet.swap('AAPLc', { price: '333' })
    makeBlock(devnet)
    await relay.start()
    await all.until(() => all.messagesOf('trade').some(({ tx }) => tx.hash === unseen), 'the trade of the last block')
    await waitForSubscriptions(devnet)
    makeBlock(devnet)
    await bars.waitForBar(start)
    const last = await makeMinute(devnet, all)
    makeBlock(devnet)
    await bars.waitForBar(last)
    expect(bars.kept.find((bar) => Date.parse(bar.start) === start * 1_000)).toMatchObject({ trades: 3, revision: 1 })
    expect(bars.messagesOf('gap')).toEqual([])
    await expectHistory(clients, [relay.url], 5)
  })

  it('"the bars of the stream are corrected in the history, and the stream does not say so" is none after a restart', async (test) => {
    const { devnet, relay, clients } = await openDeployed(test)
    const { bars, all } = clients
    const start = await makeMinute(devnet, all)
    makeBlock(devnet)
    await bars.waitForBar(start)
    await relay.restart('SIGKILL')
    await waitForSubscriptions(devnet)
    // The chain replaces the minute, without one of its trades.
    const removed = all.messagesOf('trade').findLast(({ symbol }) => symbol === 'AAPLc') ?? expect.unreachable()
    devnet.reorg(4, [removed.tx.hash])
    makeBlock(devnet)
    await bars.waitForBar(start, 2)
    const last = await makeMinute(devnet, all)
    makeBlock(devnet)
    await bars.waitForBar(last)
    expect(bars.kept.map(({ symbol, trades, revision }) => [symbol, trades, revision])).toEqual([
      ['AAPLc', 1, 2],
      ['TSLAc', 1, 1],
      ['AAPLc', 2, 1],
      ['TSLAc', 1, 1],
    ])
    await expectHistory(clients, [relay.url], 4)
  })

  it('"after an outage the stored candles are others than those that I received" is none after the restore of a backup', async (test) => {
    const { devnet, DATA_DIR, relay, clients } = await openDeployed(test)
    const { bars, all } = clients
    const first = await makeMinute(devnet, all)
    const start = startMinute(devnet)
    await all.trade(devnet, '330')
    makeBlock(devnet)
    await bars.waitForBar(first)
    const backup = join(DATA_DIR, '..', 'backup')
    await stocktape('backup', backup, '--data-dir', DATA_DIR)
    // The rest of the minute, its bar and a trade are in no backup.
    await all.trade(devnet, '332', 'TSLAc')
    makeBlock(devnet)
    await all.trade(devnet, '328')
    makeBlock(devnet)
    const { key } = await all.trade(devnet, '329')
    makeBlock(devnet)
    await bars.waitForBar(start)
    const lost = bars.kept.filter((bar) => Date.parse(bar.start) === start * 1_000)
    relay.signal('SIGTERM')
    await relay.waitForExit()
    await stocktape('restore', backup, '--data-dir', DATA_DIR, '--force')
    const [received, seals] = [bars.messagesOf('bar').length, all.messagesOf('seal').length]
    await relay.start()
    await waitForSubscriptions(devnet)
    // The first block after those that are read again closes the minute.
    const isReadAgain = () => all.messagesOf('seal').findLastIndex(({ keys }) => keys.includes(key)) >= seals
    await all.until(isReadAgain, 'the last seal again')
    makeBlock(devnet)
    await bars.until(() => bars.messagesOf('bar').length >= received + lost.length, 'the bars that were lost')
    const last = await makeMinute(devnet, all)
    makeBlock(devnet)
    await bars.waitForBar(last)
    expect(bars.messagesOf('gap').length).toBeGreaterThan(0)
    // The age of the NAV is another one when the trades are read again.
    const again = bars.kept.filter((bar) => Date.parse(bar.start) === start * 1_000)
    expect(again.map(({ nav: _, ...bar }) => bar)).toEqual(lost.map(({ nav: _, ...bar }) => bar))
    expect(lost).toHaveLength(2)
    await expectHistory(clients, [relay.url], 7)
  })

  it('"two connections have different bars of a minute" is none where each is to another of two workers, one of which is killed', async (test) => {
    const devnet = await openTradedDevnet({}, test)
    const settings = { PORT: '0', DATA_DIR: await createTempFolder(test), WORKERS: '2', STOCKS_REFRESH: '1s' }
    const program = spawnRelay(test, { ...settings, ...upstreamOf(devnet), ...poolSettings(devnet) })
    const url = await program.listeningUrl()
    const clients = await openClients(test, devnet, () => url)
    const { bars, all } = clients
    const others = Array.from({ length: 4 }, () => new BarClient(test, () => url, 'bar'))
    await makeMinute(devnet, all)
    const start = startMinute(devnet)
    await all.trade(devnet, '330')
    makeBlock(devnet)
    const [victim] = childrenOf(program.pid)
    process.kill(victim ?? expect.unreachable(), 'SIGKILL')
    await vi.waitFor(() => expect(childrenOf(program.pid).filter((pid) => pid !== victim)).toHaveLength(2), WAIT)
    await all.trade(devnet, '331')
    makeBlock(devnet)
    await bars.waitForBar(start - 60)
    const last = await makeMinute(devnet, all)
    makeBlock(devnet)
    for (const client of [bars, ...others]) await client.waitForBar(last, 1, 'TSLAc')
    expect(others.map(({ kept }) => kept)).toEqual(others.map(() => bars.kept))
    expect([bars, ...others].flatMap((client) => client.messagesOf('gap'))).toEqual([])
    // Connections are given to the workers in turn.
    await expectHistory(
      clients,
      Array.from({ length: 4 }, () => url),
      5,
    )
  })

  it.skipIf(!hasNats)(
    '"the candles of the socket depend on the server" is none where another ingester takes over within a minute',
    async (test) => {
      const devnet = await openTradedDevnet({}, test)
      const cluster = await openCluster(test, devnet, { settingsOf: () => poolSettings(devnet) })
      const { ingesters, edges } = cluster
      const [edge, otherEdge] = edges
      const clients = await openClients(test, devnet, () => edge?.url ?? '')
      const { bars, all } = clients
      const other = new BarClient(test, () => otherEdge?.url ?? '', 'bar')
      const first = await makeMinute(devnet, all)
      const start = startMinute(devnet)
      await all.trade(devnet, '330')
      makeBlock(devnet)
      await bars.waitForBar(first)
      const leads = await Promise.all(ingesters.map((ingester) => ingester.isLeading()))
      const [leader, standby] = leads[0] ? ingesters : ingesters.toReversed()
      const dropped = await all.trade(devnet, '331')
      await leader?.kill()
      devnet.faults.drop(dropped.tx.hash)
      makeBlock(devnet)
      await vi.waitFor(async () => expect(await standby?.isLeading()).toBe(true), WAIT)
      await all.until(() => all.messagesOf('retract').some(({ key }) => key === dropped.key), 'the retract')
      await all.waitForSource()
      await all.trade(devnet, '332')
      makeBlock(devnet)
      makeBlock(devnet)
      await bars.waitForBar(start)
      const last = await makeMinute(devnet, all)
      makeBlock(devnet)
      for (const client of [bars, other]) await client.waitForBar(last, 1, 'TSLAc')
      expect(bars.kept.find((bar) => Date.parse(bar.start) === start * 1_000)).toMatchObject({ trades: 2, revision: 1 })
      expect(other.kept).toEqual(bars.kept)
      await expectHistory(
        clients,
        edges.map(({ url }) => url),
        5,
      )
    },
  )
})
