import { createPublicClient, http } from 'viem'
import { describe, expect, it } from 'vitest'
import { agreeing, ample, doorOf, nodeOf, openResting, strangers } from '../../support/rpc-scenarios.ts'
import { openDevnet, relayOn, transfer } from '../../support/test-stack.ts'
import { outcomeOf, readByViem, viemOn, viemWays } from '../../support/viem-client.ts'

describe.each(viemWays)('viem over %s', (way) => {
  it('reads all that the node has, from the node and from memory', async () => {
    const { devnet, relay, subject } = await openResting()
    const truth = await readByViem(viemOn(nodeOf(devnet), way), subject)
    expect(truth['getBalance pending']).toMatchObject({ value: expect.any(BigInt) })
    const client = viemOn(doorOf(relay), way)
    expect(await readByViem(client, subject)).toEqual(truth)
    expect(await readByViem(client, subject)).toEqual(truth)
  })

  it('reads what the chain has become, wherever it went', async () => {
    const world = await openResting()
    const { devnet, relay, subject } = world
    const [ours, theirs] = [viemOn(doorOf(relay), way), viemOn(nodeOf(devnet), way)]
    const before = await readByViem(ours, subject)
    for (const move of [() => transfer(world), () => devnet.seal(), () => devnet.reorg(2)]) {
      move()
      await agreeing(doorOf(relay), nodeOf(devnet))
      const truth = await readByViem(theirs, subject)
      expect(truth).not.toEqual(before)
      expect(await readByViem(ours, subject)).toEqual(truth)
    }
  })

  it('is refused what the node refuses, in its words', async () => {
    const devnet = await openDevnet()
    const relay = await relayOn(devnet, ample)
    const { number } = devnet.chain.head
    const [ours, theirs] = [doorOf(relay), nodeOf(devnet)].map((door) => {
      const client = viemOn(door, way)
      const receipts = { method: 'eth_getBlockReceipts', params: ['latest'] }
      const [address = '0x'] = strangers(1)
      return Promise.all([
        outcomeOf(client.request(receipts as never)),
        ...[5n, BigInt(number + 9)].map((blockNumber) => outcomeOf(client.getBalance({ address, blockNumber }))),
        outcomeOf(client.getCode({ address, blockHash: `0x${'ab'.repeat(32)}` })),
      ])
    })
    const truth = await theirs
    expect(truth).toMatchObject([-32601, -32000, -32001, -32001].map((code) => ({ code })))
    expect(await ours).toEqual(truth)
  })

  it('is answered in the end when it asks faster than it may', async () => {
    const { devnet, relay } = await openResting({ RPC_RATE: '50' })
    const client = viemOn(doorOf(relay), way)
    const balances = await Promise.all(strangers(80).map((address) => client.getBalance({ address })))
    expect(balances).toEqual(balances.map(() => 0n))
    expect(devnet.requests.eth_getBalance).toBeGreaterThanOrEqual(80)
  })
})

describe('viem that puts more into a batch than there may be', () => {
  it('is told so in words', async () => {
    const { relay } = await openResting()
    const client = createPublicClient({ transport: http(doorOf(relay).url, { batch: true }) })
    const outcomes = await Promise.all(strangers(60).map((address) => outcomeOf(client.getBalance({ address }))))
    for (const outcome of outcomes) expect(outcome).toMatchObject({ details: expect.stringContaining('at most 50') })
  })
})
