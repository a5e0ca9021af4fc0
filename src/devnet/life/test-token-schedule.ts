import { parseUnits } from 'viem/utils'
import { type Hex, ZERO_ADDRESS } from '../../lib/hex.ts'
import type { DeferredTransaction } from '../chain/chain-types.ts'
import { testPool } from '../tokens/devnet-pools.ts'
import { buildRoundTransaction, FEED_DECIMALS, testFeed } from '../tokens/feeds.ts'
import { TOKEN_DECIMALS, testToken } from '../tokens/issued-tokens.ts'
import { rootOfPrice } from '../tokens/sqrt-price.ts'
import { buildSwap, rootAfter } from '../tokens/swap-call.ts'
import * as calls from '../tokens/token-calls.ts'
import { buildSeizure, buildTransfer, encodeMemo } from '../tokens/token-transfers.ts'

/** Length of a run of the test token's schedule. A run begins at each full ten minutes of the hour, by block time. */
export const TEST_CYCLE_S = 600

/** One run of the schedule: the second of Unix time at which it begins, two holders, and the issuer. */
export type TestCycle = { startS: number; holder: Hex; partner: Hex; issuer: Hex }

type Plan = (cycle: TestCycle) => DeferredTransaction

/** A step of every run: one line of `docs/test-token.md`. */
export type TestStep = {
  /** Seconds after the start of the run. */
  atS: number
  what: string
  messages: readonly string[]
  /** Builds the transaction of the step. Absent if the step needs none, such as a scheduled multiplier that takes effect. */
  plan?: Plan
  /** Executes the step last in its block, so that other transactions keep their indexes when the step is dropped. */
  isLast?: boolean
}

/** Parties of a movement, and who sends its transaction. */
type Route = (cycle: TestCycle) => { from: Hex; to: Hex; sender: Hex }

const forth: Route = ({ holder, partner }) => ({ from: holder, to: partner, sender: holder })
const back: Route = ({ holder, partner }) => ({ from: partner, to: holder, sender: partner })
const seizure: Route = ({ holder, partner, issuer }) => ({ from: partner, to: holder, sender: issuer })
const mint: Route = ({ holder, issuer }) => ({ from: ZERO_ADDRESS, to: holder, sender: issuer })
const burn: Route = ({ holder, issuer }) => ({ from: holder, to: ZERO_ADDRESS, sender: issuer })

const at = (minute: number, second: number): number => minute * 60 + second

/** Age of a round that is older than the round before it, and than the default of NAV_STALE_AFTER. */
const OLD_ROUND_AGE_S = 27 * 3_600
const PAUSED_FEATURES = [0, 1]

/** Seconds of a minute at which transfers happen: not in minute 5, which has the pause, nor in the silent minute 9. */
const transferSeconds = [5, 20, 35, 50]
const transferMinutes = [0, 1, 2, 3, 4, 6, 7, 8]
const roundMinutes = [0, 1, 2, 3, 4, 5, 6]

export const regularSteps: readonly TestStep[] = [
  ...transferMinutes.flatMap((minute) =>
    transferSeconds.map((second, index) => ({
      atS: at(minute, second),
      what: index % 2 === 0 ? 'A transfer of 1' : 'The transfer of 1 back',
      messages: ['transfer'],
      plan: move('1', index % 2 === 0 ? forth : back),
    })),
  ),
  ...roundMinutes.map((minute) => ({
    atS: at(minute, 15),
    what: 'A new NAV',
    messages: ['nav fresh'],
    plan: publish(at(minute, 15), `10${minute}.5`),
  })),
]

/** Roots of the pool's price: at the start of a run, and after the trader bought 5. Exact, so that the sale undoes the purchase. */
const startRoot = rootOfPrice(testPool, '100')
const boughtRoot = rootAfter(testPool, startRoot, -parseUnits('5', TOKEN_DECIMALS))
export const testPoolRoots = { opening: rootAfter(testPool, boughtRoot, parseUnits('5', TOKEN_DECIMALS)), bought: boughtRoot }

export const singleSteps: readonly TestStep[] = [
  { atS: at(0, 25), what: 'A trade: 5 are bought from the pool', messages: ['transfer', 'trade buy'], plan: trade('bought') },
  { atS: at(0, 45), what: 'A trade: these 5 are sold to the pool', messages: ['transfer', 'trade sell'], plan: trade('opening') },
  {
    atS: at(1, 10),
    what: 'A transfer of 5 is pre-confirmed and never sealed',
    messages: ['transfer', 'retract not_sealed'],
    plan: (cycle) => (context) => ({ ...move('5', forth)(cycle)(context), sealedAs: 'dropped' }),
    isLast: true,
  },
  {
    atS: at(1, 25),
    what: 'A purchase of 5 is pre-confirmed and never sealed',
    messages: ['transfer', 'trade buy', 'retract not_sealed', 'retract not_sealed'],
    plan: (cycle) => (context) => ({ ...trade('bought')(cycle)(context), sealedAs: 'dropped' }),
    isLast: true,
  },
  {
    atS: at(2, 10),
    what: 'A transfer is pre-confirmed as 3 and sealed as 4',
    messages: ['transfer', 'amend'],
    plan: (cycle) => (context) => {
      const { logs, writes } = move('4', forth)(cycle)(context)
      return { ...move('3', forth)(cycle)(context), sealedAs: { logs, writes } }
    },
  },
  { atS: at(2, 40), what: 'A transfer of 4 back', messages: ['transfer'], plan: move('4', back) },
  {
    atS: at(3, 10),
    what: 'A split is announced: the multiplier becomes 2 at minute 4',
    messages: ['action', 'multiplier scheduled'],
    plan: (cycle) => {
      const notice = { id: `TESTc-split-${cycle.startS}`, description: 'Two for one', uri: 'https://example.invalid/testc/split' }
      return call(calls.announce(notice, calls.scheduleMultiplier('2', cycle.startS + at(4, 0))))(cycle)
    },
  },
  { atS: at(4, 0), what: 'The multiplier is 2, without any log', messages: ['multiplier effective'] },
  {
    atS: at(4, 20),
    what: 'The multiplier 3 is scheduled for minute 6',
    messages: ['multiplier scheduled'],
    plan: (cycle) => call(calls.scheduleMultiplier('3', cycle.startS + at(6, 0)))(cycle),
  },
  { atS: at(4, 40), what: 'That schedule is cancelled', messages: ['multiplier cancelled'], plan: call(calls.cancelSchedule) },
  { atS: at(5, 10), what: 'Transfers and mints are paused', messages: ['pause paused'], plan: call(calls.pause(PAUSED_FEATURES)) },
  { atS: at(5, 50), what: 'They continue', messages: ['pause unpaused'], plan: call(calls.unpause(PAUSED_FEATURES)) },
  { atS: at(6, 10), what: 'A mint of 100', messages: ['mint', 'token changed'], plan: move('100', mint) },
  {
    atS: at(6, 25),
    what: 'A transfer of 10 with a memo',
    messages: ['transfer'],
    plan: move('10', forth, encodeMemo('invoice 7')),
  },
  {
    atS: at(6, 40),
    what: 'These 10 are seized',
    messages: ['seize'],
    plan: move('10', seizure, encodeMemo('court order 1'), buildSeizure),
  },
  { atS: at(6, 55), what: 'A burn of 100', messages: ['burn', 'token changed'], plan: move('100', burn) },
  {
    atS: at(7, 10),
    what: 'The multiplier is 1 again, at once',
    messages: ['multiplier effective'],
    plan: call(calls.changeMultiplier('1')),
  },
  {
    atS: at(7, 30),
    what: 'A NAV from 27 hours ago, older than the one before: it does not count',
    messages: [],
    plan: publish(at(7, 30), '107.5', OLD_ROUND_AGE_S),
  },
  { atS: at(7, 40), what: 'Another name', messages: ['token changed'], plan: call(calls.changeName('Test token, renamed')) },
  { atS: at(8, 0), what: 'A NAV of zero', messages: ['nav invalid'], plan: publish(at(8, 0), '0') },
  { atS: at(8, 30), what: 'A NAV that is fresh again', messages: ['nav fresh'], plan: publish(at(8, 30), '108.5') },
  { atS: at(8, 45), what: 'The former name', messages: ['token changed'], plan: call(calls.changeName(testToken.name)) },
  { atS: at(9, 0), what: 'Nothing of the token for a whole minute', messages: [] },
]

/** All steps in order of time. The last ones restore the state of the start, so that all runs are equal. */
export const testSchedule: readonly TestStep[] = [...regularSteps, ...singleSteps].toSorted((one, other) => one.atS - other.atS)

function call(tokenCall: calls.TokenCall): Plan {
  return ({ issuer }) => calls.buildTokenCall({ token: testToken.address, sender: issuer }, tokenCall)
}

function move(amount: string, route: Route, memo?: Hex, build = buildTransfer): Plan {
  return (cycle) => {
    const { sender, ...parties } = route(cycle)
    const raw = parseUnits(amount, TOKEN_DECIMALS)
    return () => build({ token: testToken.address, raw, memo, ...parties }, sender)
  }
}

/** Trades in the pool until its price has a root. */
function trade(root: keyof typeof testPoolRoots): Plan {
  return ({ holder }) => buildSwap(testPool, holder, { sqrtPriceX96: testPoolRoots[root] })
}

/** Publishes a round. Its number follows its time, since the number of earlier rounds is unknown without a replay. */
function publish(atS: number, price: string, ageS = 0): Plan {
  return ({ startS, issuer }) => {
    const [round, updatedAt] = [BigInt(startS + atS), BigInt(startS + atS - ageS)]
    return buildRoundTransaction(testFeed, issuer, { answer: parseUnits(price, FEED_DECIMALS), round, updatedAt })
  }
}
