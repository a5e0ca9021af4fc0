import type { Hex } from '../../src/protocol/fields.ts'
import type { Call } from './contract-state.ts'
import { drawMovement, holder, TRANSFER, zero } from './random-transactions.ts'
import type { Dice } from './seeded-random.ts'
import { type Content, hex } from './simulated-block.ts'
import {
  announcement,
  burnedBlocked,
  described,
  endAnnouncement,
  memo,
  NO_CAP,
  paused,
  renamed,
  seized,
  uriUpdated,
} from './token-event-logs.ts'

type Said = readonly (Content | Call)[]

/** What else happens to a token: `second` is the chain's time when somebody wants it. */
type Drawing = { readonly dice: Dice; readonly address: Hex; readonly second: number; readonly name: Hex }

const WAD = 10n ** 18n
const TENTH = WAD / 10n
const SCHEDULE_MOST_S = 8
const FEATURES_MOST = 4
/** How many deeds one bracket holds at most. */
const INSIDE_MOST = 3

const addressIn = (word: Hex): Hex => `0x${word.slice(26)}`

/** A factor as a split or a dividend makes it: some have more digits than a list can say. */
function factor(dice: Dice): bigint {
  const tenths = BigInt(dice.int(2, 60)) * TENTH
  return dice.chance(70) ? tenths + BigInt(dice.int(1, 999_999_999)) : tenths
}

/** A movement, and what is said of it in the logs after it. */
function noted({ dice, address }: Drawing): Said {
  const movement = drawMovement(dice, address)
  const said = memo(address, hex(64, dice.int(1, 2 ** 30)))
  const kind = dice.int(0, 99)
  if (kind < 60) return [movement, said]
  const [from, to] = [holder(dice), kind < 90 ? holder(dice) : zero]
  const raw = BigInt(dice.int(1, 9_000))
  const taken: Content = { address, topics: [TRANSFER, from, to], data: hex(64, raw) }
  if (kind >= 90) return [taken, burnedBlocked(address, addressIn(from), raw)]
  const seizure = seized(address, addressIn(from), addressIn(to), raw)
  return kind < 75 ? [taken, seizure] : [taken, said, seizure]
}

function multiplied({ dice, address, second }: Drawing): Said {
  const to = factor(dice)
  const kind = dice.int(0, 99)
  if (kind < 40) return [{ address, call: 'multiply', to }]
  if (kind < 50) return [{ address, call: 'multiplyOnce', to }]
  if (kind < 85) return [{ address, call: 'schedule', to, at: second + dice.int(1, SCHEDULE_MOST_S) }]
  return [{ address, call: 'cancel' }]
}

function pausing({ dice, address }: Drawing): Said {
  const features = Array.from({ length: dice.int(1, 2) }, () => dice.int(0, FEATURES_MOST))
  return [paused(address, dice.chance(55) ? 'Paused' : 'Unpaused', features)]
}

function recorded({ dice, address }: Drawing): Said {
  const nth = dice.int(0, 999)
  switch (dice.int(0, 4)) {
    case 0:
      return [renamed(address, 'symbol', `SYM${nth}`)]
    case 1:
      return [renamed(address, 'name', `Name ${nth} é`)]
    case 2:
      return [described(address, 'cusip', dice.chance(70) ? `${nth}` : '')]
    case 3:
      return [uriUpdated(address)]
    default:
      return [{ address, call: 'cap', to: dice.chance(30) ? NO_CAP : BigInt(nth) * WAD }]
  }
}

/** Announced, done, and said to be over; now and then about nothing, or one within another. */
function announced(drawing: Drawing): Said {
  const { dice, address, name } = drawing
  const id = `${name.slice(-8)}-${dice.int(0, 999)}`
  const inside = Array.from({ length: dice.int(0, INSIDE_MOST) }, () => drawDeed(drawing, dice.chance(90)))
  return [
    announcement(address, id, 'a split — and more', `ipfs://${id}`),
    ...inside.flat(),
    endAnnouncement(address, id),
  ]
}

function drawDeed(drawing: Drawing, plain = false): Said {
  const kind = drawing.dice.int(0, 99)
  if (kind < 35) return noted(drawing)
  if (kind < 65) return multiplied(drawing)
  if (kind < 76) return pausing(drawing)
  if (kind < 85 || plain) return recorded(drawing)
  return announced(drawing)
}

/** All that one transaction does: a deed or two, and movements before, between and after. */
export function drawDeeds(drawing: Drawing): Said {
  const { dice, address } = drawing
  const deeds = Array.from({ length: dice.chance(25) ? 2 : 1 }, () => drawDeed(drawing))
  return deeds.flatMap((deed) => [
    ...(dice.chance(40) ? [drawMovement(dice, address)] : []),
    ...deed,
    ...(dice.chance(40) ? [drawMovement(dice, address)] : []),
  ])
}
