import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { Pool } from '../../../../../src/relay/chain/pools/pool.ts'
import { PoolReader } from '../../../../../src/relay/chain/pools/pool-reader.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { advanceClock } from '../../../../support/virtual-time.ts'
import { apple, blockHash, header, tesla, timestampOf, word, words } from '../node-json.ts'
import { FakePools } from './fake-pools.ts'

const usdc: Hex = `0x${'cc'.repeat(20)}`
const address: Hex = `0x${'13'.repeat(20)}`
/** A token whose address is higher than the currency's. */
const stock: Hex = `0x${'ee'.repeat(20)}`
const manager: Hex = `0x${'44'.repeat(20)}`
const v4Id: Hex = `0x${'14'.repeat(32)}`
/** keccak256(id ‖ 6), and three slots after it. */
const V4_SLOT = '0xe0bd038dd88e642e8692ded9e96f721e04ed86fd3efa1ac49e24de0923511fd6'
const V4_LIQUIDITY_SLOT = '0xe0bd038dd88e642e8692ded9e96f721e04ed86fd3efa1ac49e24de0923511fd9'
const MIN = 4295128739n
const MAX = 1461446703485210103287273052203988822378723970342n

const poolOf = (kind: Pool['kind'], fields: Partial<Pool> = {}): Pool => ({
  token: apple,
  kind,
  id: kind === 'uniswap_v4' ? v4Id : address,
  manager: kind === 'uniswap_v4' ? manager : null,
  currency: { symbol: 'USDC', address: usdc, decimals: 6 },
  ...fields,
})
const [v3, v4, slipstream] = [poolOf('uniswap_v3'), poolOf('uniswap_v4'), poolOf('slipstream')]

const V3 = {
  slot0: `call ${address} 0x3850c7bd`,
  liquidity: `call ${address} 0x1a686502`,
  token0: `call ${address} 0x0dfe1681`,
  token1: `call ${address} 0xd21220a7`,
  fee: `call ${address} 0xddca3f43`,
  slot: `slot ${address} 0x0`,
  liquiditySlot: `slot ${address} 0x4`,
}
const V4 = {
  state: `call ${manager} 0x1e2eaeaf${V4_SLOT.slice(2)}`,
  liquidity: `call ${manager} 0x1e2eaeaf${V4_LIQUIDITY_SLOT.slice(2)}`,
  slot: `slot ${manager} ${V4_SLOT}`,
  liquiditySlot: `slot ${manager} ${V4_LIQUIDITY_SLOT}`,
}
const root = 12n * 2n ** 96n
const liquidity = 10n ** 15n
/** Price, tick −1, protocol fee 7 and LP fee 500, as v4 packs them; v3 has other fields there. */
const packed = word(root | (0xff_ffffn << 160n) | (7n << 184n) | (500n << 208n))

const refused = new UpstreamError('forbidden', '-32601 rpc method is not whitelisted', null, true)
const unknownMethod = new UpstreamError('unknown_method', '-32601 the method does not exist', null, true)
const reverted = new UpstreamError('reverted', '3 execution reverted', null, true)
const busy = new UpstreamError('busy', 'HTTP 429', null, true)
const noAnswer = new UpstreamError('unreachable', 'connection refused')

/** A batch is repeated after a pause. */
const REPEAT_PAUSE_MS = 150
const pendingBlock = { number: 101, hash: null, timestamp: timestampOf(101) }
const latestBlock = { number: 100, hash: blockHash(100), timestamp: timestampOf(100) }

type Tag = Parameters<PoolReader['read']>[1]

/** A reader of pools that are as they should be. */
function openPools() {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const node = new FakePools(clock)
  node.headers.latest = [header(100)]
  node.headers.pending = [header(101, { sealed: false })]
  for (const [text, answer] of [
    [V3.slot0, words(root, 0, 0, 0, 0, 0, 1)],
    [V3.liquidity, word(liquidity)],
    [V3.token0, word(apple)],
    [V3.token1, word(usdc)],
    [V3.fee, word(3_000)],
    [V3.slot, packed],
    [V3.liquiditySlot, word(liquidity)],
    [V4.state, packed],
    [V4.liquidity, word(liquidity)],
    [V4.slot, packed],
    [V4.liquiditySlot, word(liquidity)],
  ] as const)
    node.answers.set(text, answer)
  const reader = new PoolReader({ requestBatch: node.requestBatch, clock })
  const read = async (pools: readonly Pool[], tag: Tag = 'pending', signal = new AbortController().signal) => {
    const reading = reader.read(pools, tag, signal).then(
      ({ block, pools: answers }) => ({ block, pools: pools.map((pool) => answers.get(pool)) }),
      (failure: unknown) => failure,
    )
    let isDone = false
    void reading.then(() => {
      isDone = true
    })
    await advanceClock(clock, 3 * node.delayMs)
    if (!isDone) await advanceClock(clock, REPEAT_PAUSE_MS)
    return reading
  }
  return { clock, node, reader, read }
}

const readingOf = (feeBps: string | null) => ({ kind: 'read', sqrtPriceX96: root, liquidity, feeBps })
const unreadable = (reason: string) => ({ kind: 'unreadable', reason })
const pendingRead = (...pools: readonly object[]) => ({ block: pendingBlock, pools })
const nothingRead = (...reasons: readonly string[]) => ({ block: null, pools: reasons.map(unreadable) })
const trades = (first: Hex, second: Hex) => `pool ${address} trades ${first} and ${second}, not ${apple} and ${usdc}`
const NOT_WORDS = 'the answer is not whole 32-byte words'
const CHANGED = 'the block changed during the read'

describe('pools', () => {
  it.each<[string, Pool, readonly string[], readonly string[], string]>([
    ['Uniswap v3', v3, [V3.slot0, V3.liquidity, V3.token0, V3.token1, V3.fee], [V3.slot0, V3.liquidity], '30'],
    ['Uniswap v4', v4, [V4.state, V4.liquidity], [V4.state, V4.liquidity], '5'],
    ['Slipstream', slipstream, [V3.slot0, V3.liquidity, V3.token0, V3.token1, V3.fee], [V3.slot0, V3.liquidity, V3.fee], '30'],
  ])('of %s are read by calls in one batch, what never changes once', async (_, pool, first, second, feeBps) => {
    const { node, read } = openPools()
    const expected = pendingRead(readingOf(feeBps))
    expect([await read([pool]), await read([pool])]).toEqual([expected, expected])
    expect(node.batches).toEqual([first, second])
  })

  it('are all read in one batch, in one block', async () => {
    const { node, read } = openPools()
    expect(await read([v3, v4, slipstream], 'latest')).toEqual({
      block: latestBlock,
      pools: [readingOf('30'), readingOf('5'), readingOf('30')],
    })
    expect(node.tags).toEqual(['latest'])
  })

  it.each<[string, UpstreamError | '0x']>([
    ['are refused', refused],
    ['are unknown', unknownMethod],
    ['revert', reverted],
    ['give nothing', '0x'],
  ])('are read from storage for ten minutes where calls %s', async (_, answer) => {
    const { clock, node, read } = openPools()
    for (const text of [...Object.values(V3).slice(0, 5), V4.state, V4.liquidity]) node.answers.set(text, answer)
    const tokens = answer === refused || answer === unknownMethod ? 'refused' : 'unread'
    const expected = pendingRead({ ...readingOf(null), tokens }, readingOf('5'))
    const slots = [V3.slot, V3.liquiditySlot, V4.slot, V4.liquiditySlot]
    expect([await read([v3, v4]), await read([v3, v4])]).toEqual([expected, expected])
    expect(node.batches.slice(1)).toEqual([slots, slots])
    await advanceClock(clock, 599_999)
    await read([v3, v4])
    await advanceClock(clock, 1)
    await read([v3, v4])
    expect(node.batches.slice(3)).toEqual([slots, node.batches[0], slots])
  })

  it.each([busy, '0x12'])(
    'are read from storage where one of two calls is refused, whatever the other one gives: %s',
    async (answer) => {
      const { node, read } = openPools()
      node.answers.set(V3.slot0, answer).set(V3.liquidity, refused)
      expect(await read([v3])).toEqual(pendingRead(readingOf('30')))
    },
  )

  it('of Slipstream are not read from storage, and are called again', async () => {
    const { node, read } = openPools()
    node.answers.set(V3.slot0, refused)
    expect(await read([slipstream])).toEqual(pendingRead({ ...unreadable(refused.message), isRefused: true }))
    node.answers.set(V3.slot0, word(root))
    expect(await read([slipstream])).toEqual(pendingRead(readingOf('30')))
    expect(node.batches.map(({ length }) => length)).toEqual([5, 3])
  })

  it.each<[string, Pool, Readonly<Record<string, unknown>>, string]>([
    ['with a price of 0', v3, { [V3.slot0]: word(0) }, 'sqrtPriceX96 is 0'],
    ['below the lowest price', v3, { [V3.slot0]: word(MIN - 1n) }, `sqrtPriceX96 is ${MIN - 1n}`],
    ['above the highest price', v3, { [V3.slot0]: word(MAX + 1n) }, `sqrtPriceX96 is ${MAX + 1n}`],
    ['with more bits than a price has', v3, { [V3.slot0]: word(root | (1n << 160n)) }, `sqrtPriceX96 is ${root | (1n << 160n)}`],
    ['with more liquidity than fits', v3, { [V3.liquidity]: word(2n ** 128n) }, `the liquidity is ${2n ** 128n}`],
    ['with a word and a half', v3, { [V3.liquidity]: `${word(1)}00` }, NOT_WORDS],
    ['with endless words', v3, { [V3.slot0]: words(...Array(17).fill(root)) }, NOT_WORDS],
    ['with an empty slot', v3, { [V3.slot0]: '0x', [V3.slot]: '0x' }, 'the answer is empty'],
    ['with refused slots', v3, { [V3.slot0]: reverted, [V3.liquiditySlot]: refused }, refused.message],
    ['of another token', v3, { [V3.token0]: word(tesla) }, trades(tesla, usdc)],
    ['of another currency', slipstream, { [V3.token1]: word(tesla) }, trades(apple, tesla)],
    ['in an order that no factory gives', v3, { [V3.token0]: word(usdc), [V3.token1]: word(apple) }, trades(usdc, apple)],
  ])('%s are unreadable, the others are not', async (_, pool, answers, reason) => {
    const { node, read } = openPools()
    for (const [text, answer] of Object.entries(answers)) node.answers.set(text, answer)
    const other = pool.kind === 'uniswap_v4' ? v3 : v4
    const { pools } = (await read([pool, other])) as { pools: readonly { kind: string }[] }
    const why = { ...(reason.includes(' trades ') && { isWrong: true }), ...(reason === refused.message && { isRefused: true }) }
    expect(pools).toEqual([{ ...unreadable(reason), ...why }, readingOf(other === v3 ? '30' : '5')])
    for (const tag of node.tags) expect(tag).toBe('pending')
  })

  it.each([MIN, MAX])('at the bound %s are read', async (bound) => {
    const { node, read } = openPools()
    node.answers.set(V3.slot0, word(bound))
    expect(await read([v3])).toEqual(pendingRead({ ...readingOf('30'), sqrtPriceX96: bound }))
  })

  it('of a token that comes second are read', async () => {
    const { node, read } = openPools()
    node.answers.set(V3.token0, word(usdc)).set(V3.token1, word(stock))
    expect(await read([poolOf('uniswap_v3', { token: stock })])).toEqual(pendingRead(readingOf('30')))
  })

  it.each<[string, unknown]>([
    ['revert', reverted],
    ['are no words', '0x12'],
    ['are more than fits', word(2n ** 200n)],
  ])('whose facts %s are read without them, and asked for them again', async (_, answer) => {
    const { node, read } = openPools()
    for (const text of [V3.token0, V3.token1, V3.fee]) node.answers.set(text, answer)
    expect(await read([v3])).toEqual(pendingRead({ ...readingOf(null), tokens: 'unread' }))
    node.answers.set(V3.token0, word(apple)).set(V3.token1, word(usdc))
    await read([v3])
    node.answers.set(V3.fee, word(100))
    expect(await read([v3])).toEqual(pendingRead(readingOf('1')))
    await read([v3])
    expect(node.batches.map(({ length }) => length)).toEqual([5, 5, 3, 2])
  })

  it('of wrong tokens are asked for them again', async () => {
    const { node, read } = openPools()
    node.answers.set(V3.token0, word(tesla))
    expect(await read([v3])).toEqual(await read([v3]))
    node.answers.set(V3.token0, word(apple))
    expect(await read([v3])).toEqual(pendingRead(readingOf('30')))
  })

  it('of Slipstream have the fee of the moment', async () => {
    const { node, read } = openPools()
    await read([slipstream])
    node.answers.set(V3.fee, word(1_250))
    expect(await read([slipstream])).toEqual(pendingRead(readingOf('12.5')))
  })
})

describe('the block of a reading', () => {
  const built = header(101, { sealed: false })
  const nameless = { ...built, number: null, hash: null }

  it.each<[string, unknown, object, readonly string[]]>([
    ['is pending where its number is above the sealed one', built, pendingBlock, ['pending']],
    ['has no hash while pending, even if the node says one', header(101), pendingBlock, ['pending']],
    ['is pending where it has no number and the sealed one is its parent', nameless, pendingBlock, ['pending']],
    ['is the latest where another is its parent', { ...nameless, parentHash: blockHash(99) }, latestBlock, ['pending', 'latest']],
    ['is the latest where pending is it', header(100), latestBlock, ['pending']],
    ['is the latest where pending is older', header(99), latestBlock, ['pending', 'latest']],
    ['is the latest where nothing is pending', null, latestBlock, ['pending', 'latest']],
    ['is the latest where the node refuses pending', unknownMethod, latestBlock, ['pending', 'latest']],
    ['has no time where the node says none', { ...built, timestamp: 'now' }, { ...pendingBlock, timestamp: null }, ['pending']],
  ])('%s', async (_, pendingHeader, block, tags) => {
    const { node, read } = openPools()
    node.headers.pending = [pendingHeader]
    expect(await read([v3])).toEqual({ block, pools: [readingOf('30')] })
    expect(node.tags).toEqual(tags)
  })

  const noHeader = 'the block has no header'
  /** The headers that the node gives, in place of `good` before and after the reads: once, and then each time. */
  it.each<[string, Tag, (good: unknown) => readonly unknown[], string]>([
    ['last header has another number', 'pending', (good) => [good, { ...built, number: '0x66' }], CHANGED],
    ['last header has another hash', 'latest', (good) => [good, { ...header(100), hash: blockHash(7) }], CHANGED],
    ['last header has another parent', 'pending', (good) => [good, { ...built, parentHash: blockHash(7) }], CHANGED],
    ['last header is missing', 'latest', (good) => [good, null], CHANGED],
    ['last header fails', 'pending', (good) => [good, busy], CHANGED],
    ['first header fails', 'pending', () => [busy, busy], noHeader],
    ['first header is missing', 'latest', () => [null, null], noHeader],
    ['first header has no number', 'latest', () => Array(2).fill({ ...header(100), number: null }), noHeader],
    ['first header is not sealed', 'latest', () => Array(2).fill({ ...header(100), hash: null }), noHeader],
  ])('is asked for once more where the %s', async (_, tag, headersFor, reason) => {
    const { node, read } = openPools()
    const good = node.headers[tag]?.[0]
    const bad = headersFor(good)
    node.headers[tag] = [...bad, good]
    expect(await read([v3], tag)).toEqual({ block: tag === 'latest' ? latestBlock : pendingBlock, pools: [readingOf('30')] })
    node.headers[tag] = [...bad, ...bad]
    expect(await read([v3, v4], tag)).toEqual(nothingRead(reason, reason))
    expect(node.tags).toEqual(Array(4).fill(tag))
  })
})

describe('a reading without an answer', () => {
  it('of one pool is repeated once, for that pool alone without success', async () => {
    const { node, read } = openPools()
    node.answers.set(V4.liquidity, busy)
    node.beforeBatch = (count) => count === 2 && node.answers.set(V4.liquidity, word(liquidity))
    expect(await read([v3, v4])).toEqual(pendingRead(readingOf('30'), readingOf('5')))
    node.answers.set(V4.liquidity, busy)
    expect(await read([v3, v4])).toEqual(pendingRead(readingOf('30'), unreadable(busy.message)))
    expect(node.tags.length).toBe(4)
  })

  it('of the tokens in a pool is repeated once, and gives no price without them', async () => {
    const { node, read } = openPools()
    node.answers.set(V3.token1, busy)
    node.beforeBatch = (count) => count === 2 && node.answers.set(V3.token1, word(usdc))
    expect(await read([v3])).toEqual(pendingRead(readingOf('30')))
    const other = openPools()
    other.node.answers.set(V3.token0, busy)
    expect(await other.read([v3])).toEqual(pendingRead(unreadable(busy.message)))
  })

  it('of any pool is repeated once', async () => {
    const { node, read } = openPools()
    let failing = [1]
    node.beforeBatch = (count) => {
      if (failing.includes(count)) throw noAnswer
    }
    expect(await read([v3])).toEqual(pendingRead(readingOf('30')))
    failing = [3, 4]
    expect(await read([v3, v4])).toEqual(nothingRead(noAnswer.message, noAnswer.message))
    expect(node.tags.length).toBe(4)
  })

  it.each<[number, object]>([
    [1_999, pendingRead(readingOf('30'))],
    [2_001, nothingRead('no answer within 2000 ms')],
  ])('ends after two seconds: an answer after %i ms', async (delayMs, expected) => {
    const { clock, node, reader, read } = openPools()
    node.delayMs = delayMs
    expect(await read([v3])).toEqual(expected)
    const reading = reader.read([v3], 'pending', new AbortController().signal)
    await advanceClock(clock, 2_000)
    expect((await reading).block).toEqual((expected as { block: unknown }).block)
  })

  it('ends with the signal', async () => {
    const { clock, node, reader } = openPools()
    node.delayMs = 1_000
    const stop = new AbortController()
    const reading = reader.read([v3], 'pending', stop.signal)
    await advanceClock(clock, 500)
    stop.abort(new Error('the relay stops'))
    await expect(reading).rejects.toThrow('the relay stops')
    expect(clock.actions).toEqual([])
  })

  it('fails with a bug', async () => {
    const { node, read } = openPools()
    node.beforeBatch = () => {
      throw new TypeError('a bug')
    }
    expect(await read([v3])).toEqual(new TypeError('a bug'))
  })
})
