import { DEFLATE_WINDOW_BITS } from './deflate.ts'

/** The messages to a listener are not compressed, compressed together for each batch, or each compressed alone. */
export type Compression = 'none' | 'batch' | 'message'

export type DeflateOffer = { readonly header: string; readonly compression: Exclude<Compression, 'none'> }

const EXTENSION = 'permessage-deflate'
const windowBits = /^([89]|1[0-5])$/
/** Tests for the values of an offer's parameters (RFC 7692 §7.1). */
const validators = new Map<string, (value: string | undefined) => boolean>([
  ['server_no_context_takeover', (value) => value === undefined],
  ['client_no_context_takeover', (value) => value === undefined],
  ['server_max_window_bits', (value) => value !== undefined && windowBits.test(value)],
  // The client's window may have any size: each of its messages is inflated alone.
  ['client_max_window_bits', (value) => value === undefined || windowBits.test(value)],
])

/** Returns the first offer that the relay accepts; null if there is none. It needs a window of at least DEFLATE_WINDOW_BITS. */
export function acceptDeflateOffer(header: string): DeflateOffer | null {
  for (const offer of header.split(',')) {
    const [name, ...texts] = offer.split(';').map((part) => part.trim())
    const parameters = name === EXTENSION ? readParameters(texts) : null
    const serverBits = parameters?.get('server_max_window_bits')
    if (!parameters || Number(serverBits ?? DEFLATE_WINDOW_BITS) < DEFLATE_WINDOW_BITS) continue
    const isAlone = parameters.has('server_no_context_takeover')
    const accepted = [
      EXTENSION,
      ...(isAlone ? ['server_no_context_takeover'] : []),
      ...(serverBits === undefined ? [] : [`server_max_window_bits=${serverBits}`]),
    ]
    return { header: accepted.join('; '), compression: isAlone ? 'message' : 'batch' }
  }
  return null
}

/** Null if a parameter is unknown, repeated or has a bad value. */
function readParameters(texts: readonly string[]): ReadonlyMap<string, string | undefined> | null {
  const parameters = new Map<string, string | undefined>()
  for (const text of texts) {
    const [, name = '', , value] = /^([a-z_]+)(\s*=\s*"?(\d+)"?)?$/.exec(text) ?? []
    if (!validators.get(name)?.(value) || parameters.has(name)) return null
    parameters.set(name, value)
  }
  return parameters
}
