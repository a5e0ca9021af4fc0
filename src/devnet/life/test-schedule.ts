import { parseUnits, stringToHex } from 'viem/utils'
import { type Hex, ZERO_ADDRESS } from '../../lib/hex.ts'
import type { DeferredTransaction } from '../chain/state-dependent-transaction.ts'
import { addMemo, addSeizure, buildTransfer, type TokenTransfer } from '../chain/transactions.ts'
import { changeName, pause, unpause } from '../tokens/admin-calls.ts'
import { buildRoundTransaction, FEED_DECIMALS, testFeed } from '../tokens/feeds.ts'
import { TOKEN_DECIMALS, testToken } from '../tokens/issued-tokens.ts'
import { announce, buildTokenCall, type TokenCall } from '../tokens/issuer-call.ts'
import { cancelSchedule, changeMultiplier, scheduleMultiplier } from '../tokens/multiplier-calls.ts'
import { MULTIPLIER_DECIMALS } from '../tokens/token-storage.ts'

/** How long the schedule of the test token is. It begins at each full ten minutes of the hour, by block time. */
export const TEST_CYCLE_S = 600

/** One run of the schedule: the second of Unix time when it begins, two holders, and the issuer. */
export type TestCycle = { startS: number; holder: Hex; partner: Hex; issuer: Hex }

/** Something that happens in every run. `docs/test-token.md` shows what, and the messages that it brings. */
export type TestStep = {
  /** Seconds after the start. */
  atS: number
  what: string
  brings: readonly string[]
  /** What happens by itself has no transaction. */
  plan?: (cycle: TestCycle) => DeferredTransaction
  /** Whether it comes last in its block, so that the others keep their places when it is gone. */
  isLast?: boolean
}

const at = (minute: number, second: number): number => minute * 60 + second

/** Older than a feed may be. */
const OLD_ROUND_AGE_S = 27 * 3_600
/** The ordinals of the features that are paused: transfers and mints. */
const PAUSED_FEATURES = [0, 1]

/** Tokens go to and fro at these seconds of these minutes. Minute 5 has the pause, minute 9 is silent. */
const transferSeconds = [5, 20, 35, 50]
const transferMinutes = [0, 1, 2, 3, 4, 6, 7, 8]
const roundMinutes = [0, 1, 2, 3, 4, 5, 6]

export const regularSteps: readonly TestStep[] = [
  ...transferMinutes.flatMap((minute) =>
    transferSeconds.map((second, index) => ({
      atS: at(minute, second),
      what: index % 2 === 0 ? 'A transfer of 1' : 'The transfer of 1 back',
      brings: ['transfer'],
      plan: index % 2 === 0 ? transfer('1') : transferBack('1'),
    })),
  ),
  ...roundMinutes.map((minute) => ({
    atS: at(minute, 15),
    what: 'A new NAV',
    brings: ['nav fresh'],
    plan: publish(at(minute, 15), `10${minute}.5`),
  })),
]

/** The lines of the table in the document. */
export const singleSteps: readonly TestStep[] = [
  {
    atS: at(1, 10),
    what: 'A transfer of 5 is pre-confirmed and never sealed',
    brings: ['transfer', 'retract not_sealed'],
    plan: (cycle) => () => ({ ...buildTransfer(forth('5')(cycle), cycle.holder), sealedAs: 'dropped' }),
    isLast: true,
  },
  {
    atS: at(2, 10),
    what: 'A transfer is pre-confirmed as 3 and sealed as 4',
    brings: ['transfer', 'amend'],
    plan: (cycle) => () => {
      const { logs, writes } = buildTransfer(forth('4')(cycle), cycle.holder)
      return { ...buildTransfer(forth('3')(cycle), cycle.holder), sealedAs: { logs, writes } }
    },
  },
  { atS: at(2, 40), what: 'A transfer of 4 back', brings: ['transfer'], plan: transferBack('4') },
  {
    atS: at(3, 10),
    what: 'A split is announced: the multiplier becomes 2 at minute 4',
    brings: ['action', 'multiplier scheduled'],
    plan: (cycle) => call(announce(splitNotice(cycle), [schedule('2', cycle.startS + at(4, 0))]))(cycle),
  },
  { atS: at(4, 0), what: 'The multiplier is 2, without any log', brings: ['multiplier effective'] },
  {
    atS: at(4, 20),
    what: 'The multiplier 3 is scheduled for minute 6',
    brings: ['multiplier scheduled'],
    plan: (cycle) => call(schedule('3', cycle.startS + at(6, 0)))(cycle),
  },
  { atS: at(4, 40), what: 'That schedule is cancelled', brings: ['multiplier cancelled'], plan: call(cancelSchedule) },
  { atS: at(5, 10), what: 'Transfers and mints are paused', brings: ['pause paused'], plan: call(pause(PAUSED_FEATURES)) },
  { atS: at(5, 50), what: 'They go on', brings: ['pause unpaused'], plan: call(unpause(PAUSED_FEATURES)) },
  { atS: at(6, 10), what: 'A mint of 100', brings: ['mint', 'token changed'], plan: move(mintOf('100')) },
  {
    atS: at(6, 25),
    what: 'A transfer of 10 with a memo',
    brings: ['transfer'],
    plan: (cycle) => () => addMemo(buildTransfer(forth('10')(cycle), cycle.holder), forth('10')(cycle), memo('invoice 7')),
  },
  {
    atS: at(6, 40),
    what: 'These 10 are seized',
    brings: ['seize'],
    plan: (cycle) => () => addSeizure(buildTransfer(back('10')(cycle), cycle.issuer), back('10')(cycle), memo('court order 1')),
  },
  { atS: at(6, 55), what: 'A burn of 100', brings: ['burn', 'token changed'], plan: move(burnOf('100')) },
  {
    atS: at(7, 10),
    what: 'The multiplier is 1 again, at once',
    brings: ['multiplier effective'],
    plan: call(changeMultiplier(parseMultiplier('1'))),
  },
  {
    atS: at(7, 30),
    what: 'A NAV from 27 hours ago, older than the one before: it does not count',
    brings: [],
    plan: publish(at(7, 30), '107.5', OLD_ROUND_AGE_S),
  },
  { atS: at(7, 40), what: 'Another name', brings: ['token changed'], plan: call(changeName('Test token, renamed')) },
  { atS: at(8, 0), what: 'A NAV of zero', brings: ['nav invalid'], plan: publish(at(8, 0), '0') },
  { atS: at(8, 30), what: 'A NAV that is fresh again', brings: ['nav fresh'], plan: publish(at(8, 30), '108.5') },
  { atS: at(8, 45), what: 'The former name', brings: ['token changed'], plan: call(changeName(testToken.name)) },
  { atS: at(9, 0), what: 'Nothing of the token for a whole minute', brings: [] },
]

/** Everything in order of time. What is done is undone by the end, so that every run is the same. */
export const testSchedule: readonly TestStep[] = [...regularSteps, ...singleSteps].toSorted((one, other) => one.atS - other.atS)

// Hoisted, since the tables above come first.

type Plan = NonNullable<TestStep['plan']>

function call(tokenCall: TokenCall): Plan {
  return ({ issuer }) => buildTokenCall({ token: testToken.address, sender: issuer }, tokenCall)
}

function transfer(amount: string): Plan {
  return (cycle) => () => buildTransfer(forth(amount)(cycle), cycle.holder)
}

function transferBack(amount: string): Plan {
  return (cycle) => () => buildTransfer(back(amount)(cycle), cycle.partner)
}

function move(toTransfer: (cycle: TestCycle) => TokenTransfer): Plan {
  return (cycle) => () => buildTransfer(toTransfer(cycle), cycle.issuer)
}

function forth(amount: string) {
  return ({ holder, partner }: TestCycle): TokenTransfer => tokens(amount, holder, partner)
}

function back(amount: string) {
  return ({ holder, partner }: TestCycle): TokenTransfer => tokens(amount, partner, holder)
}

function mintOf(amount: string) {
  return ({ holder }: TestCycle): TokenTransfer => tokens(amount, ZERO_ADDRESS, holder)
}

function burnOf(amount: string) {
  return ({ holder }: TestCycle): TokenTransfer => tokens(amount, holder, ZERO_ADDRESS)
}

function tokens(amount: string, from: Hex, to: Hex): TokenTransfer {
  return { token: testToken.address, from, to, raw: parseUnits(amount, TOKEN_DECIMALS) }
}

/** A round whose number follows its time, since the count of earlier rounds is unknown without a replay. */
function publish(atS: number, price: string, ageS = 0): Plan {
  return ({ startS, issuer }) => {
    const answer = parseUnits(price, FEED_DECIMALS)
    return buildRoundTransaction(testFeed, issuer, roundAt(startS + atS, answer, ageS))
  }
}

function roundAt(timeS: number, answer: bigint, ageS: number) {
  return { answer, round: BigInt(timeS), updatedAt: BigInt(timeS - ageS) }
}

function schedule(multiplier: string, effectiveAtS: number): TokenCall {
  return scheduleMultiplier(parseMultiplier(multiplier), effectiveAtS)
}

function parseMultiplier(multiplier: string): bigint {
  return parseUnits(multiplier, MULTIPLIER_DECIMALS)
}

function splitNotice({ startS }: TestCycle) {
  return { id: `TESTc-split-${startS}`, description: 'Two for one', uri: 'https://example.invalid/testc/split' }
}

function memo(text: string): Hex {
  return stringToHex(text, { size: 32 })
}
