import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { startDevnet } from '../../../../src/devnet/devnet.ts'
import { tokenBalanceKey } from '../../../../src/devnet/tokens/token-storage.ts'
import { amounts, CAROL, openSocket, sendTransfer, startManualDevnet } from '../devnet-client.ts'

describe('a reorganisation', () => {
  it('replaces blocks, and pushes their logs as removed, then the new heads and logs', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    const [dropped] = [sendTransfer(devnet, 1n), sendTransfer(devnet, 2n)]
    devnet.makeFlashblock()
    devnet.seal()
    const old = devnet.seal()
    sendTransfer(devnet, 4n)
    devnet.makeFlashblock()
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
    const link = await openSocket(devnet)
    const [dropped, moved, kept] = [sendTransfer(devnet, 1n), sendTransfer(devnet, 2n), sendTransfer(devnet, 3n)]
    devnet.makeFlashblock()
    devnet.seal()
    await link.subscribe('pendingLogs', {})
    const [block] = devnet.reorg(1, [dropped], [moved])
    expect(block?.transactions.map(({ hash }) => hash)).toEqual([kept])
    devnet.makeFlashblock()
    await link.flush()
    expect(amounts(link.notifications)).toEqual([2])
    expect(devnet.seal().transactions.map(({ hash }) => hash)).toEqual([moved])
  })
})

describe('reorganisations by a fault', () => {
  const Head = z.looseObject({ number: z.string(), hash: z.string(), parentHash: z.string() })
  const PushedLog = z.looseObject({ blockHash: z.string(), logIndex: z.string(), removed: z.boolean() })

  it('happen at every n-th seal, with the depth of the fault', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('newHeads')
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
    sendTransfer(devnet, 3n)
    devnet.makeFlashblock()
    expect(devnet.seal().transactions).toHaveLength(3)
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

  it('leave a subscriber to heads and logs with the state of the chain', async () => {
    const devnet = await startDevnet({ blockMs: 50, flashblockMs: 25 })
    onTestFinished(() => devnet.stop())
    const link = await openSocket(devnet)
    await link.subscribe('newHeads')
    await link.subscribe('logs')
    Object.assign(devnet.faults, { reorgEvery: 4, reorgDepth: 3, dropEvery: 5 })
    const first = devnet.chain.pending.number
    await devnet.until(() => devnet.chain.head.number >= first + 12)
    devnet.faults.clear()
    await link.flush()

    const hashes = new Map<number, string>()
    const currentLogs = new Map<string, unknown>()
    let replaced = 0
    for (const result of link.notifications) {
      const log = PushedLog.safeParse(result)
      const key = log.data && `${log.data.blockHash} ${log.data.logIndex}`
      if (key && log.data?.removed) {
        const wasCurrent = currentLogs.delete(key)
        expect(wasCurrent || Number(log.data.blockNumber) < first).toBe(true)
      } else if (key) currentLogs.set(key, result)
      else {
        const head = Head.parse(result)
        const number = Number(head.number)
        expect(hashes.get(number - 1) ?? head.parentHash).toBe(head.parentHash)
        if (hashes.has(number)) replaced += 1
        hashes.set(number, head.hash)
      }
    }
    expect(replaced).toBeGreaterThanOrEqual(6)
    const numbers = [...hashes.keys()].filter((number) => number >= first)
    const blocks = numbers.map((number) => devnet.chain.block(number))
    expect(blocks.map((block) => block?.hash)).toEqual(numbers.map((number) => hashes.get(number)))
    const logs = [...currentLogs.values()].filter((log) => Number(PushedLog.parse(log).blockNumber) >= first)
    expect(logs).toEqual(blocks.flatMap((block) => block?.logs ?? []))
  })
})
