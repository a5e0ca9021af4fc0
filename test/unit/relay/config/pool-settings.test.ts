import { describe, expect, it } from 'vitest'
import { networks } from '../../../../src/relay/config/networks.ts'
import { configOf, type Env, mistakesOf } from './config-readings.ts'

const one = `0x${'1a'.repeat(20)}`
const other = `0x${'2B'.repeat(20)}`
const id = `0x${'3c'.repeat(32)}`
const USDC = `USDC:${one}:6`

const read = (env: Env) => configOf([], env).tokens.pools

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

  it.each([
    ['3000/60/none', { fee: 3_000, tickSpacing: 60, hooks: 'none' }],
    [`0/1/0x${'0'.repeat(40)}`, { fee: 0, tickSpacing: 1, hooks: 'none' }],
    [` 1000000 / 32767 / ${other} `, { fee: 1_000_000, tickSpacing: 32_767, hooks: other.toLowerCase() }],
    [`8388608/60/${other.toLowerCase()}`, { fee: 8_388_608, tickSpacing: 60, hooks: other.toLowerCase() }],
  ])('of Uniswap v4 are named by the key %s too', (text, key) => {
    const [pool] = read({ QUOTE_TOKENS: USDC, POOLS: `AAPLc=uniswap_v4:${text}@${other}` })
    expect(pool).toMatchObject({ kind: 'uniswap_v4', id: key, manager: other.toLowerCase() })
  })

  it('of several tokens may have one key', () => {
    const POOLS = `AAPLc=uniswap_v4:3000/60/none@${other},TSLAc=uniswap_v4:3000/60/none@${other}`
    expect(read({ QUOTE_TOKENS: USDC, POOLS })).toHaveLength(2)
  })

  it('are built in for NETWORK=base alone, and named ones replace them', () => {
    const [first] = read({ NETWORK: 'base' })
    expect(first?.currency).toEqual({ symbol: 'USDC', address: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', decimals: 6 })
    expect(read({ NETWORK: 'base' })).toHaveLength(networks.base.pools.length)
    expect(read({ NETWORK: 'base', POOLS: `AAPLc=uniswap_v3:${other}` })).toHaveLength(1)
    expect(read({ NETWORK: 'base-sepolia' })).toEqual([])
  })

  const pools = (POOLS: string) => ({ QUOTE_TOKENS: USDC, POOLS })
  const keyed = (key: string, manager = other) => pools(`AAPLc=uniswap_v4:${key}@${manager}`)
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
    [
      pools('AAPLc=uniswap_v2'),
      / or uniswap_v4:<fee>\/<tick spacing>\/<hooks>@0x<pool manager>, and "AAPLc=uniswap_v2" is not one/,
    ],
    [keyed('3000/60'), /^POOLS must be pools such as /],
    [
      keyed('1000001/60/none'),
      /^POOLS must have a fee from 0 to 1,000,000 hundredths of a basis point, or 8388608 for a dynamic one, and /,
    ],
    [keyed('0x800000/60/none'), /^POOLS must have a fee from 0 to 1,000,000 /],
    [keyed('/60/none'), /^POOLS must have a fee from 0 to 1,000,000 /],
    [keyed('3000/0/none'), /^POOLS must have a tick spacing from 1 to 32,767 behind the fee, and /],
    [keyed('3000/32768/none'), /^POOLS must have a tick spacing /],
    [keyed('3000/-60/none'), /^POOLS must have a tick spacing /],
    [keyed('3000/60/'), /^POOLS must name the hooks of a pool by their address, or none, and /],
    [keyed('3000/60/0x12'), /^POOLS must name the hooks of a pool /],
    [pools('AAPLc=uniswap_v4:3000/60/none'), /^POOLS must name the pool manager behind @/],
    [pools('AAPLc=uniswap_v3:3000/60/none'), /^POOLS must name a pool by its address/],
    [keyed('3000/60/none', '0x12'), /^POOLS must name a pool by its address, .*, and the address of its manager, and /],
    [
      pools(`AAPLc=uniswap_v4:3000/60/${other}@${other},aaplC=uniswap_v4:03000/60/${other.toLowerCase()}@${other}`),
      /^POOLS must name each pool once, and "aaplC=3000\/60\/0x2b.*" appears twice; /,
    ],
    [pools(`USDC=uniswap_v4:3000/60/none@${other}`), /^POOLS trades "USDC" against itself in 3000\/60\/none$/],
    [keyed('3000/60/none', one), /^POOLS names 0x1a.* as a pool, and QUOTE_TOKENS as a token$/],
    [pools(`AAPLc/DAI=uniswap_v3:${other}`), /^POOLS names "DAI", which QUOTE_TOKENS does not$/],
    [pools(`USDC=uniswap_v3:${other}`), /^POOLS trades "USDC" against itself in /],
    [pools(`AAPLc=uniswap_v3:${one}`), /^POOLS names 0x1a.* as a pool, and QUOTE_TOKENS as a token$/],
    [{ POOLS: `AAPLc=uniswap_v3:${other}` }, /^QUOTE_TOKENS is missing: /],
    [{ QUOTE_TOKENS: `USDC:${one}` }, /^QUOTE_TOKENS must be tokens with their decimals such as USDC:0x…:6/],
    [{ QUOTE_TOKENS: `USDC:${one}:99` }, /^QUOTE_TOKENS must be tokens with their decimals/],
    [{ QUOTE_TOKENS: `USDC:${one}:6,usdc:${other}:6` }, /^QUOTE_TOKENS must name each token once/],
    [{ QUOTE_TOKENS: `USDC:${one}:6,EURC:${one}:6` }, /^QUOTE_TOKENS must name each token once/],
  ])('%j stop the start with one line', (env, line) => {
    expect(mistakesOf([], env)).toEqual([expect.stringMatching(line)])
  })
})
