import { readFileSync } from 'node:fs'
import type { Fault } from './fault-table.ts'
import type { Settings } from './simulation-settings.ts'

/** A simulated world that once broke a law. It is stored whole, so that seeds may change their meaning. */
type Regression = {
  readonly about: string
  /** It takes long, so `npm test` leaves it to the long tests. */
  readonly isSlow?: boolean
  readonly settings: Settings
  readonly faults: readonly Fault[]
}

/** One line each: `npm run simulate` prints `settings` and `faults`; `about` says what holds now. */
const allRegressions: readonly Regression[] = readFileSync(new URL('./regressions.ndjson', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line))

export const regressions = allRegressions.filter(({ isSlow }) => !isSlow)
export const slowRegressions = allRegressions.filter(({ isSlow }) => isSlow)
