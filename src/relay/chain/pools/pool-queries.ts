import { concat, keccak256, numberToHex } from 'viem/utils'
import { type Hex, readHex, WORD_CHARS } from '../../../lib/hex.ts'
import { formatDecimal } from '../../../protocol/decimal.ts'
import { addressFromWord, isAddressWord } from '../logs/abi-decoder.ts'
import type { BatchAnswer } from '../rpc/answer-envelope.ts'
import type { BatchRequest } from '../rpc/endpoint-pool.ts'
import { isToken0, type Pool, type PoolState, poolAccount, SQRT_PRICE_BOUNDS } from './pool.ts'

/** State of a pool in a block, or why it cannot be read. */
export type PoolReading =
  | ({
      readonly kind: 'read'
      /** Null if the upstream does not tell the fee. */
      readonly feeBps: string | null
      /** Why it is unknown which tokens the pool trades: the node refuses calls, or the contract does not tell. */
      readonly tokens?: 'refused' | 'unread'
    } & PoolState)
  | Unread<'unreadable'>

/** `isWrong`: the pool trades other tokens than the settings say. `isRefused`: the node answers no such requests. */
type Unread<Kind extends string> = {
  readonly kind: Kind
  readonly reason: string
  readonly isWrong?: true
  readonly isRefused?: true
}

/** `refused`: only the other way of reading may give an answer. `failed`: a repeat may give one. */
export type PoolAnswer = PoolReading | Unread<'refused' | 'failed'>

/** Pools are read by calls to the contract, or from its storage. */
export type ReadingWay = 'call' | 'storage'

/** Known properties of a pool that never change. `areTokensRight` is false, and `feeBps` null, until they are known. */
export type PoolFacts = { readonly areTokensRight: boolean; readonly feeBps: string | null }

type QueryName = 'state' | 'liquidity' | 'token0' | 'token1' | 'fee'
export type PoolQueries = Readonly<Partial<Record<QueryName, BatchRequest>>>
export type QueryAnswers = Readonly<Partial<Record<QueryName, BatchAnswer>>>

const SELECTORS = {
  state: '0x3850c7bd',
  liquidity: '0x1a686502',
  token0: '0x0dfe1681',
  token1: '0xd21220a7',
  fee: '0xddca3f43',
} as const satisfies Record<QueryName, Hex>
/** Selector of `extsload(bytes32)`, which reads the storage of a Uniswap v4 manager. */
const EXTSLOAD_SELECTOR = '0x1e2eaeaf'
const V3_SLOTS = { state: '0x0', liquidity: '0x4' } as const
/** Storage slot of the mapping of all pools in a Uniswap v4 manager. */
const V4_POOLS_SLOT = 6
/** Distance from the first storage slot of a Uniswap v4 pool to the slot of its liquidity. */
const V4_LIQUIDITY_OFFSET = 3n
/** Number of low bits of a stored pool state that are the square root of the price. */
const ROOT_BITS = 160
/** Lowest bit of the fee in the stored state of a Uniswap v4 pool. Below it are price, tick and protocol fee. */
const V4_FEE_SHIFT = 208n
const FEE_BITS = 24
const LIQUIDITY_BITS = 128
/** Number of decimals of a fee in basis points: contracts return fees in hundredths of a basis point. */
const FEE_SCALE = 2
/** Limit of the 32-byte words of an answer. The called functions return fewer. */
const WORDS_BOUND = 16
const WORD_BYTES = 32

/** Returns the requests that read a pool. A Slipstream pool cannot be read from storage. */
export function poolQueries(pool: Pool, way: ReadingWay, facts: PoolFacts, tag: 'pending' | 'latest'): PoolQueries {
  const account = poolAccount(pool)
  const call = (data: Hex): BatchRequest => ({ method: 'eth_call', params: [{ to: account, data }, tag] })
  const load = (slot: Hex): BatchRequest =>
    way === 'call' ? call(concat([EXTSLOAD_SELECTOR, slot])) : { method: 'eth_getStorageAt', params: [account, slot, tag] }
  if (pool.kind === 'uniswap_v4') return mapSlots(v4SlotsOf(pool.id), load)
  if (way === 'storage') return mapSlots(V3_SLOTS, load)
  const { state, liquidity, token0, token1, fee } = SELECTORS
  return {
    ...{ state: call(state), liquidity: call(liquidity) },
    ...(facts.areTokensRight ? {} : { token0: call(token0), token1: call(token1) }),
    ...(facts.feeBps === null ? { fee: call(fee) } : {}),
  }
}

/** Reads the answers about a pool. Returns the properties that are known after them too. */
export function readPoolAnswers(
  pool: Pool,
  way: ReadingWay,
  before: PoolFacts,
  answers: QueryAnswers,
): { readonly answer: PoolAnswer; readonly facts: PoolFacts } {
  const tokens = before.areTokensRight ? null : tokensOf(answers)
  const areTokensRight = before.areTokensRight || (tokens !== null && areOf(pool, tokens))
  const feeBps = before.feeBps ?? feeOf(answers)
  // The fee of a Slipstream pool may change, so it is not remembered.
  const facts = { areTokensRight, feeBps: pool.kind === 'uniswap_v3' ? feeBps : null }
  if (tokens && !areTokensRight) {
    const reason = `pool ${pool.id} trades ${tokens.join(' and ')}, not ${pool.token} and ${pool.currency.address}`
    return { answer: { kind: 'unreadable', reason, isWrong: true }, facts }
  }
  // While the tokens of a pool are unknown, its price must not be used: the pool may trade other tokens.
  const unread = way === 'call' && pool.kind !== 'uniswap_v4' && !areTokensRight
  const failed = unread ? [answers.token0, answers.token1].map(readWord).find(({ kind }) => kind === 'failed') : undefined
  if (failed?.kind === 'failed') return { answer: failed, facts }
  const answer = stateIn(pool, way, answers, feeBps)
  return { answer: unread && answer.kind === 'read' ? { ...answer, tokens: 'unread' } : answer, facts }
}

function stateIn(pool: Pool, way: ReadingWay, answers: QueryAnswers, knownFeeBps: string | null): PoolAnswer {
  const [state, liquidity] = [readWord(answers.state), readWord(answers.liquidity)]
  if (state.kind !== 'word' || liquidity.kind !== 'word') return worseOf(state, liquidity)
  const isPacked = way === 'storage' || pool.kind === 'uniswap_v4'
  const sqrtPriceX96 = isPacked ? BigInt.asUintN(ROOT_BITS, state.value) : state.value
  if (sqrtPriceX96 < SQRT_PRICE_BOUNDS.min || sqrtPriceX96 > SQRT_PRICE_BOUNDS.max)
    return { kind: 'unreadable', reason: `sqrtPriceX96 is ${sqrtPriceX96}` }
  if (liquidity.value !== BigInt.asUintN(LIQUIDITY_BITS, liquidity.value))
    return { kind: 'unreadable', reason: `the liquidity is ${liquidity.value}` }
  const feeBps = pool.kind === 'uniswap_v4' ? feeText(state.value >> V4_FEE_SHIFT) : knownFeeBps
  return { kind: 'read', sqrtPriceX96, liquidity: liquidity.value, feeBps }
}

type Slots = Readonly<Record<'state' | 'liquidity', Hex>>

const mapSlots = ({ state, liquidity }: Slots, load: (slot: Hex) => BatchRequest): PoolQueries => ({
  state: load(state),
  liquidity: load(liquidity),
})

function v4SlotsOf(id: Hex): Slots {
  const state = keccak256(concat([id, numberToHex(V4_POOLS_SLOT, { size: WORD_BYTES })]))
  return {
    state,
    liquidity: numberToHex(BigInt.asUintN(8 * WORD_BYTES, BigInt(state) + V4_LIQUIDITY_OFFSET), { size: WORD_BYTES }),
  }
}

type WordAnswer =
  | { readonly kind: 'word'; readonly value: bigint; readonly text: Hex }
  | Unread<'refused' | 'failed' | 'unreadable'>

/** Returns null if the answer does not consist of whole 32-byte words, or is longer than `WORDS_BOUND`. */
function firstWordOf(answer: unknown): Hex | null {
  const bytes = typeof answer === 'string' ? (answer.length - '0x'.length) / 2 : 0
  if (bytes === 0 || bytes % WORD_BYTES !== 0 || bytes > WORDS_BOUND * WORD_BYTES) return null
  const words = readHex(answer, null)
  return words && `0x${words.slice('0x'.length, WORD_CHARS)}`
}

function readWord(answer: BatchAnswer | undefined): WordAnswer {
  if (!answer) return { kind: 'failed', reason: 'no answer' }
  if (!answer.ok) {
    const { error } = answer
    const reason = error.message
    if (error.isRefused) return { kind: 'refused', reason, isRefused: true }
    return { kind: error.kind === 'reverted' ? 'refused' : 'failed', reason }
  }
  // An empty answer: the contract lacks the function, or does not exist.
  if (answer.result === '0x') return { kind: 'refused', reason: 'the answer is empty' }
  const text = firstWordOf(answer.result)
  if (text === null) return { kind: 'unreadable', reason: 'the answer is not whole 32-byte words' }
  return { kind: 'word', value: BigInt(text), text }
}

/** Returns why a pool cannot be read. A refusal takes precedence, since the other way of reading may succeed. */
function worseOf(...answers: readonly WordAnswer[]): PoolAnswer {
  const reasons = answers.filter((answer) => answer.kind !== 'word')
  const [first] = ['refused', 'failed', 'unreadable'].flatMap((kind) => reasons.filter((reason) => reason.kind === kind))
  return first ?? { kind: 'failed', reason: 'no answer' }
}

function tokensOf({ token0, token1 }: QueryAnswers): readonly [Hex, Hex] | null {
  const [first, second] = [addressOf(token0), addressOf(token1)]
  return first && second ? [first, second] : null
}

function addressOf(answer: BatchAnswer | undefined): Hex | null {
  const word = readWord(answer)
  return word.kind === 'word' && isAddressWord(word.text) ? addressFromWord(word.text) : null
}

/** Whether these are the tokens of the pool, in this order: in the other order the price would be the inverse. */
function areOf(pool: Pool, [first, second]: readonly [Hex, Hex]): boolean {
  const pair = [pool.token, pool.currency.address]
  const [token0, token1] = isToken0(pool) ? pair : pair.reverse()
  return first === token0 && second === token1
}

function feeOf({ fee }: QueryAnswers): string | null {
  const word = readWord(fee)
  return word.kind === 'word' && word.value === BigInt.asUintN(FEE_BITS, word.value) ? feeText(word.value) : null
}

/** Writes a fee of a contract, in hundredths of a basis point, in basis points. */
export const feeText = (value: bigint): string => formatDecimal({ units: BigInt.asUintN(FEE_BITS, value), scale: FEE_SCALE })
