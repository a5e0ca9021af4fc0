import { createPublicClient, http } from 'viem'
import { describe, expect, it } from 'vitest'
import {
  highRpcRate,
  nodeEndpoint,
  openIdleStack,
  relayEndpoint,
  unusedAddresses,
  waitForSameChain,
} from '../../support/rpc-scenarios.ts'
import { openDevnet, openRelayFor, transfer } from '../../support/test-stack.ts'
import { outcomeOf, readWithViem, viemClientFor, viemTransports } from '../../support/viem-client.ts'

describe.each(viemTransports)('viem over %s', (way) => {
  it('reads all that the node has, from the node and from memory', async () => {
    const { devnet, relay, subject } = await openIdleStack()
    const truth = await readWithViem(viemClientFor(nodeEndpoint(devnet), way), subject)
    expect(truth['getBalance pending']).toMatchObject({ value: expect.any(BigInt) })
    const client = viemClientFor(relayEndpoint(relay), way)
    expect(await readWithViem(client, subject)).toEqual(truth)
    expect(await readWithViem(client, subject)).toEqual(truth)
  })

  it('reads what the chain has become, wherever it went', async () => {
    const stack = await openIdleStack()
    const { devnet, relay, subject } = stack
    const [ours, theirs] = [viemClientFor(relayEndpoint(relay), way), viemClientFor(nodeEndpoint(devnet), way)]
    const before = await readWithViem(ours, subject)
    for (const move of [() => transfer(stack), () => devnet.seal(), () => devnet.reorg(2)]) {
      move()
      await waitForSameChain(relayEndpoint(relay), nodeEndpoint(devnet))
      const truth = await readWithViem(theirs, subject)
      expect(truth).not.toEqual(before)
      expect(await readWithViem(ours, subject)).toEqual(truth)
    }
  })

  it('is refused what the node refuses, in its words', async () => {
    const devnet = await openDevnet()
    const relay = await openRelayFor(devnet, highRpcRate)
    const { number } = devnet.chain.head
    const [ours, theirs] = [relayEndpoint(relay), nodeEndpoint(devnet)].map((door) => {
      const client = viemClientFor(door, way)
      const receipts = { method: 'eth_getBlockReceipts', params: ['latest'] }
      const [address = '0x'] = unusedAddresses(1)
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
    const { devnet, relay } = await openIdleStack({ RPC_RATE: '50' })
    const client = viemClientFor(relayEndpoint(relay), way)
    const balances = await Promise.all(unusedAddresses(80).map((address) => client.getBalance({ address })))
    expect(balances).toEqual(balances.map(() => 0n))
    expect(devnet.requests.eth_getBalance).toBeGreaterThanOrEqual(80)
  })
})

describe('viem that puts more into a batch than there may be', () => {
  it('is told so in words', async () => {
    const { relay } = await openIdleStack()
    const client = createPublicClient({ transport: http(relayEndpoint(relay).url, { batch: true }) })
    const outcomes = await Promise.all(unusedAddresses(60).map((address) => outcomeOf(client.getBalance({ address }))))
    for (const outcome of outcomes) expect(outcome).toMatchObject({ details: expect.stringContaining('at most 50') })
  })
})
