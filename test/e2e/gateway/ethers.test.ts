import { describe, expect, it } from 'vitest'
import { ethersOn, ethersWays, readByEthers } from '../../support/ethers-client.ts'
import { agreeing, doorOf, nodeOf, openResting, strangers } from '../../support/rpc-scenarios.ts'
import { transfer } from '../../support/test-stack.ts'

describe.each(ethersWays)('ethers over %s', (way) => {
  it('reads all that the node has, from the node and from memory', async () => {
    const { devnet, relay, subject } = await openResting()
    const truth = await readByEthers(ethersOn(nodeOf(devnet), way), subject)
    expect(truth['getBalance pending']).toMatchObject({ value: expect.stringMatching(/^\d+$/) })
    const provider = ethersOn(doorOf(relay), way)
    expect(await readByEthers(provider, subject)).toEqual(truth)
    expect(await readByEthers(provider, subject)).toEqual(truth)
  })

  it('reads what the chain has become, wherever it went', async () => {
    const world = await openResting()
    const { devnet, relay, subject } = world
    const [ours, theirs] = [ethersOn(doorOf(relay), way), ethersOn(nodeOf(devnet), way)]
    const before = await readByEthers(ours, subject)
    for (const move of [() => transfer(world), () => devnet.seal(), () => devnet.reorg(2)]) {
      move()
      await agreeing(doorOf(relay), nodeOf(devnet))
      const truth = await readByEthers(theirs, subject)
      expect(truth).not.toEqual(before)
      expect(await readByEthers(ours, subject)).toEqual(truth)
    }
  })
})

describe('ethers that asks much at once', () => {
  it.each(['http', 'http one by one'] as const)(
    'over %s is answered in the end, with the rate that all have',
    async (way) => {
      const { relay } = await openResting({ RPC_RATE: '50' })
      const provider = ethersOn(doorOf(relay), way)
      await provider.getNetwork()
      const balances: bigint[] = []
      // Two batches that may not be one.
      for (const some of [strangers(80).slice(0, 40), strangers(80).slice(40)])
        balances.push(...(await Promise.all(some.map((address) => provider.getBalance(address)))))
      expect(balances).toEqual(Array.from({ length: 80 }, () => 0n))
    },
  )

  it('is told in words when one batch holds more than it may', async () => {
    const { relay } = await openResting()
    const provider = ethersOn(doorOf(relay), 'http')
    await provider.getNetwork()
    const outcomes = await Promise.allSettled(strangers(60).map((address) => provider.getBalance(address)))
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ reason: { error: { message: expect.stringContaining('at most 50') } } })
  })
})
