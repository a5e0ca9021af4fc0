import type { Chain } from '../../src/devnet/chain/chain.ts'
import { createRecordReader } from '../../src/devnet/node/stock-list.ts'
import { ZERO_WORD } from '../../src/lib/hex.ts'
import type { ActiveFaults } from './active-faults.ts'
import { SeededRandom } from './seeded-random.ts'
import type { SimulatedChain } from './simulated-chain.ts'
import { laterToken, listedTokens, recordedDocuments, type SimulatedToken } from './simulated-tokens.ts'
import type { Settings } from './simulation-settings.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** A record as the API served it. */
export type ServedRecord = {
  readonly contract_address: string
  readonly symbol: string
  readonly decimals: number
  readonly multiplier: number
  readonly nav_price?: unknown
  readonly nav_price_updated_at?: unknown
  readonly [field: string]: unknown
}

/** One answer that contained a list. */
export type ServedList = { readonly at: number; readonly records: readonly ServedRecord[] }

const LATENCY_MS = 30
const DEADLINE_MS = 10_000
const MIN_NAV_INTERVAL_MS = 4_000
const FUTURE_NAV_OFFSET_MS = 600_000
/** The invalid NAVs, in the order of the fault's amounts. */
const invalidNavKinds = ['missing', 'zero', 'negative', 'text', 'no time', 'future', 'frozen'] as const

type ListOptions = {
  readonly settings: Settings
  readonly clock: VirtualClock
  readonly activeFaults: ActiveFaults
  readonly chain: SimulatedChain
}

/** The token list as its API serves it, with a new NAV every few seconds. */
export class SimulatedList {
  readonly served: ServedList[] = []
  readonly #options: ListOptions
  #fetches = 0
  #isLaterTokenListed = false

  constructor(options: ListOptions) {
    this.#options = options
    options.activeFaults.onsets('tokenListed').subscribe(() => {
      this.#isLaterTokenListed = true
    })
  }

  readonly fetch = (): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const { clock, activeFaults } = this.#options
      if (activeFaults.isActive('listHangs')) return clock.runAfter(DEADLINE_MS, () => reject(new Error('timed out')))
      return clock.runAfter(LATENCY_MS, () => {
        if (activeFaults.isActive('listFails')) return reject(new Error('HTTP 500'))
        if (activeFaults.isActive('listHtml')) return resolve(Buffer.from('<html>busy</html>'))
        this.#fetches += 1
        const records = this.records(this.#fetches)
        this.served.push({ at: clock.now(), records })
        resolve(Buffer.from(JSON.stringify({ tokens: records })))
      })
    })

  /** The records of the nth answer. */
  records(nth = 0): readonly ServedRecord[] {
    const { activeFaults } = this.#options
    if (activeFaults.isActive('listEmpty')) return []
    const all = this.#isLaterTokenListed ? [...listedTokens, laterToken] : listedTokens
    const delistedIndex = activeFaults.amount('tokenDelisted')
    const remainingCount = activeFaults.amount('listShrinks') ?? all.length
    return all.filter((_, index) => index !== delistedIndex && index < remainingCount).map((token) => this.#record(token, nth))
  }

  #record(token: SimulatedToken, nth: number): ServedRecord {
    const { activeFaults } = this.#options
    const isRenamed = activeFaults.amount('tokenRenamed') === listedTokens.indexOf(token)
    const chain = this.#knownChain
    const readRecord = createRecordReader({ chain, isListed: () => true, nameDelayBlocks: 0 }, () => undefined)
    const record = readRecord(token)
    return {
      symbol: isRenamed ? `${record?.symbol}x` : `${record?.symbol}`,
      name: record?.name,
      ...recordedDocuments(chain.head.state.read, token.address),
      contract_address: token.address,
      decimals: token.decimals,
      total_supply: 1_000,
      // A number has fewer digits than some multipliers.
      multiplier: Number(record?.multiplier),
      paused_features: record?.paused_features,
      ...this.#nav(token, nth),
    }
  }

  /** The chain as far as the list's operator knows it, who may know what is not sealed yet. */
  get #knownChain(): Chain {
    const { chain, settings } = this.#options
    const { now } = chain
    return settings.listLagMs < 0
      ? now.seal(ZERO_WORD, { timestamp: now.pending.timestamp })
      : chain.viewBehind(settings.listLagMs).chain
  }

  #nav({ address }: SimulatedToken, nth: number): Pick<ServedRecord, 'nav_price' | 'nav_price_updated_at'> {
    const { clock, settings, activeFaults } = this.#options
    const random = new SeededRandom(settings.seed, 'nav', address)
    const roundMs = MIN_NAV_INTERVAL_MS * random.int(1, 6)
    const staleByMs = nth % 2 === 0 ? (activeFaults.amount('lateNav') ?? 0) : 0
    const round = Math.floor((clock.elapsedMs - staleByMs) / roundMs)
    const price = 100 + Math.floor(new SeededRandom(settings.seed, 'round', address, round).next() * 1_000_000) / 10_000
    const updatedAt = (at: number) => new Date(at).toISOString()
    const fresh = { nav_price: price, nav_price_updated_at: updatedAt(clock.startsAt + round * roundMs) }
    const invalidKind = activeFaults.amount('invalidNav')
    if (invalidKind === null || address !== listedTokens[0]?.address) return fresh
    switch (invalidNavKinds[invalidKind]) {
      case 'missing':
        return {}
      case 'zero':
        return { ...fresh, nav_price: 0 }
      case 'negative':
        return { ...fresh, nav_price: -price }
      case 'text':
        return { ...fresh, nav_price: `${price}` }
      case 'no time':
        return { nav_price: price }
      case 'future':
        return { ...fresh, nav_price_updated_at: updatedAt(clock.now() + FUTURE_NAV_OFFSET_MS) }
      default:
        return { nav_price: 123.45, nav_price_updated_at: updatedAt(clock.startsAt - roundMs) }
    }
  }
}
