import { closeSync, openSync, readSync } from 'node:fs'
import { SettingError } from './setting-readers.ts'

/** A file with a setting or some of them is no longer. */
const MAX_BYTES = 64 * 2 ** 10

/** The text of a file that a setting or a flag names. A mistake has that name and the path, never the text. */
export function readShortFile(name: string, path: string): string {
  try {
    const file = openSync(path, 'r')
    try {
      const bytes = Buffer.alloc(MAX_BYTES + 1)
      let length = 0
      for (let more = -1; more !== 0; length += more) more = readSync(file, bytes, length, bytes.length - length, null)
      if (length <= MAX_BYTES) return bytes.toString('utf8', 0, length)
    } finally {
      closeSync(file)
    }
  } catch (failure) {
    const code = failure instanceof Error && 'code' in failure ? failure.code : 'unknown'
    throw new SettingError(`${name} names a file that cannot be read (${code}): ${JSON.stringify(path)}`)
  }
  throw new SettingError(`${name} names a file of more than ${MAX_BYTES / 2 ** 10}KiB: ${JSON.stringify(path)}`)
}
