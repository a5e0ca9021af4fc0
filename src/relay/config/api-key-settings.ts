import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { itemsOf, readableFile, SecretSettingError, SettingError } from '../../lib/setting-readers.ts'

/** Limits of an API key. If one is absent, the limit for an address applies. */
export type KeyLimits = {
  readonly clients?: number | undefined
  readonly rpc_rate?: number | undefined
  readonly replays?: number | undefined
}

/** `digest` is the SHA-256 of an API key. */
export type KeyEntry = { readonly digest: Buffer; readonly limits: KeyLimits }

/** Limit of the number of API keys, because each request is compared with all of them. */
const KEYS_BOUND = 1_000
const SECRET_LEAST_CHARS = 32
const LIMIT_BOUND = 1_000_000
const WHAT_A_KEY_IS =
  'must be letters, digits and signs without spaces, or sha256: and 64 hex digits; clients=, rpc_rate= and replays= may follow it, each with a whole number from 1'

/** Reads API keys, which are never printed, not even in the message about a mistake. */
export const keyEntries = (text: string): readonly KeyEntry[] => entriesOf(itemsOf(text))

/** Reads API keys, one in each line. A comment begins with #. */
export const keyEntriesOfFile = (text: string): readonly KeyEntry[] =>
  entriesOf(
    text
      .split('\n')
      .map((line) => line.replace(/(^|\s)#.*/, '').trim())
      .filter((line) => line !== ''),
  )

export function keysFile(path: string): string {
  const text = readFileSync(readableFile(path), 'utf8')
  try {
    keyEntriesOfFile(text)
    return path
  } catch (failure) {
    throw failure instanceof SettingError ? new SecretSettingError(`names a file whose lines ${failure.message}`) : failure
  }
}

/** Reads a secret, which is never printed, not even in the message about a mistake. */
export function tokenSecret(text: string): string {
  if (/^[!-~]+$/.test(text) && text.length >= SECRET_LEAST_CHARS) return text
  throw new SecretSettingError(`must be at least ${SECRET_LEAST_CHARS} letters, digits and signs without spaces`)
}

export const randomTokenSecret = (): string => randomBytes(SECRET_LEAST_CHARS).toString('base64url')

/** Returns the SHA-256 of a secret. Digests have equal lengths, so that two of them can be compared in constant time. */
export const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

function entriesOf(items: readonly string[]): readonly KeyEntry[] {
  if (items.length > KEYS_BOUND) throw new SecretSettingError(`must be at most ${KEYS_BOUND} keys`)
  return items.map(keyEntry)
}

function keyEntry(item: string): KeyEntry {
  const [key = '', ...words] = item.split(/\s+/)
  const [, hex] = /^sha256:([0-9a-f]{64})$/i.exec(key) ?? []
  if (!/^[!-~]+$/.test(key) || (key.startsWith('sha256:') && hex === undefined)) throw new SecretSettingError(WHAT_A_KEY_IS)
  return { digest: hex === undefined ? digestOf(key) : Buffer.from(hex, 'hex'), limits: Object.fromEntries(words.map(limit)) }
}

function limit(word: string): readonly [name: keyof KeyLimits, value: number] {
  const [, name, digits] = /^(clients|rpc_rate|replays)=(\d{1,7})$/.exec(word) ?? []
  const value = Number(digits)
  if (name === undefined || value < 1 || value > LIMIT_BOUND) throw new SecretSettingError(WHAT_A_KEY_IS)
  return [name as keyof KeyLimits, value]
}
