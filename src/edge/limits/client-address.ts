import type { IncomingMessage } from 'node:http'
import type { BlockList } from 'node:net'
import ipaddr from 'ipaddr.js'

type IpAddress = ipaddr.IPv4 | ipaddr.IPv6

/** Only this much of an IPv6 address tells one house from the next: each has all the rest to itself. */
const NETWORK_PARTS = 4

/**
 * Whom a connection is counted for. Behind a proxy that is trusted it is whoever stands rightmost in what the proxies
 * forwarded and is no such proxy itself; what anybody else says of where it comes from is not believed.
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

const networkOf = (address: IpAddress): string =>
  address instanceof ipaddr.IPv6 ? address.parts.slice(0, NETWORK_PARTS).join(':') : address.toString()

const isIn = (ranges: BlockList, address: IpAddress): boolean => ranges.check(address.toString(), address.kind())

/** Some proxies add the port. An IPv4 address in the clothes of IPv6 is the IPv4 address. */
function parseAddress(text: string): IpAddress | null {
  const host = text
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  return ipaddr.isValid(host) ? ipaddr.process(host) : null
}
