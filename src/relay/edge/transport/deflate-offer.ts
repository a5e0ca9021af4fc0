import { DEFLATE_WINDOW_BITS } from './deflate.ts'

/** The compression of the messages to a listener: none, shared by the messages of a batch, or of each message alone. */
export type Compression = 'none' | 'batch' | 'message'

/** An accepted offer of permessage-deflate, as the header that asks for exactly what we do, and what that is. */
export type DeflateOffer = { readonly header: string; readonly compression: Exclude<Compression, 'none'> }

const EXTENSION = 'permessage-deflate'
const windowBits = /^([89]|1[0-5])$/
/** The parameters of an offer, and whether a value is valid (RFC 7692 §7.1). */
const validators = new Map<string, (value: string | undefined) => boolean>([
  ['server_no_context_takeover', (value) => value === undefined],
  ['client_no_context_takeover', (value) => value === undefined],
  ['server_max_window_bits', (value) => value !== undefined && windowBits.test(value)],
  // The size of the client's window does not matter: each of its messages is inflated alone.
  ['client_max_window_bits', (value) => value === undefined || windowBits.test(value)],
])

/**
 * The first offer of a `Sec-WebSocket-Extensions` header that we accept; null if there is none. An unreadable offer, and
 * one with a window smaller than ours, is declined: the next offer counts, and without another the connection is uncompressed.
 */
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

/** The parameters of one offer by name; null if one is unknown, repeated or has a bad value. */
function readParameters(texts: readonly string[]): ReadonlyMap<string, string | undefined> | null {
  const parameters = new Map<string, string | undefined>()
  for (const text of texts) {
    const [, name = '', , value] = /^([a-z_]+)(\s*=\s*"?(\d+)"?)?$/.exec(text) ?? []
    if (!validators.get(name)?.(value) || parameters.has(name)) return null
    parameters.set(name, value)
  }
  return parameters
}
