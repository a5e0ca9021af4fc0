import type { Token } from '../tokens/listed.ts'
import { diceOf } from './random.ts'

/** A round is published at least so often, also when the market is closed, so that a weekend's demo is not blank. */
const HEARTBEAT_MS = 3_600_000

/** Between two heartbeats, a round is published when the value was looked at and had moved by this part. */
const DEVIATION = 0.001
const LOOK_MS = 5_000

const DAY_MS = 86_400_000
const WEEK_MS = 7 * DAY_MS
const SESSION_MS = 5 * DAY_MS
/** The first Monday. */
const MONDAY_MS = 4 * DAY_MS

/** The waves that a value is made of: how high, and how long. */
const waves = [
  [0.02, 5.3 * DAY_MS],
  [0.008, 5.1 * 3_600_000],
  [0.0025, 11 * 60_000],
  [0.0008, 97_000],
] as const

/** The feed of SpaceX is heard for some hours and then stops for longer than any feed may. */
const STOPPING = 'SPCXc'
const STOP_CYCLE_MS = 3 * DAY_MS
const HEARD_MS = 12 * 3_600_000

/** The feed of Circle says zero for some minutes, again and again. */
const ZEROING = 'CRCLc'
const ZERO_CYCLE_MS = 30 * 60_000
const ZERO_AFTER_MS = 10 * 60_000
const ZERO_MS = 3 * 60_000

/** A reference value as the feed published it last. */
export type Round = { price: number; updatedAtMs: number }

/** Each token's newest round at a time. */
export type Nav = (token: Token, now: number) => Round | undefined

/** The feeds: each token's newest round at a time, the same for the same seed and time. */
export const createNav = (seed: string): Nav => {
  const newest = new Map<string, Round & { lookedAtMs: number }>()
  return (token, now) => {
    const { nav, symbol } = token
    if (nav === undefined) return undefined
    const heartbeat = Math.floor(now / HEARTBEAT_MS) * HEARTBEAT_MS
    const phases = phasesOf(seed, symbol)
    const known = newest.get(symbol)
    const goesOn = known && known.lookedAtMs >= heartbeat && known.lookedAtMs <= now
    let round = goesOn ? known : { ...roundAt(nav, phases, heartbeat), lookedAtMs: heartbeat }
    for (let at = round.lookedAtMs + LOOK_MS; at <= now; at += LOOK_MS) {
      const next = roundAt(nav, phases, at)
      const moved = Math.abs(next.price / round.price - 1) >= DEVIATION
      round = { ...(moved ? next : round), lookedAtMs: at }
    }
    newest.set(symbol, round)
    return round
  }
}

/** The same feeds with the trouble that two of them have. */
export const troubled =
  (navOf: Nav): Nav =>
  (token, now) => {
    if (token.symbol === STOPPING) return navOf(token, Math.min(now, begunAt(now, STOP_CYCLE_MS) + HEARD_MS))
    const round = navOf(token, now)
    if (token.symbol !== ZEROING || !round) return round
    const zeroAt = begunAt(now - ZERO_AFTER_MS, ZERO_CYCLE_MS) + ZERO_AFTER_MS
    if (now < zeroAt + ZERO_MS) return { price: 0, updatedAtMs: zeroAt }
    return { ...round, updatedAtMs: Math.max(round.updatedAtMs, zeroAt + ZERO_MS) }
  }

/** When the cycle began that runs at a time. */
const begunAt = (at: number, cycleMs: number): number => Math.floor(at / cycleMs) * cycleMs

const roundAt = (nav: number, phases: readonly number[], at: number): Round => {
  const time = sessionTime(at)
  const part = waves.reduce(
    (sum, [height, length], wave) => sum + height * Math.sin((2 * Math.PI * time) / length + (phases[wave] ?? 0)),
    0,
  )
  return { price: Math.round(nav * (1 + part) * 10_000) / 10_000, updatedAtMs: at }
}

/** The last moment at which the market was open: Monday to Friday, the days of UTC standing for the 24/5 session. */
const sessionTime = (at: number): number => {
  const intoWeek = (at - MONDAY_MS) % WEEK_MS
  return intoWeek < SESSION_MS ? at : at - (intoWeek - SESSION_MS)
}

const phasesOf = (seed: string, symbol: string): readonly number[] => {
  const dice = diceOf(seed, 'nav', symbol)
  return waves.map(() => dice() * 2 * Math.PI)
}
