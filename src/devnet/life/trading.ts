import type { Deed } from '../chain/block.ts'
import { GAS_PRICE } from '../chain/chain.ts'
import { digest, type Hex, ZERO_ADDRESS } from '../chain/hex.ts'
import { codeOf, etherOf, nonceOf, type Values } from '../chain/state.ts'
import { approval, balanceOf, gasOf, movement, supplyOf, TOKEN_CODE } from '../chain/transactions.ts'
import type { Token } from '../tokens/listed.ts'
import { issued } from '../tokens/storage.ts'
import { type Dice, diceOf, howMany, pick } from './random.ts'

/** How many blocks a tide takes: in its second half everything of the first is undone, last thing first. */
export const TIDE_BLOCKS = 256
const HALF = TIDE_BLOCKS / 2

/** How many tides are remembered: the one that runs, the one before, and those that the start reads. */
const TIDES_BOUND = 4

const ACCOUNTS = 24
/** What everybody who sends something has at the beginning, in wei. */
export const OPENING_ETHER = 1_000_000n * 10n ** 18n

/** Who trades: in every block each does something or nothing, and which is a function of the seed and the number alone. */
export type Market = {
  /** Who holds enough of everything for a test to take from. */
  custodian: Hex
  accounts: readonly Hex[]
  /** What everybody holds when a tide begins. */
  opening: (tide: number) => Values
  /** What is done in one flashblock of a block. */
  deeds: (block: number, flash: number) => readonly Deed[]
}

/** How much is done, and of which tokens nothing is minted or burned. */
type Pace = { flashes: number; transactionsPerFlash: number; steady: readonly string[] }

type Kind = 'transfer' | 'mint' | 'burn' | 'approval'
/** What a tide repeats: who does what. Only the amounts are each tide's own, so that counts and fees add up. */
type Act = { kind: Kind; token: Token; from: Hex; to: Hex }
type Moved = Act & { raw: bigint }

/** The tide that a block belongs to; block 0 belongs to none. */
export const tideOf = (block: number): number => Math.floor((block - 1) / TIDE_BLOCKS)

/** The actors. They begin every tide with the same tokens: a chain can be opened there without a replay from block 0. */
export const createMarket = (seed: string, tokens: readonly Token[], pace: Pace): Market => {
  const accounts = Array.from({ length: ACCOUNTS }, (_, at) => accountOf(seed, `account ${at}`))
  const custodian = accountOf(seed, 'custodian')
  const issuer = accountOf(seed, 'issuer')
  const shares = sharesOf(seed, tokens, [custodian, ...accounts])
  const acts = actsOf(diceOf(seed, 'acts'), tokens, accounts, pace)
  const tides = new Map<number, readonly (readonly Moved[])[]>()

  const deedOf = (moved: Moved): Deed => {
    const what = { token: moved.token.address, from: moved.from, to: moved.to, raw: moved.raw }
    if (moved.kind === 'approval') return approval(what)
    return movement(what, moved.kind === 'transfer' ? moved.from : issuer)
  }

  const tideAt = (tide: number) => {
    const known = tides.get(tide)
    if (known) return known
    if (tides.size >= TIDES_BOUND) tides.delete(Math.min(...tides.keys()))
    const moves = amounts(diceOf(seed, 'tide', tide), acts, shares)
    tides.set(tide, moves)
    return moves
  }

  const deeds = (block: number, flash: number) => {
    if (block < 1) return []
    const at = (block - 1) % TIDE_BLOCKS
    const moves = tideAt(tideOf(block))
    if (at < HALF) return (moves[at * pace.flashes + flash] ?? []).map(deedOf)
    const mirrored = moves[(TIDE_BLOCKS - at) * pace.flashes - 1 - flash] ?? []
    return mirrored.toReversed().map(undone).map(deedOf)
  }

  const spent = countsOf(
    acts.flat().flatMap((act) => [act, undone(act)]),
    issuer,
  )
  const opening = (tide: number) => {
    const held = new Map<string, bigint>()
    for (const token of tokens) {
      held.set(codeOf(token.address), TOKEN_CODE)
      held.set(supplyOf(token.address), token.supply)
      for (const [key, value] of issued(token)) held.set(key, value)
      for (const [account, raw] of shares.get(token) ?? []) held.set(balanceOf(token.address, account), BigInt(raw))
    }
    for (const account of [custodian, issuer, ...accounts]) {
      const { count, gas } = spent.get(account) ?? { count: 0, gas: 0 }
      held.set(nonceOf(account), BigInt(count) * BigInt(tide))
      held.set(etherOf(account), OPENING_ETHER - BigInt(gas) * GAS_PRICE * BigInt(tide))
    }
    return held
  }

  return { custodian, accounts, opening, deeds }
}

/** The address of an actor. */
export const accountOf = (seed: string, name: string): Hex => `0x${digest(seed, name).slice(2, 42)}`

/** A movement back; what was approved is revoked. */
const undone = <A extends Act>(act: A): A => {
  if (act.kind === 'approval') return 'raw' in act ? { ...act, raw: 0n } : act
  const kind = act.kind === 'mint' ? 'burn' : act.kind === 'burn' ? 'mint' : 'transfer'
  return { ...act, kind, from: act.to, to: act.from }
}

/** The supply of each token, dealt out: a third to the custodian, the rest unevenly. */
const sharesOf = (seed: string, tokens: readonly Token[], [custodian, ...others]: readonly Hex[]) => {
  const shares = new Map<Token, Map<Hex, number>>()
  for (const token of tokens) {
    const dice = diceOf(seed, 'shares', token.symbol)
    const weights = others.map(() => 0.1 + dice())
    const whole = weights.reduce((sum, weight) => sum + weight, 0) * 1.5
    const dealt = new Map(
      others.map((account, at) => [account, Math.floor((Number(token.supply) * (weights[at] ?? 0)) / whole)]),
    )
    const rest = Number(token.supply) - [...dealt.values()].reduce((sum, raw) => sum + raw, 0)
    if (custodian) dealt.set(custodian, rest)
    shares.set(token, dealt)
  }
  return shares
}

/** Who does what in each flashblock of the first half of every tide. */
const actsOf = (
  dice: Dice,
  tokens: readonly Token[],
  accounts: readonly Hex[],
  { flashes, transactionsPerFlash, steady }: Pace,
): readonly (readonly Act[])[] =>
  Array.from({ length: HALF * flashes }, () =>
    Array.from({ length: howMany(dice, transactionsPerFlash) }, () => {
      const roll = dice()
      const token = pick(dice, tokens)
      const kind = kindOf(steady.includes(token.symbol) ? 0 : roll)
      const one = pick(dice, accounts)
      const other = pick(
        dice,
        accounts.filter((account) => account !== one),
      )
      return { kind, token, from: kind === 'mint' ? ZERO_ADDRESS : one, to: kind === 'burn' ? ZERO_ADDRESS : other }
    }),
  )

const kindOf = (roll: number): Kind =>
  roll < 0.88 ? 'transfer' : roll < 0.93 ? 'mint' : roll < 0.97 ? 'burn' : 'approval'

/** How much each act of a tide moves: never more than is held then, mostly little. */
const amounts = (
  dice: Dice,
  acts: readonly (readonly Act[])[],
  shares: ReadonlyMap<Token, ReadonlyMap<Hex, number>>,
): readonly (readonly Moved[])[] => {
  const held = new Map([...shares].map(([token, dealt]) => [token, new Map(dealt)]))
  return acts.map((flash) =>
    flash.map((act) => {
      const balances = held.get(act.token) ?? new Map<Hex, number>()
      const balance = balances.get(act.kind === 'mint' ? act.to : act.from) ?? 0
      const raw = Math.floor(balance * 0.2 * dice() ** 4)
      if (act.kind !== 'approval') {
        balances.set(act.from, (balances.get(act.from) ?? 0) - raw)
        balances.set(act.to, (balances.get(act.to) ?? 0) + raw)
      }
      return { ...act, raw: BigInt(raw) }
    }),
  )
}

/** How many transactions each account sends in a tide, and the gas they use. */
const countsOf = (acts: readonly Act[], issuer: Hex) => {
  const spent = new Map<Hex, { count: number; gas: number }>()
  for (const { kind, from } of acts) {
    const sender = kind === 'mint' || kind === 'burn' ? issuer : from
    const { count, gas } = spent.get(sender) ?? { count: 0, gas: 0 }
    spent.set(sender, { count: count + 1, gas: gas + gasOf[kind] })
  }
  return spent
}
