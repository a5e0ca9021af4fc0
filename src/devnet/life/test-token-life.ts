import { etherKey, nonceKey, type StateValues, valueAfter } from '../chain/account-state.ts'
import { GAS_PRICE } from '../chain/chain.ts'
import { GENESIS_MS } from '../chain/chain-builder.ts'
import type { DeferredTransaction } from '../chain/chain-types.ts'
import { addressFrom } from '../chain/hashes.ts'
import { testPool } from '../tokens/devnet-pools.ts'
import { feedValues, testFeed } from '../tokens/feeds.ts'
import { testToken } from '../tokens/issued-tokens.ts'
import { poolValues } from '../tokens/pool-storage.ts'
import { reserveOf } from '../tokens/swap-call.ts'
import { initialTokenValues, tokenBalanceKey } from '../tokens/token-storage.ts'
import { TEST_CYCLE_S, type TestCycle, type TestStep, testPoolRoots, testSchedule } from './test-token-schedule.ts'
import { CYCLE_BLOCKS, OPENING_ETHER } from './trading-cycle.ts'

type DueStep = Pick<TestStep, 'isLast'> & { transaction: DeferredTransaction; timeMs: number }

const CYCLE_MS = TEST_CYCLE_S * 1_000
const NO_ROUND = { round: 0n, answer: 0n, startedAt: 0n, updatedAt: 0n }

/** Runs the schedule of the test token by block time. */
export const createTestTokenLife = (seed: string, blockMs: number) => {
  const actors = {
    holder: addressFrom(seed, 'test holder'),
    partner: addressFrom(seed, 'test partner'),
    issuer: addressFrom(seed, 'test issuer'),
  }
  const timeOf = (block: number): number => GENESIS_MS + block * blockMs
  const blockSecondAt = (timeMs: number): number => Math.floor(timeOf(Math.ceil((timeMs - GENESIS_MS) / blockMs)) / 1_000)
  const cyclesBefore = (timeMs: number): number => Math.floor((timeMs - GENESIS_MS) / CYCLE_MS)

  /** Changes the values as the sealed transactions of the steps do. */
  const execute = (values: Map<string, bigint>, steps: readonly DueStep[]): void => {
    const change = (key: string, by: (value: bigint) => bigint) => values.set(key, by(values.get(key) ?? 0n))
    for (const { transaction, timeMs } of steps) {
      const readState = (key: string) => values.get(key) ?? 0n
      const { sealedAs, ...shown } = transaction({ readState, timestamp: blockSecondAt(timeMs) })
      if (sealedAs === 'dropped') continue
      const { from, gasUsed, writes } = typeof sealedAs === 'object' ? { ...shown, ...sealedAs } : shown
      change(nonceKey(from), (nonce) => nonce + 1n)
      change(etherKey(from), (wei) => wei - BigInt(gasUsed) * GAS_PRICE)
      for (const write of writes ?? shown.writes) values.set(write.key, valueAfter(write, readState))
    }
  }
  const usage = new Map<string, bigint>()
  execute(usage, stepsBetween(GENESIS_MS, GENESIS_MS + CYCLE_MS, actors))

  const stateAtStart = (cycle: number): StateValues => {
    const timeMs = timeOf(cycle * CYCLE_BLOCKS)
    // The state contains the last round of the previous run, so the previous run is executed too.
    const before = Math.max(0, cyclesBefore(timeMs) - 1)
    const values = initialValues(actors)
    for (const actor of Object.values(actors)) {
      values.set(nonceKey(actor), BigInt(before) * (usage.get(nonceKey(actor)) ?? 0n))
      values.set(etherKey(actor), OPENING_ETHER + BigInt(before) * (usage.get(etherKey(actor)) ?? 0n))
    }
    execute(values, stepsBetween(GENESIS_MS + before * CYCLE_MS, timeMs, actors))
    return values
  }
  const dueIn = (block: number, isLast: boolean): readonly DeferredTransaction[] =>
    stepsBetween(timeOf(block - 1), timeOf(block), actors).flatMap((step) => (step.isLast === isLast ? [step.transaction] : []))
  return {
    stateAtStart,
    transactions: (block: number) => dueIn(block, false),
    lastTransactions: (block: number) => dueIn(block, true),
  }
}

/** Returns the steps after `afterMs`, up to and including `untilMs`. */
const stepsBetween = (afterMs: number, untilMs: number, actors: Omit<TestCycle, 'startS'>): readonly DueStep[] => {
  const due: DueStep[] = []
  for (let startMs = Math.floor(afterMs / CYCLE_MS) * CYCLE_MS; startMs <= untilMs; startMs += CYCLE_MS) {
    for (const { atS, plan, isLast = false } of testSchedule) {
      const timeMs = startMs + atS * 1_000
      if (!plan || timeMs <= afterMs || timeMs > untilMs) continue
      due.push({ transaction: plan({ startS: startMs / 1_000, ...actors }), timeMs, isLast })
    }
  }
  return due
}

const initialValues = ({ holder }: Omit<TestCycle, 'startS'>): Map<string, bigint> => {
  const reserve = reserveOf(testPool, testPoolRoots.opening)
  return new Map([
    ...initialTokenValues(testToken),
    [tokenBalanceKey(testToken.address, holder), testToken.supply - reserve],
    [tokenBalanceKey(testToken.address, testPool.id), reserve],
    ...poolValues(testPool, testPoolRoots.opening),
    ...feedValues(testFeed, NO_ROUND),
  ])
}
