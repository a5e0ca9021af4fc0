import { describe, expect, it } from 'vitest'
import { readConfig } from '../../../../src/relay/config/config.ts'
import { networks } from '../../../../src/relay/config/networks.ts'

const one = `0x${'1a'.repeat(20)}`
const other = `0x${'2B'.repeat(20)}`
const id = `0x${'3c'.repeat(32)}`
const USDC = `USDC:${one}:6`

const read = (env: Readonly<Record<string, string>>) => {
  const result = readConfig([], env)
  if (result.kind !== 'settings') throw new Error(JSON.stringify(result))
  return result.config.tokens.pools
}
const mistakesOf = (env: Readonly<Record<string, string>>): readonly string[] => {
  const result = readConfig([], env)
  return result.kind === 'mistakes' ? result.lines : []
}

describe('the pools', () => {
  it('are named by token, currency, kind and address', () => {
    const currency = { symbol: 'USDC', address: one, decimals: 6 }
    const euro = { symbol: 'EURC', address: other.toLowerCase(), decimals: 18 }
    const pools = read({
      QUOTE_TOKENS: `${USDC}, EURC:${other}:18`,
      POOLS: ` AAPLc = uniswap_v3:${other} , TSLAc/eurc=slipstream:${id.slice(0, 42)},${other}=uniswap_v4:${id}@${other},`,
    })
    expect(pools).toEqual([
      { token: 'AAPLc', kind: 'uniswap_v3', id: other.toLowerCase(), manager: null, currency },
      { token: 'TSLAc', kind: 'slipstream', id: id.slice(0, 42), manager: null, currency: euro },
      { token: other.toLowerCase(), kind: 'uniswap_v4', id, manager: other.toLowerCase(), currency },
    ])
  })

  it('are built in for NETWORK=base alone, and named ones replace them', () => {
    const [first] = read({ NETWORK: 'base' })
    expect(first?.currency).toEqual({ symbol: 'USDC', address: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', decimals: 6 })
    expect(read({ NETWORK: 'base' })).toHaveLength(networks.base.pools.length)
    expect(read({ NETWORK: 'base', POOLS: `AAPLc=uniswap_v3:${other}` })).toHaveLength(1)
    expect(read({ NETWORK: 'base-sepolia' })).toEqual([])
  })

  const pools = (POOLS: string) => ({ QUOTE_TOKENS: USDC, POOLS })
  it.each([
    [pools('AAPLc'), /^POOLS must be pools such as .*"AAPLc" is not one/],
    [pools(`AAPLc=uniswap_v2:${other}`), /^POOLS must be pools such as /],
    [pools(`=uniswap_v3:${other}`), /^POOLS must be pools such as /],
    [pools('AAPLc=uniswap_v3:0x12'), /^POOLS must name a pool by its address/],
    [pools(`AAPLc=uniswap_v3:${id}`), /^POOLS must name a pool by its address/],
    [pools(`AAPLc=uniswap_v4:${other}@${one}`), /^POOLS must name a pool by its address, or for uniswap_v4 by its id/],
    [pools(`AAPLc=uniswap_v4:${id}`), /^POOLS must name the pool manager behind @/],
    [pools(`AAPLc=slipstream:${other}@${one}`), /^POOLS must name the pool manager behind @ for uniswap_v4, and only there/],
    [pools(`0xb2=uniswap_v3:${other}`), /^POOLS must name a token by its symbol or its address/],
    [pools(`AAPLc=uniswap_v3:${other},TSLAc=slipstream:${other.toLowerCase()}`), /^POOLS must name each pool once/],
    [pools(`AAPLc/DAI=uniswap_v3:${other}`), /^POOLS names "DAI", which QUOTE_TOKENS does not$/],
    [pools(`USDC=uniswap_v3:${other}`), /^POOLS trades "USDC" against itself in /],
    [pools(`AAPLc=uniswap_v3:${one}`), /^POOLS names 0x1a.* as a pool, and QUOTE_TOKENS as a token$/],
    [{ POOLS: `AAPLc=uniswap_v3:${other}` }, /^QUOTE_TOKENS is missing: /],
    [{ QUOTE_TOKENS: `USDC:${one}` }, /^QUOTE_TOKENS must be tokens with their decimals such as USDC:0x…:6/],
    [{ QUOTE_TOKENS: `USDC:${one}:99` }, /^QUOTE_TOKENS must be tokens with their decimals/],
    [{ QUOTE_TOKENS: `USDC:${one}:6,usdc:${other}:6` }, /^QUOTE_TOKENS must name each token once/],
    [{ QUOTE_TOKENS: `USDC:${one}:6,EURC:${one}:6` }, /^QUOTE_TOKENS must name each token once/],
  ])('%j stop the start with one line', (env, line) => {
    expect(mistakesOf(env)).toEqual([expect.stringMatching(line)])
  })
})
