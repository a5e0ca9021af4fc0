import { isWithin, type RecurringWindow } from '../../../lib/recurring-window.ts'

/** How often it is checked whether an absence has begun or ended. */
const CHECK_MS = 100

/**
 * A fault on request: from time to time the relay disconnects its clients and is away, but not right after its start.
 * Returns the function that stops it.
 */
export function runAbsences(window: RecurringWindow, wallTime: () => number, setAway: (isAway: boolean) => void): () => void {
  let hasBeenPresent = false
  const timer = setInterval(() => {
    const isDue = isWithin(window, wallTime())
    hasBeenPresent ||= !isDue
    setAway(isDue && hasBeenPresent)
  }, CHECK_MS)
  return () => clearInterval(timer)
}
