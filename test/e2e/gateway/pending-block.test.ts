import { describe, expect, it } from 'vitest'
import { z } from 'zod'
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

/** Longer than the relay may remember anything that is pre-confirmed or newest. */
const WAIT_OPTIONS = { timeout: 5_000, interval: 20 }

/** A node with a market of one's own, asked through the relay until it says what is waited for. */
async function open() {
  const { devnet, node } = await openGatewayForTest()
  const holds = (method: string, ...params: unknown[]) =>
    expect.poll(() => rpcResult(node, method, ...params), WAIT_OPTIONS)
  const block = async (tag: string) => BlockSchema.parse(await rpcResult(node, 'eth_getBlockByNumber', tag, false))
  return { devnet, node, holds, block }
}

describe('what is being built, and what is sealed', () => {
  it('differ in the number, the hash and the parent', async () => {
    const { devnet, block } = await open()
    sendTransfer(devnet, 1n)
    devnet.makeFlashblock()
    await expect.poll(async () => (await block('pending')).transactions.length, WAIT_OPTIONS).toBe(1)
    const [latest, pending] = [await block('latest'), await block('pending')]
    const { number, hash } = devnet.chain.head
    expect(latest).toMatchObject({ number: quantity(number), hash, transactions: [] })
    expect(pending).toMatchObject({ number: quantity(number + 1), hash: ZERO_HASH, parentHash: hash })
  })

  it.each(['gasUsed', 'blobGasUsed'])('differ in %s, which grows with every flashblock', async (field) => {
    const { devnet, block } = await open()
    let before = 0
    for (const raw of [1n, 2n, 3n]) {
      sendTransfer(devnet, raw)
      devnet.makeFlashblock()
      const known = before
      await expect.poll(async () => Number((await block('pending'))[field]), WAIT_OPTIONS).toBeGreaterThan(known)
      before = Number((await block('pending'))[field])
      expect(Number((await block('latest'))[field])).toBe(0)
    }
    devnet.seal()
    await expect.poll(async () => Number((await block('latest'))[field]), WAIT_OPTIONS).toBe(before)
    await expect.poll(async () => Number((await block('pending'))[field]), WAIT_OPTIONS).toBe(0)
  })

  it('differ in the transactions: those pre-confirmed so far, and all that were sealed', async () => {
    const { devnet, block } = await open()
    const sent: string[] = []
    for (const raw of [1n, 2n, 3n]) {
      sent.push(sendTransfer(devnet, raw))
      devnet.makeFlashblock()
      await expect.poll(async () => (await block('pending')).transactions, WAIT_OPTIONS).toEqual(sent)
      expect((await block('latest')).transactions).toEqual([])
    }
    devnet.seal()
    await expect.poll(async () => (await block('latest')).transactions, WAIT_OPTIONS).toEqual(sent)
    await expect.poll(async () => (await block('pending')).transactions, WAIT_OPTIONS).toEqual([])
  })

  it('are the same where the node pre-confirms nothing', async () => {
    const { devnet, block } = await open()
    devnet.faults.pending = 'latest'
    await expect.poll(async () => (await block('pending')).hash, WAIT_OPTIONS).toBe(devnet.chain.head.hash)
  })
})

describe('at pending', () => {
  it('eth_getLogs finds what is pre-confirmed, and once it is sealed it is found at latest', async () => {
    const { devnet, node } = await open()
    const hashesAt = (tag: string) => async () =>
      (await getLogs(node, { fromBlock: tag, toBlock: tag })).map(({ transactionHash }) => transactionHash)
    const sent = [sendTransfer(devnet, 1n), sendTransfer(devnet, 2n)]
    devnet.makeFlashblock()
    await expect.poll(hashesAt('pending'), WAIT_OPTIONS).toEqual(sent)
    expect(await hashesAt('latest')()).toEqual([])
    devnet.seal()
    await expect.poll(hashesAt('latest'), WAIT_OPTIONS).toEqual(sent)
    await expect.poll(hashesAt('pending'), WAIT_OPTIONS).toEqual([])
  })

  it('eth_getTransactionCount counts what is pre-confirmed, so that a quick sender leaves no gap', async () => {
    const { devnet, node, holds } = await open()
    for (const count of [1, 2, 3]) {
      devnet.transfer({ symbol: 'AAPLc', from: ALICE, to: BOB, raw: 1n })
      devnet.makeFlashblock()
      await holds('eth_getTransactionCount', ALICE, 'pending').toBe(quantity(count))
    }
    expect(await rpcResult(node, 'eth_getTransactionCount', ALICE, 'latest')).toBe('0x0')
    devnet.seal()
    await holds('eth_getTransactionCount', ALICE, 'latest').toBe('0x3')
  })

  it('eth_getCode shows a new contract before its block is sealed', async () => {
    const { devnet, node, holds } = await open()
    const fresh = `0xb2${'0'.repeat(36)}99`
    expect(await rpcResult(node, 'eth_getCode', fresh, 'pending')).toBe('0x')
    devnet.transfer({ address: fresh, from: ZERO, to: ALICE, raw: 1n })
    devnet.makeFlashblock()
    await holds('eth_getCode', fresh, 'pending').toBe('0xef')
    expect(await rpcResult(node, 'eth_getCode', fresh, 'latest')).toBe('0x')
    devnet.seal()
    await holds('eth_getCode', fresh, 'latest').toBe('0xef')
  })

  it('eth_getStorageAt shows a slot as it is pre-confirmed', async () => {
    const { devnet, node, holds } = await open()
    const token = devnet.list.addressOf('AAPLc')
    const before = z.string().parse(await rpcResult(node, 'eth_getStorageAt', token, '0x2', 'latest'))
    const after = `0x${(BigInt(before) + 70n).toString(16).padStart(64, '0')}`
    devnet.transfer({ symbol: 'AAPLc', from: ZERO, raw: 70n })
    devnet.makeFlashblock()
    await holds('eth_getStorageAt', token, '0x2', 'pending').toBe(after)
    expect(await rpcResult(node, 'eth_getStorageAt', token, '0x2', 'latest')).toBe(before)
    devnet.seal()
    await holds('eth_getStorageAt', token, '0x2', 'latest').toBe(after)
  })

  it('eth_getBalance is less what a pre-confirmed transaction costs', async () => {
    const { devnet, node } = await open()
    const balance = async (tag: string) =>
      BigInt(z.string().parse(await rpcResult(node, 'eth_getBalance', devnet.custodian, tag)))
    const before = await balance('latest')
    devnet.transfer({ symbol: 'AAPLc', to: CAROL, raw: 1n })
    devnet.makeFlashblock()
    await expect.poll(() => balance('pending'), WAIT_OPTIONS).toBeLessThan(before)
    const after = await balance('pending')
    expect(await balance('latest')).toBe(before)
    devnet.seal()
    await expect.poll(() => balance('latest'), WAIT_OPTIONS).toBe(after)
  })

  it('nothing is older than 200 ms, though nobody says that anything moved', async () => {
    const { devnet, node } = await open()
    // No list names this contract, so that no log of it is pushed to the relay.
    const unlisted = `0xb2${'0'.repeat(36)}98`
    const counted = async () => (await rpcResult(node, 'eth_getTransactionCount', ALICE, 'pending')) as string
    for (const count of [1, 2, 3]) {
      devnet.transfer({ address: unlisted, from: ALICE, to: BOB, raw: 1n })
      devnet.makeFlashblock()
      const moved = performance.now()
      let answer = ''
      // Whatever is asked later than that must be answered with what is so by now.
      let askedAt = moved
      while (answer !== quantity(count)) {
        askedAt = performance.now()
        answer = await counted()
      }
      expect(askedAt - moved).toBeLessThan(400)
    }
  })
})
