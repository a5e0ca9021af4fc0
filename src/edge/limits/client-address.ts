import type { IncomingMessage } from 'node:http'
import type { BlockList } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Only this much of an IPv6 address tells one house from the next: each has all the rest to itself. */
const HOUSE_PARTS = 4

/**
 * Whom a connection is counted for. Behind a proxy that is trusted it is whoever stands rightmost in what the proxies
 * forwarded and is no such proxy itself; what anybody else says of where it comes from is not believed.
 */
export function addressOf(incoming: IncomingMessage, trusted: BlockList, warn: () => void): string {
  let address = read(incoming.socket.remoteAddress ?? '')
  const forwarded = incoming.headers['x-forwarded-for']
  if (address === null) return 'unknown'
  if (forwarded === undefined) return houseOf(address)
  if (!isIn(trusted, address)) warn()
  const said = String(forwarded).split(',')
  while (isIn(trusted, address) && said.length > 0) {
    const before = read(said.pop() ?? '')
    if (before === null) break
    address = before
  }
  return houseOf(address)
}

const houseOf = (address: Address): string =>
  address instanceof ipaddr.IPv6 ? address.parts.slice(0, HOUSE_PARTS).join(':') : address.toString()

const isIn = (ranges: BlockList, address: Address): boolean => ranges.check(address.toString(), address.kind())

/** Some proxies add the port. An IPv4 address in the clothes of IPv6 is the IPv4 address. */
function read(text: string): Address | null {
  const host = text
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  return ipaddr.isValid(host) ? ipaddr.process(host) : null
}
