import type { Hex } from '../../lib/hex.ts'
import { addressOf, isSameName, itemsOf, redacted, SettingError, tokenName } from '../../lib/setting-readers.ts'

/** `token` is a symbol or an address. */
export type FeedSetting = {
  readonly token: string
  readonly proxy: Hex
  /** The contract that emits a log for each round, until the proxy names another one. */
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
  return { token: tokenName(token, item), proxy: address }
}
