import type { IncomingMessage } from 'node:http'
import { BlockList } from 'node:net'
import { describe, expect, it } from 'vitest'
import { clientAddressOf } from '../../../../src/edge/limits/client-address.ts'

const trusted = new BlockList()
trusted.addSubnet('10.0.0.0', 8)
trusted.addSubnet('fd00::', 8, 'ipv6')

/** Whom a connection from here is counted for, and how often something was odd about what it says. */
function readClientAddress(remoteAddress: string | undefined, forwarded?: string) {
  let warnings = 0
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  const incoming = { socket: { remoteAddress }, headers } as unknown as IncomingMessage
  const name = clientAddressOf(incoming, trusted, () => {
    warnings += 1
  })
  return { name, warnings }
}

describe('whom a connection is counted for', () => {
  it.each([
    ['an IPv4 address', '203.0.113.7', '203.0.113.7'],
    ['the same in the clothes of IPv6', '::ffff:203.0.113.7', '203.0.113.7'],
    ['an IPv6 address, with its whole house', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['another of that house', '2001:db8:1:2::9', '2001:db8:1:2'],
    ['another house', '2001:db8:1:3::9', '2001:db8:1:3'],
    ['one of this machine', 'fe80::1%eth0', 'fe80:0:0:0'],
    ['one that is gone already', undefined, 'unknown'],
  ])('is %s', (_, address, name) => {
    const houses = name.includes(':')
      ? name
          .split(':')
          .map((part) => String(Number.parseInt(part, 16)))
          .join(':')
      : name
    expect(readClientAddress(address)).toEqual({ name: houses, warnings: 0 })
  })

  it.each([
    ['behind a proxy that is trusted, whom it forwards for', '10.0.0.1', '203.0.113.7', '203.0.113.7'],
    [
      'behind several, the rightmost that is none of them',
      '10.0.0.1',
      '198.51.100.1, 203.0.113.7, 10.9.9.9',
      '203.0.113.7',
    ],
    ['whatever else the client wrote in front', '10.0.0.1', '10.0.0.5, 1.1.1.1, 203.0.113.7', '203.0.113.7'],
    ['with a port', '10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
    ['the last that can be read', '10.0.0.1', '203.0.113.7, unknown', '10.0.0.1'],
    ['the proxy where nothing is said', '10.0.0.1', '', '10.0.0.1'],
    ['the first where all are proxies', '10.0.0.1', '10.1.1.1, 10.2.2.2', '10.1.1.1'],
    ['behind a proxy of IPv6 too', 'fd00::1', '203.0.113.7', '203.0.113.7'],
    ['in the clothes of IPv6 too', '::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
  ])('is %s', (_, remote, forwarded, name) => {
    expect(readClientAddress(remote, forwarded)).toEqual({ name, warnings: 0 })
  })

  it('is itself where it is no such proxy, whatever it says, and that is worth a warning', () => {
    expect(readClientAddress('203.0.113.7', '192.0.2.1')).toEqual({ name: '203.0.113.7', warnings: 1 })
  })
})
