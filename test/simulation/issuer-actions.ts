import type { Hex } from '../../src/lib/hex.ts'
import type { ContractCall } from './contract-state.ts'
import { randomHolder, randomMovement, TRANSFER, ZERO_WORD } from './random-transactions.ts'
import type { SeededRandom } from './seeded-random.ts'
import { hex, type LogContent } from './simulated-block.ts'
import {
  announcement,
  burnedBlocked,
  endAnnouncement,
  memo,
  metadataUpdated,
  NO_CAP,
  paused,
  renamed,
  seized,
  uriUpdated,
} from './token-event-logs.ts'

type ActionLogs = readonly (LogContent | ContractCall)[]

/** What an action needs. `second` is the chain's time when the transaction is sent. */
type ActionInput = { readonly random: SeededRandom; readonly address: Hex; readonly second: number; readonly name: Hex }

const WAD = 10n ** 18n
const TENTH = WAD / 10n
const MAX_SCHEDULE_S = 8
const MAX_FEATURE = 4
/** How many actions one announcement encloses at most. */
const MAX_NESTED_ACTIONS = 3

const addressFromWord = (word: Hex): Hex => `0x${word.slice(26)}`

/** A multiplier as after a split or a dividend. Some have more digits than the list's numbers can hold. */
function randomMultiplier(random: SeededRandom): bigint {
  const tenths = BigInt(random.int(2, 60)) * TENTH
  return random.chance(70) ? tenths + BigInt(random.int(1, 999_999_999)) : tenths
}

/** A movement followed by the logs that explain it. */
function movementWithNotes({ random, address }: ActionInput): ActionLogs {
  const movement = randomMovement(random, address)
  const memoLog = memo(address, hex(64, random.int(1, 2 ** 30)))
  const kind = random.int(0, 99)
  if (kind < 60) return [movement, memoLog]
  const [from, to] = [randomHolder(random), kind < 90 ? randomHolder(random) : ZERO_WORD]
  const raw = BigInt(random.int(1, 9_000))
  const transferLog: LogContent = { address, topics: [TRANSFER, from, to], data: hex(64, raw) }
  if (kind >= 90) return [transferLog, burnedBlocked(address, addressFromWord(from), raw)]
  const seizure = seized(address, addressFromWord(from), addressFromWord(to), raw)
  return kind < 75 ? [transferLog, seizure] : [transferLog, memoLog, seizure]
}

function multiplierChange({ random, address, second }: ActionInput): ActionLogs {
  const to = randomMultiplier(random)
  const kind = random.int(0, 99)
  if (kind < 40) return [{ address, call: 'setMultiplier', to }]
  if (kind < 50) return [{ address, call: 'setMultiplierOldStyle', to }]
  if (kind < 85) return [{ address, call: 'schedule', to, at: second + random.int(1, MAX_SCHEDULE_S) }]
  return [{ address, call: 'cancel' }]
}

function pauseChange({ random, address }: ActionInput): ActionLogs {
  const features = Array.from({ length: random.int(1, 2) }, () => random.int(0, MAX_FEATURE))
  return [paused(address, random.chance(55) ? 'Paused' : 'Unpaused', features)]
}

function recordChange({ random, address }: ActionInput): ActionLogs {
  const nth = random.int(0, 999)
  switch (random.int(0, 4)) {
    case 0:
      return [renamed(address, 'symbol', `SYM${nth}`)]
    case 1:
      return [renamed(address, 'name', `Name ${nth} é`)]
    case 2:
      return [metadataUpdated(address, 'cusip', random.chance(70) ? `${nth}` : '')]
    case 3:
      return [uriUpdated(address)]
    default:
      return [{ address, call: 'setCap', to: random.chance(30) ? NO_CAP : BigInt(nth) * WAD }]
  }
}

/** An announcement, its actions and its end. It may be empty, and may contain another announcement. */
function announcedActions(input: ActionInput): ActionLogs {
  const { random, address, name } = input
  const id = `${name.slice(-8)}-${random.int(0, 999)}`
  const nested = Array.from({ length: random.int(0, MAX_NESTED_ACTIONS) }, () => randomAction(input, random.chance(90)))
  return [announcement(address, id, 'a split — and more', `ipfs://${id}`), ...nested.flat(), endAnnouncement(address, id)]
}

function randomAction(input: ActionInput, plain = false): ActionLogs {
  const kind = input.random.int(0, 99)
  if (kind < 35) return movementWithNotes(input)
  if (kind < 65) return multiplierChange(input)
  if (kind < 76) return pauseChange(input)
  if (kind < 85 || plain) return recordChange(input)
  return announcedActions(input)
}

/** All logs of one transaction: one or two actions, with movements before, between and after. */
export function randomActions(input: ActionInput): ActionLogs {
  const { random, address } = input
  const actions = Array.from({ length: random.chance(25) ? 2 : 1 }, () => randomAction(input))
  return actions.flatMap((action) => [
    ...(random.chance(40) ? [randomMovement(random, address)] : []),
    ...action,
    ...(random.chance(40) ? [randomMovement(random, address)] : []),
  ])
}
