import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { amountOf, sizeUnits, timeUnits } from '../../src/lib/units.ts'
import { renamed } from '../../src/relay/config/former-or-unknown-settings.ts'
import { settings } from '../../src/relay/config/settings.ts'

/** The settings in the names and units that the program in a folder knows: earlier commits have their own. */
export function settingsFor(dir: string, given: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const table = join(dir, 'src/relay/config/settings.ts')
  const isEarlier = !existsSync(table) || !readFileSync(table, 'utf8').includes('MAX_CLIENTS: setting(')
  return isEarlier ? Object.fromEntries(Object.entries(given).map(([name, text]) => earlierSetting(name, text))) : given
}

function earlierSetting(name: string, text = ''): readonly [name: string, text: string] {
  const [earlierName] = [...renamed].find(([, now]) => now === name) ?? []
  if (earlierName === undefined) return [name, text]
  const unit = settings.get(name)?.read.unit
  return [earlierName, unit === undefined ? text : String(amountOf(text, unit === 'Ms' ? timeUnits : sizeUnits))]
}
