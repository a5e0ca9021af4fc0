import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../src/devnet/chain/hex.ts'
import { openDevnet, openWorld, relayOn } from '../../support/test-stack.ts'
import { generous, inShort, move, RpcEar, type Subscribed } from './rpc-test-client.ts'

const told = ({ logs }: Subscribed) => logs.map(inShort)
const hashes = ({ results }: Subscribed) => results.map((head) => (head as { hash: string }).hash)

describe('a reorganisation', () => {
  it('is told of sealed logs and heads as the node itself tells it', async () => {
    const world = await openWorld(generous)
    const { devnet } = world
    const [ours, direct] = [await RpcEar.open(world), await RpcEar.open(devnet.wsUrl)]
    const address = devnet.tokens.map(({ contractAddress }) => contractAddress)
    const both = async (...params: unknown[]) => ({
      ours: await ours.subscribe(...params),
      node: await direct.subscribe(...params),
    })
    const [logs, heads] = [await both('logs', { address }), await both('newHeads')]
    const blocks = [[1, 2], [3], [4, 5]]
    const moved: Hex[] = []
    for (const [at, raws] of blocks.entries()) {
      moved.push(...move(world, ...raws))
      devnet.seal()
      await heads.ours.hear(at + 1)
    }
    await logs.ours.hear(5)
    devnet.reorg(2, moved.slice(2, 3))
    await heads.node.hear(5)
    await heads.ours.hear(5)
    await logs.ours.hear(10)
    await ours.settled()
    expect(logs.ours.results).toEqual(logs.node.results)
    expect(heads.ours.results).toEqual(heads.node.results)
  })

  it('takes back of what was pre-confirmed what the new block lacks, and says nothing of what it has', async () => {
    const world = await openWorld(generous)
    const { devnet } = world
    const ear = await RpcEar.open(world)
    const [all, logs] = [await ear.subscribe('pendingLogs'), await ear.subscribe('logs')]
    const [, gone = '0x'] = move(world, 1, 2)
    await all.hear(2)
    devnet.seal()
    await logs.hear(2)
    devnet.reorg(1, [gone])
    move(world, 3)
    devnet.seal()
    await logs.hear(6)
    await all.hear(4)
    await ear.settled()
    expect(told(all).toSorted()).toEqual(['+1', '+2', '+3', '-2'])
    expect(all.logs.find(({ removed }) => removed)).toEqual({ ...(all.results[1] as object), removed: true })
  })

  it('that is polled with a new head on top of it repeats no head, and leaves none out', async () => {
    const devnet = await openDevnet()
    const relay = await relayOn(devnet, { ...generous, UPSTREAM_WS_URL: '' })
    const ear = await RpcEar.open({ relay })
    const heads = await ear.subscribe('newHeads')
    const expected: string[] = []
    for (const count of [1, 2]) {
      expected.push(devnet.seal().hash)
      await heads.hear(count)
    }
    for (const round of [1, 2, 3]) {
      const before = heads.results.length
      move({ devnet }, round)
      expected.push(...devnet.reorg(1).map(({ hash }) => hash), devnet.seal().hash)
      await heads.hear(before + 2)
      await ear.line.until(() => hashes(heads).includes(expected.at(-1) ?? ''), 'the newest head')
    }
    await ear.settled()
    const repeated = hashes(heads).filter((hash, at, all) => all.indexOf(hash) < at)
    expect(repeated.length).toBe(0)
    expect(hashes(heads)).toEqual(expected)
  })

  it('of a head that was told and not yet settled is told too, and the former block is forgotten', async () => {
    const world = await openWorld(generous)
    const { devnet } = world
    const ear = await RpcEar.open(world)
    const heads = await ear.subscribe('newHeads')
    devnet.weather.missingByHash = 1_000
    const [hash = '0x'] = move(world, 1)
    const former = devnet.seal()
    await heads.hear(1)
    const [block] = devnet.reorg(1, [hash])
    devnet.weather.missingByHash = 0
    await heads.hear(2)
    expect(hashes(heads)).toEqual([former.hash, block?.hash])
    const { result } = await ear.call('eth_getBlockByNumber', `0x${former.number.toString(16)}`, false)
    expect(result).toMatchObject({ hash: block?.hash })
  })
})
