import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { GENESIS_MS } from '../../../../src/devnet/chain/chain-builder.ts'
import type { DevnetBlock, DevnetLog } from '../../../../src/devnet/chain/chain-types.ts'
import { type DevnetOptions, startDevnet } from '../../../../src/devnet/devnet.ts'
import { createNavCurve } from '../../../../src/devnet/life/nav-curve.ts'
import { CYCLE_BLOCKS } from '../../../../src/devnet/life/trading-cycle.ts'
import { createRecordReader, createStockList, type StockList } from '../../../../src/devnet/node/stock-list.ts'
import { openScriptedChain, type ScriptedChain } from '../../../../src/devnet/scripted-chain.ts'
import { feeds } from '../../../../src/devnet/tokens/feeds.ts'
import { lateToken, tokens } from '../../../../src/devnet/tokens/issued-tokens.ts'
import { decodeLog, eventNames } from '../decode-log.ts'
import { demoSettings } from '../devnet-client.ts'

const WORLD_SETTINGS = { ...demoSettings('calendar'), flashblockMs: 2_000 }
// 2026-11-18 is a Wednesday. The cycle before it is complete.
const CYCLE = Math.floor((Date.UTC(2026, 10, 18) - GENESIS_MS) / (CYCLE_BLOCKS * 2_000))
const startMsOf = (block: number) => GENESIS_MS + (block - 1) * WORLD_SETTINGS.blockMs

const allTokens = [...tokens, lateToken]
const tokenOf = (symbol: string) => allTokens.find((token) => token.symbol === symbol) ?? expect.unreachable()
const aggregatorOf = (symbol: string) => feeds.find(({ token }) => token.symbol === symbol)?.aggregator

/** Makes the cycle, and reads the list at each of its blocks. */
const playCycle = (world: ScriptedChain) => {
  const list = createStockList(
    allTokens,
    createRecordReader(world, () => undefined),
  )
  return Array.from({ length: CYCLE_BLOCKS }, () => {
    world.makeFlashblock()
    return { block: world.seal(), records: list.records() }
  })
}
const openCycle = (settings = WORLD_SETTINGS) => openScriptedChain(settings, startMsOf(CYCLE * CYCLE_BLOCKS + 1))

// Shared by the tests that only read.
let blocks: readonly DevnetBlock[]
let lists: readonly ReturnType<StockList['records']>[]
beforeAll(() => {
  const played = playCycle(openCycle())
  blocks = played.map(({ block }) => block)
  lists = played.map(({ records }) => records)
})

const logsOf = (symbol: string, within = blocks): readonly DevnetLog[] =>
  within.flatMap(({ logs }) => logs).filter(({ address }) => address === tokenOf(symbol).address)
/** The values in text, without repeats of the previous one. */
const changesOf = (values: readonly unknown[]): readonly unknown[] => {
  const texts = values.map((value) => JSON.stringify(value))
  return values.filter((_, at) => at === 0 || texts[at] !== texts[at - 1])
}

describe('a cycle of the calendar', () => {
  it('has corporate actions of most tokens, but none of the best known', () => {
    const namesOf = (symbol: string) => logsOf(symbol).map((log) => decodeLog(log)[0])
    const actions = allTokens.map(({ symbol }): [string, string] => [
      symbol,
      namesOf(symbol)
        .filter((name) => name !== 'Transfer' && name !== 'unknown')
        .join(' '),
    ])
    const dividend = 'Announcement MultiplierUpdated UIMultiplierUpdated EndAnnouncement'
    expect(Object.fromEntries(actions.filter(([, names]) => names !== ''))).toEqual({
      MSTRc: 'MultiplierUpdated UIMultiplierUpdated MultiplierUpdated UIMultiplierUpdated',
      AMZNc: 'UIMultiplierUpdated UIMultiplierUpdated UIMultiplierUpdateCancelled MultiplierUpdated UIMultiplierUpdated',
      GOOGLc: `${dividend} ${dividend}`,
      COINc: 'Paused Paused Unpaused',
      METAc: 'Memo Memo Memo Memo Seized',
      SNDKc: 'NameUpdated EIP712DomainChanged SymbolUpdated NameUpdated EIP712DomainChanged SymbolUpdated',
      CRCLc: 'Announcement EndAnnouncement',
      INTCc: 'ExtraMetadataUpdated ContractURIUpdated SupplyCapUpdated SupplyCapUpdated ExtraMetadataUpdated',
    })
  })

  it('announces each dividend under an id of its own, which contains the cycle', () => {
    const announced = logsOf('GOOGLc')
      .map(decodeLog)
      .filter(([name]) => name === 'Announcement')
    expect(announced.map(([, , id]) => id)).toEqual([`GOOGLc-dividend-${CYCLE}-paid`, `GOOGLc-dividend-${CYCLE}-reversed`])
  })

  it('has no mints or burns of a token where they are paused', () => {
    const busy = playCycle(openCycle({ ...WORLD_SETTINGS, transactionsPerFlashblock: 20 })).map(({ block }) => block)
    const transfers = logsOf('COINc', busy).filter((log) => decodeLog(log)[0] === 'Transfer')
    expect(transfers.length).toBeGreaterThan(100)
    for (const { topics } of transfers) for (const topic of topics) expect(BigInt(topic)).not.toBe(0n)
  })

  it.each<[string, 'multiplier' | 'paused_features' | 'symbol' | 'total_supply', unknown[]]>([
    ['AMZNc', 'multiplier', ['1', '20', '1']],
    ['GOOGLc', 'multiplier', ['1.000377118676784179', '1.001102219403117862', '1.000377118676784179']],
    ['COINc', 'paused_features', [[], [1, 2], [1, 2, 3], []]],
    ['SNDKc', 'symbol', ['SNDKc', 'SNDSKc', 'SNDKc']],
    [lateToken.symbol, 'total_supply', [undefined, 5_000, undefined]],
  ])('is on the list: %s has the %s %j', (symbol, field, values) => {
    const { contractAddress } = tokenOf(symbol)
    expect(changesOf(lists.map((list) => list.find((record) => record.contract_address === contractAddress)?.[field]))).toEqual(
      values,
    )
  })

  it('is on the list some blocks later where a name changes', () => {
    const renamedAt = blocks.findIndex(({ logs }) => eventNames(logs).includes('SymbolUpdated'))
    expect(lists.findIndex((list) => list.some(({ symbol }) => symbol === 'SNDSKc')) - renamedAt).toBe(10)
  })

  it.each([
    ['AAPLc', -1, -1],
    ['GOOGLc', 29, 64],
  ])('publishes each round of %s in the first block after it, but after a freeze from block %i to %i', (symbol, from, until) => {
    const navOf = createNavCurve(WORLD_SETTINGS.seed)
    const rounds = blocks.map(({ number }) => navOf(tokenOf(symbol), startMsOf(number)))
    const isDue = blocks.map(({ number }, at) => (rounds[at]?.updatedAtMs ?? 0) > startMsOf(number - 1))
    expect(isDue.slice(Math.max(from, 0), until)).toContain(true)
    const prices = blocks.map(({ logs }) => {
      const answer = logs.find((log) => log.address === aggregatorOf(symbol) && decodeLog(log)[0] === 'AnswerUpdated')
      return answer && Number(answer.topics[1]) / 1e8
    })
    const isExpected = (at: number) => at === until || (isDue[at] && (at < from || at > until))
    expect(prices).toEqual(rounds.map((round, at) => (isExpected(at) ? round?.price : undefined)))
  })
})

describe('a devnet', () => {
  it.each<[string, DevnetOptions, boolean]>([
    ['a calendar at the pace of the clock', {}, true],
    ['a calendar with fast blocks and the calendar option', { blockMs: 200, flashblockMs: 200, calendar: true }, true],
    ['no calendar without a market', { transactionsPerFlashblock: 0 }, false],
    ['no calendar without the calendar option', { calendar: false }, false],
    ['no calendar with fast blocks', { blockMs: 200, flashblockMs: 200 }, false],
  ])('has %s', async (_, options, isCalendar) => {
    const devnet = await startDevnet({ blockMs: 2_000, flashblockMs: 2_000, ...options })
    onTestFinished(() => devnet.stop())
    const { head, oldest } = devnet.chain
    const kept = Array.from({ length: head.number - oldest }, (__, at) => devnet.chain.block(oldest + at)?.logs ?? [])
    expect(eventNames(kept.flat()).includes('Seized')).toBe(isCalendar)
  })
})
