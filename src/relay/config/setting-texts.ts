import { parseEnv } from 'node:util'
import { redacted, SecretSettingError, SettingError } from '../../lib/setting-readers.ts'
import { readShortFile } from '../../lib/short-file.ts'
import { type AnySetting, fileSettingOf, flagOf, settingNames } from './settings.ts'

/** Settings as they were given, by name. */
export type Texts = Readonly<Record<string, string>>

export const textsOfFlags = (values: Readonly<Record<string, string | boolean | undefined>>): Texts =>
  Object.fromEntries(
    settingNames.flatMap((name) => {
      const value = values[flagOf(name)]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )

export const withoutEmpty = (env: Readonly<Record<string, string | undefined>>): Texts =>
  Object.fromEntries(Object.entries(env).flatMap(([name, value]) => (value ? [[name, value]] : [])))

export const readEnvFile = (path: string | undefined): Texts =>
  path === undefined ? {} : withoutEmpty(parseEnv(readShortFile('--env-file', path)))

/** Reads a setting from the first layer that has it, or that names a file with it. */
export function readSetting(name: string, setting: AnySetting, layers: readonly Texts[]): unknown {
  const file = fileSettingOf(name)
  for (const { [name]: text, [file]: path } of layers) {
    if (setting.mayHoldSecret && path !== undefined) {
      if (text !== undefined) throw new SettingError(`${name} and ${file} are both set: leave one of them out`)
      const fileText = readShortFile(file, path).replace(/[\r\n]+$/, '')
      return readText(`${file} names a file whose text`, setting, fileText, false)
    }
    if (text !== undefined) return readText(name, setting, text)
  }
  return setting.default === null ? undefined : setting.read(setting.default)
}

function readText(subject: string, { read }: AnySetting, text: string, isShown = true): unknown {
  try {
    return read(text)
  } catch (mistake) {
    if (!(mistake instanceof SettingError)) throw mistake
    const shown = isShown && !(mistake instanceof SecretSettingError) ? `; it is ${redacted(text)}` : ''
    throw new SettingError(`${subject} ${mistake.message}${shown}`)
  }
}
