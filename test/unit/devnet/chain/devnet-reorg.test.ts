import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { tokenBalanceKey } from '../../../../src/devnet/tokens/token-storage.ts'
import {
  amounts,
  CAROL,
  makeTransfers,
  openSocket,
  openSubscribed,
  sealTransfers,
  sendTransfer,
  startManualDevnet,
} from '../devnet-client.ts'

describe('a reorganisation', () => {
  it('replaces blocks, and pushes their logs as removed, then the new heads and logs', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    const dropped = sendTransfer(devnet, 1n)
    sealTransfers(devnet, 2)
    const old = devnet.seal()
    makeTransfers(devnet, 4)
    await link.subscribe('logs')
    await link.subscribe('newHeads')

    const [first, second] = devnet.reorg(2, [dropped])
    await link.flush()
    expect(second).toMatchObject({ number: old.number, parentHash: first?.hash })
    expect(second?.hash).not.toBe(old.hash)
    expect(link.notifications).toMatchObject([
      { removed: true, data: `0x${'1'.padStart(64, '0')}` },
      { removed: true, data: `0x${'2'.padStart(64, '0')}` },
      { hash: first?.hash },
      { removed: false, data: `0x${'2'.padStart(64, '0')}`, blockHash: first?.hash, logIndex: '0x0' },
      { hash: second?.hash },
    ])
    const key = tokenBalanceKey(devnet.list.addressOf('AAPLc'), CAROL)
    expect([devnet.chain.valueAt(key, 'pending'), devnet.chain.valueAt(key, old.number)]).toEqual([6n, 2n])
    expect(devnet.chain.blockOfHash(old.hash)).toBeUndefined()
    expect(devnet.seal()).toMatchObject({ parentHash: second?.hash })
  })

  it('goes no deeper than the kept blocks', async () => {
    const devnet = await startManualDevnet()
    expect(() => devnet.reorg(5_000)).toThrow('cannot replace 5000 blocks')
    expect(() => devnet.reorg(0)).toThrow('cannot replace 0 blocks')
  })

  it('can move a transaction to a later block', async () => {
    const devnet = await startManualDevnet()
    const [dropped, moved, kept] = [sendTransfer(devnet, 1n), sendTransfer(devnet, 2n), sendTransfer(devnet, 3n)]
    sealTransfers(devnet)
    const link = await openSubscribed(devnet, 'pendingLogs')
    const [block] = devnet.reorg(1, [dropped], [moved])
    expect(block?.transactions.map(({ hash }) => hash)).toEqual([kept])
    devnet.makeFlashblock()
    await link.flush()
    expect(amounts(link.notifications)).toEqual([2])
    expect(devnet.seal().transactions.map(({ hash }) => hash)).toEqual([moved])
  })
})

describe('reorganisations by a fault', () => {
  const Head = z.looseObject({ number: z.string() })

  it('happen at every n-th seal, with the depth of the fault', async () => {
    const devnet = await startManualDevnet()
    const link = await openSubscribed(devnet, 'newHeads')
    Object.assign(devnet.faults, { reorgEvery: 3, reorgDepth: 2 })
    const { number } = devnet.chain.pending
    for (let seals = 0; seals < 7; seals++) devnet.seal()
    await link.flush()
    const heights = z
      .array(Head)
      .parse(link.notifications)
      .map((head) => Number(head.number) - number)
    expect(heights).toEqual([0, 1, 2, 1, 2, 3, 4, 5, 4, 5, 6])
  })

  it('drop and move transactions as a seal does', async () => {
    const devnet = await startManualDevnet()
    const [dropped, moved] = [sendTransfer(devnet, 1n), sendTransfer(devnet, 2n)]
    expect(sealTransfers(devnet, 3).transactions).toHaveLength(3)
    Object.assign(devnet.faults, { reorgEvery: 1, reorgDepth: 2 })
    devnet.faults.drop(dropped)
    devnet.faults.move(moved)
    const { parentHash } = devnet.seal()
    expect(devnet.chain.blockOfHash(parentHash)).toBeUndefined()
    expect(amounts(devnet.chain.block(devnet.chain.head.number - 1)?.logs ?? [])).toEqual([3])
    expect(amounts(devnet.makeFlashblock())).toEqual([2])
  })

  it('replace no more blocks than are kept', async () => {
    const devnet = await startManualDevnet()
    Object.assign(devnet.faults, { reorgEvery: 1, reorgDepth: 5_000 })
    const { oldest } = devnet.chain
    devnet.seal()
    expect(devnet.chain.oldest).toBe(oldest)
  })
})
