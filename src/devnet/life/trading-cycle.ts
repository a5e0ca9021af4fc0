import { memoized } from '../../lib/bounded-map.ts'
import { type Hex, ZERO_ADDRESS } from '../../lib/hex.ts'
import { etherKey, nonceKey, type StateValues } from '../chain/account-state.ts'
import { GAS_PRICE } from '../chain/chain.ts'
import type { DeferredTransaction } from '../chain/chain-types.ts'
import { addressFrom } from '../chain/hashes.ts'
import type { DevnetToken } from '../tokens/issued-tokens.ts'
import { initialTokenValues, tokenBalanceKey } from '../tokens/token-storage.ts'
import { buildApproval, buildTransfer, gasByKind } from '../tokens/token-transfers.ts'
import { drawCount, pick, type RandomSource, seededRandom } from './seeded-random.ts'

/** Number of blocks of a cycle. The second half of a cycle undoes the trades of its first half, in reverse order. */
export const CYCLE_BLOCKS = 256
const HALF_CYCLE_BLOCKS = CYCLE_BLOCKS / 2
/** Limit of cached cycles: the current cycle, the one before, and those that the start reads. */
const CYCLES_BOUND = 4
const ACCOUNTS = 24
export const OPENING_ETHER = 1_000_000n * 10n ** 18n

type TradingSettings = {
  flashblocksPerBlock: number
  transactionsPerFlashblock: number
  transferOnlySymbols: readonly string[]
  heldElsewhere: (token: DevnetToken) => bigint
}

type TradeKind = 'transfer' | 'mint' | 'burn' | 'approval'
/** A trade that every cycle repeats with another amount, so that each cycle adds equal nonces and fees. */
type Trade = { kind: TradeKind; token: DevnetToken; from: Hex; to: Hex }
type SizedTrade = Trade & { raw: bigint }

export const cycleOf = (block: number): number => Math.floor((block - 1) / CYCLE_BLOCKS)

/**
 * Makes random trades, which depend only on the seed and the block number. Every cycle starts with the same balances, so
 * a chain can start at any cycle without a replay from block 0.
 */
export const createMarket = (seed: string, tokens: readonly DevnetToken[], settings: TradingSettings) => {
  const accounts = Array.from({ length: ACCOUNTS }, (_, index) => addressFrom(seed, `account ${index}`))
  const custodian = addressFrom(seed, 'custodian')
  const issuer = addressFrom(seed, 'issuer')
  const initialBalances = dealSupply(seed, tokens, [custodian, ...accounts], settings)
  const trades = drawTrades(seededRandom(seed, 'acts'), tokens, accounts, settings)

  const toTransaction =
    ({ token, kind, from, to, raw }: SizedTrade): DeferredTransaction =>
    () => {
      const transfer = { token: token.address, from, to, raw }
      return kind === 'approval' ? buildApproval(transfer) : buildTransfer(transfer, kind === 'transfer' ? from : issuer)
    }

  const tradesOfCycle = memoized(CYCLES_BOUND, (cycle: number) =>
    drawAmounts(seededRandom(seed, 'tide', cycle), trades, initialBalances),
  )

  const transactions = (block: number, flashblock: number): readonly DeferredTransaction[] => {
    if (block < 1) return []
    const blockInCycle = (block - 1) % CYCLE_BLOCKS
    const sizedTrades = tradesOfCycle(cycleOf(block))
    if (blockInCycle < HALF_CYCLE_BLOCKS)
      return (sizedTrades[blockInCycle * settings.flashblocksPerBlock + flashblock] ?? []).map(toTransaction)
    const mirrored = sizedTrades[(CYCLE_BLOCKS - blockInCycle) * settings.flashblocksPerBlock - 1 - flashblock] ?? []
    return mirrored.toReversed().map(reversed).map(toTransaction)
  }

  const usageByAccount = countUsage(
    trades.flat().flatMap((trade) => [trade, reversed(trade)]),
    issuer,
  )
  const stateAtStart = (cycle: number): StateValues => {
    const values = new Map<string, bigint>()
    for (const token of tokens) {
      for (const [key, value] of initialTokenValues(token)) values.set(key, value)
      for (const [account, raw] of initialBalances.get(token) ?? [])
        values.set(tokenBalanceKey(token.address, account), BigInt(raw))
    }
    for (const account of [custodian, issuer, ...accounts]) {
      const usage = usageByAccount.get(account) ?? { count: 0, gas: 0 }
      for (const [key, value] of senderValues(account, cycle, usage)) values.set(key, value)
    }
    return values
  }

  return { custodian, stateAtStart, transactions }
}

/** Returns nonce and ether, at the start of a cycle, of an account that sends the same transactions in every cycle. */
export const senderValues = (account: Hex, cycle: number, { count, gas }: { count: number; gas: number }) =>
  [
    [nonceKey(account), BigInt(count) * BigInt(cycle)],
    [etherKey(account), OPENING_ETHER - BigInt(gas) * GAS_PRICE * BigInt(cycle)],
  ] as const

/** Returns the trade that undoes a trade. An approval of zero undoes an approval. */
const reversed = <A extends Trade>(trade: A): A => {
  if (trade.kind === 'approval') return 'raw' in trade ? { ...trade, raw: 0n } : trade
  const kind = trade.kind === 'mint' ? 'burn' : trade.kind === 'burn' ? 'mint' : 'transfer'
  return { ...trade, kind, from: trade.to, to: trade.from }
}

/** Gives a third of each token's supply to the custodian and the pools, and two thirds to the accounts, in unequal parts. */
const dealSupply = (
  seed: string,
  tokens: readonly DevnetToken[],
  [custodian, ...others]: readonly Hex[],
  { heldElsewhere }: TradingSettings,
) => {
  const balancesByToken = new Map<DevnetToken, Map<Hex, number>>()
  for (const token of tokens) {
    const random = seededRandom(seed, 'shares', token.symbol)
    const weights = others.map(() => 0.1 + random())
    const totalWeight = weights.reduce((sum, weight) => sum + weight, 0) * 1.5
    const balances = new Map(
      others.map((account, index) => [account, Math.floor((Number(token.supply) * (weights[index] ?? 0)) / totalWeight)]),
    )
    const remainder = Number(token.supply) - [...balances.values()].reduce((sum, raw) => sum + raw, 0)
    if (custodian) balances.set(custodian, remainder - Number(heldElsewhere(token)))
    balancesByToken.set(token, balances)
  }
  return balancesByToken
}

const drawTrades = (
  random: RandomSource,
  tokens: readonly DevnetToken[],
  accounts: readonly Hex[],
  { flashblocksPerBlock, transactionsPerFlashblock, transferOnlySymbols }: TradingSettings,
): readonly (readonly Trade[])[] =>
  Array.from({ length: HALF_CYCLE_BLOCKS * flashblocksPerBlock }, () =>
    Array.from({ length: drawCount(random, transactionsPerFlashblock) }, () => {
      const roll = random()
      const token = pick(random, tokens)
      const kind = tradeKindOf(transferOnlySymbols.includes(token.symbol) ? 0 : roll)
      const account = pick(random, accounts)
      const other = pick(
        random,
        accounts.filter((candidate) => candidate !== account),
      )
      return { kind, token, from: kind === 'mint' ? ZERO_ADDRESS : account, to: kind === 'burn' ? ZERO_ADDRESS : other }
    }),
  )

const tradeKindOf = (roll: number): TradeKind =>
  roll < 0.88 ? 'transfer' : roll < 0.93 ? 'mint' : roll < 0.97 ? 'burn' : 'approval'

/** Gives each trade of a cycle an amount, mostly a small one and never more than the balance. */
const drawAmounts = (
  random: RandomSource,
  trades: readonly (readonly Trade[])[],
  initialBalances: ReadonlyMap<DevnetToken, ReadonlyMap<Hex, number>>,
): readonly (readonly SizedTrade[])[] => {
  const balancesByToken = new Map([...initialBalances].map(([token, initial]) => [token, new Map(initial)]))
  return trades.map((flashblock) =>
    flashblock.map((trade) => {
      const balances = balancesByToken.get(trade.token) ?? new Map<Hex, number>()
      const balance = balances.get(trade.kind === 'mint' ? trade.to : trade.from) ?? 0
      const raw = Math.floor(balance * 0.2 * random() ** 4)
      if (trade.kind !== 'approval') {
        balances.set(trade.from, (balances.get(trade.from) ?? 0) - raw)
        balances.set(trade.to, (balances.get(trade.to) ?? 0) + raw)
      }
      return { ...trade, raw: BigInt(raw) }
    }),
  )
}

/** Number of transactions that each account sends in a cycle, and their gas. */
const countUsage = (trades: readonly Trade[], issuer: Hex) => {
  const usageByAccount = new Map<Hex, { count: number; gas: number }>()
  for (const { kind, from } of trades) {
    const sender = kind === 'mint' || kind === 'burn' ? issuer : from
    const { count, gas } = usageByAccount.get(sender) ?? { count: 0, gas: 0 }
    usageByAccount.set(sender, { count: count + 1, gas: gas + gasByKind[kind] })
  }
  return usageByAccount
}
