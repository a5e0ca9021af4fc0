import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { tokenBalanceKey } from '../../../../src/devnet/tokens/token-storage.ts'
import type { Hex } from '../../../../src/lib/hex.ts'
import {
  amounts,
  CAROL,
  getLogs,
  makeTransfers,
  openSubscribed,
  rpcResult,
  sendTransfer,
  startManualDevnet,
  ZERO,
} from '../devnet-client.ts'

const NO_HASH: Hex = '0x'
const logWith = (data: Hex) => ({ address: ZERO, topics: [], data })
/** The transactions that the next flashblock has, by their hashes. */
const preconfirm = (devnet: Devnet, ...raws: readonly bigint[]): readonly Hex[] => {
  const hashes = raws.map((raw) => sendTransfer(devnet, raw))
  devnet.makeFlashblock()
  return hashes
}

describe('a dropped transaction', () => {
  it('is not in the sealed block, and has no effect', async () => {
    const devnet = await startManualDevnet()
    const [, dropped = NO_HASH] = preconfirm(devnet, 1n, 20n, 300n)
    const key = tokenBalanceKey(devnet.list.addressOf('AAPLc'), CAROL)
    expect(devnet.chain.valueAt(key, 'pending')).toBe(321n)
    devnet.faults.drop(dropped)
    const { logs, number } = devnet.seal()
    expect(amounts(logs)).toEqual([1, 300])
    expect(logs.map((log) => [log.transactionIndex, log.logIndex].map(Number))).toEqual([0, 1].map((at) => [at, at]))
    expect(devnet.chain.valueAt(key, number)).toBe(301n)
    expect(Number(await rpcResult(devnet, 'eth_getTransactionCount', devnet.custodian, 'pending'))).toBe(2)
  })

  it('is every n-th with the fault `dropEvery`', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.dropEvery = 3
    makeTransfers(devnet, 1, 2, 3, 4)
    expect(amounts(devnet.seal().logs)).toEqual([1, 2, 4])
  })
})

it('a moved transaction is in the next block, under the same hash', async () => {
  const devnet = await startManualDevnet()
  const [moved = NO_HASH] = preconfirm(devnet, 1n, 2n)
  devnet.faults.move(moved)
  expect(amounts(devnet.seal().logs)).toEqual([2])
  expect(devnet.makeFlashblock()).toMatchObject([{ transactionHash: moved, logIndex: '0x0' }])
  expect(amounts(devnet.seal().logs)).toEqual([1])
})

it('a moved change of a multiplier runs again, with the time of the block in which it lands', async () => {
  const devnet = await startManualDevnet()
  const moved = devnet.issuer.split({ symbol: 'AAPLc', to: '2' })
  const timeIn = (logs: readonly { data: Hex }[]) => Number(`0x${logs.at(-1)?.data.slice(-64)}`)
  const shown = devnet.chain
  expect(timeIn(devnet.makeFlashblock())).toBe(shown.pending.timestamp)
  devnet.faults.move(moved)
  devnet.seal()
  expect(timeIn(devnet.makeFlashblock())).toBe(shown.pending.timestamp + 2)
  // The chain of an earlier moment stays as it was.
  expect([shown.pending.logs, shown.head.number]).toEqual([[], devnet.chain.head.number - 1])
})

it.each<[string, Hex[], number[]]>([
  ['other', ['0x0b'], [1, 11, 3]],
  ['no', [], [1, 3]],
  ['more', ['0x0b', '0x0c'], [1, 11, 12, 3]],
])(
  'a changed transaction may have %s logs, under its hash and index, which shifts the later ones',
  async (_, replacement, expected) => {
    const devnet = await startManualDevnet()
    const link = await openSubscribed(devnet, 'pendingLogs')
    const [, changed = NO_HASH, after] = preconfirm(devnet, 1n, 2n, 3n)
    devnet.faults.change(changed, replacement.map(logWith))
    const { logs, hash } = devnet.seal()
    await link.flush()
    expect(amounts(link.notifications)).toEqual([1, 2, 3])
    expect(amounts(logs)).toEqual(expected)
    expect(logs.map(({ logIndex }) => Number(logIndex))).toEqual(expected.map((__, index) => index))
    expect(logs.at(-1)).toMatchObject({ transactionHash: after, transactionIndex: '0x2' })
    for (const log of logs.slice(1, -1)) expect(log).toMatchObject({ transactionHash: changed, transactionIndex: '0x1' })
    expect(await getLogs(devnet, { blockHash: hash })).toEqual(logs)
  },
)

it.each<[string, readonly bigint[], (devnet: Devnet, hash: Hex) => void]>([
  ['lost a transaction, from one that never had it', [], (devnet, hash) => devnet.faults.drop(hash)],
  ['has other logs, from the original', [1n], (devnet, hash) => devnet.faults.change(hash, [logWith('0x0b')])],
])('the hash differs for a block that %s, and for the next one', async (_, normalRaws, alter) => {
  const [normal, altered] = [await startManualDevnet({ now: () => 1.8e12 }), await startManualDevnet({ now: () => 1.8e12 })]
  preconfirm(normal, ...normalRaws)
  const [hash = NO_HASH] = preconfirm(altered, 1n)
  alter(altered, hash)
  for (const at of ['the block', 'the next']) expect(altered.seal().hash, at).not.toBe(normal.seal().hash)
})
