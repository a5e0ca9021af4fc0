import type { IncomingMessage } from 'node:http'
import type { BlockList } from 'node:net'
import ipaddr from 'ipaddr.js'

type IpAddress = ipaddr.IPv4 | ipaddr.IPv6

/** Number of parts, of 16 bits each, that name an IPv6 client: its /64 network, because one customer owns a whole /64. */
const NETWORK_PARTS = 4

/** Returns the sender's address. If that is a trusted proxy, returns the last address in X-Forwarded-For that is none. */
export function clientAddressOf(incoming: IncomingMessage, trusted: BlockList | undefined, onUntrusted: () => void): string {
  let address = parseAddress(incoming.socket.remoteAddress ?? '')
  const forwarded = incoming.headers['x-forwarded-for']
  if (address === null) return 'unknown'
  if (forwarded === undefined) return networkOf(address)
  if (!isIn(trusted, address)) onUntrusted()
  const hops = String(forwarded).split(',')
  while (isIn(trusted, address) && hops.length > 0) {
    const previous = parseAddress(hops.pop() ?? '')
    if (previous === null) break
    address = previous
  }
  return networkOf(address)
}

/** Returns the address or IPv6 network that a connection is counted under before its first request. Empty for a trusted proxy. */
export function networkAddressOf(remoteAddress: string, trusted: BlockList | undefined): string {
  const address = parseAddress(remoteAddress)
  if (address === null || isIn(trusted, address)) return ''
  return networkOf(address)
}

const networkOf = (address: IpAddress): string =>
  address instanceof ipaddr.IPv6 ? address.parts.slice(0, NETWORK_PARTS).join(':') : address.toString()

const isIn = (ranges: BlockList | undefined, address: IpAddress): boolean =>
  ranges?.check(address.toString(), address.kind()) ?? false

/** Reads an address, also with a port, which some proxies append. An IPv4-mapped IPv6 address becomes the IPv4 address. */
function parseAddress(text: string): IpAddress | null {
  const host = text
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  return ipaddr.isValid(host) ? ipaddr.process(host) : null
}
