import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { itemsOf, readableFile, SecretSettingError, SettingError } from '../../lib/setting-readers.ts'

/** Limits of an API key. If one is absent, the limit for an address applies. */
export type KeyLimits = {
  readonly clients?: number | undefined
  readonly rpc_rate?: number | undefined
  readonly replays?: number | undefined
}

/** `digest` is the SHA-256 of an API key. `name` stands for the key in metrics: its `name=`, or the first digits of the digest. */
export type KeyEntry = { readonly digest: Buffer; readonly name: string; readonly limits: KeyLimits }

/** Limit of the number of API keys, because each request is compared with all of them. */
const KEYS_BOUND = 1_000
/** Least length of an API key in plain text. The length of a key that is given as its hash is unknown. */
const KEY_LEAST_CHARS = 16
const KEY_BYTES = 24
const HASH_NAME_DIGITS = 8
const NAME_BOUND_CHARS = 32
const NAME = new RegExp(`^[A-Za-z0-9_-]{1,${NAME_BOUND_CHARS}}$`)
const SECRET_LEAST_CHARS = 32
const LIMIT_BOUND = 1_000_000
const WHAT_A_KEY_IS = `must be a key: ${KEY_LEAST_CHARS} or more letters, digits and signs without spaces, or sha256: and 64 hex digits`
const WHAT_FOLLOWS = `may have, after its key, name= with up to ${NAME_BOUND_CHARS} letters, digits, - and _, and clients=, rpc_rate= and replays=, each with a whole number from 1`

/** An entry of a list of keys, with the words that say where it is. */
type Item = readonly [place: string, text: string]

/** Reads API keys, which are never printed: a message about a mistake names the place of the entry. */
export const keyEntries = (text: string): readonly KeyEntry[] =>
  entriesOf(itemsOf(text).map((item, index): Item => [`entry ${index + 1}`, item]))

/** Reads API keys, one in each line. A comment begins with #. `others` are in use too, and a key must differ from them. */
export const keyEntriesOfFile = (text: string, others: readonly KeyEntry[] = []): readonly KeyEntry[] =>
  entriesOf(
    text
      .split('\n')
      .map((line, index): Item => [`line ${index + 1}`, line.replace(/(^|\s)#.*/, '').trim()])
      .filter(([, line]) => line !== ''),
    others,
  )

export function keysFile(path: string): string {
  const mistake = keysFileMistake(path)
  if (mistake) throw mistake
  return path
}

/** Returns the mistake in a file of keys, as far as it can be seen beside the keys of API_KEYS; null if there is none. */
export function keysFileMistake(path: string, others: readonly KeyEntry[] = []): SecretSettingError | null {
  const text = readFileSync(readableFile(path), 'utf8')
  try {
    keyEntriesOfFile(text, others)
    return null
  } catch (failure) {
    if (!(failure instanceof SettingError)) throw failure
    return new SecretSettingError(`names a file of which ${failure.message}`)
  }
}

export function keyName(text: string): string {
  if (NAME.test(text)) return text
  throw new SettingError(`must be up to ${NAME_BOUND_CHARS} letters, digits, - and _`)
}

/** Reads a secret, which is never printed, not even in the message about a mistake. */
export function tokenSecret(text: string): string {
  if (/^[!-~]+$/.test(text) && text.length >= SECRET_LEAST_CHARS) return text
  throw new SecretSettingError(`must be at least ${SECRET_LEAST_CHARS} letters, digits and signs without spaces`)
}

/** Returns a new API key. It does not begin with a hyphen, so that it can be the value of a flag. */
export const randomKey = (): string => `k-${randomBytes(KEY_BYTES).toString('base64url')}`

export const randomTokenSecret = (): string => randomBytes(SECRET_LEAST_CHARS).toString('base64url')

/** Returns the SHA-256 of a secret. Digests have equal lengths, so that two of them can be compared in constant time. */
export const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

function entriesOf(items: readonly Item[], others: readonly KeyEntry[] = []): readonly KeyEntry[] {
  const [excess] = items.slice(Math.max(0, KEYS_BOUND - others.length))
  if (excess) throw new SecretSettingError(`${excess[0]} must not be there: at most ${KEYS_BOUND} keys can be in use`)
  const places = new Map(others.flatMap((entry) => marksOf(entry).map((mark) => [mark, 'API_KEYS'])))
  return items.map(([place, text]) => {
    const entry = keyEntry(place, text)
    for (const mark of marksOf(entry)) {
      const before = places.get(mark)
      if (before) throw new SecretSettingError(`${place} must not have the key or the name of another: it has that of ${before}`)
      places.set(mark, place)
    }
    return entry
  })
}

/** Returns two texts in which the entries of a list must differ. */
const marksOf = ({ digest, name }: KeyEntry): readonly string[] => [digest.toString('hex'), `name ${name}`]

function keyEntry(place: string, text: string): KeyEntry {
  const [key = '', ...words] = text.split(/\s+/)
  const [, hex] = /^sha256:([0-9a-f]{64})$/i.exec(key) ?? []
  const isPlain = /^[!-~]+$/.test(key) && key.length >= KEY_LEAST_CHARS && !key.startsWith('sha256:')
  if (hex === undefined && !isPlain) throw new SecretSettingError(`${place} ${WHAT_A_KEY_IS}`)
  const digest = hex === undefined ? digestOf(key) : Buffer.from(hex, 'hex')
  const given = words.map((word) => /^(name|clients|rpc_rate|replays)=(.*)$/.exec(word) ?? [])
  const isRead = given.every(([, what, value = '']) => (what === 'name' ? NAME.test(value) : what !== undefined && isLimit(value)))
  if (!isRead) throw new SecretSettingError(`${place} ${WHAT_FOLLOWS}`)
  const { name, ...limits } = Object.fromEntries(given.map(([, what, value]) => [what, what === 'name' ? value : Number(value)]))
  return { digest, name: name ?? digest.toString('hex').slice(0, HASH_NAME_DIGITS), limits }
}

const isLimit = (text: string): boolean => /^\d{1,7}$/.test(text) && Number(text) >= 1 && Number(text) <= LIMIT_BOUND
