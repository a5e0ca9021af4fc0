import { type Command, EXIT_OK, UsageError } from '../lib/exit-codes.ts'
import { commonFlags, readFlags, textFlag } from '../lib/flags.ts'
import { flagTerms, helpText } from '../lib/help.ts'
import { SettingError } from '../lib/setting-readers.ts'
import { digestOf, keyName, randomKey } from '../relay/config/api-key-settings.ts'

export const keyFlags = { name: textFlag('name of the key in the metrics'), ...commonFlags } as const

const help = helpText(
  'stocktape key [--name NAME]',
  'Prints a new random API key for a client, and in a second line the entry for API_KEYS_FILE or API_KEYS, which contains only the hash of the key. Nothing else keeps the key.',
  flagTerms(keyFlags),
)

export const key: Command = async (args) => {
  const { name } = readFlags(keyFlags, args, { help }).values
  const made = randomKey()
  process.stdout.write(`${made}\nsha256:${digestOf(made).toString('hex')}${name === undefined ? '' : ` name=${checked(name)}`}\n`)
  return EXIT_OK
}

function checked(name: string): string {
  try {
    return keyName(name)
  } catch (mistake) {
    throw mistake instanceof SettingError ? new UsageError(`--name ${mistake.message}`) : mistake
  }
}
