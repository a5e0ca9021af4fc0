import { expect, it } from 'vitest'
import { resultChecker } from '../../support/execution-api-schemas.ts'
import { callsOfAllMethods, openIdleStack } from '../../support/rpc-scenarios.ts'
import { rpcCall } from '../../unit/devnet/devnet-client.ts'
import { openAnvilGateway } from './node-and-gateway.ts'

/** Enough for some hashes and signatures to begin with a zero. */
const TRANSFERS = 64

/** Anvil alone adds the time to its receipts, and as a number. */
const anvilReceipts = { 'blockTimestamp?': { type: 'integer' } } as const

async function openDevnetStack() {
  const stack = await openIdleStack()
  for (let time = 0; time < TRANSFERS; time += 1) stack.devnet.transfer({ symbol: 'AAPLc', raw: 5n })
  stack.devnet.makeFlashblock()
  return stack
}

it.each([
  ['the devnet', openDevnetStack, {}, TRANSFERS],
  ['anvil', openAnvilGateway, anvilReceipts, 0],
] as const)('%s answers every method at every tag as the execution API specifies', async (_, openNode, extras, least) => {
  const { relay, subject } = await openNode()
  const node = { rpcUrl: `${relay.url}/rpc` } as Parameters<typeof rpcCall>[0]
  const partCounts: Record<string, number> = {}
  for (const call of callsOfAllMethods(subject)) {
    const { result, error } = await rpcCall(node, call.method, ...call.params)
    expect([error, resultChecker(call, extras)(result)], JSON.stringify(call)).toEqual([undefined, null])
    const parts = [result].flat().filter((part) => part !== null)
    partCounts[call.method] = (partCounts[call.method] ?? 0) + parts.length
  }
  expect(partCounts.eth_getBlockByNumber).toBe(12)
  for (const method of ['eth_getLogs', 'eth_getBlockReceipts']) expect(partCounts[method], method).toBeGreaterThan(least)
})
