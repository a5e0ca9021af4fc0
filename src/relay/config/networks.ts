import type { Hex } from '../../lib/hex.ts'
import type { FeedSetting } from './feed-settings.ts'
import type { NamedPool, QuoteToken } from './pool-settings.ts'

/** Endpoints and contracts that NETWORK implies. The endpoints are public and need no API key. */
type Network = {
  readonly chainId: number
  readonly rpcUrl: string
  readonly stocksApiUrl: string
  readonly quoteTokens: readonly QuoteToken[]
  readonly feeds: readonly FeedSetting[]
  readonly pools: readonly NamedPool[]
  /** Contract that says whether the feed of a token is frozen. */
  readonly oracleRegistry: Hex | null
}

/** Addresses of stocks on Base, by their symbols on 2026-09-02. Symbols change, so feeds and pools name addresses. */
const stocks = {
  AAPLc: '0xb200000000000000000000c2e324d24d7eecd1fb',
  AMZNc: '0xb200000000000000000000d9192b6b456483c2e8',
  COINc: '0xb200000000000000000000c85a31389d71f3ecfb',
  CRCLc: '0xb20000000000000000000019f6e7c675b73c2e4d',
  GOOGLc: '0xb2000000000000000000002d0ba3164cc74f58b7',
  INTCc: '0xb2000000000000000000004aff16039ba04bdfbc',
  METAc: '0xb2000000000000000000008bc8786b856e61707c',
  MSFTc: '0xb200000000000000000000ab99cfa739e253872b',
  MSTRc: '0xb2000000000000000000004884b426556b92883d',
  NVDAc: '0xb20000000000000000000078ee7ce2fe4908108c',
  SNDKc: '0xb200000000000000000000397293cb8cda9a10c5',
  SPCXc: '0xb2000000000000000000007b9fcbd005511acbd5',
  TSLAc: '0xb2000000000000000000001e800a7f5189430cd0',
} as const

const feed = (token: Hex, proxy: Hex, aggregator: Hex): FeedSetting => ({ token, proxy, aggregator })

/** Chainlink's feeds of tokenized stocks, with 8 decimals, on 2026-09-02. If a proxy names another aggregator, that one applies. */
const baseFeeds = [
  feed(stocks.AAPLc, '0x787f13dea48db0897cbcdd985de77809d837f988', '0xc37b6f754e90d4cca1f533f5a08f7d532b3d0d9d'),
  feed(stocks.AMZNc, '0x06a8e4b3abb3b7543d8396fb2b763d22820cb295', '0x4816cb7ee43ee12c0bc9d3c597246f34d5cfdb7c'),
  feed(stocks.COINc, '0x408e44f504a7371a345f03a73ddc96a4b48e8aa7', '0x86af8309b812bdca427a1ad83088705ad0689cfe'),
  feed(stocks.CRCLc, '0x0231cf2635d1e17bb5c2462cc7504ba1fbd61f33', '0x936b2e82aaeda0f437e88b24d877f6195c5ff2e2'),
  feed(stocks.GOOGLc, '0x5bf49e0ffa937ce2fff033c739ad7c634c4d34f2', '0x6bf33b7855eb8047dde206d9f6321d7d02cfb308'),
  feed(stocks.INTCc, '0xab657c39bac0d5886250d70849e2e3e008f2eecb', '0x8327bd1d98a2e8874d0d456cbcade231e3ab087c'),
  feed(stocks.METAc, '0x6526ae6797a76123638b863aee4dd27ba4e4b27d', '0xa7155928bee40052efb3094a046c5498202fd3ee'),
  feed(stocks.MSFTc, '0xeb10a6c9aa7e537aed766c08c35dae35b321b18c', '0xd72b34be6c2180ad0d28dbb415aefde8a55f3ed3'),
  feed(stocks.MSTRc, '0xb3ce282cd188b35da0e38d8bc7d58e33173d202a', '0xbc94b7ba3a8941fb7aee8bd10538f79f39185edb'),
  feed(stocks.NVDAc, '0x04689a41629776563e6822f76f2e57d148d28513', '0xf72b1eb5932800f3d2a5eec5f99e6cd586479675'),
  feed(stocks.SNDKc, '0x388b0dc46c0fb05a74bee0994fa5b02c6fcca2ea', '0x767b5c02af56c2621d66c8596aac32de7374b55b'),
  feed(stocks.SPCXc, '0x6a634b235903c4ad6376892180d6ff8612e3fa68', '0xa994b7fc3123ae0ef4ee53ab5e3545f2639187a7'),
  feed(stocks.TSLAc, '0xfaf869185383a24f8cb00e27bda6b63b9905dcb4', '0x0288234d9311c33be6c3a34b051bff8a799daa82'),
]

function pool(token: Hex, id: Hex, kind: NamedPool['kind'] = 'uniswap_v3'): NamedPool {
  return { token, currency: null, kind, id, manager: null }
}

/** Pools of stocks and USDC, with their fees on 2026-09-05. The stocks trade in other pools too, which POOLS can name. */
const basePools = [
  pool(stocks.AAPLc, '0x97f35d1e92795327614be000cd18cba1be2c1931'), // fee 0.3 %
  pool(stocks.GOOGLc, '0x1f52f46bac657564c31122b12b43a459e09273c8'), // fee 1 %
  pool(stocks.METAc, '0x583919ec1975a1238c50e1940911894ee6912476'), // fee 0.3 %
  pool(stocks.NVDAc, '0x60661b315553eb81872deea9a66d567cf0ccd33b'), // fee 0.3 %
  pool(stocks.NVDAc, '0x853f5f1b92b16714fe6cda67caad0856b83c7ab9', 'slipstream'), // fee 0.05 %
  pool(stocks.SPCXc, '0x127a12fc0953ab2ab89558c67ba6d597d7140431'), // fee 1 %
]

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
