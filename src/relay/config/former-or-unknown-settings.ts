import { adviceFor } from '../../lib/flags.ts'
import { nearestName } from '../../lib/nearest-name.ts'
import { oneLine } from '../../lib/text.ts'
import type { Texts } from './setting-sources.ts'
import { flagOf, settingNames, settings } from './settings.ts'

/** Former names of settings, and their present ones. */
export const renamed: ReadonlyMap<string, string> = new Map([
  ['CLIENTS_BOUND', 'MAX_CLIENTS'],
  ['CLIENTS_PER_ADDRESS_BOUND', 'MAX_CLIENTS_PER_ADDRESS'],
  ['SELECTIONS_BOUND', 'MAX_SELECTIONS'],
  ['REPLAY_BOUND', 'MAX_REPLAY'],
  ['TAPE_BOUND', 'TAPE_MAX_MESSAGES'],
  ['BACKLOG_BOUND_BYTES', 'MAX_BACKLOG'],
  ['BACKLOG_PATIENCE_MS', 'BACKLOG_PATIENCE'],
  ['TAPE_RETENTION_MS', 'TAPE_RETENTION'],
  ['NAV_STALE_MS', 'NAV_STALE_AFTER'],
  ['STOCKS_REFRESH_MS', 'STOCKS_REFRESH'],
  ['PENDING_POLL_MS', 'PENDING_POLL'],
  ['SILENCE_MS', 'SILENCE'],
  ['FINALITY_POLL_MS', 'FINALITY_POLL'],
  ['BACKFILL_BOUND_MS', 'BACKFILL_LIMIT'],
  ['HEARTBEAT_MS', 'HEARTBEAT'],
  ['PRE_DRAIN_MS', 'PRE_DRAIN'],
  ['DRAIN_MS', 'DRAIN'],
])
/** Settings of earlier versions, and why they were removed. */
const removed: ReadonlyMap<string, string> = new Map([['RPC_OPEN', 'eth_subscribe serves the contracts of listed tokens alone']])

/** Returns the message about a former setting. `show` writes a name as the user does: `SILENCE_MS`, or `--silence-ms`. */
function retirementOf(name: string, show: (name: string) => string): string | undefined {
  const reason = removed.get(name)
  if (reason !== undefined) return `${show(name)} is no longer a setting: ${reason}`
  const now = renamed.get(name)
  if (now === undefined) return undefined
  const examples = settings.get(now)?.read.examples
  return `${show(name)} is now ${show(now)}${examples === undefined ? '' : `, and its value has a unit, such as ${examples}`}`
}

export function retiredFlag(flag: string): string | undefined {
  const name = [...renamed.keys(), ...removed.keys()].find((retired) => `--${flagOf(retired)}` === flag)
  return name && retirementOf(name, (shown) => `--${flagOf(shown)}`)
}

/** An unknown variable with such a prefix stops the start. Otherwise the built-in chain could run in place of an upstream. */
const OWN_PREFIX = /^(UPSTREAM|STOCKS|TAPE|TRUSTED|BACKLOG)_/
/** Matches variables that container platforms set for each service. They are no settings. */
const SERVICE_LINK = /_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT$|_PORT_\d+_(TCP|UDP)(_\w+)?$/
/** Least length of a setting whose misspelling is reported: a variable near a shorter name may belong to another program. */
const MIN_MISSPELT_CHARS = 6

const unknownVariables = (variables: Texts): readonly string[] =>
  Object.keys(variables).filter((name) => !settingNames.includes(name) && !SERVICE_LINK.test(name))

export const refusedVariables = (variables: Texts): readonly string[] =>
  unknownVariables(variables).flatMap((name) => {
    const retirement = retirementOf(name, (shown) => shown)
    if (retirement !== undefined) return [retirement]
    return OWN_PREFIX.test(name) ? [`${oneLine(name)} is not a setting. ${adviceFor(name, settingNames)}`] : []
  })

/** Warns of a variable that is one edit away from a setting. All others may belong to other programs. */
export const misspeltVariables = (variables: Texts): readonly string[] =>
  unknownVariables(variables).flatMap((name) => {
    const nearest = nearestName(
      name,
      settingNames.filter((known) => known.length >= MIN_MISSPELT_CHARS),
      1,
    )
    return nearest === undefined ? [] : [`${oneLine(name)} is set, and is not a setting. Did you mean ${nearest}?`]
  })
