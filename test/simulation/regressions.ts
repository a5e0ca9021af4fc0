import { readFileSync } from 'node:fs'
import type { Fault } from './fault-table.ts'
import type { Settings } from './simulation-settings.ts'

/** A world that once broke a law, whole, so that seeds may change their meaning; with what has to hold in it. */
export type Regression = { readonly about: string; readonly settings: Settings; readonly faults: readonly Fault[] }

/** What the older ones did not know of. */
const defaults = { traits: [], firstHead: 1_000_000, deeds: 0, listLagMs: 0 }

/** One line each, as a hunt prints them. */
export const regressions: readonly Regression[] = readFileSync(new URL('./regressions.ndjson', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => {
    const { about, settings, faults } = JSON.parse(line)
    return { about, settings: { ...defaults, ...settings }, faults }
  })
