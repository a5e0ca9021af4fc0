import { isWithin, type RecurringWindow } from '../../recurring-window.ts'

/** How often it is checked whether an absence has begun or ended. */
const CHECK_MS = 100

/** A fault on request: from time to time the relay disconnects its clients and is away. Returns the function that stops it. */
export function runAbsences(window: RecurringWindow, wallTime: () => number, setAway: (isAway: boolean) => void): () => void {
  const timer = setInterval(() => setAway(isWithin(window, wallTime())), CHECK_MS)
  return () => clearInterval(timer)
}
