import { describe, expect, it } from 'vitest'
import { tokens } from '../../../../src/devnet/tokens/issued-tokens.ts'
import { Address } from '../../../../src/protocol/fields.ts'
import { baseFeeds } from '../../../../src/relay/config/feeds.ts'

describe('the price feeds on Base', () => {
  it('are thirteen, with distinct tokens, proxies and aggregators', () => {
    const addresses = baseFeeds.flatMap(({ token, proxy, aggregator }) => [token, proxy, aggregator])
    expect(baseFeeds).toHaveLength(13)
    expect(addresses.map((address) => Address.parse(address))).toEqual(addresses)
    expect(new Set(addresses).size).toBe(39)
  })

  it('belong to the tokens that the devnet lists at the start', () => {
    expect(baseFeeds.map(({ token }) => token)).toEqual(tokens.map(({ address }) => address))
  })
})
