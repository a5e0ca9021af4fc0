import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { etherKey, nonceKey, storageKey } from '../../../src/devnet/chain/account-state.ts'
import { GENESIS_MS } from '../../../src/devnet/chain/chain.ts'
import type { DevnetLog } from '../../../src/devnet/chain/chain-types.ts'
import { type DevnetOptions, startDevnet } from '../../../src/devnet/devnet.ts'
import { TEST_CYCLE_S } from '../../../src/devnet/life/test-token-schedule.ts'
import { CYCLE_BLOCKS } from '../../../src/devnet/life/trading-cycle.ts'
import { receiptsJson } from '../../../src/devnet/node/block-json.ts'
import { openScriptedChain, type ScriptedChain, type ScriptedChainSettings } from '../../../src/devnet/scripted-chain.ts'
import { poolContract, pools } from '../../../src/devnet/tokens/devnet-pools.ts'
import { feeds, testFeed } from '../../../src/devnet/tokens/feeds.ts'
import { testToken, tokens } from '../../../src/devnet/tokens/issued-tokens.ts'
import { poolLiquidityKey, poolStateKey } from '../../../src/devnet/tokens/pool-storage.ts'
import { supplyKey, tokenBalanceKey } from '../../../src/devnet/tokens/token-storage.ts'
import { type Hex, toLowerHex, ZERO_ADDRESS } from '../../../src/lib/hex.ts'
import { getLogs, openSocket, rpcResult, ZERO_HASH } from './devnet-client.ts'

const WORLD_SETTINGS: ScriptedChainSettings = {
  seed: 'restart',
  chainId: 84_532_001,
  blockMs: 2_000,
  flashblockMs: 1_000,
  transactionsPerFlashblock: 1,
  calendar: true,
}
const NOON_MS = Date.UTC(2026, 10, 20, 12)
const [TRANSFER, APPROVAL] = ['0xddf252ad', '0x8c5be1e5']

/** Feed publications are excluded from sums, since their senders' nonces follow the clock. */
const isFeedPublication = ({ to }: { to: Hex }): boolean => feeds.some(({ aggregator }) => aggregator === to)
/** What swaps leave behind depends on the reference values. */
const isSwap = ({ to }: { to: Hex }): boolean => pools.some((pool) => poolContract(pool) === to)

/** The schedule of the test token has a length of its own. */
const isOfTestToken = ({ to }: { to: Hex }): boolean => to === testToken.address || to === testFeed.aggregator

const account = (word: Hex | undefined): Hex => toLowerHex(`0x${word?.slice(26)}`)

/** Runs a world until a time, as its clock would. */
const liveUntil = (world: ScriptedChain, nowMs: number): void => {
  while (world.nextStepDueMs() <= nowMs) world.isSealNext() ? world.seal() : world.makeFlashblock()
}

/** The balance changes of some transfers, derived only from the logs. */
const balanceChanges = (transfers: readonly DevnetLog[]): Map<string, bigint> => {
  const changes = new Map<string, bigint>()
  const add = (key: string, raw: bigint) => changes.set(key, (changes.get(key) ?? 0n) + raw)
  for (const { address, topics, data } of transfers) {
    if (!topics[0]?.startsWith(TRANSFER)) continue
    const [from, to, raw] = [account(topics[1]), account(topics[2]), BigInt(data)]
    from === ZERO_ADDRESS ? add(supplyKey(address), raw) : add(tokenBalanceKey(address, from), -raw)
    to === ZERO_ADDRESS ? add(supplyKey(address), -raw) : add(tokenBalanceKey(address, to), raw)
  }
  return changes
}

const sealedFrom = (world: ScriptedChain, first: number) =>
  Array.from({ length: world.chain.head.number - first + 1 }, (_, at) => {
    const block = world.chain.block(first + at)
    if (!block) throw new Error(`no block ${first + at}`)
    return block
  })

describe('a restarted devnet', () => {
  it('continues the same chain, independent of the start of either run', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.nat({ max: 20 * CYCLE_BLOCKS }),
        fc.nat({ max: 2 * CYCLE_BLOCKS }),
        fc.nat({ max: 1_999 }),
        (seed, first, further, partMs) => {
          const startMs = NOON_MS + first * 2_000
          const endMs = startMs + further * 2_000 + partMs
          const early = openScriptedChain({ ...WORLD_SETTINGS, seed }, startMs)
          liveUntil(early, endMs)
          const late = openScriptedChain({ ...WORLD_SETTINGS, seed }, endMs)
          liveUntil(late, endMs)
          const from = Math.max(early.chain.oldest, late.chain.oldest)
          const comparable = (world: ScriptedChain) =>
            [...sealedFrom(world, from), world.chain.pending].map((block) => ({
              block: { ...block, transactions: [], before: [] },
              receipts: receiptsJson(block),
              nonces: block.transactions.map(({ nonce }) => nonce),
            }))
          expect(comparable(late)).toEqual(comparable(early))
          for (const at of ['pending', early.chain.head.number, from] as const) {
            for (const { key } of late.chain.pending.transactions.flatMap(({ writes, from: sender }) => [
              ...writes,
              { key: nonceKey(sender) },
              { key: etherKey(sender) },
            ])) {
              expect(late.chain.valueAt(key, at)).toBe(early.chain.valueAt(key, at))
            }
          }
        },
      ),
      { numRuns: 4 },
    )
  })

  it('has the same pools, and the same trader', () => {
    const endMs = NOON_MS + 2 * CYCLE_BLOCKS * WORLD_SETTINGS.blockMs
    const early = openScriptedChain(WORLD_SETTINGS, NOON_MS)
    liveUntil(early, endMs)
    const late = openScriptedChain(WORLD_SETTINGS, endMs)
    const { trader } = early
    const keys = pools.flatMap((pool) => [
      poolStateKey(pool),
      poolLiquidityKey(pool),
      tokenBalanceKey(pool.token, poolContract(pool)),
      tokenBalanceKey(pool.token, trader),
    ])
    const { head, oldest } = late.chain
    for (const number of [oldest - 1, oldest + 100, head.number])
      for (const key of [...keys, nonceKey(trader), etherKey(trader)])
        expect([number, key, late.chain.valueAt(key, number)]).toEqual([number, key, early.chain.valueAt(key, number)])
  })

  it('has the same test token, in every minute of its schedule', () => {
    const blockMs = WORLD_SETTINGS.blockMs
    const runsLater = NOON_MS + 2 * TEST_CYCLE_S * 1_000
    const early = openScriptedChain(WORLD_SETTINGS, NOON_MS)
    liveUntil(early, runsLater)
    const sent = sealedFrom(early, early.chain.oldest).flatMap(({ transactions }) => transactions.filter(isOfTestToken))
    const keys = new Set(sent.flatMap(({ writes, from }) => [...writes.map(({ key }) => key), nonceKey(from), etherKey(from)]))
    expect(keys.size).toBeGreaterThan(10)
    // Each start begins at another point of the schedule.
    for (const minutes of [3, 7, 11, 14, 18]) {
      const endMs = NOON_MS + minutes * 60_000
      const late = openScriptedChain(WORLD_SETTINGS, endMs)
      const { head, oldest } = late.chain
      expect(head.number).toBe(Math.floor((endMs - GENESIS_MS) / blockMs))
      for (const number of [oldest - 1, head.number])
        for (const key of keys)
          expect([number, key, late.chain.valueAt(key, number)]).toEqual([number, key, early.chain.valueAt(key, number)])
    }
  })

  it('has another chain with another seed', () => {
    const hashes = ['one', 'another'].map((seed) => openScriptedChain({ ...WORLD_SETTINGS, seed }, NOON_MS).chain.head.hash)
    expect(hashes[0]).not.toBe(hashes[1])
  })

  it('serves the blocks and the pending transactions that it served before it was killed', async () => {
    const options: DevnetOptions = { blockMs: 50, flashblockMs: 5, seed: 'killed' }
    const killed = await startDevnet(options)
    const { number } = killed.chain.head
    await killed.until(() => killed.chain.head.number >= number + 5)
    const kept = { fromBlock: hexOf(number - 50), toBlock: hexOf(number + 5) }
    const before = await getLogs(killed, kept)
    await killed.stop()

    const again = await startDevnet(options)
    onTestFinished(() => again.stop())
    expect(again.chain.head.number).toBeGreaterThanOrEqual(number + 5)
    expect(before.length).toBeGreaterThan(100)
    expect(await getLogs(again, kept)).toEqual(before)
  })

  it('has other hashes than its seed determines after an injected transaction', async () => {
    const own = openScriptedChain(WORLD_SETTINGS, NOON_MS)
    const other = openScriptedChain(WORLD_SETTINGS, NOON_MS)
    other.makeFlashblock([
      () => ({ from: ZERO_ADDRESS, to: ZERO_ADDRESS, input: '0x', gasUsed: 1, logs: [], writes: [], injectedHash: ZERO_HASH }),
    ])
    for (const world of [own, other]) for (let blocks = 0; blocks < 3; blocks++) world.seal()
    const hashesOf = (world: ScriptedChain) => [0, 1, 2, 3].map((back) => world.chain.block(world.chain.head.number - back)?.hash)
    expect(hashesOf(own).map((hash, back) => hash === hashesOf(other)[back])).toEqual([false, false, false, true])
  })
})

describe('the state', () => {
  it('changes by the logs, between any two blocks and to the pending block', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat({ max: 4 * CYCLE_BLOCKS }), (seed, blocks) => {
        const world = openScriptedChain({ ...WORLD_SETTINGS, seed }, NOON_MS + blocks * 2_000)
        liveUntil(world, NOON_MS + blocks * 2_000 + 1_999)
        const { chain } = world
        const first = chain.oldest - 1 + (blocks % 100)
        const sealed = sealedFrom(world, first + 1).flatMap((block) => block.logs)
        for (const [key, changes] of balanceChanges(sealed)) {
          expect(chain.valueAt(key, chain.head.number)).toBe(chain.valueAt(key, first) + changes)
        }
        const pending = balanceChanges(chain.pending.logs)
        for (const [key, changes] of pending) {
          expect(chain.valueAt(key, 'pending')).toBe(chain.valueAt(key, chain.head.number) + changes)
        }
      }),
      { numRuns: 4 },
    )
  })

  it('has balances that add up to the total supply, none negative', () => {
    const world = openScriptedChain(WORLD_SETTINGS, NOON_MS)
    const { chain } = world
    const accounts = new Set(
      sealedFrom(world, chain.oldest).flatMap(({ logs }) => logs.flatMap(({ topics }) => topics.slice(1).map(account))),
    )
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
    const { chain } = world
    let sent = 0
    for (const first = chain.head.number; chain.head.number < first + 2 * CYCLE_BLOCKS; ) {
      if (!world.isSealNext()) world.makeFlashblock()
      else world.seal(() => (sent++ % 3 === 0 ? 'dropped' : 'kept'))
    }
    for (const { key } of sealedFrom(world, chain.oldest).flatMap((block) => block.transactions.flatMap(({ writes }) => writes))) {
      expect(chain.valueAt(key, chain.head.number)).toBeGreaterThanOrEqual(0n)
    }
  })

  it('has a nonce and a fee for each transaction of a sender', () => {
    const world = openScriptedChain(WORLD_SETTINGS, NOON_MS)
    const { chain } = world
    const first = chain.oldest - 1
    const sent = Map.groupBy(
      sealedFrom(world, first + 1).flatMap((block) => block.transactions.filter((transaction) => !isFeedPublication(transaction))),
      ({ from }) => from,
    )
    expect(sent.size).toBeGreaterThan(20)
    for (const [from, transactions] of sent) {
      const opening = chain.valueAt(nonceKey(from), first)
      expect(transactions.map(({ nonce }) => nonce - opening)).toEqual(transactions.map((_, at) => BigInt(at)))
      expect(chain.valueAt(nonceKey(from), chain.head.number) - opening).toBe(BigInt(transactions.length))
      expect(chain.valueAt(etherKey(from), chain.head.number)).toBeLessThan(chain.valueAt(etherKey(from), first))
    }
  })

  it('is the same at the end of every cycle, except for nonces, ether, feeds, pools and the test token', () => {
    const world = openScriptedChain(WORLD_SETTINGS, NOON_MS)
    const { chain } = world
    const ends = Math.floor(chain.head.number / CYCLE_BLOCKS) * CYCLE_BLOCKS
    for (const { key } of sealedFrom(world, chain.oldest).flatMap((block) =>
      block.transactions
        .filter((transaction) => !isFeedPublication(transaction) && !isSwap(transaction) && !isOfTestToken(transaction))
        .flatMap(({ writes }) => writes),
    )) {
      expect(chain.valueAt(key, ends)).toBe(chain.valueAt(key, ends - CYCLE_BLOCKS))
    }
  })

  it('is readable by eth_getStorageAt, in the slots of a Solidity mapping', async () => {
    const devnet = await startDevnet({ pace: 'manual' })
    onTestFinished(() => devnet.stop())
    const alice: Hex = `0x${'a1'.repeat(20)}`
    devnet.transfer({ symbol: 'AAPLc', to: alice, raw: 1_234n })
    devnet.makeFlashblock()
    const token = devnet.list.addressOf('AAPLc')
    const slot = tokenBalanceKey(token, alice).replace(storageKey(token, '0x'), '0x')
    expect(slot).toBe(SLOT_OF_ALICE)
    expect(Number(await rpcResult(devnet, 'eth_getStorageAt', token, slot, 'pending'))).toBe(1_234)
    expect(Number(await rpcResult(devnet, 'eth_getStorageAt', token, slot, 'latest'))).toBe(0)
  })

  it('results from transfers, mints, burns and approvals', () => {
    const world = openScriptedChain(WORLD_SETTINGS, NOON_MS)
    const seen = sealedFrom(world, world.chain.oldest).flatMap((block) => block.logs)
    const transfers = seen.filter(({ topics }) => topics[0]?.startsWith(TRANSFER))
    const minted = transfers.filter(({ topics }) => account(topics[1]) === ZERO_ADDRESS)
    const burned = transfers.filter(({ topics }) => account(topics[2]) === ZERO_ADDRESS)
    const approved = seen.filter(({ topics }) => topics[0]?.startsWith(APPROVAL))
    expect(transfers.length).toBeGreaterThan(minted.length + burned.length + approved.length)
    for (const group of [minted, burned, approved]) expect(group.length).toBeGreaterThan(10)
    const addresses = new Set(transfers.map(({ address }) => address))
    for (const { address } of tokens) expect(addresses).toContain(address)
  })
})

describe('the clock', () => {
  it('determines block numbers, so that several fast blocks share a second', () => {
    const world = openScriptedChain({ ...WORLD_SETTINGS, blockMs: 200 }, GENESIS_MS + 1_000_000)
    expect(world.chain.head).toMatchObject({ number: 5_000, timestamp: (GENESIS_MS + 1_000_000) / 1_000 })
    expect(world.chain.block(4_999)?.timestamp).toBe(world.chain.head.timestamp - 1)
    expect(world.chain.block(4_996)?.timestamp).toBe(world.chain.head.timestamp - 1)
  })

  it.each([0, GENESIS_MS, GENESIS_MS + 9_000])('may be at or before genesis: %i', (nowMs) => {
    const world = openScriptedChain(WORLD_SETTINGS, nowMs)
    expect(world.chain.pending.number).toBe(world.chain.head.number + 1)
    expect(world.chain.block(0)?.hash).toMatch(/^0x/)
  })

  it('pre-confirms each log once before its seal', async () => {
    const devnet = await startDevnet({ blockMs: 50, flashblockMs: 5 })
    onTestFinished(() => devnet.stop())
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    const { number } = devnet.chain.pending
    await devnet.until(() => devnet.chain.head.number >= number + 3)
    await link.flush()
    const pushed = link.notifications as DevnetLog[]
    for (const block of [number + 1, number + 2]) {
      const sealed = devnet.chain.block(block)?.logs ?? []
      expect(pushed.filter((log) => Number(log.blockNumber) === block)).toEqual(
        sealed.map((log) => ({ ...log, blockHash: ZERO_HASH })),
      )
    }
  })

  it('allows no manual blocks', async () => {
    const devnet = await startDevnet()
    onTestFinished(() => devnet.stop())
    expect(() => devnet.seal()).toThrow('the clock sets the pace')
    expect(() => devnet.makeFlashblock()).toThrow('the clock sets the pace')
  })

  it('starts with some hundred blocks of bounded size, and stops at once', async () => {
    const devnet = await startDevnet({ port: 0 })
    const { head, oldest } = devnet.chain
    const blocks = Array.from({ length: head.number - oldest + 1 }, (_, at) => devnet.chain.block(oldest + at))
    expect(blocks.length).toBeGreaterThan(400)
    const transactions = blocks.reduce((sum, block) => sum + (block?.transactions.length ?? 0), 0)
    expect(transactions).toBeLessThan(25_000)
    await Promise.all([devnet.stop(), devnet.stop()])
    await expect(fetch(devnet.stocksUrl)).rejects.toThrow()
  })
})

const hexOf = (amount: number) => `0x${amount.toString(16)}`

// keccak256(abi.encode(0xa1a1…, 0)), computed with viem.
const SLOT_OF_ALICE = '0x8b7a0cb75d1e00bc88ffbc81ec4d79f4290d4d3c1b3abe974cade75a77755251'
