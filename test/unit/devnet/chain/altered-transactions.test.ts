import { describe, expect, it } from 'vitest'
import { tokenBalanceKey } from '../../../../src/devnet/chain/transactions.ts'
import {
  amounts,
  CAROL,
  getLogs,
  openSocket,
  rpcResult,
  sendTransfer,
  startManualDevnet,
  ZERO,
  ZERO_HASH,
} from '../devnet-client.ts'

describe('a dropped transaction', () => {
  it('was announced, is not in the sealed block, and left nothing behind', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    sendTransfer(devnet, 1n)
    const dropped = sendTransfer(devnet, 20n)
    sendTransfer(devnet, 300n)
    devnet.makeFlashblock()
    const key = tokenBalanceKey(devnet.list.addressOf('AAPLc'), CAROL)
    expect(devnet.chain.valueAt(key, 'pending')).toBe(321n)
    devnet.faults.drop(dropped)
    const block = devnet.seal()
    await link.flush()
    expect(amounts(link.notifications)).toEqual([1, 20, 300])
    expect(amounts(block.logs)).toEqual([1, 300])
    expect(block.logs.map((log) => [log.transactionIndex, log.logIndex])).toEqual([
      ['0x0', '0x0'],
      ['0x1', '0x1'],
    ])
    expect(devnet.chain.valueAt(key, block.number)).toBe(301n)
    expect(Number(await rpcResult(devnet, 'eth_getTransactionCount', devnet.custodian, 'pending'))).toBe(2)
  })

  it('comes every so often', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.dropEvery = 3
    for (const raw of [1n, 2n, 3n, 4n]) sendTransfer(devnet, raw)
    devnet.makeFlashblock()
    expect(amounts(devnet.seal().logs)).toEqual([1, 2, 4])
  })

  it('leaves no debt where another had spent what it brought', async () => {
    const devnet = await startManualDevnet()
    const [token, dave] = [devnet.list.addressOf('AAPLc'), `0x${'da'.repeat(20)}` as const]
    const brought = sendTransfer(devnet, 10n)
    devnet.makeFlashblock()
    devnet.transfer({ symbol: 'AAPLc', from: CAROL, to: dave, raw: 10n })
    devnet.makeFlashblock()
    devnet.faults.drop(brought)
    const { number } = devnet.seal()
    expect([CAROL, dave].map((holder) => devnet.chain.valueAt(tokenBalanceKey(token, holder), number))).toEqual([
      0n,
      10n,
    ])
  })

  it('changes the hash of its block and of every later one', async () => {
    const [fair, foul] = [
      await startManualDevnet({ now: () => 1.8e12 }),
      await startManualDevnet({ now: () => 1.8e12 }),
    ]
    const dropped = sendTransfer(foul, 1n)
    foul.makeFlashblock()
    foul.faults.drop(dropped)
    expect(foul.seal().hash).not.toBe(fair.seal().hash)
    expect(foul.seal().hash).not.toBe(fair.seal().hash)
  })
})

describe('a moved transaction', () => {
  it('is in the next block, under the same hash', async () => {
    const devnet = await startManualDevnet()
    const moved = sendTransfer(devnet, 1n)
    sendTransfer(devnet, 2n)
    devnet.makeFlashblock()
    devnet.faults.move(moved)
    expect(amounts(devnet.seal().logs)).toEqual([2])
    expect(devnet.makeFlashblock()).toMatchObject([{ transactionHash: moved, logIndex: '0x0', blockHash: ZERO_HASH }])
    expect(amounts(devnet.seal().logs)).toEqual([1])
  })
})

describe('a changed transaction', () => {
  const saying = (data: `0x${string}`) => ({ address: ZERO, topics: [], data })

  it('has other logs in the sealed block, under the same hash and at the same place', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    sendTransfer(devnet, 1n)
    const changed = sendTransfer(devnet, 2n)
    sendTransfer(devnet, 3n)
    devnet.makeFlashblock()
    devnet.faults.change(changed, [saying('0x0b')])
    const block = devnet.seal()
    await link.flush()
    expect(amounts(link.notifications)).toEqual([1, 2, 3])
    expect(amounts(block.logs)).toEqual([1, 11, 3])
    expect(block.logs[1]).toMatchObject({ transactionHash: changed, transactionIndex: '0x1', logIndex: '0x1' })
    expect(await getLogs(devnet, { blockHash: block.hash })).toEqual(block.logs)
  })

  it.each([
    ['none', [], ['0x0']],
    ['more', [saying('0x0b'), saying('0x0c')], ['0x0', '0x1', '0x2']],
  ])('may have %s, and then the logs after it move', async (_, instead, places) => {
    const devnet = await startManualDevnet()
    devnet.faults.change(sendTransfer(devnet, 1n), instead)
    const after = sendTransfer(devnet, 2n)
    devnet.makeFlashblock()
    const block = devnet.seal()
    expect(block.logs.map((log) => log.logIndex)).toEqual(places)
    expect(block.logs.at(-1)).toMatchObject({ transactionHash: after, transactionIndex: '0x1' })
  })

  it('is in a block of another hash than if it had not been', async () => {
    const [fair, foul] = [
      await startManualDevnet({ now: () => 1.8e12 }),
      await startManualDevnet({ now: () => 1.8e12 }),
    ]
    for (const devnet of [fair, foul]) {
      const hash = sendTransfer(devnet, 1n)
      devnet.makeFlashblock()
      if (devnet === foul) devnet.faults.change(hash, [saying('0x0b')])
    }
    expect(foul.seal().hash).not.toBe(fair.seal().hash)
  })
})
