import type { IncomingMessage } from 'node:http'
import { BlockList } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clientAddressOf } from '../../../../../src/relay/edge/limits/client-address.ts'

const trusted = new BlockList()
trusted.addSubnet('10.0.0.0', 8)
trusted.addSubnet('fd00::', 8, 'ipv6')

/** The address that a connection counts for, and the number of warnings. */
function readClientAddress(remoteAddress: string | undefined, forwarded?: string) {
  let warnings = 0
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  const incoming = { socket: { remoteAddress }, headers } as unknown as IncomingMessage
  const name = clientAddressOf(incoming, trusted, () => {
    warnings += 1
  })
  return { name, warnings }
}

describe('the address that a connection counts for', () => {
  it.each([
    ['an IPv4 address', '203.0.113.7', '203.0.113.7'],
    ['the IPv4 address of an IPv4-mapped IPv6 address', '::ffff:203.0.113.7', '203.0.113.7'],
    ['the /64 network of an IPv6 address', '2001:db8:1:2:3:4:5:6', '8193:3512:1:2'],
    ['the same network for another address in it', '2001:db8:1:2::9', '8193:3512:1:2'],
    ['another network for an address outside it', '2001:db8:1:3::9', '8193:3512:1:3'],
    ['the network of a link-local address with a zone', 'fe80::1%eth0', '65152:0:0:0'],
    ['unknown for a closed socket', undefined, 'unknown'],
  ])('is %s', (_, address, name) => {
    expect(readClientAddress(address)).toEqual({ name, warnings: 0 })
  })

  it.each([
    ['the forwarded one behind a trusted proxy', '10.0.0.1', '203.0.113.7', '203.0.113.7'],
    [
      'the rightmost that is no trusted proxy, behind several of them',
      '10.0.0.1',
      '198.51.100.1, 203.0.113.7, 10.9.9.9',
      '203.0.113.7',
    ],
    ['the same when the client put others in front', '10.0.0.1', '10.0.0.5, 1.1.1.1, 203.0.113.7', '203.0.113.7'],
    ['the forwarded one without its port', '10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
    ['the last readable one', '10.0.0.1', '203.0.113.7, unknown', '10.0.0.1'],
    ['the proxy itself when the header is empty', '10.0.0.1', '', '10.0.0.1'],
    ['the leftmost when all are trusted proxies', '10.0.0.1', '10.1.1.1, 10.2.2.2', '10.1.1.1'],
    ['the forwarded one behind an IPv6 proxy', 'fd00::1', '203.0.113.7', '203.0.113.7'],
    ['the forwarded one behind an IPv4-mapped proxy', '::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
  ])('with X-Forwarded-For is %s', (_, remote, forwarded, name) => {
    expect(readClientAddress(remote, forwarded)).toEqual({ name, warnings: 0 })
  })

  it('is that of the sender when the sender is no trusted proxy, and the header causes a warning', () => {
    expect(readClientAddress('203.0.113.7', '192.0.2.1')).toEqual({ name: '203.0.113.7', warnings: 1 })
  })

  it('is the last hop, whatever text a client puts in front of it', () => {
    const hop = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.ipV4(),
      fc.ipV6(),
      fc.constantFrom('::ffff:', '[::1', '10.0.0.1'),
    )
    fc.assert(
      fc.property(fc.array(hop, { maxLength: 20 }), (hops) => {
        expect(readClientAddress('10.0.0.1', [...hops, ' 203.0.113.7'].join(','))).toEqual({ name: '203.0.113.7', warnings: 0 })
        const { name } = readClientAddress('10.0.0.1', hops.join(','))
        expect(name).toMatch(/^(\d+\.\d+\.\d+\.\d+|\d+:\d+:\d+:\d+)$/)
      }),
    )
  })
})
