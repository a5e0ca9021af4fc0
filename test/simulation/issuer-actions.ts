import { formatUnits } from 'viem/utils'
import type { StateWrite } from '../../src/devnet/chain/account-state.ts'
import { tokenLog } from '../../src/devnet/tokens/contract-abis.ts'
import * as calls from '../../src/devnet/tokens/token-calls.ts'
import { MULTIPLIER_DECIMALS, NO_CAP } from '../../src/devnet/tokens/token-storage.ts'
import { type Hex, ZERO_WORD } from '../../src/lib/hex.ts'
import { randomHolder, randomMovement, TRANSFER } from './random-transactions.ts'
import type { SeededRandom } from './seeded-random.ts'
import { documentWrite, metadataWrite } from './simulated-tokens.ts'
import { emit, hex, OPERATOR, type Step } from './simulated-transactions.ts'

/** What an action needs. `second` is the chain's time when the transaction is sent. */
type ActionInput = { readonly random: SeededRandom; readonly address: Hex; readonly second: number; readonly name: Hex }

const WAD = 10n ** 18n
const TENTH = WAD / 10n
const MAX_SCHEDULE_S = 8
const MAX_FEATURE = 4
/** How many actions one announcement encloses at most. */
const MAX_NESTED_ACTIONS = 3

/** The standard knows this event and the relay does not: it is published as a plain log. */
const BURNED_BLOCKED: Hex = '0x0b552e96653fd6842da37c477005d3b5c08a8c7d3631b1f43787b2dc9a1006a3'

const addressFromWord = (word: Hex): Hex => `0x${word.slice(26)}`

const event = (address: Hex, name: Parameters<typeof tokenLog>[1], args: Readonly<Record<string, unknown>>): Step => ({
  address,
  call: ({ sender }) => ({ input: '0x', logs: [tokenLog(address, name, { caller: sender, ...args })], writes: [] }),
})

/** A multiplier as after a split or a dividend. Some have more digits than the list's numbers can hold. */
function randomMultiplier(random: SeededRandom): bigint {
  const tenths = BigInt(random.int(2, 60)) * TENTH
  return random.chance(70) ? tenths + BigInt(random.int(1, 999_999_999)) : tenths
}

/** A movement followed by the logs that explain it. */
function movementWithNotes({ random, address }: ActionInput): readonly Step[] {
  const movement = emit(randomMovement(random, address))
  const memoLog = event(address, 'Memo', { memo: hex(64, random.int(1, 2 ** 30)) })
  const kind = random.int(0, 99)
  if (kind < 60) return [movement, memoLog]
  const [from, to] = [randomHolder(random), kind < 90 ? randomHolder(random) : ZERO_WORD]
  const raw = BigInt(random.int(1, 9_000))
  const transferLog = emit({ address, topics: [TRANSFER, from, to], data: hex(64, raw) })
  if (kind >= 90)
    return [transferLog, emit({ address, topics: [BURNED_BLOCKED, hex(64, BigInt(OPERATOR)), from], data: hex(64, raw) })]
  const seizure = event(address, 'Seized', { from: addressFromWord(from), to: addressFromWord(to), amount: raw })
  return kind < 75 ? [transferLog, seizure] : [transferLog, memoLog, seizure]
}

function multiplierChange({ random, address, second }: ActionInput): readonly Step[] {
  const to = formatUnits(randomMultiplier(random), MULTIPLIER_DECIMALS)
  const kind = random.int(0, 99)
  if (kind < 40) return [{ address, call: calls.changeMultiplier(to) }]
  if (kind < 50) return [{ address, call: inOldStyle(calls.changeMultiplier(to)) }]
  if (kind < 85) return [{ address, call: reschedule(to, second + random.int(1, MAX_SCHEDULE_S)) }]
  return [{ address, call: calls.cancelSchedule }]
}

/** Cancels the schedule that there is, and makes another. Both are refused once its time has passed. */
const reschedule =
  (to: string, at: number): calls.TokenCall =>
  (parties, context) => {
    const both = at > context.timestamp ? [calls.cancelSchedule, calls.scheduleMultiplier(to, at)] : []
    return { input: '0x', ...calls.executeInOrder(both, parties, context) }
  }

/** The same in an old contract: without the last event of a change, and without that of a schedule that it ends. */
const inOldStyle =
  (call: calls.TokenCall): calls.TokenCall =>
  (...inputs) => {
    const effects = call(...inputs)
    return { ...effects, logs: effects.logs.slice(-2, -1) }
  }

function pauseChange({ random, address }: ActionInput): readonly Step[] {
  const features = Array.from({ length: random.int(1, 2) }, () => random.int(0, MAX_FEATURE))
  return [{ address, call: random.chance(55) ? calls.pause(features) : calls.unpause(features) }]
}

function recordChange({ random, address }: ActionInput): readonly Step[] {
  const nth = random.int(0, 999)
  const call = (): calls.TokenCall => {
    switch (random.int(0, 4)) {
      case 0:
        return calls.changeSymbol(`SYM${nth}`)
      case 1:
        return inOldStyle(calls.changeName(`Name ${nth} é`))
      case 2:
        return changeMetadata(address, random.chance(70) ? `${nth}` : '')
      case 3:
        return also(documentWrite(address), calls.changeContractUri(''))
      default:
        return calls.changeSupplyCap(random.chance(30) ? NO_CAP : BigInt(nth) * WAD)
    }
  }
  return [{ address, call: call() }]
}

const changeMetadata = (address: Hex, cusip: string): calls.TokenCall =>
  also(metadataWrite(address, cusip), calls.changeMetadata('cusip', cusip))

const also =
  (write: StateWrite, call: calls.TokenCall): calls.TokenCall =>
  (...inputs) => ({ ...call(...inputs), writes: [write] })

/** An announcement, its actions and its end. It may be empty, and may contain another announcement. */
function announcedActions(input: ActionInput): readonly Step[] {
  const { random, address, name } = input
  const id = `${name.slice(-8)}-${random.int(0, 999)}`
  const nested = Array.from({ length: random.int(0, MAX_NESTED_ACTIONS) }, () => randomAction(input, random.chance(90)))
  const notice = { id, description: 'a split — and more', uri: `ipfs://${id}` }
  return [event(address, 'Announcement', notice), ...nested.flat(), event(address, 'EndAnnouncement', { id })]
}

function randomAction(input: ActionInput, plain = false): readonly Step[] {
  const kind = input.random.int(0, 99)
  if (kind < 35) return movementWithNotes(input)
  if (kind < 65) return multiplierChange(input)
  if (kind < 76) return pauseChange(input)
  if (kind < 85 || plain) return recordChange(input)
  return announcedActions(input)
}

/** All logs of one transaction: one or two actions, with movements before, between and after. */
export function randomActions(input: ActionInput): readonly Step[] {
  const { random, address } = input
  const actions = Array.from({ length: random.chance(25) ? 2 : 1 }, () => randomAction(input))
  return actions.flatMap((action) => [
    ...(random.chance(40) ? [emit(randomMovement(random, address))] : []),
    ...action,
    ...(random.chance(40) ? [emit(randomMovement(random, address))] : []),
  ])
}
