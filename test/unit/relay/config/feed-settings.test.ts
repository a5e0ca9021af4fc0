import { describe, expect, it } from 'vitest'
import { tokens } from '../../../../src/devnet/tokens/issued-tokens.ts'
import { Address } from '../../../../src/protocol/fields.ts'
import { networks } from '../../../../src/relay/config/networks.ts'

describe('the price feeds on Base', () => {
  it('are thirteen, with distinct tokens, proxies and aggregators', () => {
    const addresses = networks.base.feeds.flatMap(({ token, proxy, aggregator }) => [token, proxy, aggregator])
    expect(networks.base.feeds).toHaveLength(13)
    expect(addresses.map((address) => Address.parse(address))).toEqual(addresses)
    expect(new Set(addresses).size).toBe(39)
  })

  it('belong to the tokens that the devnet lists at the start', () => {
    expect(networks.base.feeds.map(({ token }) => token)).toEqual(tokens.map(({ address }) => address))
  })
})
