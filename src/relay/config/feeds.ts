import type { Hex } from '../../lib/hex.ts'
import { addressOf, isSameName, itemsOf, redacted, SettingError } from '../../lib/setting-readers.ts'

/** A price feed: its token, by symbol or address, and its proxy. */
export type FeedSetting = {
  readonly token: string
  readonly proxy: Hex
  /** The aggregator at the time of the setting, which emits a log for each round. It holds until the proxy answers with another. */
  readonly aggregator?: Hex
}

export function feeds(text: string): readonly FeedSetting[] {
  const pairs = itemsOf(text).map(feed)
  const duplicate = pairs.find(({ token }, index) => pairs.findIndex((other) => isSameName(other.token, token)) < index)
  if (duplicate) throw new SettingError(`must name each token once, and ${redacted(duplicate.token)} appears twice`)
  return pairs
}

function feed(item: string): FeedSetting {
  const [token = '', proxy = '', ...others] = item.split('=').map((part) => part.trim())
  if (token === '' || proxy === '' || others.length > 0)
    throw new SettingError(`must be pairs such as AAPLc=0x…, and ${redacted(item)} is not one`)
  const address = addressOf(proxy)
  if (address === null) throw new SettingError(`must name the address of a feed, and ${redacted(item)} does not`)
  if (/^0x/i.test(token) && addressOf(token) === null)
    throw new SettingError(`must name a token by its symbol or its address, and ${redacted(item)} does not`)
  return { token: addressOf(token) ?? token, proxy: address }
}

/**
 * Chainlink's tokenized-equity feeds on Base, each with 8 decimals. A feed belongs to a token address, since symbols
 * change. Aggregators are sometimes replaced: these were read on 2026-09-02 and hold until the proxy itself answers.
 */
export const baseFeeds: readonly Required<FeedSetting>[] = [
  // AAPLc
  {
    token: '0xb200000000000000000000c2e324d24d7eecd1fb',
    proxy: '0x787f13dea48db0897cbcdd985de77809d837f988',
    aggregator: '0xc37b6f754e90d4cca1f533f5a08f7d532b3d0d9d',
  },
  // AMZNc
  {
    token: '0xb200000000000000000000d9192b6b456483c2e8',
    proxy: '0x06a8e4b3abb3b7543d8396fb2b763d22820cb295',
    aggregator: '0x4816cb7ee43ee12c0bc9d3c597246f34d5cfdb7c',
  },
  // COINc
  {
    token: '0xb200000000000000000000c85a31389d71f3ecfb',
    proxy: '0x408e44f504a7371a345f03a73ddc96a4b48e8aa7',
    aggregator: '0x86af8309b812bdca427a1ad83088705ad0689cfe',
  },
  // CRCLc
  {
    token: '0xb20000000000000000000019f6e7c675b73c2e4d',
    proxy: '0x0231cf2635d1e17bb5c2462cc7504ba1fbd61f33',
    aggregator: '0x936b2e82aaeda0f437e88b24d877f6195c5ff2e2',
  },
  // GOOGLc
  {
    token: '0xb2000000000000000000002d0ba3164cc74f58b7',
    proxy: '0x5bf49e0ffa937ce2fff033c739ad7c634c4d34f2',
    aggregator: '0x6bf33b7855eb8047dde206d9f6321d7d02cfb308',
  },
  // INTCc
  {
    token: '0xb2000000000000000000004aff16039ba04bdfbc',
    proxy: '0xab657c39bac0d5886250d70849e2e3e008f2eecb',
    aggregator: '0x8327bd1d98a2e8874d0d456cbcade231e3ab087c',
  },
  // METAc
  {
    token: '0xb2000000000000000000008bc8786b856e61707c',
    proxy: '0x6526ae6797a76123638b863aee4dd27ba4e4b27d',
    aggregator: '0xa7155928bee40052efb3094a046c5498202fd3ee',
  },
  // MSFTc
  {
    token: '0xb200000000000000000000ab99cfa739e253872b',
    proxy: '0xeb10a6c9aa7e537aed766c08c35dae35b321b18c',
    aggregator: '0xd72b34be6c2180ad0d28dbb415aefde8a55f3ed3',
  },
  // MSTRc
  {
    token: '0xb2000000000000000000004884b426556b92883d',
    proxy: '0xb3ce282cd188b35da0e38d8bc7d58e33173d202a',
    aggregator: '0xbc94b7ba3a8941fb7aee8bd10538f79f39185edb',
  },
  // NVDAc
  {
    token: '0xb20000000000000000000078ee7ce2fe4908108c',
    proxy: '0x04689a41629776563e6822f76f2e57d148d28513',
    aggregator: '0xf72b1eb5932800f3d2a5eec5f99e6cd586479675',
  },
  // SNDKc
  {
    token: '0xb200000000000000000000397293cb8cda9a10c5',
    proxy: '0x388b0dc46c0fb05a74bee0994fa5b02c6fcca2ea',
    aggregator: '0x767b5c02af56c2621d66c8596aac32de7374b55b',
  },
  // SPCXc
  {
    token: '0xb2000000000000000000007b9fcbd005511acbd5',
    proxy: '0x6a634b235903c4ad6376892180d6ff8612e3fa68',
    aggregator: '0xa994b7fc3123ae0ef4ee53ab5e3545f2639187a7',
  },
  // TSLAc
  {
    token: '0xb2000000000000000000001e800a7f5189430cd0',
    proxy: '0xfaf869185383a24f8cb00e27bda6b63b9905dcb4',
    aggregator: '0x0288234d9311c33be6c3a34b051bff8a799daa82',
  },
]
