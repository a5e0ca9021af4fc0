import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { addressIn, type Hex, ZERO_ADDRESS } from './hex.ts'
import { amountOf, amountText, sizeUnits, timeUnits } from './units.ts'

// Each reader parses the text of a setting, or throws what it must be.

/** A value that is safe to print: a URL without its user and its path, which may contain a key. */
export const redacted = (given: string): string =>
  JSON.stringify(given.replace(/:\/\/(?:[^/@,\s]*@)?([^/?#,\s]*)([^,\s]*)/g, (_, host, rest) => `://${host}${rest && '/…'}`))

/** The text of a setting cannot be parsed; the message names what it must be. */
export class SettingError extends Error {}
/** The same for a setting whose text must not be printed. */
export class SecretSettingError extends SettingError {}

/** Reads the text of a setting. One that takes only a few texts has all of them as choices. */
export type SettingReader<Value> = { (text: string): Value; readonly choices?: readonly string[] }
/** Reads a number whose unit the code appends to the name of the setting. */
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

/** The items of a comma list. Empty items are skipped; an empty list keeps one, which its parser then refuses. */
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

export function address(text: string): Hex {
  const read = addressOf(text)
  if (read === null) throw new SettingError('must be an address, 0x and 40 hex digits')
  return read
}

/** Origins as a browser sends them: scheme, host and port, without a path. */
export function origins(text: string): readonly string[] {
  return itemsOf(text).map((item) => {
    const { origin, href } = URL.canParse(item) ? new URL(item) : { origin: 'null', href: '' }
    if (origin !== 'null' && href === `${origin}/`) return origin
    throw new SettingError(`must be origins such as https://example.com, and ${redacted(item)} is not one`)
  })
}

/** Never printed, not even when it is wrong. */
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

/** The path of a file, which is read later, and again after a change. */
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
