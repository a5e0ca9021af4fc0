import type { Hex } from '../../lib/hex.ts'
import { baseFeeds, type FeedSetting } from './feeds.ts'
import { basePools, type NamedPool, type QuoteToken } from './pools.ts'

/** A network that NETWORK may name: its public endpoints, which need no key, and its contracts. */
type Network = {
  readonly chainId: number
  readonly rpcUrl: string
  readonly stocksApiUrl: string
  readonly quoteTokens: readonly QuoteToken[]
  readonly feeds: readonly FeedSetting[]
  readonly pools: readonly NamedPool[]
  /** The contract that says whether the feed of a token is frozen. */
  readonly oracleRegistry: Hex | null
}

export const networkNames = ['base', 'base-sepolia'] as const

export const networks: Readonly<Record<(typeof networkNames)[number], Network>> = {
  base: {
    chainId: 8_453,
    rpcUrl: 'https://mainnet.base.org',
    stocksApiUrl: 'https://api.coinbase.com',
    quoteTokens: [{ symbol: 'USDC', address: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', decimals: 6 }],
    feeds: baseFeeds,
    pools: basePools,
    oracleRegistry: '0x3f3e8cf41cdd3b1d118c16471ab0113dfddd5cad',
  },
  'base-sepolia': {
    chainId: 84_532,
    rpcUrl: 'https://sepolia.base.org',
    stocksApiUrl: 'https://api.coinbase.com',
    quoteTokens: [{ symbol: 'USDC', address: '0x036cbd53842c5426634e7929541ec2318f3dcf7e', decimals: 6 }],
    feeds: [],
    pools: [],
    oracleRegistry: null,
  },
}
