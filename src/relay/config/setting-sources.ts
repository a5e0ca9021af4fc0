import { closeSync, openSync, readSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { hostOf } from '../../lib/http-fetch.ts'
import { redacted, SecretSettingError, SettingError } from '../../lib/setting-readers.ts'
import { type AnySetting, codeNameOf, fileSettingOf, flagOf, settingNames, settings } from './settings.ts'

/** Limit of a file that contains one or more settings. */
const MAX_FILE_BYTES = 64 * 2 ** 10

/** Limit of the text of a setting in the log. */
const SHOWN_BOUND_CHARS = 200

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

/** Reads a setting from the first layer that contains its value, or that names a file with its value. */
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

/**
 * Returns the settings that are not the defaults, as a log may show them: of a URL the host, of another secret nothing. `values`
 * are what was read, by the name in the code.
 */
export const shownSettings = (layers: readonly Texts[], values: Readonly<Record<string, unknown>>): Texts =>
  Object.fromEntries(
    [...settings].flatMap(([name, setting]) => {
      const file = fileSettingOf(name)
      const layer = layers.find((layer) => name in layer || (setting.mayHoldSecret && file in layer))
      const text = layer?.[name]
      if (!layer || text === setting.default) return []
      const isSecret = setting.mayHoldSecret || settings.has(file)
      const hosts = () => [values[codeNameOf(name, setting)]].flat().map((url) => hostOf(String(url)))
      const shown = name.endsWith('_URL') ? hosts().join(',') : isSecret ? '(a secret)' : (text ?? '')
      return [[name, shown.slice(0, SHOWN_BOUND_CHARS)]]
    }),
  )

function readText(subject: string, { read }: AnySetting, text: string, isShown = true): unknown {
  try {
    return read(text)
  } catch (mistake) {
    if (!(mistake instanceof SettingError)) throw mistake
    const shown = isShown && !(mistake instanceof SecretSettingError) ? `; it is ${redacted(text)}` : ''
    throw new SettingError(`${subject} ${mistake.message}${shown}`)
  }
}

/** `name` is the setting or flag that names the file. A mistake shows it and the path, never the text. */
function readShortFile(name: string, path: string): string {
  try {
    const file = openSync(path, 'r')
    try {
      const bytes = Buffer.alloc(MAX_FILE_BYTES + 1)
      let length = 0
      for (let more = -1; more !== 0; length += more) more = readSync(file, bytes, length, bytes.length - length, null)
      if (length <= MAX_FILE_BYTES) return bytes.toString('utf8', 0, length)
    } finally {
      closeSync(file)
    }
  } catch (failure) {
    const code = failure instanceof Error && 'code' in failure ? failure.code : 'unknown'
    throw new SettingError(`${name} names a file that cannot be read (${code}): ${JSON.stringify(path)}`)
  }
  throw new SettingError(`${name} names a file of more than ${MAX_FILE_BYTES / 2 ** 10}KiB: ${JSON.stringify(path)}`)
}
