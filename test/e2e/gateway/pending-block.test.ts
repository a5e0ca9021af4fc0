import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import {
  ALICE,
  BlockSchema,
  BOB,
  CAROL,
  getLogs,
  rpcResult,
  sendTransfer,
  ZERO,
  ZERO_HASH,
} from '../../unit/devnet/devnet-client.ts'
import { openGatewayForTest, quantity } from './node-and-gateway.ts'

const NEW_CONTRACT = `0xb2${'0'.repeat(36)}99`
type IsExpected = (after: string, before: string) => boolean

/** A node with a chain of its own, read through the relay until an answer is as expected. */
async function open() {
  const { devnet, node } = await openGatewayForTest()
  const block = async (tag: string) => BlockSchema.parse(await rpcResult(node, 'eth_getBlockByNumber', tag, false))
  const pollBlock = (tag: string, field: string) => expect.poll(async () => (await block(tag))[field])
  return { devnet, node, block, pollBlock }
}

describe('the pending and the latest block', () => {
  it('differ in the number, the hash and the parent', async () => {
    const { devnet, block, pollBlock } = await open()
    const hash = sendTransfer(devnet, 1n)
    devnet.makeFlashblock()
    await pollBlock('pending', 'transactions').toEqual([hash])
    const { head } = devnet.chain
    expect(await block('latest')).toMatchObject({ number: quantity(head.number), hash: head.hash, transactions: [] })
    const pending = { number: quantity(head.number + 1), hash: ZERO_HASH, parentHash: head.hash }
    expect(await block('pending')).toMatchObject(pending)
  })

  it.each(['gasUsed', 'blobGasUsed'])('differ in %s, which grows with every flashblock', async (field) => {
    const { devnet, block } = await open()
    const amountAt = async (tag: string) => Number((await block(tag))[field])
    let before = 0
    for (const raw of [1n, 2n, 3n]) {
      sendTransfer(devnet, raw)
      devnet.makeFlashblock()
      await expect.poll(() => amountAt('pending')).toBeGreaterThan(before)
      before = await amountAt('pending')
      expect(await amountAt('latest')).toBe(0)
    }
    devnet.seal()
    await expect.poll(() => amountAt('latest')).toBe(before)
    await expect.poll(() => amountAt('pending')).toBe(0)
  })

  it('differ in the transactions: those pre-confirmed so far, and all that were sealed', async () => {
    const { devnet, block, pollBlock } = await open()
    const sent: string[] = []
    for (const raw of [1n, 2n, 3n]) {
      sent.push(sendTransfer(devnet, raw))
      devnet.makeFlashblock()
      await pollBlock('pending', 'transactions').toEqual(sent)
      expect((await block('latest')).transactions).toEqual([])
    }
    devnet.seal()
    await pollBlock('latest', 'transactions').toEqual(sent)
    await pollBlock('pending', 'transactions').toEqual([])
  })

  it('are the same where the node pre-confirms nothing', async () => {
    const { devnet, pollBlock } = await open()
    devnet.faults.pending = 'latest'
    await pollBlock('pending', 'hash').toBe(devnet.chain.head.hash)
  })
})

describe('at pending', () => {
  it('eth_getLogs finds pre-confirmed logs, and at latest once they are sealed', async () => {
    const { devnet, node } = await open()
    const hashesAt = (tag: string) => async () =>
      (await getLogs(node, { fromBlock: tag, toBlock: tag })).map(({ transactionHash }) => transactionHash)
    const sent = [sendTransfer(devnet, 1n), sendTransfer(devnet, 2n)]
    devnet.makeFlashblock()
    await expect.poll(hashesAt('pending')).toEqual(sent)
    expect(await hashesAt('latest')()).toEqual([])
    devnet.seal()
    await expect.poll(hashesAt('latest')).toEqual(sent)
    await expect.poll(hashesAt('pending')).toEqual([])
  })

  it.each<[string, (devnet: Devnet) => readonly unknown[], (devnet: Devnet) => unknown, IsExpected]>([
    [
      'eth_getTransactionCount',
      () => [ALICE],
      (devnet) => devnet.transfer({ symbol: 'AAPLc', from: ALICE, to: BOB, raw: 1n }),
      (after, before) => BigInt(after) === BigInt(before) + 1n,
    ],
    [
      'eth_getCode',
      () => [NEW_CONTRACT],
      (devnet) => devnet.transfer({ address: NEW_CONTRACT, from: ZERO, to: ALICE, raw: 1n }),
      (after, before) => after === '0xef' && ['0x', '0xef'].includes(before),
    ],
    [
      'eth_getStorageAt',
      ({ list }) => [list.addressOf('AAPLc'), '0x2'],
      (devnet) => devnet.transfer({ symbol: 'AAPLc', from: ZERO, raw: 70n }),
      (after, before) => after === `0x${(BigInt(before) + 70n).toString(16).padStart(64, '0')}`,
    ],
    [
      'eth_getBalance',
      ({ custodian }) => [custodian],
      (devnet) => devnet.transfer({ symbol: 'AAPLc', to: CAROL, raw: 1n }),
      (after, before) => BigInt(after) < BigInt(before),
    ],
  ])('%s has each pre-confirmed change, and at latest once it is sealed', async (method, paramsOf, change, isExpected) => {
    const { devnet, node } = await open()
    const read = async (tag: string) => z.string().parse(await rpcResult(node, method, ...paramsOf(devnet), tag))
    const latest = await read('latest')
    let before = await read('pending')
    expect(before).toBe(latest)
    for (let round = 1; round <= 3; round += 1) {
      change(devnet)
      devnet.makeFlashblock()
      await expect.poll(async () => isExpected(await read('pending'), before)).toBe(true)
      before = await read('pending')
      expect(await read('latest')).toBe(latest)
    }
    devnet.seal()
    await expect.poll(() => read('latest')).toBe(before)
  })

  it('an answer is at most 200 ms old, though the relay is pushed no change', async () => {
    const { devnet, node } = await open()
    // The list lacks this contract, so the node pushes none of its logs to the relay.
    const unlisted = `0xb2${'0'.repeat(36)}98`
    for (const count of [1, 2, 3]) {
      devnet.transfer({ address: unlisted, from: ALICE, to: BOB, raw: 1n })
      devnet.makeFlashblock()
      const changedAt = performance.now()
      let requestedAt = changedAt
      do requestedAt = performance.now()
      while ((await rpcResult(node, 'eth_getTransactionCount', ALICE, 'pending')) !== quantity(count))
      expect(requestedAt - changedAt).toBeLessThan(400)
    }
  })
})
