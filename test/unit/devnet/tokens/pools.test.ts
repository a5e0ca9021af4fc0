import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { mappingSlot } from '../../../../src/devnet/chain/account-state.ts'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { sqrtPriceOf } from '../../../../src/devnet/tokens/sqrt-price.ts'
import { type Hex, toWord } from '../../../../src/lib/hex.ts'
import { judgePool, priceOf } from '../../../../src/relay/tokens/quote-math.ts'
import { decodeLog } from '../decode-log.ts'
import { rpcCall, rpcResult, startManualDevnet, ZERO_HASH } from '../devnet-client.ts'

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

const poolOf = ({ pools }: Devnet, symbol: string, kind: Pool['kind'] = 'uniswap_v3') => {
  const pool = pools.find((candidate) => candidate.symbol === symbol && candidate.kind === kind)
  if (!pool) throw new Error(`${symbol} has no pool ${kind}`)
  return pool
}
const wordsOf = (answer: unknown): readonly bigint[] =>
  [...z.string().parse(answer).slice(2).matchAll(/.{64}/g)].map(([word]) => BigInt(`0x${word}`))
const callWords = async (devnet: Devnet, to: string, data: string, at: string) =>
  wordsOf(await rpcResult(devnet, 'eth_call', { to, data }, at))
const storageAt = async (devnet: Devnet, address: string, slot: Hex, at: string) =>
  BigInt(z.string().parse(await rpcResult(devnet, 'eth_getStorageAt', address, slot, at)))

/** The state and the liquidity, read as for the real contract: by calls, and but for Slipstream from storage. */
const readPool = async (devnet: Devnet, { kind, id, manager }: Pool, at: string) => {
  if (manager) {
    const state = mappingSlot(id, toWord(6n))
    const slots = [state, toWord(BigInt(state) + 3n)]
    const called = await Promise.all(slots.map((slot) => callWords(devnet, manager, EXTSLOAD + slot.slice(2), at)))
    return { called: called.flat(), stored: await Promise.all(slots.map((slot) => storageAt(devnet, manager, slot, at))) }
  }
  const [slot0 = [], liquidity = []] = await Promise.all(
    (['slot0', 'liquidity'] as const).map((view) => callWords(devnet, id, views[view], at)),
  )
  const [root = 0n, tick = 0n, ...others] = slot0
  const called = [root | (BigInt.asUintN(24, tick) << 160n), ...liquidity]
  const stored = await Promise.all([storageAt(devnet, id, '0x0', at), storageAt(devnet, id, '0x4', at)])
  return { called, others, stored: kind === 'slipstream' ? null : [BigInt.asUintN(184, stored[0] ?? 0n), stored[1]] }
}
const rootAt = async (devnet: Devnet, pool: Pool, at: string) =>
  BigInt.asUintN(ROOT_BITS, (await readPool(devnet, pool, at)).called[0] ?? 0n)
const priceAt = async (devnet: Devnet, pool: Pool, at: string) =>
  priceOf(await rootAt(devnet, pool, at), BigInt(pool.token) < BigInt(pool.currency.address), 8, pool.currency.decimals)

describe('a pool', () => {
  it.each([
    ['AAPLc', 'uniswap_v3'],
    ['AAPLc', 'uniswap_v4'],
    ['AAPLc', 'slipstream'],
    ['NVDAc', 'uniswap_v3'],
  ] as const)('of %s (%s) shows the same by calls and in storage, at each block', async (symbol, kind) => {
    const devnet = await startManualDevnet({ calls: true })
    const pool = poolOf(devnet, symbol, kind)
    const before = await rootAt(devnet, pool, 'latest')
    devnet.swap(symbol, { kind, price: '300.25', liquidity: 7_000n })
    devnet.makeFlashblock()
    for (const at of ['pending', 'latest']) {
      const { called, stored } = await readPool(devnet, pool, at)
      expect(called[1]).toBe(at === 'pending' ? 7_000n : pool.liquidity)
      if (stored) expect(called).toEqual(stored)
    }
    const { number } = devnet.seal()
    expect(await rootAt(devnet, pool, `0x${(number - 1).toString(16)}`)).toBe(before)
    expect(await rootAt(devnet, pool, `0x${number.toString(16)}`)).not.toBe(before)
    expect(await priceAt(devnet, pool, 'latest')).toBe('300.25')
  })

  it('has the fields of its kind beside the price: seven words in v3, six in Slipstream without storage, the fee in v4', async () => {
    const devnet = await startManualDevnet({ calls: true })
    const [v3, slipstream, v4] = (['uniswap_v3', 'slipstream', 'uniswap_v4'] as const).map((kind) => poolOf(devnet, 'AAPLc', kind))
    if (!v3 || !slipstream || !v4) throw new Error('a pool is missing')
    expect((await readPool(devnet, v3, 'latest')).others).toEqual([0n, 1n, 1n, 0n, 1n])
    expect((await readPool(devnet, slipstream, 'latest')).others).toEqual([0n, 1n, 1n, 1n])
    expect(await storageAt(devnet, slipstream.id, '0x0', 'latest')).toBe(0n)
    expect((await readPool(devnet, v4, 'latest')).called[0]).toBeGreaterThan(500n << 208n)
    expect(((await readPool(devnet, v4, 'latest')).called[0] ?? 0n) >> 208n).toBe(500n)
    expect((await storageAt(devnet, v3.id, '0x0', 'latest')) >> 240n).toBe(1n)
  })

  it('has its tick beside the price, also a negative one', async () => {
    const devnet = await startManualDevnet({ calls: true })
    for (const [symbol, price, tick] of [
      // log(100 / 324.5) and log(324.5 / 100) by log(1.0001), rounded down.
      ['AAPLc', '324.5', -11_772n],
      ['NVDAc', '324.5', 11_771n],
    ] as const) {
      const { id } = poolOf(devnet, symbol)
      devnet.swap(symbol, { price })
      devnet.makeFlashblock()
      const [, called = 0n] = await callWords(devnet, id, views.slot0, 'pending')
      expect([symbol, BigInt.asIntN(256, called)]).toEqual([symbol, tick])
    }
  })

  it('has the token first or second, by the addresses, and says its fee', async () => {
    const devnet = await startManualDevnet({ calls: true })
    const orders = new Set<boolean>()
    for (const { id, token, currency, manager, fee } of devnet.pools) {
      if (manager) continue
      const [[token0], [token1], [feeAnswer]] = await Promise.all([
        callWords(devnet, id, views.token0, 'latest'),
        callWords(devnet, id, views.token1, 'latest'),
        callWords(devnet, id, views.fee, 'latest'),
      ])
      const isFirst = token0 === BigInt(token)
      orders.add(isFirst)
      expect([token0, token1].sort()).toEqual([BigInt(token), BigInt(currency.address)].sort())
      expect((token0 ?? 0n) < (token1 ?? 0n)).toBe(true)
      expect(feeAnswer).toBe(BigInt(fee))
    }
    expect(orders).toEqual(new Set([true, false]))
  })

  it('is as given: one per token, more for one, a thin and an empty one', async () => {
    const devnet = await startManualDevnet({ calls: true })
    const { pools, poolsText, quoteTokens, tokens } = devnet
    expect(new Set(pools.map(({ token }) => token))).toEqual(new Set(tokens.map(({ address }) => address)))
    expect(new Set(pools.map(({ id }) => id)).size).toBe(pools.length)
    const states = await Promise.all(
      pools.map(async (pool) => {
        const terms = { isToken0: BigInt(pool.token) < BigInt(pool.currency.address), currencyDecimals: 6 }
        const sqrtPriceX96 = await rootAt(devnet, pool, 'latest')
        const poolMinDepth = { units: 1_000n, scale: 0 }
        return judgePool({ sqrtPriceX96, liquidity: pool.liquidity }, { ...terms, tokenDecimals: 8, poolMinDepth }).state
      }),
    )
    expect(states.filter((state) => state !== 'ok').sort()).toEqual(['empty', 'thin'])
    expect(poolsText.split(',')).toHaveLength(pools.length)
    for (const item of poolsText.split(','))
      expect(item).toMatch(/^\w+\/USDC=((uniswap_v3|slipstream):0x[0-9a-f]{40}|uniswap_v4:0x[0-9a-f]{64}@0x[0-9a-f]{40})$/)
    expect(quoteTokens).toBe(`USDC:${pools[0]?.currency.address}:6`)
  })

  it.each([
    ['an unknown function', '0x12345678', (devnet: Devnet) => poolOf(devnet, 'AAPLc').id],
    ['a slot without its 32 bytes', `${EXTSLOAD}00`, (devnet: Devnet) => poolOf(devnet, 'AAPLc', 'uniswap_v4').manager],
    ['an address that is no token', `${GET_ORACLE_PARAMS}${toWord(1n).slice(2)}`, (devnet: Devnet) => devnet.oracleRegistry],
  ])('reverts for %s', async (_, data, calleeOf) => {
    const devnet = await startManualDevnet({ calls: true })
    expect((await rpcCall(devnet, 'eth_call', { to: calleeOf(devnet), data }, 'latest')).error?.code).toBe(3)
  })
})

describe('the root of a price', () => {
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
  ])('of %s with %o is exact', (price, changes, root) => {
    expect(sqrtPriceOf(price, { ...terms, ...changes })).toBe(root)
  })
})

describe('a swap', () => {
  const swapTwice = async (kind: Pool['kind']) => {
    const devnet = await startManualDevnet({ calls: true })
    const pool = poolOf(devnet, 'AAPLc', kind)
    const opening = await rootAt(devnet, pool, 'latest')
    const hash = devnet.swap('AAPLc', { kind, price: '310' })
    const [log] = devnet.makeFlashblock()
    return { devnet, pool, opening, hash, log }
  }

  it.each(['uniswap_v3', 'uniswap_v4', 'slipstream'] as const)('of %s is a transfer from or to the pool', async (kind) => {
    const { devnet, pool, hash, log } = await swapTwice(kind)
    const contract = toWord(pool.manager ?? pool.id)
    const sentBy = (from: Hex, to: Hex) => ['Transfer', from, to, expect.any(BigInt)]
    const trader = toWord(devnet.chain.pending.transactions[0]?.from ?? '0x')
    // The price fell, so tokens were sold to the pool.
    expect(log && decodeLog(log)).toEqual(sentBy(trader, contract))
    expect([log?.address, log?.transactionHash]).toEqual([pool.token, hash])
    devnet.swap('AAPLc', { kind, price: '330' })
    const [bought] = devnet.makeFlashblock()
    expect(bought && decodeLog(bought)).toEqual(sentBy(contract, trader))
    expect(BigInt(bought?.data ?? 0)).toBeGreaterThan(0n)
  })

  it('that is dropped leaves the pool as it was', async () => {
    const { devnet, pool, opening, hash } = await swapTwice('uniswap_v3')
    expect(await priceAt(devnet, pool, 'pending')).toBe('310')
    devnet.faults.drop(hash)
    devnet.seal()
    expect(await rootAt(devnet, pool, 'latest')).toBe(opening)
    expect(await rootAt(devnet, pool, 'pending')).toBe(opening)
  })

  it('that moves to the next block moves the price with it', async () => {
    const { devnet, pool, opening, hash } = await swapTwice('slipstream')
    devnet.faults.move(hash)
    devnet.seal()
    expect(await rootAt(devnet, pool, 'pending')).toBe(opening)
    devnet.makeFlashblock()
    expect(await priceAt(devnet, pool, 'pending')).toBe('310')
  })

  it.each(['uniswap_v3', 'uniswap_v4'] as const)(
    'that a reorganisation takes back leaves the pool of %s as it was',
    async (kind) => {
      const { devnet, pool, opening, hash } = await swapTwice(kind)
      devnet.seal()
      expect(await priceAt(devnet, pool, 'latest')).toBe('310')
      devnet.reorg(1, [hash])
      expect(await rootAt(devnet, pool, 'latest')).toBe(opening)
      expect((await readPool(devnet, pool, 'latest')).called[1]).toBe(pool.liquidity)
    },
  )

  it('sets any root and liquidity, also none', async () => {
    const devnet = await startManualDevnet({ calls: true })
    const pool = poolOf(devnet, 'TSLAc')
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

describe('the registry of the oracle', () => {
  const paramsOf = async (devnet: Devnet, symbol: string, at: string) =>
    callWords(devnet, devnet.oracleRegistry, GET_ORACLE_PARAMS + toWord(devnet.list.addressOf(symbol)).slice(2), at)

  it('says the multiplier and whether the feed is frozen, at each block', async () => {
    const devnet = await startManualDevnet({ calls: true })
    const multiplier = 1_000_537_939_576_369_481n
    devnet.issuer.freezeFeed({ symbol: 'NVDAc' })
    expect(devnet.makeFlashblock()).toEqual([])
    expect(await paramsOf(devnet, 'NVDAc', 'latest')).toEqual([multiplier, 0n])
    expect(await paramsOf(devnet, 'NVDAc', 'pending')).toEqual([multiplier, 1n])
    expect(await paramsOf(devnet, 'AAPLc', 'pending')).toEqual([10n ** 18n, 0n])
    devnet.seal()
    devnet.issuer.unfreezeFeed({ symbol: 'NVDAc' })
    devnet.makeFlashblock()
    expect(await paramsOf(devnet, 'NVDAc', 'latest')).toEqual([multiplier, 1n])
    expect(await paramsOf(devnet, 'NVDAc', 'pending')).toEqual([multiplier, 0n])
    devnet.reorg(1, [devnet.chain.head.transactions[0]?.hash ?? ZERO_HASH])
    expect(await paramsOf(devnet, 'NVDAc', 'latest')).toEqual([multiplier, 0n])
  })
})
