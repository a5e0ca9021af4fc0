import { describe, expect, it } from 'vitest'
import { balanceOf } from '../../../../src/devnet/chain/transactions.ts'
import { amounts, CAROL, listen, logs, manual, read, send, ZERO, ZERO_HASH } from '../devnet-client.ts'

describe('a dropped transaction', () => {
  it('was announced, is not in the sealed block, and left nothing behind', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', {})
    send(devnet, 1n)
    const dropped = send(devnet, 20n)
    send(devnet, 300n)
    devnet.flash()
    const key = balanceOf(devnet.list.addressOf('AAPLc'), CAROL)
    expect(devnet.chain.held(key, 'pending')).toBe(321n)
    devnet.weather.drop(dropped)
    const block = devnet.seal()
    await link.settled()
    expect(amounts(link.results)).toEqual([1, 20, 300])
    expect(amounts(block.logs)).toEqual([1, 300])
    expect(block.logs.map((log) => [log.transactionIndex, log.logIndex])).toEqual([
      ['0x0', '0x0'],
      ['0x1', '0x1'],
    ])
    expect(devnet.chain.held(key, block.number)).toBe(301n)
    expect(Number(await read(devnet, 'eth_getTransactionCount', devnet.custodian, 'pending'))).toBe(2)
  })

  it('comes every so often', async () => {
    const devnet = await manual()
    devnet.weather.dropEvery = 3
    for (const raw of [1n, 2n, 3n, 4n]) send(devnet, raw)
    devnet.flash()
    expect(amounts(devnet.seal().logs)).toEqual([1, 2, 4])
  })

  it('leaves no debt where another had spent what it brought', async () => {
    const devnet = await manual()
    const [token, dave] = [devnet.list.addressOf('AAPLc'), `0x${'da'.repeat(20)}` as const]
    const brought = send(devnet, 10n)
    devnet.flash()
    devnet.transfer({ symbol: 'AAPLc', from: CAROL, to: dave, raw: 10n })
    devnet.flash()
    devnet.weather.drop(brought)
    const { number } = devnet.seal()
    expect([CAROL, dave].map((holder) => devnet.chain.held(balanceOf(token, holder), number))).toEqual([0n, 10n])
  })

  it('changes the hash of its block and of every later one', async () => {
    const [fair, foul] = [await manual({ now: () => 1.8e12 }), await manual({ now: () => 1.8e12 })]
    const dropped = send(foul, 1n)
    foul.flash()
    foul.weather.drop(dropped)
    expect(foul.seal().hash).not.toBe(fair.seal().hash)
    expect(foul.seal().hash).not.toBe(fair.seal().hash)
  })
})

describe('a moved transaction', () => {
  it('is in the next block, under the same hash', async () => {
    const devnet = await manual()
    const moved = send(devnet, 1n)
    send(devnet, 2n)
    devnet.flash()
    devnet.weather.move(moved)
    expect(amounts(devnet.seal().logs)).toEqual([2])
    expect(devnet.flash()).toMatchObject([{ transactionHash: moved, logIndex: '0x0', blockHash: ZERO_HASH }])
    expect(amounts(devnet.seal().logs)).toEqual([1])
  })
})

describe('a changed transaction', () => {
  const saying = (data: `0x${string}`) => ({ address: ZERO, topics: [], data })

  it('has other logs in the sealed block, under the same hash and at the same place', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', {})
    send(devnet, 1n)
    const changed = send(devnet, 2n)
    send(devnet, 3n)
    devnet.flash()
    devnet.weather.change(changed, [saying('0x0b')])
    const block = devnet.seal()
    await link.settled()
    expect(amounts(link.results)).toEqual([1, 2, 3])
    expect(amounts(block.logs)).toEqual([1, 11, 3])
    expect(block.logs[1]).toMatchObject({ transactionHash: changed, transactionIndex: '0x1', logIndex: '0x1' })
    expect(await logs(devnet, { blockHash: block.hash })).toEqual(block.logs)
  })

  it.each([
    ['none', [], ['0x0']],
    ['more', [saying('0x0b'), saying('0x0c')], ['0x0', '0x1', '0x2']],
  ])('may have %s, and then the logs after it move', async (_, instead, places) => {
    const devnet = await manual()
    devnet.weather.change(send(devnet, 1n), instead)
    const after = send(devnet, 2n)
    devnet.flash()
    const block = devnet.seal()
    expect(block.logs.map((log) => log.logIndex)).toEqual(places)
    expect(block.logs.at(-1)).toMatchObject({ transactionHash: after, transactionIndex: '0x1' })
  })

  it('is in a block of another hash than if it had not been', async () => {
    const [fair, foul] = [await manual({ now: () => 1.8e12 }), await manual({ now: () => 1.8e12 })]
    for (const devnet of [fair, foul]) {
      const hash = send(devnet, 1n)
      devnet.flash()
      if (devnet === foul) devnet.weather.change(hash, [saying('0x0b')])
    }
    expect(foul.seal().hash).not.toBe(fair.seal().hash)
  })
})
