import type { IncomingMessage } from 'node:http'
import type { BlockList } from 'node:net'
import ipaddr from 'ipaddr.js'

type IpAddress = ipaddr.IPv4 | ipaddr.IPv6

/** The network half (/64) of an IPv6 address. One customer owns a whole /64. */
const NETWORK_PARTS = 4

/**
 * The address that a connection counts for. Behind a trusted proxy it is the rightmost X-Forwarded-For entry that is
 * not itself a trusted proxy. The header of any other sender is ignored.
 */
export function clientAddressOf(incoming: IncomingMessage, trusted: BlockList, warn: () => void): string {
  let address = parseAddress(incoming.socket.remoteAddress ?? '')
  const forwarded = incoming.headers['x-forwarded-for']
  if (address === null) return 'unknown'
  if (forwarded === undefined) return networkOf(address)
  if (!isIn(trusted, address)) warn()
  const hops = String(forwarded).split(',')
  while (isIn(trusted, address) && hops.length > 0) {
    const previous = parseAddress(hops.pop() ?? '')
    if (previous === null) break
    address = previous
  }
  return networkOf(address)
}

/** What a connection counts for before it says anything: its address, or its /64 network. Empty for a trusted proxy. */
export function networkAddressOf(remoteAddress: string, trusted: BlockList | undefined): string {
  const address = parseAddress(remoteAddress)
  if (address === null || (trusted && isIn(trusted, address))) return ''
  return networkOf(address)
}

const networkOf = (address: IpAddress): string =>
  address instanceof ipaddr.IPv6 ? address.parts.slice(0, NETWORK_PARTS).join(':') : address.toString()

const isIn = (ranges: BlockList, address: IpAddress): boolean => ranges.check(address.toString(), address.kind())

/** Some proxies append the port. An IPv4-mapped IPv6 address is read as the IPv4 address. */
function parseAddress(text: string): IpAddress | null {
  const host = text
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  return ipaddr.isValid(host) ? ipaddr.process(host) : null
}
