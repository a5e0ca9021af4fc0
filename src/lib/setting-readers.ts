import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { addressIn, type Hex, ZERO_ADDRESS } from './hex.ts'
import { amountOf, amountText, sizeUnits, timeUnits } from './units.ts'

/** Quotes a value for a message, without the user and the path of a URL, because they may contain an API key. */
export const redacted = (given: string): string =>
  JSON.stringify(given.replace(/:\/\/(?:[^/@,\s]*@)?([^/?#,\s]*)([^,\s]*)/g, (_, host, rest) => `://${host}${rest && '/…'}`))

/** A wrong value of a setting. The message says what the value must be, without the name of the setting. */
export class SettingError extends Error {}
/** A wrong value of a setting that must not be printed, because it may be a secret. */
export class SecretSettingError extends SettingError {}

/** Reads the text of a setting. `choices` are all texts that it accepts; absent if there are too many to list. */
export type SettingReader<Value> = { (text: string): Value; readonly choices?: readonly string[] }
/** Reads a time or a size. In the code, the name of the setting ends with `unit`, as in `pendingPollMs`. */
type QuantityReader<Unit extends 'Ms' | 'Bytes'> = SettingReader<number> & { readonly unit: Unit; readonly examples: string }

export const duration = (min: number, max: number): QuantityReader<'Ms'> =>
  Object.assign(quantity('time', timeUnits, min, max), { unit: 'Ms', examples: '200ms, 15s or 24h' } as const)

export const size = (min: number, max: number): QuantityReader<'Bytes'> =>
  Object.assign(quantity('size', sizeUnits, min, max), { unit: 'Bytes', examples: '64KiB or 1MiB' } as const)

function quantity(what: string, units: typeof timeUnits, min: number, max: number) {
  const [smallest = ''] = units.keys()
  return (text: string): number => {
    const value = amountOf(text, units)
    if (value >= min && value <= max) return value
    const bare = amountOf(`${text}${smallest}`, units)
    if (bare >= min && bare <= max)
      throw new SettingError(
        `must have a unit, such as ${[...new Set([`${bare}${smallest}`, amountText(bare, units)])].join(' or ')}`,
      )
    throw new SettingError(`must be a ${what} with a unit, from ${amountText(min, units)} to ${amountText(max, units)}`)
  }
}

export function integer(min: number, max: number) {
  return (text: string): number => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new SettingError(`must be a whole number from ${min.toLocaleString('en')} to ${max.toLocaleString('en')}`)
  }
}

export function url(...schemes: readonly string[]) {
  return (text: string): string => {
    const parsed = URL.canParse(text) ? new URL(text) : null
    if (parsed && schemes.includes(parsed.protocol)) return text.replace(/\/+$/, '')
    throw new SettingError(`must be a URL that begins with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}`)
  }
}

/** Splits a list at its commas, without empty items. If all items are empty they remain, so that their reader refuses the list. */
export const itemsOf = (text: string): readonly string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item, _, all) => item !== '' || all.every((other) => other === ''))

export function urls(...schemes: readonly string[]) {
  return (text: string): readonly string[] => itemsOf(text).map(url(...schemes))
}

export function oneOf<const Names extends readonly string[]>(...choices: Names): SettingReader<Names[number]> {
  const read = (text: string): Names[number] => {
    const name = choices.find((known) => known === text)
    if (name !== undefined) return name
    throw new SettingError(`must be one of ${choices.join(', ')}`)
  }
  return Object.assign(read, { choices })
}

export const bool: SettingReader<boolean> = Object.assign(
  (text: string): boolean => {
    if (text === 'true' || text === 'false') return text === 'true'
    throw new SettingError('must be true or false')
  },
  { choices: ['true', 'false'] },
)

export const isSameName = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

export function addressOf(text: string): Hex | null {
  const read = addressIn(text)
  return read === ZERO_ADDRESS ? null : read
}

/** Reads a symbol or an address. The message about a mistake quotes `item`, of which `text` is a part. */
export function tokenName(text: string, item: string): string {
  const name = /^0x/i.test(text) ? addressOf(text) : text
  if (name === null) throw new SettingError(`must name a token by its symbol or its address, and ${redacted(item)} does not`)
  return name
}

export function address(text: string): Hex {
  const read = addressOf(text)
  if (read === null) throw new SettingError('must be an address, 0x and 40 hex digits')
  return read
}

/** Reads origins in the form in which a browser sends them: without a path. */
export function origins(text: string): readonly string[] {
  return itemsOf(text).map((item) => {
    const { origin, href } = URL.canParse(item) ? new URL(item) : { origin: 'null', href: '' }
    if (origin !== 'null' && href === `${origin}/`) return origin
    throw new SettingError(`must be origins such as https://example.com, and ${redacted(item)} is not one`)
  })
}

/** Reads a secret, which is never printed, not even in the message about a mistake. */
export function key(text: string): string {
  if (/^[!-~]+$/.test(text)) return text
  throw new SecretSettingError('must be letters, digits and signs without spaces')
}

export function ranges(text: string): BlockList {
  const list = new BlockList()
  for (const item of itemsOf(text)) {
    const [address = '', bits, ...others] = item.split('/')
    const version = isIP(address)
    const maxBits = version === 6 ? 128 : 32
    const prefixLength = bits === undefined ? maxBits : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN
    if (version === 0 || others.length > 0 || !(prefixLength <= maxBits))
      throw new SettingError(`must be addresses or ranges such as 10.0.0.0/8, and ${redacted(item)} is neither`)
    list.addSubnet(address, prefixLength, version === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

/** Checks that a file can be read, and returns its path. The part that uses the file reads it later. */
export function readableFile(path: string): string {
  try {
    readFileSync(path)
    return path
  } catch (failure) {
    throw new SettingError(
      `must be a file that can be read (${failure instanceof Error && 'code' in failure ? failure.code : 'unknown'})`,
    )
  }
}

export function nonEmptyText(text: string): string {
  if (text.trim() === '') throw new SettingError('must not be empty')
  return text
}
