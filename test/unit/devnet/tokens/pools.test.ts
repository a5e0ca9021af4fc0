import { keccak256 } from 'viem/utils'
import { describe, expect, it } from 'vitest'
import { mappingSlot } from '../../../../src/devnet/chain/account-state.ts'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { type Hex, quantity, toWord } from '../../../../src/lib/hex.ts'
import { decodeLog as decodeSwap } from '../../../../src/relay/chain/logs/event-decoder.ts'
import { parseLogs } from '../../../../src/relay/chain/logs/log-parser.ts'
import { priceOf } from '../../../../src/relay/tokens/quote-math.ts'
import { tradeNumbersOf } from '../../../../src/relay/tokens/trades.ts'
import { decodeLog } from '../decode-log.ts'
import { callWords, rpcCall, rpcResult, startManualDevnet, ZERO_HASH } from '../devnet-client.ts'

type Pool = Devnet['pools'][number]

const [SLOT0, LIQUIDITY, EXTSLOAD, GET_ORACLE_PARAMS] = ['0x3850c7bd', '0x1a686502', '0x1e2eaeaf', '0xd4197e82']

const openPool = async (symbol: string, kind: Pool['kind'] = 'uniswap_v3') => {
  const devnet = await startManualDevnet({ calls: true })
  const isWanted = (pool: Pool) => pool.symbol === symbol && pool.kind === kind
  return { devnet, pool: devnet.pools.find(isWanted) ?? expect.unreachable() }
}

/** The state and the liquidity, read as for the real contract: by calls, and from storage. */
const readPool = async (devnet: Devnet, { id, manager }: Pool, at: string) => {
  const v4State = mappingSlot(id, toWord(6n))
  const slots: readonly Hex[] = manager ? [v4State, toWord(BigInt(v4State) + 3n)] : ['0x0', '0x4']
  const stored = await Promise.all(
    slots.map(async (slot) => BigInt(String(await rpcResult(devnet, 'eth_getStorageAt', manager ?? id, slot, at)))),
  )
  if (manager) {
    const called = await Promise.all(slots.map((slot) => callWords(devnet, manager, EXTSLOAD + slot.slice(2), at)))
    return { called: called.flat(), others: [], stored }
  }
  const [root = 0n, tick = 0n, ...others] = await callWords(devnet, id, SLOT0, at)
  const called = [root | (BigInt.asUintN(24, tick) << 160n), ...(await callWords(devnet, id, LIQUIDITY, at))]
  return { called, others, stored }
}
const rootAt = async (devnet: Devnet, pool: Pool, at: string) =>
  BigInt.asUintN(160, (await readPool(devnet, pool, at)).called[0] ?? 0n)
const tickIn = (state = 0n) => BigInt.asIntN(24, state >> 160n)

describe('a pool', () => {
  // The rest of the state: one observation and no swap in progress in v3, the fee in v4. The words after the tick.
  const v3 = [(1n << 16n) | (1n << 32n) | (1n << 56n), [0n, 1n, 1n, 0n, 1n]] as const
  it.each<[string, Pool['kind'], tick: bigint, rest: bigint, others: readonly bigint[]]>([
    // log(100 / 300.25) and log(300.25 / 100) by log(1.0001), rounded down.
    ['AAPLc', 'uniswap_v3', -10_996n, ...v3],
    ['NVDAc', 'uniswap_v3', 10_995n, ...v3],
    ['AAPLc', 'uniswap_v4', -10_996n, 500n << 24n, []],
    ['AAPLc', 'slipstream', -10_996n, 0n, [0n, 1n, 1n, 1n]],
  ])('of %s (%s) shows the same by calls and in storage, at each block', async (symbol, kind, tick, rest, others) => {
    const { devnet, pool } = await openPool(symbol, kind)
    const before = await rootAt(devnet, pool, 'latest')
    devnet.swap(symbol, { kind, price: '300.25', liquidity: 7_000n })
    devnet.makeFlashblock()
    const [pending, latest] = [await readPool(devnet, pool, 'pending'), await readPool(devnet, pool, 'latest')]
    expect([pending.called[1], latest.called[1]]).toEqual([7_000n, pool.liquidity])
    expect([tickIn(pending.called[0]), pending.others]).toEqual([tick, others])
    for (const { called, stored } of [pending, latest]) {
      const [state = 0n, liquidity] = stored
      expect([BigInt.asUintN(184, state), liquidity]).toEqual(
        kind === 'slipstream' ? [0n, 0n] : [BigInt.asUintN(184, called[0] ?? 0n), called[1]],
      )
      expect(state >> 184n).toBe(rest)
    }
    const { number } = devnet.seal()
    expect(await rootAt(devnet, pool, quantity(number - 1))).toBe(before)
    const isFirst = BigInt(pool.token) < BigInt(pool.currency.address)
    expect(priceOf(await rootAt(devnet, pool, quantity(number)), isFirst, 8, 6)).toBe('300.25')
  })
})

const v4PoolsOf = ({ pools }: Devnet, symbol: string) =>
  pools.filter((pool) => pool.symbol === symbol && pool.manager !== null).map(({ manager, token, key }) => [manager, token, key])

it('the id of a Uniswap v4 pool follows from its key, which may name a hooks contract', async () => {
  const { devnet } = await openPool('AAPLc')
  const keyed = devnet.pools.filter(({ kind }) => kind === 'uniswap_v4')
  for (const { token, currency, key, id } of keyed) {
    const [fee = '', spacing = '', hooks = ''] = key?.split('/') ?? []
    const terms = [...[token, currency.address].toSorted(), BigInt(fee), BigInt(spacing), hooks === 'none' ? 0n : (hooks as Hex)]
    expect(keccak256(`0x${terms.map((term) => toWord(term).slice(2)).join('')}`)).toBe(id)
  }
  const hooked = keyed.filter(({ hooks }) => hooks !== 'none')
  expect(hooked.map(({ symbol, key, hooks }) => [symbol, key === `3000/60/${hooks}`])).toEqual([['AAPLc', true]])
})

describe('a swap', () => {
  it.each<[string, Pool['kind'], low: string, high: string]>([
    ['AAPLc', 'uniswap_v4', '310', '330'],
    ['NVDAc', 'uniswap_v3', '180', '195'],
    ['TSLAc', 'slipstream', '420', '440'],
  ])('of %s (%s) moves tokens to the pool if the price falls, and from it if the price rises', async (symbol, kind, low, high) => {
    const { devnet, pool } = await openPool(symbol, kind)
    const contract = pool.manager ?? pool.id
    devnet.swap(symbol, { kind, price: high })
    for (const price of [low, high]) {
      const hash = devnet.swap(symbol, { kind, price })
      const [transfer, event] = devnet.makeFlashblock().slice(-2)
      const trader = toWord(devnet.chain.pending.transactions[0]?.from ?? '0x')
      const [from, to] = price === low ? [trader, toWord(contract)] : [toWord(contract), trader]
      expect(transfer && decodeLog(transfer)).toEqual(['Transfer', from, to, expect.any(BigInt)])
      const moved = BigInt(transfer?.data ?? 0)
      expect(moved).toBeGreaterThan(0n)
      expect([transfer?.address, event?.address]).toEqual([pool.token, contract])
      expect([transfer?.transactionHash, event?.transactionHash]).toEqual([hash, hash])
      const [log] = parseLogs(event).logs
      const swap = log && decodeSwap(log)
      if (swap?.event !== 'Swap') throw new Error('no swap')
      const trade = tradeNumbersOf(pool, swap, 8)
      expect(trade).toMatchObject({ side: price === low ? 'sell' : 'buy', raw: moved })
      // The price after the swap is the requested one. The whole swap was between both, and the fee is worse for the trader.
      expect(Number(trade.pool_price)).toBeCloseTo(Number(price), 6)
      const fair = Math.sqrt(Number(low) * Number(high))
      expect(Math.abs(Number(trade.price) / fair - 1)).toBeLessThan(0.004)
      expect(Number(trade.price) > fair).toBe(price === high)
    }
  })

  it('is followed by the opposite in a deeper pool if it is a route, and no token leaves the manager', async () => {
    const { devnet } = await openPool('AAPLc')
    // The price at the start is that of the day.
    devnet.route('AAPLc', '340')
    devnet.makeFlashblock()
    const hash = devnet.route('AAPLc', '320')
    const logs = devnet.makeFlashblock()
    const trades = parseLogs(logs).logs.map((log) => {
      const pool = devnet.pools.find(({ id }) => id === log.topics[1]) ?? expect.unreachable()
      const swap = decodeSwap(log)
      if (swap?.event !== 'Swap') throw new Error('no swap')
      return { pool, hash: log.transactionHash, ...tradeNumbersOf(pool, swap, 8) }
    })
    expect(trades.map(({ pool }) => [pool.manager, pool.token, pool.key])).toEqual(v4PoolsOf(devnet, 'AAPLc').toReversed())
    expect(trades.map((trade) => [trade.hash, trade.side, trade.raw])).toEqual([
      [hash, 'sell', trades[0]?.raw],
      [hash, 'buy', trades[0]?.raw],
    ])
    expect(Number(trades[0]?.pool_price)).toBeCloseTo(320, 6)
  })

  it('is refused where there is no such pool, and for a price that is none; a pool without a root has no price', async () => {
    const { devnet, pool } = await openPool('TSLAc')
    expect(() => devnet.swap('SNDKc', { kind: 'slipstream', price: '1' })).toThrow('SNDKc has no pool slipstream')
    expect(() => devnet.swap('NVDAc', { price: '0' })).toThrow('a price is above zero')
    devnet.swap('TSLAc', { sqrtPriceX96: 0n, liquidity: 0n })
    devnet.makeFlashblock()
    expect(await rootAt(devnet, pool, 'pending')).toBe(0n)
  })
})

it('the registry of the oracle says the multiplier and whether the feed is frozen, at each block, and reverts for no token', async () => {
  const devnet = await startManualDevnet({ calls: true })
  const dataOf = (address: Hex) => GET_ORACLE_PARAMS + toWord(address).slice(2)
  const paramsAt = (at: string) => callWords(devnet, devnet.oracleRegistry, dataOf(devnet.list.addressOf('NVDAc')), at)
  const multiplier = 1_000_537_939_576_369_481n
  devnet.issuer.freezeFeed({ symbol: 'NVDAc' })
  expect(devnet.makeFlashblock()).toEqual([])
  expect([await paramsAt('latest'), await paramsAt('pending')]).toEqual([
    [multiplier, 0n],
    [multiplier, 1n],
  ])
  devnet.seal()
  devnet.reorg(1, [devnet.chain.head.transactions[0]?.hash ?? ZERO_HASH])
  expect(await paramsAt('latest')).toEqual([multiplier, 0n])
  const call = { to: devnet.oracleRegistry, data: dataOf(toWord(1n)) }
  expect((await rpcCall(devnet, 'eth_call', call, 'latest')).error?.code).toBe(3)
})
