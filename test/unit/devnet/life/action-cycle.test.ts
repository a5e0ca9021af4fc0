import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { GENESIS_MS } from '../../../../src/devnet/chain/chain.ts'
import type { DevnetBlock, DevnetLog } from '../../../../src/devnet/chain/chain-types.ts'
import { type DevnetOptions, startDevnet } from '../../../../src/devnet/devnet.ts'
import { createNavCurve } from '../../../../src/devnet/life/nav-curve.ts'
import { CYCLE_BLOCKS } from '../../../../src/devnet/life/trading-cycle.ts'
import { createRecordReader, createStockList, type StockList } from '../../../../src/devnet/node/stock-list.ts'
import { openScriptedChain, type ScriptedChain, type ScriptedChainSettings } from '../../../../src/devnet/scripted-chain.ts'
import { feeds } from '../../../../src/devnet/tokens/feeds.ts'
import { lateToken, tokens } from '../../../../src/devnet/tokens/issued-tokens.ts'
import { decodeLog, eventNames } from '../decode-log.ts'

const WORLD_SETTINGS: ScriptedChainSettings = {
  seed: 'calendar',
  chainId: 84_532_001,
  blockMs: 2_000,
  flashblockMs: 2_000,
  transactionsPerFlashblock: 1,
  calendar: true,
}
// 2026-11-18 is a Wednesday. The cycle before it is complete.
const CYCLE = Math.floor((Date.UTC(2026, 10, 18) - GENESIS_MS) / (CYCLE_BLOCKS * 2_000))
const FIRST_BLOCK = CYCLE * CYCLE_BLOCKS + 1

const symbolOf = new Map([...tokens, lateToken].map(({ address, symbol }) => [address, symbol]))
const openWorldAfter = (settings: ScriptedChainSettings = WORLD_SETTINGS) =>
  openScriptedChain(settings, GENESIS_MS + (CYCLE + 1) * CYCLE_BLOCKS * settings.blockMs)
const blocksOf = (world: ScriptedChain) =>
  Array.from({ length: CYCLE_BLOCKS }, (_, at) => world.chain.block(FIRST_BLOCK + at)).flatMap((block) => block ?? [])

// One cycle, shared by the tests that only read, and the list at each of its blocks.
let blocks: readonly DevnetBlock[]
let lists: readonly ReturnType<StockList['records']>[]
beforeAll(() => {
  const world = openScriptedChain(WORLD_SETTINGS, GENESIS_MS + CYCLE * CYCLE_BLOCKS * WORLD_SETTINGS.blockMs)
  const list = createStockList(
    [...tokens, lateToken],
    createRecordReader(world, () => undefined),
  )
  lists = Array.from({ length: CYCLE_BLOCKS }, () => {
    world.makeFlashblock()
    world.seal()
    return list.records()
  })
  blocks = blocksOf(world)
})

const logsOf = (symbol: string, within = blocks): readonly DevnetLog[] =>
  within.flatMap(({ logs }) => logs).filter(({ address }) => symbolOf.get(address) === symbol)
/** Removes repeats of the previous value. */
const withoutRepeats = <T>(values: readonly T[]): readonly T[] => values.filter((value, at) => at === 0 || value !== values[at - 1])

describe('a cycle of the calendar', () => {
  it.each<[string, readonly string[]]>([
    ['MSTRc', ['MultiplierUpdated', 'UIMultiplierUpdated', 'MultiplierUpdated', 'UIMultiplierUpdated']],
    [
      'AMZNc',
      ['UIMultiplierUpdated', 'UIMultiplierUpdated', 'UIMultiplierUpdateCancelled', 'MultiplierUpdated', 'UIMultiplierUpdated'],
    ],
    ['COINc', ['Paused', 'Paused', 'Unpaused']],
    ['METAc', ['Memo', 'Memo', 'Memo', 'Memo', 'Seized']],
    ['SNDKc', ['NameUpdated', 'EIP712DomainChanged', 'SymbolUpdated', 'NameUpdated', 'EIP712DomainChanged', 'SymbolUpdated']],
    ['CRCLc', ['Announcement', 'EndAnnouncement']],
    ['INTCc', ['ExtraMetadataUpdated', 'ContractURIUpdated', 'SupplyCapUpdated', 'SupplyCapUpdated', 'ExtraMetadataUpdated']],
    ['AAPLc', []],
    ['TSLAc', []],
    ['NVDAc', []],
    ['MSFTc', []],
  ])('has the corporate actions of %s', (symbol, names) => {
    const decoded = eventNames(logsOf(symbol))
    expect(decoded.filter((name) => name !== 'Transfer' && name !== 'unknown')).toEqual(names)
  })

  it('announces a dividend with an id that contains the cycle', () => {
    const decoded = logsOf('GOOGLc').map(decodeLog)
    const names = decoded.map(([name]) => name)
    const at = names.indexOf('Announcement')
    expect(names.slice(at, at + 4)).toEqual(['Announcement', 'MultiplierUpdated', 'UIMultiplierUpdated', 'EndAnnouncement'])
    expect(decoded[at]?.[2]).toContain(String(CYCLE))
  })

  it('has no mints or burns of a token where they are paused', () => {
    const busy = blocksOf(openWorldAfter({ ...WORLD_SETTINGS, transactionsPerFlashblock: 20 }))
    const transfers = logsOf('COINc', busy).filter((log) => decodeLog(log)[0] === 'Transfer')
    expect(transfers.length).toBeGreaterThan(100)
    for (const { topics } of transfers) for (const topic of topics) expect(BigInt(topic)).not.toBe(0n)
  })

  it('is on the list: exact multipliers, schedules by time, pauses, and names some blocks later', () => {
    const valuesOf = (symbol: string, field: string) => {
      const address = tokens.find((token) => token.symbol === symbol)?.contractAddress
      return withoutRepeats(
        lists.map((list) => JSON.stringify(list.find((record) => record.contract_address === address)?.[field])),
      )
    }
    expect(valuesOf('AMZNc', 'multiplier')).toEqual(['"1"', '"20"', '"1"'])
    expect(valuesOf('GOOGLc', 'multiplier')).toEqual(['"1.000377118676784179"', '"1.001102219403117862"', '"1.000377118676784179"'])
    expect(valuesOf('COINc', 'paused_features')).toEqual(['[]', '[1,2]', '[1,2,3]', '[]'])
    expect(valuesOf('SNDKc', 'symbol')).toEqual(['"SNDKc"', '"SNDSKc"', '"SNDKc"'])
    const renamedAt = blocks.findIndex(({ logs }) => eventNames(logs).includes('SymbolUpdated'))
    const isListedAt = lists.findIndex((list) => list.some(({ symbol }) => symbol === 'SNDSKc'))
    expect(isListedAt - renamedAt).toBe(10)
  })

  it('lists a late token for a part of the cycle, with a supply', () => {
    expect(withoutRepeats(lists.map((list) => list.length))).toEqual([13, 14, 13])
    const record = lists.flat().find(({ symbol }) => symbol === lateToken.symbol)
    expect(record).toMatchObject({ contract_address: lateToken.contractAddress, total_supply: 5_000, multiplier: '1' })
    expect(record).not.toHaveProperty('nav_price')
  })

  it('publishes every round of the feeds in the first block after it', () => {
    const navOf = createNavCurve(WORLD_SETTINGS.seed)
    const feed = feeds.find(({ token }) => token.symbol === 'AAPLc')
    if (!feed) throw new Error('no feed')
    const decoded = blocks.flatMap(({ logs, number }) =>
      logs
        .filter((log) => log.address === feed.aggregator && decodeLog(log)[0] === 'AnswerUpdated')
        .map((log) => ({ price: Number(log.topics[1]) / 1e8, updatedAtMs: Number(log.data) * 1_000, number })),
    )
    expect(decoded.length).toBeGreaterThan(1)
    for (const { price, updatedAtMs, number } of decoded) {
      const startMs = GENESIS_MS + (number - 1) * WORLD_SETTINGS.blockMs
      expect(navOf(feed.token, startMs)).toMatchObject({ price, updatedAtMs })
      expect(startMs - updatedAtMs).toBeLessThan(WORLD_SETTINGS.blockMs)
    }
  })

  it('publishes nothing while a feed is frozen, and then what it missed', () => {
    const feed = feeds.find(({ token }) => token.symbol === 'GOOGLc')
    if (!feed) throw new Error('no feed')
    const isPublished = blocks.map(({ logs }) => logs.some(({ address }) => address === feed.aggregator))
    const readNav = createNavCurve(WORLD_SETTINGS.seed)
    const isMissed = blocks.map(({ number }) => {
      const startMs = GENESIS_MS + (number - 1) * WORLD_SETTINGS.blockMs
      return (readNav(feed.token, startMs)?.updatedAtMs ?? 0) > startMs - WORLD_SETTINGS.blockMs
    })
    expect(isMissed.slice(29, 64)).toContain(true)
    expect(isPublished.slice(29, 64)).not.toContain(true)
    expect(isPublished[64]).toBe(true)
    const others = (list: readonly boolean[]) => [...list.slice(0, 29), ...list.slice(65)]
    expect(others(isPublished)).toEqual(others(isMissed))
  })
})

describe('a devnet', () => {
  const eventNamesOf = async (options: DevnetOptions) => {
    const devnet = await startDevnet({ blockMs: 2_000, flashblockMs: 2_000, ...options })
    onTestFinished(() => devnet.stop())
    const { head, oldest } = devnet.chain
    const kept = Array.from({ length: head.number - oldest }, (_, at) => devnet.chain.block(oldest + at))
    return new Set(kept.flatMap((block) => eventNames(block?.logs ?? [])))
  }

  it.each<[string, DevnetOptions]>([
    ['at the pace of the clock', {}],
    ['with fast blocks and the calendar option', { blockMs: 200, flashblockMs: 200, calendar: true }],
  ])('runs the calendar %s', async (_, options) => {
    expect(await eventNamesOf(options)).toContain('Seized')
  })

  it.each<[string, DevnetOptions]>([
    ['at manual pace', { pace: 'manual' }],
    ['without a market', { transactionsPerFlashblock: 0 }],
    ['without the calendar option', { calendar: false }],
    ['with fast blocks', { blockMs: 200, flashblockMs: 200 }],
  ])('runs no calendar %s', async (_, options) => {
    const names = await eventNamesOf(options)
    names.delete('Transfer')
    names.delete('unknown')
    expect([...names]).toEqual([])
  })
})
