import { type CommandFlags, commonFlags, textFlag } from '../../lib/flags.ts'
import { flagTerms, type HelpTerm, helpText } from '../../lib/help.ts'
import { type AnySetting, fileSettingOf, flagOf, groupTitles, settingGroups, settings } from './settings.ts'

const otherFlags = {
  'env-file': textFlag('a file of NAME=value lines; the environment wins over it, and a flag over both'),
  ...commonFlags,
} as const satisfies CommandFlags

export const settingFlags: CommandFlags & typeof otherFlags = {
  ...Object.fromEntries([...settings].flatMap(([name, setting]) => flagsFor(name, setting))),
  ...otherFlags,
}

function flagsFor(name: string, { description, read, mayHoldSecret }: AnySetting): [string, CommandFlags[string]][] {
  const flags: [string, CommandFlags[string]][] = [
    [flagOf(name), { ...textFlag(description), ...(read.choices && { choices: read.choices }) }],
  ]
  if (mayHoldSecret) flags.push([flagOf(fileSettingOf(name)), textFlag(`file that contains ${name}`)])
  return flags
}

const settingText = ({ default: fallback, description, mayHoldSecret }: AnySetting): string =>
  `${description}${fallback === null ? '' : ` (${fallback})`}${mayHoldSecret ? ' [file]' : ''}`

export const fileSentence =
  'A file may contain the value of a setting that is marked with [file]. Its name with _FILE names that file: METRICS_TOKEN_FILE, or --metrics-token-file.'

export const serveHelp = (): string =>
  helpText(
    'stocktape [serve] [--SETTING VALUE ...] [--env-file PATH]',
    'Runs the relay. Each setting is a flag or an environment variable; without any, a built-in chain runs. Times are written 200ms, 15s, 5m, 24h or 30d, and sizes 64KiB, 1MiB or 1GiB.',
    fileSentence,
    ...Object.entries(settingGroups).map(([group, inside]) => ({
      heading: groupTitles[group as keyof typeof settingGroups],
      terms: Object.entries<AnySetting>(inside).map(
        ([name, setting]): HelpTerm => [`--${flagOf(name)} ${name}`, settingText(setting)],
      ),
    })),
    { heading: 'Other flags', terms: flagTerms(otherFlags) },
    'Exit codes: 0 after a signal to stop, 1 for a failure while it runs, 2 for a mistake in the settings.',
  )
