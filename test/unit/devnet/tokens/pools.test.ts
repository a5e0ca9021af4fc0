import { describe, expect, it } from 'vitest'
import { mappingSlot } from '../../../../src/devnet/chain/account-state.ts'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { sqrtPriceOf } from '../../../../src/devnet/tokens/sqrt-price.ts'
import { type Hex, quantity, toWord } from '../../../../src/lib/hex.ts'
import { priceOf } from '../../../../src/relay/tokens/quote-math.ts'
import { decodeLog } from '../decode-log.ts'
import { callWords, rpcCall, rpcResult, startManualDevnet, ZERO_HASH } from '../devnet-client.ts'

type Pool = Devnet['pools'][number]

const views = {
  slot0: '0x3850c7bd',
  liquidity: '0x1a686502',
  token0: '0x0dfe1681',
  token1: '0xd21220a7',
  fee: '0xddca3f43',
} as const
const EXTSLOAD = '0x1e2eaeaf'
const GET_ORACLE_PARAMS = '0xd4197e82'
const ROOT_BITS = 160
const kinds = ['uniswap_v3', 'uniswap_v4', 'slipstream'] as const

const openPool = async (symbol: string, kind: Pool['kind'] = 'uniswap_v3') => {
  const devnet = await startManualDevnet({ calls: true })
  return { devnet, pool: poolOf(devnet, symbol, kind) }
}
const poolOf = ({ pools }: Devnet, symbol: string, kind: Pool['kind'] = 'uniswap_v3') => {
  const pool = pools.find((candidate) => candidate.symbol === symbol && candidate.kind === kind)
  if (!pool) throw new Error(`${symbol} has no pool ${kind}`)
  return pool
}
const storageAt = async (devnet: Devnet, address: string, slot: Hex, at: string) =>
  BigInt(String(await rpcResult(devnet, 'eth_getStorageAt', address, slot, at)))

/** The state and the liquidity, read as for the real contract: by calls, and but for Slipstream from storage. */
const readPool = async (devnet: Devnet, { kind, id, manager }: Pool, at: string) => {
  if (manager) {
    const state = mappingSlot(id, toWord(6n))
    const slots = [state, toWord(BigInt(state) + 3n)]
    const called = await Promise.all(slots.map((slot) => callWords(devnet, manager, EXTSLOAD + slot.slice(2), at)))
    return { called: called.flat(), stored: await Promise.all(slots.map((slot) => storageAt(devnet, manager, slot, at))) }
  }
  const [root = 0n, tick = 0n, ...others] = await callWords(devnet, id, views.slot0, at)
  const called = [root | (BigInt.asUintN(24, tick) << 160n), ...(await callWords(devnet, id, views.liquidity, at))]
  const [state = 0n, liquidity] = [await storageAt(devnet, id, '0x0', at), await storageAt(devnet, id, '0x4', at)]
  return { called, others, stored: kind === 'slipstream' ? null : [BigInt.asUintN(184, state), liquidity] }
}
const rootAt = async (devnet: Devnet, pool: Pool, at: string) =>
  BigInt.asUintN(ROOT_BITS, (await readPool(devnet, pool, at)).called[0] ?? 0n)
const priceAt = async (devnet: Devnet, pool: Pool, at: string) =>
  priceOf(await rootAt(devnet, pool, at), BigInt(pool.token) < BigInt(pool.currency.address), 8, pool.currency.decimals)

describe('a pool', () => {
  it.each([...kinds.map((kind) => ['AAPLc', kind] as const), ['NVDAc', 'uniswap_v3'] as const])(
    'of %s (%s) shows the same by calls and in storage, at each block',
    async (symbol, kind) => {
      const { devnet, pool } = await openPool(symbol, kind)
      const before = await rootAt(devnet, pool, 'latest')
      devnet.swap(symbol, { kind, price: '300.25', liquidity: 7_000n })
      devnet.makeFlashblock()
      for (const at of ['pending', 'latest']) {
        const { called, stored } = await readPool(devnet, pool, at)
        expect(called[1]).toBe(at === 'pending' ? 7_000n : pool.liquidity)
        if (stored) expect(called).toEqual(stored)
      }
      const { number } = devnet.seal()
      expect(await rootAt(devnet, pool, quantity(number - 1))).toBe(before)
      expect(await priceAt(devnet, pool, quantity(number))).toBe('300.25')
    },
  )

  it('has the fields of its kind beside the price: seven words in v3, six in Slipstream without storage, the fee in v4', async () => {
    const { devnet, pool: v3 } = await openPool('AAPLc')
    const [v4, slipstream] = [poolOf(devnet, 'AAPLc', 'uniswap_v4'), poolOf(devnet, 'AAPLc', 'slipstream')]
    expect((await readPool(devnet, v3, 'latest')).others).toEqual([0n, 1n, 1n, 0n, 1n])
    expect((await readPool(devnet, slipstream, 'latest')).others).toEqual([0n, 1n, 1n, 1n])
    expect(await storageAt(devnet, slipstream.id, '0x0', 'latest')).toBe(0n)
    expect(((await readPool(devnet, v4, 'latest')).called[0] ?? 0n) >> 208n).toBe(500n)
    expect((await storageAt(devnet, v3.id, '0x0', 'latest')) >> 240n).toBe(1n)
  })

  it.each([
    // log(100 / 324.5) and log(324.5 / 100) by log(1.0001), rounded down.
    ['AAPLc', -11_772n],
    ['NVDAc', 11_771n],
  ])('of %s has its tick beside the price', async (symbol, tick) => {
    const { devnet, pool } = await openPool(symbol)
    devnet.swap(symbol, { price: '324.5' })
    devnet.makeFlashblock()
    const [, called = 0n] = await callWords(devnet, pool.id, views.slot0, 'pending')
    expect(BigInt.asIntN(256, called)).toBe(tick)
  })

  it('has the token first or second, by the addresses, and says its fee', async () => {
    const devnet = await startManualDevnet({ calls: true })
    const orders = new Set<boolean>()
    for (const { id, token, currency, manager, fee } of devnet.pools) {
      if (manager) continue
      const called = (['token0', 'token1', 'fee'] as const).map((view) => callWords(devnet, id, views[view], 'latest'))
      const isFirst = BigInt(token) < BigInt(currency.address)
      const [first, second] = isFirst ? [token, currency.address] : [currency.address, token]
      expect((await Promise.all(called)).flat()).toEqual([BigInt(first), BigInt(second), BigInt(fee)])
      orders.add(isFirst)
    }
    expect(orders).toEqual(new Set([true, false]))
  })

  it('is as given: one per token, and more for one', async () => {
    const { pools, poolsText, quoteTokens, tokens } = await startManualDevnet()
    expect(new Set(pools.map(({ token }) => token))).toEqual(new Set(tokens.map(({ address }) => address)))
    expect(new Set(pools.map(({ id }) => id)).size).toBe(pools.length)
    expect(poolsText.split(',')).toHaveLength(pools.length)
    for (const item of poolsText.split(','))
      expect(item).toMatch(/^\w+\/USDC=((uniswap_v3|slipstream):0x[0-9a-f]{40}|uniswap_v4:0x[0-9a-f]{64}@0x[0-9a-f]{40})$/)
    expect(quoteTokens).toBe(`USDC:${pools[0]?.currency.address}:6`)
  })

  it.each([
    ['an unknown function', '0x12345678', (devnet: Devnet) => poolOf(devnet, 'AAPLc').id],
    ['a slot without its 32 bytes', `${EXTSLOAD}00`, (devnet: Devnet) => poolOf(devnet, 'AAPLc', 'uniswap_v4').manager],
    ['an address that is no token', `${GET_ORACLE_PARAMS}${toWord(1n).slice(2)}`, (devnet: Devnet) => devnet.oracleRegistry],
  ])('or the registry reverts for %s', async (_, data, calleeOf) => {
    const devnet = await startManualDevnet({ calls: true })
    expect((await rpcCall(devnet, 'eth_call', { to: calleeOf(devnet), data }, 'latest')).error?.code).toBe(3)
  })
})

const terms = { isTokenFirst: true, tokenDecimals: 6, currencyDecimals: 6 }
it.each([
  ['1', {}, 2n ** 96n],
  ['4', {}, 2n ** 97n],
  ['0.0625', {}, 2n ** 94n],
  ['4', { isTokenFirst: false }, 2n ** 95n],
  ['0.01', { tokenDecimals: 8 }, 2n ** 96n / 100n],
  ['16', { isTokenFirst: false, tokenDecimals: 8 }, (10n * 2n ** 96n) / 4n],
  // √2 × 2^96, rounded down.
  ['2', {}, 112045541949572279837463876454n],
])('the root of the price %s with %o is exact', (price, changes, root) => {
  expect(sqrtPriceOf(price, { ...terms, ...changes })).toBe(root)
})

describe('a swap', () => {
  it.each([...kinds.map((kind) => ['AAPLc', kind, '310', '330'] as const), ['NVDAc', 'uniswap_v3', '180', '195'] as const])(
    'of %s (%s) is a transfer to the pool if the price falls, and from it if the price rises',
    async (symbol, kind, low, high) => {
      const { devnet, pool } = await openPool(symbol, kind)
      const contract = toWord(pool.manager ?? pool.id)
      devnet.swap(symbol, { kind, price: high })
      for (const price of [low, high]) {
        const hash = devnet.swap(symbol, { kind, price })
        const log = devnet.makeFlashblock().at(-1)
        const trader = toWord(devnet.chain.pending.transactions[0]?.from ?? '0x')
        const [from, to] = price === low ? [trader, contract] : [contract, trader]
        expect(log && decodeLog(log)).toEqual(['Transfer', from, to, expect.any(BigInt)])
        expect(BigInt(log?.data ?? 0)).toBeGreaterThan(0n)
        expect([log?.address, log?.transactionHash]).toEqual([pool.token, hash])
      }
    },
  )

  it('sets any root and liquidity, also none', async () => {
    const { devnet, pool } = await openPool('TSLAc')
    for (const sqrtPriceX96 of [4295128739n, 1461446703485210103287273052203988822378723970342n, 0n]) {
      devnet.swap('TSLAc', { sqrtPriceX96, liquidity: 0n })
      devnet.makeFlashblock()
      expect(await rootAt(devnet, pool, 'pending')).toBe(sqrtPriceX96)
      expect((await readPool(devnet, pool, 'pending')).called[1]).toBe(0n)
    }
  })

  it('is refused where there is no such pool, and for a price that is none', async () => {
    const devnet = await startManualDevnet()
    expect(() => devnet.swap('SNDKc', { kind: 'slipstream', price: '1' })).toThrow('SNDKc has no pool slipstream')
    expect(() => devnet.swap('NVDAc', { price: '0' })).toThrow('a price is above zero')
  })
})

it('the registry of the oracle says the multiplier and whether the feed is frozen, at each block', async () => {
  const devnet = await startManualDevnet({ calls: true })
  const paramsOf = (symbol: string, at: string) =>
    callWords(devnet, devnet.oracleRegistry, GET_ORACLE_PARAMS + toWord(devnet.list.addressOf(symbol)).slice(2), at)
  const multiplier = 1_000_537_939_576_369_481n
  devnet.issuer.freezeFeed({ symbol: 'NVDAc' })
  expect(devnet.makeFlashblock()).toEqual([])
  expect(await paramsOf('NVDAc', 'latest')).toEqual([multiplier, 0n])
  expect(await paramsOf('NVDAc', 'pending')).toEqual([multiplier, 1n])
  expect(await paramsOf('AAPLc', 'pending')).toEqual([10n ** 18n, 0n])
  devnet.seal()
  devnet.issuer.unfreezeFeed({ symbol: 'NVDAc' })
  devnet.makeFlashblock()
  expect(await paramsOf('NVDAc', 'latest')).toEqual([multiplier, 1n])
  expect(await paramsOf('NVDAc', 'pending')).toEqual([multiplier, 0n])
  devnet.reorg(1, [devnet.chain.head.transactions[0]?.hash ?? ZERO_HASH])
  expect(await paramsOf('NVDAc', 'latest')).toEqual([multiplier, 0n])
})
