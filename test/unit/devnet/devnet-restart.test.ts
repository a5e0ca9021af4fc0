import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { etherKey, nonceKey } from '../../../src/devnet/chain/account-state.ts'
import { GENESIS_MS } from '../../../src/devnet/chain/chain-builder.ts'
import { type Devnet, startDevnet } from '../../../src/devnet/devnet.ts'
import { TEST_CYCLE_S } from '../../../src/devnet/life/test-token-schedule.ts'
import { CYCLE_BLOCKS } from '../../../src/devnet/life/trading-cycle.ts'
import { receiptsJson } from '../../../src/devnet/node/block-json.ts'
import { openScriptedChain, type ScriptedChain } from '../../../src/devnet/scripted-chain.ts'
import { tokens } from '../../../src/devnet/tokens/issued-tokens.ts'
import { supplyKey, tokenBalanceKey } from '../../../src/devnet/tokens/token-storage.ts'
import { type Hex, toLowerHex, ZERO_ADDRESS } from '../../../src/lib/hex.ts'
import { demoSettings, ZERO_HASH } from './devnet-client.ts'

const WORLD_SETTINGS = demoSettings('restart')
const { blockMs: BLOCK_MS } = WORLD_SETTINGS
const NOON_MS = Date.UTC(2026, 10, 20, 12)
const [TRANSFER, APPROVAL] = ['0xddf252ad', '0x8c5be1e5']

const account = (word: Hex | undefined): Hex => toLowerHex(`0x${word?.slice(26)}`)

/** Runs a world until a time, as its clock would. */
const liveUntil = (world: ScriptedChain, nowMs: number): ScriptedChain => {
  while (world.nextStepDueMs() <= nowMs) world.isSealNext() ? world.seal() : world.makeFlashblock()
  return world
}

const sealedFrom = ({ chain }: Pick<Devnet, 'chain'>, first = chain.oldest) =>
  Array.from({ length: chain.head.number - first + 1 }, (_, at) => chain.block(first + at) ?? expect.unreachable())

describe('a restarted devnet', () => {
  it('continues the same chain, independent of the start of either run', () => {
    const [firsts, furthers] = [fc.nat({ max: 20 * CYCLE_BLOCKS }), fc.nat({ max: 2 * CYCLE_BLOCKS })]
    fc.assert(
      fc.property(fc.string(), firsts, furthers, fc.nat({ max: 1_999 }), (seed, first, further, partMs) => {
        const startMs = NOON_MS + first * BLOCK_MS
        const endMs = startMs + further * BLOCK_MS + partMs
        const early = liveUntil(openScriptedChain({ ...WORLD_SETTINGS, seed }, startMs), endMs)
        const late = liveUntil(openScriptedChain({ ...WORLD_SETTINGS, seed }, endMs), endMs)
        const from = Math.max(early.chain.oldest, late.chain.oldest)
        const comparable = (world: ScriptedChain) =>
          [...sealedFrom(world, from), world.chain.pending].map((block) => ({
            block: { ...block, transactions: [], state: null },
            receipts: receiptsJson(block),
            nonces: block.transactions.map(({ nonce }) => nonce),
          }))
        expect(comparable(late)).toEqual(comparable(early))
        const sent = late.chain.pending.transactions
        const keys = sent.flatMap(({ writes, from: sender }) => [
          ...writes.map(({ key }) => key),
          nonceKey(sender),
          etherKey(sender),
        ])
        for (const at of ['pending', early.chain.head.number, from] as const)
          for (const key of keys) expect(late.chain.valueAt(key, at)).toBe(early.chain.valueAt(key, at))
      }),
      { numRuns: 4 },
    )
  })

  it('has the same accounts, pools and test token, in every minute of the schedule of the test token', () => {
    const early = liveUntil(openScriptedChain(WORLD_SETTINGS, NOON_MS), NOON_MS + 2 * TEST_CYCLE_S * 1_000)
    const sent = sealedFrom(early).flatMap(({ transactions }) => transactions)
    const keys = new Set(sent.flatMap(({ writes, from }) => [...writes.map(({ key }) => key), nonceKey(from), etherKey(from)]))
    expect(keys.size).toBeGreaterThan(400)
    // Each start begins at another point of the schedule.
    for (const minutes of [3, 7, 11, 14, 18]) {
      const endMs = NOON_MS + minutes * 60_000
      const late = openScriptedChain(WORLD_SETTINGS, endMs)
      const { head, oldest } = late.chain
      expect(head.number).toBe(Math.floor((endMs - GENESIS_MS) / BLOCK_MS))
      for (const number of [oldest - 1, head.number])
        for (const key of keys)
          expect(late.chain.valueAt(key, number), `${key} at ${number}`).toBe(early.chain.valueAt(key, number))
    }
  })

  it('has another chain with another seed, and other hashes than its seed determines after an injected transaction', () => {
    const open = (seed: string) => openScriptedChain({ ...WORLD_SETTINGS, seed }, NOON_MS)
    const [own, other] = [open('one'), open('one')]
    expect(own.chain.head.hash).not.toBe(open('another').chain.head.hash)
    other.makeFlashblock([
      () => ({ from: ZERO_ADDRESS, to: ZERO_ADDRESS, input: '0x', gasUsed: 1, logs: [], writes: [], injectedHash: ZERO_HASH }),
    ])
    for (const world of [own, other]) for (let blocks = 0; blocks < 3; blocks++) world.seal()
    const hashesOf = (world: ScriptedChain) => [0, 1, 2, 3].map((back) => world.chain.block(world.chain.head.number - back)?.hash)
    expect(hashesOf(own).map((hash, back) => hash === hashesOf(other)[back])).toEqual([false, false, false, true])
  })
})

describe('the state', () => {
  it('has balances that add up to the total supply, none negative', () => {
    const world = openScriptedChain(WORLD_SETTINGS, NOON_MS)
    const { chain } = world
    const accounts = new Set(sealedFrom(world).flatMap(({ logs }) => logs.flatMap(({ topics }) => topics.slice(1).map(account))))
    accounts.delete(ZERO_ADDRESS)
    accounts.add(world.custodian)
    for (const at of [chain.oldest, chain.head.number - 77, chain.head.number, 'pending'] as const) {
      for (const { address } of tokens) {
        const balances = [...accounts].map((holder) => chain.valueAt(tokenBalanceKey(address, holder), at))
        expect(balances.every((raw) => raw >= 0n)).toBe(true)
        expect(balances.reduce((sum, raw) => sum + raw, 0n)).toBe(chain.valueAt(supplyKey(address), at))
      }
    }
  })

  it('is never negative, even with dropped transactions', () => {
    const world = openScriptedChain(WORLD_SETTINGS, NOON_MS)
    const end = world.chain.head.number + 2 * CYCLE_BLOCKS
    for (let sent = 0; world.chain.head.number < end; )
      world.isSealNext() ? world.seal(() => (sent++ % 3 === 0 ? 'dropped' : 'kept')) : world.makeFlashblock()
    for (const { key } of sealedFrom(world).flatMap(({ transactions }) => transactions.flatMap(({ writes }) => writes)))
      expect(world.chain.valueAt(key, world.chain.head.number)).toBeGreaterThanOrEqual(0n)
  })

  it('results from transfers, mints, burns and approvals, of every token', () => {
    const seen = sealedFrom(openScriptedChain(WORLD_SETTINGS, NOON_MS)).flatMap((block) => block.logs)
    const kinds = Map.groupBy(seen, ({ topics: [event, from, to] }) => {
      if (!event?.startsWith(TRANSFER)) return event?.startsWith(APPROVAL) ? 'approval' : 'other'
      return account(from) === ZERO_ADDRESS ? 'mint' : account(to) === ZERO_ADDRESS ? 'burn' : 'transfer'
    })
    for (const kind of ['mint', 'burn', 'approval'] as const) expect(kinds.get(kind)?.length).toBeGreaterThan(10)
    const transferred = new Set(kinds.get('transfer')?.map(({ address }) => address))
    expect(tokens.filter(({ address }) => !transferred.has(address))).toEqual([])
  })
})

it('a devnet at the pace of the clock allows no manual blocks, starts with some hundred blocks of bounded size, and stops at once', async () => {
  const devnet = await startDevnet({ port: 0 })
  for (const act of [devnet.seal, devnet.makeFlashblock]) expect(() => act()).toThrow('the clock sets the pace')
  const blocks = sealedFrom(devnet)
  expect(blocks.length).toBeGreaterThan(400)
  expect(blocks.flatMap(({ transactions }) => transactions).length).toBeLessThan(25_000)
  await Promise.all([devnet.stop(), devnet.stop()])
  await expect(fetch(devnet.stocksUrl)).rejects.toThrow()
})
