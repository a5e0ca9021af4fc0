import { describe, expect, it } from 'vitest'
import { tokenBalanceKey } from '../../../../src/devnet/tokens/token-storage.ts'
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
  it('was pushed, is not in the sealed block, and has no effect', async () => {
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

  it('is every n-th with the fault `dropEvery`', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.dropEvery = 3
    for (const raw of [1n, 2n, 3n, 4n]) sendTransfer(devnet, raw)
    devnet.makeFlashblock()
    expect(amounts(devnet.seal().logs)).toEqual([1, 2, 4])
  })

  it('leaves no negative balance where its receiver has spent the tokens', async () => {
    const devnet = await startManualDevnet()
    const [token, dave] = [devnet.list.addressOf('AAPLc'), `0x${'da'.repeat(20)}` as const]
    const dropped = sendTransfer(devnet, 10n)
    devnet.makeFlashblock()
    devnet.transfer({ symbol: 'AAPLc', from: CAROL, to: dave, raw: 10n })
    devnet.makeFlashblock()
    devnet.faults.drop(dropped)
    const { number } = devnet.seal()
    expect([CAROL, dave].map((holder) => devnet.chain.valueAt(tokenBalanceKey(token, holder), number))).toEqual([0n, 10n])
  })

  it('changes the hash of its block and of every later one', async () => {
    const [normal, altered] = [await startManualDevnet({ now: () => 1.8e12 }), await startManualDevnet({ now: () => 1.8e12 })]
    const dropped = sendTransfer(altered, 1n)
    altered.makeFlashblock()
    altered.faults.drop(dropped)
    expect(altered.seal().hash).not.toBe(normal.seal().hash)
    expect(altered.seal().hash).not.toBe(normal.seal().hash)
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
  const logWith = (data: `0x${string}`) => ({ address: ZERO, topics: [], data })

  it('has other logs in the sealed block, under the same hash and index', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    sendTransfer(devnet, 1n)
    const changed = sendTransfer(devnet, 2n)
    sendTransfer(devnet, 3n)
    devnet.makeFlashblock()
    devnet.faults.change(changed, [logWith('0x0b')])
    const block = devnet.seal()
    await link.flush()
    expect(amounts(link.notifications)).toEqual([1, 2, 3])
    expect(amounts(block.logs)).toEqual([1, 11, 3])
    expect(block.logs[1]).toMatchObject({ transactionHash: changed, transactionIndex: '0x1', logIndex: '0x1' })
    expect(await getLogs(devnet, { blockHash: block.hash })).toEqual(block.logs)
  })

  it.each([
    ['no', [], ['0x0']],
    ['more', [logWith('0x0b'), logWith('0x0c')], ['0x0', '0x1', '0x2']],
  ])('may have %s logs, which shifts the later log indexes', async (_, replacement, logIndexes) => {
    const devnet = await startManualDevnet()
    devnet.faults.change(sendTransfer(devnet, 1n), replacement)
    const after = sendTransfer(devnet, 2n)
    devnet.makeFlashblock()
    const block = devnet.seal()
    expect(block.logs.map((log) => log.logIndex)).toEqual(logIndexes)
    expect(block.logs.at(-1)).toMatchObject({ transactionHash: after, transactionIndex: '0x1' })
  })

  it('changes the hash of its block', async () => {
    const [normal, altered] = [await startManualDevnet({ now: () => 1.8e12 }), await startManualDevnet({ now: () => 1.8e12 })]
    for (const devnet of [normal, altered]) {
      const hash = sendTransfer(devnet, 1n)
      devnet.makeFlashblock()
      if (devnet === altered) devnet.faults.change(hash, [logWith('0x0b')])
    }
    expect(altered.seal().hash).not.toBe(normal.seal().hash)
  })
})
