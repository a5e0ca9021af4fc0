import type { RequestedFaults } from '../../lib/fault-settings.ts'
import { isWithin } from '../../lib/fault-settings.ts'
import type { Hex } from '../../lib/hex.ts'
import type { DevnetTransaction, EmittedLog, TransactionOutcome } from '../chain/chain-types.ts'
import { digest } from '../chain/hashes.ts'
import { seededRandom } from '../life/seeded-random.ts'
import { testPool } from '../tokens/devnet-pools.ts'
import { testFeed } from '../tokens/feeds.ts'
import { testToken } from '../tokens/issued-tokens.ts'
import type { Faults } from './faults.ts'

/** Share of the transactions of a reorg that other transactions replace. */
const LOST_IN_REORG = 0.1

const NOBODY: Hex = `0x${'dead'.repeat(10)}`

/** The requested faults that happen by chance. The seed decides, so every run has the same faults. */
export const createChances = ({ reorg, drop, late }: RequestedFaults, seed: string) => {
  const happens = (share: number, ...parts: readonly (string | number)[]): boolean => seededRandom(seed, ...parts)() < share
  const outcomeBy =
    (share: number, why: string) =>
    (transaction: DevnetTransaction): TransactionOutcome =>
      !isSpared(transaction) && happens(share, why, transaction.hash) ? strangerInsteadOf(transaction) : 'kept'
  return {
    atSeal: outcomeBy(drop?.share ?? 0, 'drop'),
    /** Returns the depth of the reorg that follows a block; 0 for none. */
    reorgDepthAfter: (block: number): number => (reorg && happens(reorg.share, 'reorg', block) ? reorg.depth : 0),
    inReorg: outcomeBy(LOST_IN_REORG, 'lost'),
    /** Whether a transaction of a flashblock is hidden until its block is sealed. */
    isLate: (block: number, flashblock: number, index: number): boolean =>
      happens(late?.share ?? 0, 'late', block, flashblock, index),
  }
}

/** Whether a transaction belongs to the schedule of the test token, which no fault changes. */
const isSpared = ({ to }: Pick<DevnetTransaction, 'to'>): boolean =>
  to === testToken.address || to === testFeed.aggregator || to === testPool.id

/**
 * Makes the transaction that replaces a dropped one, with the same number of logs. Without it every later log of the
 * block would have another index, and so another key.
 */
const strangerInsteadOf = ({ hash, gasUsed, logs }: DevnetTransaction): TransactionOutcome => ({
  hash: digest('instead of', hash),
  from: NOBODY,
  to: NOBODY,
  input: '0x',
  gasUsed,
  logs: logs.map(({ topics, data }): EmittedLog => ({ address: NOBODY, topics, data })),
  writes: [],
})

/** Interval of the checks for the start and the end of a window. */
const CHECK_MS = 50

const windowNames = ['silent', 'refused', 'sealed', 'disconnect', 'outage'] as const
type WindowName = (typeof windowNames)[number]

/** Sets and clears the faults that recur by the clock. Returns a function that ends this. */
export const runFaultWindows = (requested: RequestedFaults, faults: Faults, now: () => number): (() => void) => {
  if (!windowNames.some((name) => requested[name])) return () => {}
  let active: readonly WindowName[] = []
  const check = () => {
    const at = now()
    const current = windowNames.filter((name) => {
      const window = requested[name]
      return window !== undefined && isWithin(window, at)
    })
    if (current.join() === active.join()) return
    const begun = current.filter((name) => !active.includes(name))
    active = current
    apply(active, faults)
    // Cuts open sockets, since a refusal of subscriptions or of sockets affects only new ones.
    if (begun.some((name) => name === 'refused' || name === 'disconnect' || name === 'outage')) faults.cutSockets()
  }
  const timer = setInterval(check, CHECK_MS)
  check()
  return () => clearInterval(timer)
}

const apply = (active: readonly WindowName[], faults: Faults): void => {
  const unavailable = { status: 503 }
  const isOut = active.includes('outage')
  const isSealed = active.includes('sealed')
  Object.assign(faults, {
    silent: isSealed || active.includes('silent') ? ['pendingLogs'] : [],
    refused: active.includes('refused') ? ['pendingLogs'] : [],
    pending: isSealed ? 'latest' : 'shown',
    sockets: isOut || active.includes('disconnect') ? unavailable : undefined,
    rpc: isOut ? unavailable : undefined,
    list: isOut ? unavailable : undefined,
  } satisfies Partial<Faults>)
}
