import { describe, expect, it } from 'vitest'
import type { HexString } from '../../../src/devnet/chain/hex.ts'
import { openDevnet, openRelayFor, openTestStack } from '../../support/test-stack.ts'
import { highLimits, logSummary, RpcTestClient, type TestSubscription, transferAmounts } from './rpc-test-client.ts'

const logSummaries = ({ logs }: TestSubscription) => logs.map(logSummary)
const headHashes = ({ results }: TestSubscription) => results.map((head) => (head as { hash: string }).hash)

describe('a reorganisation', () => {
  it('is told of sealed logs and heads as the node itself tells it', async () => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const [ours, direct] = [await RpcTestClient.open(stack), await RpcTestClient.open(devnet.wsUrl)]
    const address = devnet.tokens.map(({ contractAddress }) => contractAddress)
    const both = async (...params: unknown[]) => ({
      ours: await ours.subscribe(...params),
      node: await direct.subscribe(...params),
    })
    const [logs, heads] = [await both('logs', { address }), await both('newHeads')]
    const blocks = [[1, 2], [3], [4, 5]]
    const moved: HexString[] = []
    for (const [at, raws] of blocks.entries()) {
      moved.push(...transferAmounts(stack, ...raws))
      devnet.seal()
      await heads.ours.waitForResults(at + 1)
    }
    await logs.ours.waitForResults(5)
    devnet.reorg(2, moved.slice(2, 3))
    await heads.node.waitForResults(5)
    await heads.ours.waitForResults(5)
    await logs.ours.waitForResults(10)
    await ours.flush()
    expect(logs.ours.results).toEqual(logs.node.results)
    expect(heads.ours.results).toEqual(heads.node.results)
  })

  it('takes back of what was pre-confirmed what the new block lacks, and says nothing of what it has', async () => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const listener = await RpcTestClient.open(stack)
    const [all, logs] = [await listener.subscribe('pendingLogs'), await listener.subscribe('logs')]
    const [, gone = '0x'] = transferAmounts(stack, 1, 2)
    await all.waitForResults(2)
    devnet.seal()
    await logs.waitForResults(2)
    devnet.reorg(1, [gone])
    transferAmounts(stack, 3)
    devnet.seal()
    await logs.waitForResults(6)
    await all.waitForResults(4)
    await listener.flush()
    expect(logSummaries(all).toSorted()).toEqual(['+1', '+2', '+3', '-2'])
    expect(all.logs.find(({ removed }) => removed)).toEqual({ ...(all.results[1] as object), removed: true })
  })

  it('that is polled with a new head on top of it repeats no head, and leaves none out', async () => {
    const devnet = await openDevnet()
    const relay = await openRelayFor(devnet, { ...highLimits, UPSTREAM_WS_URL: '' })
    const listener = await RpcTestClient.open({ relay })
    const heads = await listener.subscribe('newHeads')
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
      await listener.rawSocket.until(() => headHashes(heads).includes(expected.at(-1) ?? ''), 'the newest head')
    }
    await listener.flush()
    const repeated = headHashes(heads).filter((hash, at, all) => all.indexOf(hash) < at)
    expect(repeated.length).toBe(0)
    expect(headHashes(heads)).toEqual(expected)
  })

  it('of a head that was told and not yet settled is told too, and the former block is forgotten', async () => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const listener = await RpcTestClient.open(stack)
    const heads = await listener.subscribe('newHeads')
    devnet.faults.missingByHash = 1_000
    const [hash = '0x'] = transferAmounts(stack, 1)
    const former = devnet.seal()
    await heads.waitForResults(1)
    const [block] = devnet.reorg(1, [hash])
    devnet.faults.missingByHash = 0
    await heads.waitForResults(2)
    expect(headHashes(heads)).toEqual([former.hash, block?.hash])
    const { result } = await listener.call('eth_getBlockByNumber', `0x${former.number.toString(16)}`, false)
    expect(result).toMatchObject({ hash: block?.hash })
  })
})
