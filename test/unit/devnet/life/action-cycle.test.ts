import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { GENESIS_MS } from '../../../../src/devnet/chain/chain-builder.ts'
import type { DevnetBlock, DevnetLog } from '../../../../src/devnet/chain/chain-types.ts'
import { type DevnetOptions, startDevnet } from '../../../../src/devnet/devnet.ts'
import { createNavCurve } from '../../../../src/devnet/life/nav-curve.ts'
import { CYCLE_BLOCKS } from '../../../../src/devnet/life/trading-cycle.ts'
import { createRecordReader, createStockList, type StockList } from '../../../../src/devnet/node/stock-list.ts'
import { openScriptedChain, type ScriptedChain, type ScriptedChainSettings } from '../../../../src/devnet/scripted-chain.ts'
import { feeds } from '../../../../src/devnet/tokens/feeds.ts'
import { lateToken, tokens } from '../../../../src/devnet/tokens/issued-tokens.ts'
import { isFeedFrozen } from '../../../../src/devnet/tokens/oracle-registry.ts'
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

const startMsOf = (block: number) => GENESIS_MS + (block - 1) * WORLD_SETTINGS.blockMs
const aggregatorOf = (symbol: string) => feeds.find(({ token }) => token.symbol === symbol)?.aggregator
const symbolOf = new Map([...tokens, lateToken].map(({ address, symbol }) => [address, symbol]))
const openWorldAfter = (settings: ScriptedChainSettings = WORLD_SETTINGS) =>
  openScriptedChain(settings, GENESIS_MS + (CYCLE + 1) * CYCLE_BLOCKS * settings.blockMs)
const blocksOf = (world: ScriptedChain) =>
  Array.from({ length: CYCLE_BLOCKS }, (_, at) => world.chain.block(FIRST_BLOCK + at)).flatMap((block) => block ?? [])

// One cycle, shared by the tests that only read, and the list at each of its blocks.
let world: ScriptedChain
let blocks: readonly DevnetBlock[]
let lists: readonly ReturnType<StockList['records']>[]
beforeAll(() => {
  world = openScriptedChain(WORLD_SETTINGS, GENESIS_MS + CYCLE * CYCLE_BLOCKS * WORLD_SETTINGS.blockMs)
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
const tokenOf = (symbol: string) => {
  const token = tokens.find((candidate) => candidate.symbol === symbol)
  if (!token) throw new Error(`no token ${symbol}`)
  return token
}
/** Removes repeats of the previous value. */
const withoutRepeats = <T>(values: readonly T[]): readonly T[] => values.filter((value, at) => at === 0 || value !== values[at - 1])

describe('a cycle of the calendar', () => {
  it.each<[string, string]>([
    ['MSTRc', 'MultiplierUpdated UIMultiplierUpdated MultiplierUpdated UIMultiplierUpdated'],
    ['AMZNc', 'UIMultiplierUpdated UIMultiplierUpdated UIMultiplierUpdateCancelled MultiplierUpdated UIMultiplierUpdated'],
    [
      'GOOGLc',
      'Announcement MultiplierUpdated UIMultiplierUpdated EndAnnouncement Announcement MultiplierUpdated UIMultiplierUpdated EndAnnouncement',
    ],
    ['COINc', 'Paused Paused Unpaused'],
    ['METAc', 'Memo Memo Memo Memo Seized'],
    ['SNDKc', 'NameUpdated EIP712DomainChanged SymbolUpdated NameUpdated EIP712DomainChanged SymbolUpdated'],
    ['CRCLc', 'Announcement EndAnnouncement'],
    ['INTCc', 'ExtraMetadataUpdated ContractURIUpdated SupplyCapUpdated SupplyCapUpdated ExtraMetadataUpdated'],
    ...['AAPLc', 'TSLAc', 'NVDAc', 'MSFTc'].map((symbol): [string, string] => [symbol, '']),
  ])('has the corporate actions of %s: %s', (symbol, names) => {
    const decoded = eventNames(logsOf(symbol))
    expect(decoded.filter((name) => name !== 'Transfer' && name !== 'unknown').join(' ')).toBe(names)
  })

  it('announces each dividend under an id of its own, which contains the cycle', () => {
    const ids = logsOf('GOOGLc')
      .map(decodeLog)
      .flatMap(([name, , id]) => (name === 'Announcement' ? [id] : []))
    expect(ids).toEqual([`GOOGLc-dividend-${CYCLE}-paid`, `GOOGLc-dividend-${CYCLE}-reversed`])
  })

  it('has no mints or burns of a token where they are paused', () => {
    const busy = blocksOf(openWorldAfter({ ...WORLD_SETTINGS, transactionsPerFlashblock: 20 }))
    const transfers = logsOf('COINc', busy).filter((log) => decodeLog(log)[0] === 'Transfer')
    expect(transfers.length).toBeGreaterThan(100)
    for (const { topics } of transfers) for (const topic of topics) expect(BigInt(topic)).not.toBe(0n)
  })

  it('is on the list: exact multipliers, schedules by time, pauses, and names some blocks later', () => {
    for (const [symbol, field, values] of [
      ['AMZNc', 'multiplier', ['1', '20', '1']],
      ['GOOGLc', 'multiplier', ['1.000377118676784179', '1.001102219403117862', '1.000377118676784179']],
      ['COINc', 'paused_features', [[], [1, 2], [1, 2, 3], []]],
      ['SNDKc', 'symbol', ['SNDKc', 'SNDSKc', 'SNDKc']],
    ] as const) {
      const { contractAddress } = tokenOf(symbol)
      const listed = lists.map((list) => list.find((record) => record.contract_address === contractAddress)?.[field])
      expect(withoutRepeats(listed.map((value) => JSON.stringify(value)))).toEqual(values.map((value) => JSON.stringify(value)))
    }
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

  it('publishes every round of a feed in the first block after it', () => {
    const navOf = createNavCurve(WORLD_SETTINGS.seed)
    const decoded = blocks.flatMap(({ logs, number }) =>
      logs
        .filter((log) => log.address === aggregatorOf('AAPLc') && decodeLog(log)[0] === 'AnswerUpdated')
        .map((log) => ({ price: Number(log.topics[1]) / 1e8, updatedAtMs: Number(log.data) * 1_000, number })),
    )
    expect(decoded.length).toBeGreaterThan(1)
    for (const { price, updatedAtMs, number } of decoded) {
      expect(navOf(tokenOf('AAPLc'), startMsOf(number))).toMatchObject({ price, updatedAtMs })
      expect(startMsOf(number) - updatedAtMs).toBeLessThan(WORLD_SETTINGS.blockMs)
    }
  })

  it('freezes the feed of one token, which then publishes nothing, and after it what it missed', () => {
    const frozenBlocks = (symbol: string) =>
      blocks.flatMap(({ number }, at) => {
        return isFeedFrozen((key) => world.chain.valueAt(key, number), tokenOf(symbol).address) ? [at] : []
      })
    expect(frozenBlocks('GOOGLc')).toEqual(Array.from({ length: 36 }, (_, at) => 28 + at))
    expect(frozenBlocks('AAPLc')).toEqual([])
    const readNav = createNavCurve(WORLD_SETTINGS.seed)
    const isPublished = blocks.map(({ logs }) => logs.some(({ address }) => address === aggregatorOf('GOOGLc')))
    const isDue = blocks.map(({ number }) => {
      const updatedAtMs = readNav(tokenOf('GOOGLc'), startMsOf(number))?.updatedAtMs ?? 0
      return updatedAtMs > startMsOf(number - 1)
    })
    expect(isDue.slice(29, 64)).toContain(true)
    expect(isPublished).toEqual(isDue.map((due, at) => at === 64 || (due && (at < 29 || at > 64))))
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

  it.each<[string, DevnetOptions, boolean]>([
    ['a calendar at the pace of the clock', {}, true],
    ['a calendar with fast blocks and the calendar option', { blockMs: 200, flashblockMs: 200, calendar: true }, true],
    ['no calendar at manual pace', { pace: 'manual' }, false],
    ['no calendar without a market', { transactionsPerFlashblock: 0 }, false],
    ['no calendar without the calendar option', { calendar: false }, false],
    ['no calendar with fast blocks', { blockMs: 200, flashblockMs: 200 }, false],
  ])('has %s', async (_, options, isCalendar) => {
    const names = await eventNamesOf(options)
    for (const name of ['Transfer', 'unknown']) names.delete(name)
    if (isCalendar) expect(names).toContain('Seized')
    else expect([...names]).toEqual([])
  })
})
