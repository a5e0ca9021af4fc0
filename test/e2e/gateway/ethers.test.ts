import { describe, expect, it } from 'vitest'
import { ethersProviderFor, ethersTransports, readWithEthers } from '../../support/ethers-client.ts'
import {
  nodeEndpoint,
  openIdleStack,
  relayEndpoint,
  unusedAddresses,
  waitForSameChain,
} from '../../support/rpc-scenarios.ts'
import { transfer } from '../../support/test-stack.ts'

describe.each(ethersTransports)('ethers over %s', (way) => {
  it('reads all that the node has, from the node and from memory', async () => {
    const { devnet, relay, subject } = await openIdleStack()
    const truth = await readWithEthers(ethersProviderFor(nodeEndpoint(devnet), way), subject)
    expect(truth['getBalance pending']).toMatchObject({ value: expect.stringMatching(/^\d+$/) })
    const provider = ethersProviderFor(relayEndpoint(relay), way)
    expect(await readWithEthers(provider, subject)).toEqual(truth)
    expect(await readWithEthers(provider, subject)).toEqual(truth)
  })

  it('reads what the chain has become, wherever it went', async () => {
    const stack = await openIdleStack()
    const { devnet, relay, subject } = stack
    const [ours, theirs] = [ethersProviderFor(relayEndpoint(relay), way), ethersProviderFor(nodeEndpoint(devnet), way)]
    const before = await readWithEthers(ours, subject)
    for (const move of [() => transfer(stack), () => devnet.seal(), () => devnet.reorg(2)]) {
      move()
      await waitForSameChain(relayEndpoint(relay), nodeEndpoint(devnet))
      const truth = await readWithEthers(theirs, subject)
      expect(truth).not.toEqual(before)
      expect(await readWithEthers(ours, subject)).toEqual(truth)
    }
  })
})

describe('ethers that asks much at once', () => {
  it.each(['http', 'http one by one'] as const)(
    'over %s is answered in the end, with the rate that all have',
    async (way) => {
      const { relay } = await openIdleStack({ RPC_RATE: '50' })
      const provider = ethersProviderFor(relayEndpoint(relay), way)
      await provider.getNetwork()
      const balances: bigint[] = []
      // Two batches that may not be one.
      for (const some of [unusedAddresses(80).slice(0, 40), unusedAddresses(80).slice(40)])
        balances.push(...(await Promise.all(some.map((address) => provider.getBalance(address)))))
      expect(balances).toEqual(Array.from({ length: 80 }, () => 0n))
    },
  )

  it('is told in words when one batch holds more than it may', async () => {
    const { relay } = await openIdleStack()
    const provider = ethersProviderFor(relayEndpoint(relay), 'http')
    await provider.getNetwork()
    const outcomes = await Promise.allSettled(unusedAddresses(60).map((address) => provider.getBalance(address)))
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ reason: { error: { message: expect.stringContaining('at most 50') } } })
  })
})
