import { setMaxListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import type { Hex } from '../../../src/lib/hex.ts'
import { openDevnet, openRelayFor, openTestStack } from '../../support/test-stack.ts'
import { highLimits } from './node-and-gateway.ts'
import { logSummaries, RpcTestClient, type TestSubscription, transferAmounts } from './rpc-test-client.ts'

/** The relay follows a node without a socket. */
const polling = { UPSTREAM_WS_URL: '' }

const byAmount = (one: string, other: string) => Math.abs(Number.parseInt(one, 10)) - Math.abs(Number.parseInt(other, 10))
const headHashes = ({ results }: TestSubscription) => results.map((head) => (head as { hash: string }).hash)

/** A client with three subscriptions; the relay is pushed its logs unless the settings say that it polls. */
async function open(settings: Record<string, string> = {}) {
  const stack = settings === polling ? await openPollingStack() : await openTestStack({ ...highLimits, ...settings })
  const client = await RpcTestClient.open(stack)
  const pending = await client.subscribe('pendingLogs')
  const logs = await client.subscribe('logs')
  const heads = await client.subscribe('newHeads')
  return { stack, devnet: stack.devnet, client, pending, logs, heads }
}

async function openPollingStack() {
  const devnet = await openDevnet()
  return { devnet, relay: await openRelayFor(devnet, { ...highLimits, ...polling }) }
}

describe('an upstream that repeats logs', () => {
  it.each(['one', 'all'] as const)('in the shape of %s is passed on without repetitions', async (shape) => {
    const { stack, devnet, client, pending, logs } = await open()
    Object.assign(devnet.faults, { shape, repeats: 3 })
    transferAmounts(stack, 1, 2)
    transferAmounts(stack, 3)
    devnet.seal()
    transferAmounts(stack, 4)
    devnet.seal()
    await logs.waitForResults(4)
    await client.flush()
    expect(logSummaries(pending)).toEqual(['+1', '+2', '+3', '+4'])
    expect(logSummaries(logs)).toEqual(['+1 sealed', '+2 sealed', '+3 sealed', '+4 sealed'])
  })

  it('in another order is passed on in that order', async () => {
    const { stack, devnet, pending } = await open()
    devnet.faults.shuffle = true
    transferAmounts(stack, 1, 2, 3, 4, 5, 6)
    await pending.waitForResults(6)
    expect(logSummaries(pending).toSorted(byAmount)).toEqual(['+1', '+2', '+3', '+4', '+5', '+6'])
  })
})

describe('a pre-confirmed log', () => {
  it('that its block lacks is sent again as removed, to the subscriptions that had received it', async () => {
    const { stack, devnet, client, pending: early } = await open()
    const [, dropped = '0x'] = transferAmounts(stack, 1, 2, 3)
    await early.waitForResults(3)
    const late = await client.subscribe('pendingLogs')
    devnet.faults.drop(dropped)
    devnet.seal()
    await early.waitForResults(6)
    transferAmounts(stack, 4)
    await early.waitForResults(7)
    await client.flush()
    // The log after the dropped one has another index in the block, so it is removed and sent again.
    expect(logSummaries(early)).toEqual(['+1', '+2', '+3', '-2', '-3', '+3 sealed', '+4'])
    expect(early.results[3]).toEqual({ ...(early.results[1] as object), removed: true })
    expect(logSummaries(late)).toEqual(['+3 sealed', '+4'])
  })

  it('that moves to the next block is removed and sent again', async () => {
    const { stack, devnet, pending } = await open()
    const [moved = '0x'] = transferAmounts(stack, 1)
    await pending.waitForResults(1)
    devnet.faults.move(moved)
    devnet.seal()
    await pending.waitForResults(2)
    devnet.makeFlashblock()
    devnet.seal()
    transferAmounts(stack, 2)
    await pending.waitForResults(4)
    expect(logSummaries(pending)).toEqual(['+1', '-1', '+1', '+2'])
  })

  it('with other content in its block is removed and sent with that content', async () => {
    const { stack, devnet, pending } = await open()
    const [hash = '0x'] = transferAmounts(stack, 1)
    await pending.waitForResults(1)
    const [log] = pending.logs
    const content = { address: log?.address, topics: log?.topics, data: `0x${'07'.padStart(64, '0')}` }
    devnet.faults.change(hash, [content as never])
    devnet.seal()
    await pending.waitForResults(3)
    expect(logSummaries(pending)).toEqual(['+1', '-1', '+7 sealed'])
  })

  it('that was never pushed arrives once, when it is sealed, with the hash of its block', async () => {
    const { stack, devnet, client, pending, logs } = await open()
    transferAmounts(stack, 1)
    await pending.waitForResults(1)
    devnet.faults.lostFlashes = 1
    transferAmounts(stack, 2)
    const { hash } = devnet.seal()
    await logs.waitForResults(2)
    await client.flush()
    expect(logSummaries(pending)).toEqual(['+1', '+2 sealed'])
    expect(pending.logs[1]?.blockHash).toBe(hash)
  })
})

describe('an upstream that disconnects', () => {
  it('and comes back leaves no gap and no repetition under the same ids', async () => {
    const { stack, devnet, client, pending, logs, heads } = await open()
    const raws: number[] = []
    for (let round = 1; round <= 4; round += 1) {
      devnet.faults.cutSockets()
      for (const step of [1, 2, 3]) {
        raws.push(round * 10 + step)
        transferAmounts(stack, round * 10 + step)
        if (step === 2) devnet.seal()
      }
      await pending.waitForResults(raws.length)
      await heads.waitForResults(round)
    }
    devnet.seal()
    await logs.waitForResults(raws.length)
    await heads.waitForResults(5)
    await client.flush()
    const amountsOf = (subscription: TestSubscription) => subscription.logs.map(({ data }) => Number(data))
    expect(amountsOf(pending).toSorted((a, b) => a - b)).toEqual(raws)
    expect(amountsOf(logs)).toEqual(raws)
    const { number } = devnet.chain.head
    expect(heads.results.map((head) => Number((head as { number: string }).number))).toEqual(
      [4, 3, 2, 1, 0].map((back) => number - back),
    )
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    expect(client.rawSocket.closeCode).toBeNull()
  })

  it('and restarts without its blocks gets its logs removed, and the new chain continues', async () => {
    const { devnet, client, pending, logs, heads } = await open()
    transferAmounts({ devnet }, 1)
    devnet.seal()
    await logs.waitForResults(1)
    transferAmounts({ devnet }, 2)
    await pending.waitForResults(2)
    await devnet.stop()
    const port = Number(new URL(devnet.url).port)
    const second: Devnet = await openDevnet({ pace: 'manual', port, now: () => Date.now() + 60_000 })
    await second.until(() => second.subscriptions().pendingLogs === 1)
    transferAmounts({ devnet: second }, 3)
    second.seal()
    await logs.waitForResults(3)
    await pending.waitForResults(5)
    expect(logSummaries(logs)).toEqual(['+1 sealed', '-1 sealed', '+3 sealed'])
    expect(logSummaries(pending).toSorted(byAmount)).toEqual(['+1', '-1', '+2', '-2', '+3'])
    const { hash } = second.chain.head
    await client.rawSocket.until(() => headHashes(heads).includes(hash), 'the new head')
  })

  it('for good is polled for pre-confirmed logs', async () => {
    const { devnet, client, logs, heads } = await open(polling)
    const pending = await client.subscribe('pendingLogs', { address: devnet.list.addressOf('AAPLc') })
    const [, dropped = '0x'] = transferAmounts({ devnet }, 1, 2)
    await pending.waitForResults(2)
    expect(logSummaries(pending)).toEqual(['+1', '+2'])
    devnet.faults.drop(dropped)
    devnet.seal()
    await logs.waitForResults(1)
    await heads.waitForResults(1)
    await pending.waitForResults(3)
    expect([pending, logs].map(logSummaries)).toEqual([['+1', '+2', '-2'], ['+1 sealed']])
    expect(devnet.sockets()).toBe(0)
  })
})

describe('a reorganisation', () => {
  it('brings the sealed logs and heads that the node itself sends', async () => {
    const { stack, devnet, client } = await open()
    const address = devnet.tokens.map(({ contractAddress }) => contractAddress)
    const kinds = [['logs', { address }], ['newHeads']]
    const ours = await client.subscribeAll(...kinds)
    const direct = await (await RpcTestClient.open(devnet.wsUrl)).subscribeAll(...kinds)
    const [logs, heads] = ours
    const hashes: Hex[] = []
    for (const [at, raws] of [[1, 2], [3], [4, 5]].entries()) {
      hashes.push(...transferAmounts(stack, ...raws))
      devnet.seal()
      await heads?.waitForResults(at + 1)
    }
    await logs?.waitForResults(5)
    devnet.reorg(2, hashes.slice(2, 3))
    await direct[1]?.waitForResults(5)
    await heads?.waitForResults(5)
    await logs?.waitForResults(10)
    await client.flush()
    expect(ours.map(({ results }) => results)).toEqual(direct.map(({ results }) => results))
  })

  it('removes the pre-confirmed logs that the new block lacks, and repeats no other', async () => {
    const { stack, devnet, client, pending, logs } = await open()
    const [, dropped = '0x'] = transferAmounts(stack, 1, 2)
    await pending.waitForResults(2)
    devnet.seal()
    await logs.waitForResults(2)
    devnet.reorg(1, [dropped])
    transferAmounts(stack, 3)
    devnet.seal()
    await logs.waitForResults(6)
    await pending.waitForResults(4)
    await client.flush()
    expect(logSummaries(pending).toSorted()).toEqual(['+1', '+2', '+3', '-2'])
    expect(pending.logs.find(({ removed }) => removed)).toEqual({ ...(pending.results[1] as object), removed: true })
  })

  it('that the relay polls together with a new head repeats no head and skips none', async () => {
    const { devnet, client, heads } = await open(polling)
    const expected: string[] = []
    for (const count of [1, 2]) {
      expected.push(devnet.seal().hash)
      await heads.waitForResults(count)
    }
    for (const round of [1, 2, 3]) {
      const before = heads.results.length
      transferAmounts({ devnet }, round)
      expected.push(...devnet.reorg(1).map(({ hash }) => hash), devnet.seal().hash)
      await heads.waitForResults(before + 2)
      await client.rawSocket.until(() => headHashes(heads).includes(expected.at(-1) ?? ''), 'the newest head')
    }
    await client.flush()
    expect(headHashes(heads)).toEqual(expected)
  })

  it('of a head that is not settled yet brings the new head, and reads find the new block', async () => {
    const { stack, devnet, client, heads } = await open()
    devnet.faults.missingByHash = 1_000
    const [hash = '0x'] = transferAmounts(stack, 1)
    const replaced = devnet.seal()
    await heads.waitForResults(1)
    const [block] = devnet.reorg(1, [hash])
    devnet.faults.missingByHash = 0
    await heads.waitForResults(2)
    expect(headHashes(heads)).toEqual([replaced.hash, block?.hash])
    const { result } = await client.call('eth_getBlockByNumber', `0x${replaced.number.toString(16)}`, false)
    expect(result).toMatchObject({ hash: block?.hash })
  })
})

describe('five hundred subscriptions to pending logs', () => {
  const CONNECTIONS = 250

  /** The logs that each of the subscriptions received, which must be the same. */
  const sharedSummaries = (subscriptions: readonly TestSubscription[]): readonly string[] => {
    const received = new Set(subscriptions.map((subscription) => logSummaries(subscription).join(', ')))
    expect(received.size).toBe(1)
    return [...received].join().split(', ')
  }

  it('cost the node one, and each receives each log once, in order, and its removal', async () => {
    setMaxListeners(CONNECTIONS + 10)
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const { eth_subscribe: subscribeCount } = devnet.requests
    const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => RpcTestClient.open(stack)))
    const subscribe = (filter: object) => Promise.all(clients.map((client) => client.subscribe('pendingLogs', filter)))
    const all = await subscribe({})
    const apples = await subscribe({ address: devnet.list.addressOf('AAPLc') })
    /** All have all logs but one, which is not of their token. */
    const waitForAll = (count: number) =>
      Promise.all([
        ...all.map((subscription) => subscription.waitForResults(count)),
        ...apples.map((subscription) => subscription.waitForResults(count - 1)),
      ])
    const oneUpstream = { pendingLogs: 1, logs: 0, newHeads: 1 }
    expect(devnet.subscriptions()).toEqual(oneUpstream)
    expect(devnet.requests.eth_subscribe).toBe(subscribeCount)
    expect(devnet.sockets()).toBe(1)

    devnet.faults.repeats = 2
    transferAmounts(stack, 1, 2)
    devnet.transfer({ symbol: 'TSLAc', raw: 3n })
    devnet.makeFlashblock()
    const [, dropped = '0x'] = transferAmounts(stack, 4, 5)
    await waitForAll(5)
    devnet.faults.drop(dropped)
    devnet.seal()
    await waitForAll(6)

    devnet.faults.cutSockets()
    transferAmounts(stack, 6)
    devnet.seal()
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    transferAmounts(stack, 7)
    await waitForAll(8)
    await Promise.all(clients.map((client) => client.flush()))
    const summaries = sharedSummaries(all)
    expect(summaries.slice(0, 6)).toEqual(['+1', '+2', '+3', '+4', '+5', '-5'])
    expect(summaries.slice(6)).toEqual([expect.stringMatching(/^\+6/), '+7'])
    expect(sharedSummaries(apples)).toEqual(summaries.filter((text) => text !== '+3'))
    expect(devnet.subscriptions()).toEqual(oneUpstream)

    for (const client of clients.slice(1)) client.rawSocket.socket.terminate()
    transferAmounts(stack, 8)
    await all[0]?.waitForResults(9)
    expect(devnet.requests.eth_unsubscribe).toBe(0)
    expect(devnet.subscriptions()).toEqual(oneUpstream)
  })
})
