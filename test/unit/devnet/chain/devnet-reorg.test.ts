import { describe, expect, it } from 'vitest'
import { tokenBalanceKey } from '../../../../src/devnet/tokens/token-storage.ts'
import { CAROL, makeTransfers, openSubscribed, sealTransfers, sendTransfer, startManualDevnet } from '../devnet-client.ts'

const logOf = (raw: string) => ({ removed: false, data: `0x${raw.padStart(64, '0')}` })

describe('a reorganisation', () => {
  it('replaces blocks: after the heads and the logs of a seal are pushed the removed logs, then the new heads and logs', async () => {
    const devnet = await startManualDevnet()
    const link = await openSubscribed(devnet, 'logs', 'newHeads')
    const dropped = sendTransfer(devnet, 1n)
    const { hash } = sealTransfers(devnet, 2)
    const old = devnet.seal()
    makeTransfers(devnet, 4)
    await link.flush()
    const pushed = link.notifications.splice(0)
    expect(pushed).toMatchObject([{ hash, logsBloom: expect.any(String) }, ...['1', '2'].map(logOf), { hash: old.hash }])
    expect(pushed[0]).not.toHaveProperty('transactions')

    const [first, second] = devnet.reorg(2, [dropped])
    await link.flush()
    expect(second).toMatchObject({ number: old.number, parentHash: first?.hash })
    expect(second?.hash).not.toBe(old.hash)
    expect(link.notifications).toMatchObject([
      { ...logOf('1'), removed: true },
      { ...logOf('2'), removed: true },
      { hash: first?.hash },
      { ...logOf('2'), blockHash: first?.hash, logIndex: '0x0' },
      { hash: second?.hash },
    ])
    const key = tokenBalanceKey(devnet.list.addressOf('AAPLc'), CAROL)
    expect([devnet.chain.valueAt(key, 'pending'), devnet.chain.valueAt(key, old.number)]).toEqual([6n, 2n])
    expect(devnet.chain.blockOfHash(old.hash)).toBeUndefined()
    expect(devnet.seal()).toMatchObject({ parentHash: second?.hash })
  })

  it('goes no deeper than the kept blocks', async () => {
    const devnet = await startManualDevnet()
    for (const depth of [0, 5_000]) expect(() => devnet.reorg(depth)).toThrow(`cannot replace ${depth} blocks`)
  })
})
