import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { openDevnet, openRelayFor, openTestStack } from '../../support/test-stack.ts'
import { highLimits, logSummary, RpcTestClient, type TestSubscription, transferAmounts } from './rpc-test-client.ts'

/** What was told, in a word each. */
const logSummaries = ({ logs }: TestSubscription) => logs.map(logSummary)
const numeric = (one: string, other: string) =>
  Math.abs(Number.parseInt(one, 10)) - Math.abs(Number.parseInt(other, 10))

describe('an upstream that says things more than once', () => {
  it.each(['one', 'all'] as const)('and in the shape of %s is heard as if it said each once', async (shape) => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const listener = await RpcTestClient.open(stack)
    const [all, logs] = [await listener.subscribe('pendingLogs'), await listener.subscribe('logs')]
    Object.assign(devnet.faults, { shape, repeats: 3 })
    transferAmounts(stack, 1, 2)
    transferAmounts(stack, 3)
    devnet.seal()
    transferAmounts(stack, 4)
    devnet.seal()
    await logs.waitForResults(4)
    await listener.flush()
    expect(logSummaries(all)).toEqual(['+1', '+2', '+3', '+4'])
    expect(logSummaries(logs)).toEqual(['+1 sealed', '+2 sealed', '+3 sealed', '+4 sealed'])
  })

  it('and in another order than they stand in is passed on as it speaks', async () => {
    const stack = await openTestStack(highLimits)
    const listener = await RpcTestClient.open(stack)
    const all = await listener.subscribe('pendingLogs')
    stack.devnet.faults.shuffle = true
    transferAmounts(stack, 1, 2, 3, 4, 5, 6)
    await all.waitForResults(6)
    expect(logSummaries(all).toSorted(numeric)).toEqual(['+1', '+2', '+3', '+4', '+5', '+6'])
  })
})

describe('a pre-confirmed log', () => {
  it('that its block lacks is repeated as it was sent, taken back, to those alone who were told it', async () => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const listener = await RpcTestClient.open(stack)
    const early = await listener.subscribe('pendingLogs')
    const [, gone = '0x'] = transferAmounts(stack, 1, 2, 3)
    await early.waitForResults(3)
    const late = await listener.subscribe('pendingLogs')
    devnet.faults.drop(gone)
    devnet.seal()
    await early.waitForResults(6)
    transferAmounts(stack, 4)
    await early.waitForResults(7)
    await listener.flush()
    // What came after the missing one stands elsewhere: it is taken back there, and told where it is.
    expect(logSummaries(early)).toEqual(['+1', '+2', '+3', '-2', '-3', '+3 sealed', '+4'])
    expect(early.results[3]).toEqual({ ...(early.results[1] as object), removed: true })
    expect(logSummaries(late)).toEqual(['+3 sealed', '+4'])
  })

  it('that comes in the next block is taken back and told anew', async () => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const all = await (await RpcTestClient.open(stack)).subscribe('pendingLogs')
    const [moved = '0x'] = transferAmounts(stack, 1)
    await all.waitForResults(1)
    devnet.faults.move(moved)
    devnet.seal()
    await all.waitForResults(2)
    devnet.makeFlashblock()
    devnet.seal()
    transferAmounts(stack, 2)
    await all.waitForResults(4)
    expect(logSummaries(all)).toEqual(['+1', '-1', '+1', '+2'])
  })

  it('with other content in its block is taken back, and told as it is', async () => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const all = await (await RpcTestClient.open(stack)).subscribe('pendingLogs')
    const [hash = '0x'] = transferAmounts(stack, 1)
    await all.waitForResults(1)
    const [log] = all.logs
    devnet.faults.change(hash, [
      { address: log?.address, topics: log?.topics, data: `0x${'07'.padStart(64, '0')}` } as never,
    ])
    devnet.seal()
    await all.waitForResults(3)
    expect(logSummaries(all)).toEqual(['+1', '-1', '+7 sealed'])
  })

  it('that was never pushed comes once, when it is sealed, with its block’s hash', async () => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const listener = await RpcTestClient.open(stack)
    const [all, logs] = [await listener.subscribe('pendingLogs'), await listener.subscribe('logs')]
    transferAmounts(stack, 1)
    await all.waitForResults(1)
    devnet.faults.lostFlashes = 1
    transferAmounts(stack, 2)
    const { hash } = devnet.seal()
    await logs.waitForResults(2)
    await listener.flush()
    expect(logSummaries(all)).toEqual(['+1', '+2 sealed'])
    expect(all.logs[1]?.blockHash).toBe(hash)
  })
})

describe('an upstream that is lost', () => {
  it('and comes back is not noticed: nothing is missing, nothing comes twice, under the same id', async () => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const listener = await RpcTestClient.open(stack)
    const [all, logs, heads] = [
      await listener.subscribe('pendingLogs'),
      await listener.subscribe('logs'),
      await listener.subscribe('newHeads'),
    ]
    const raws: number[] = []
    for (let round = 1; round <= 4; round += 1) {
      devnet.faults.cutSockets()
      for (const step of [1, 2, 3]) {
        raws.push(round * 10 + step)
        transferAmounts(stack, round * 10 + step)
        if (step === 2) devnet.seal()
      }
      await all.waitForResults(raws.length)
      await heads.waitForResults(round)
    }
    devnet.seal()
    await logs.waitForResults(raws.length)
    await heads.waitForResults(5)
    await listener.flush()
    const amounts = (one: TestSubscription) => one.logs.map(({ data }) => Number(data))
    expect(amounts(all).toSorted((a, b) => a - b)).toEqual(raws)
    expect(amounts(logs)).toEqual(raws)
    const { number } = devnet.chain.head
    expect(heads.results.map((head) => Number((head as { number: string }).number))).toEqual(
      [4, 3, 2, 1, 0].map((back) => number - back),
    )
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    expect(listener.rawSocket.closeCode).toBeNull()
  })

  it('and started anew without what it had pre-confirmed: that is taken back, and the chain goes on', async () => {
    const devnet = await openDevnet()
    const relay = await openRelayFor(devnet, highLimits)
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    const listener = await RpcTestClient.open({ relay })
    const [all, logs, heads] = [
      await listener.subscribe('pendingLogs'),
      await listener.subscribe('logs'),
      await listener.subscribe('newHeads'),
    ]
    transferAmounts({ devnet }, 1)
    devnet.seal()
    await logs.waitForResults(1)
    transferAmounts({ devnet }, 2)
    await all.waitForResults(2)
    await devnet.stop()
    const port = Number(new URL(devnet.url).port)
    const second: Devnet = await openDevnet({ pace: 'manual', port, now: () => Date.now() + 60_000 })
    await second.until(() => second.subscriptions().pendingLogs === 1)
    transferAmounts({ devnet: second }, 3)
    second.seal()
    await logs.waitForResults(3)
    await all.waitForResults(5)
    expect(logSummaries(logs)).toEqual(['+1 sealed', '-1 sealed', '+3 sealed'])
    expect(logSummaries(all).toSorted(numeric)).toEqual(['+1', '-1', '+2', '-2', '+3'])
    const { hash } = second.chain.head
    await listener.rawSocket.until(
      () => heads.results.some((head) => (head as { hash: string }).hash === hash),
      'the new head',
    )
  })

  it('for good, and has no socket at all, is polled for what is pre-confirmed', async () => {
    const devnet = await openDevnet()
    const relay = await openRelayFor(devnet, { ...highLimits, UPSTREAM_WS_URL: '' })
    const listener = await RpcTestClient.open({ relay })
    const [all, logs, heads] = [
      await listener.subscribe('pendingLogs', { address: devnet.list.addressOf('AAPLc') }),
      await listener.subscribe('logs'),
      await listener.subscribe('newHeads'),
    ]
    const [, gone = '0x'] = transferAmounts({ devnet }, 1, 2)
    await all.waitForResults(2)
    expect(logSummaries(all)).toEqual(['+1', '+2'])
    devnet.faults.drop(gone)
    devnet.seal()
    await logs.waitForResults(1)
    await heads.waitForResults(1)
    await all.waitForResults(3)
    expect([logSummaries(all), logSummaries(logs)]).toEqual([['+1', '+2', '-2'], ['+1 sealed']])
    expect(devnet.sockets()).toBe(0)
  })
})
