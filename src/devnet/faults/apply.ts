import type { Fate } from '../chain/block.ts'
import type { Hex } from '../chain/hex.ts'
import { fair, type Weather } from './faults.ts'

/** How many transactions may be named to be dropped, moved or changed. */
const NAMED_BOUND = 10_000

/** The weather, and what the rest of the devnet asks of it where that is more than to look. */
export const createSkies = (cut: () => void) => {
  const named = new Map<Hex, Fate>()
  const [flashes, transactions, seals, requests] = [everyNth(), everyNth(), everyNth(), everyNth()]
  const name = (hash: Hex, fate: Fate) => {
    if (named.size >= NAMED_BOUND) throw new Error(`no more than ${NAMED_BOUND} transactions can be named`)
    named.set(hash, fate)
  }
  const weather: Weather = {
    ...fair,
    cut,
    dropSockets: () => {
      weather.sockets = { status: 503 }
      cut()
    },
    drop: (hash) => name(hash, 'dropped'),
    move: (hash) => name(hash, 'moved'),
    change: (hash, logs) => name(hash, { logs }),
    clear: () => {
      named.clear()
      Object.assign(weather, fair)
    },
  }
  /** Whether there is one left of those that were ordered; then there is one less. */
  const spends = (what: 'lostFlashes' | 'emptyLogs' | 'missingByHash'): boolean => {
    if (weather[what] <= 0) return false
    weather[what] -= 1
    return true
  }
  return {
    weather,
    spends,
    /** What becomes of a transaction. */
    fateOf: ({ hash }: { hash: Hex }): Fate => {
      const fate = named.get(hash)
      named.delete(hash)
      const dropped = transactions(weather.dropEvery)
      return fate ?? (dropped ? 'dropped' : 'kept')
    },
    /** Whether a flashblock is lost on its way to the subscribers. */
    losesFlash: (): boolean => {
      const lost = flashes(weather.loseEvery)
      return spends('lostFlashes') || lost
    },
    /** Whether the block that was just sealed, and those before it, are replaced. */
    reorganises: (): boolean => seals(weather.reorgEvery),
    /** Whether a request over HTTP comes to the replica that lags. */
    lags: (): boolean => {
      const on = weather.lagBlocks > 0
      const nth = requests(on ? weather.lagEvery : 0)
      return on && (weather.lagEvery === 0 || nth)
    },
  }
}
export type Skies = ReturnType<typeof createSkies>

/** Says yes every so many-th time that it is asked; 0 is never, and lets it begin to count anew. */
const everyNth = () => {
  let count = 0
  return (every: number): boolean => {
    count = every > 0 ? count + 1 : 0
    return every > 0 && count % every === 0
  }
}
