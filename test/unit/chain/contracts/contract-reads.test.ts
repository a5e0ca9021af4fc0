import { lastValueFrom } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { readFeed, readToken } from '../../../../src/chain/contracts/reads.ts'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { apple, bob, header, timestampOf, word, words } from '../node-json.ts'
import {
  AGGREGATOR,
  DECIMALS,
  EFFECTIVE_AT,
  FakeContracts,
  LATEST_ROUND_DATA,
  MULTIPLIER,
  NEW_UI_MULTIPLIER,
  PAUSED_FEATURES,
  PHASE_ID,
  UI_MULTIPLIER,
} from './fake-contracts.ts'

const BLOCK = 1_000
const NOW = timestampOf(BLOCK)
const proxy: Hex = `0x${'fe'.repeat(20)}`
const WAD = 10n ** 18n
const AAPL = 1_000_377_118_676_784_179n
const NOTHING = words(0x20, 0)

const failureOf = async (answer: Promise<unknown>) => answer.catch((failure: unknown) => failure)
const refused = new UpstreamError('forbidden', '-32601 rpc method is not whitelisted', null, true)

describe('a token', () => {
  const asked = async (answers: Record<string, unknown>, timestamp: number | null = NOW) => {
    const contracts = new FakeContracts()
    contracts.setAnswers(apple, answers)
    contracts.otherAnswers.set('eth_getBlockByNumber', header(BLOCK))
    const says = await failureOf(lastValueFrom(readToken(contracts.request, apple, { number: BLOCK, timestamp })))
    return { says, asked: contracts.requests }
  }

  it('says its multiplier and what is paused, as of a block', async () => {
    const answers = { [UI_MULTIPLIER]: word(AAPL), [EFFECTIVE_AT]: word(0), [PAUSED_FEATURES]: words(0x20, 2, 0, 3) }
    expect(await asked(answers)).toEqual({
      says: { multiplier: AAPL, scheduled: null, paused: [0, 3] },
      asked: [UI_MULTIPLIER, EFFECTIVE_AT, PAUSED_FEATURES].map((selector) => `${selector} ${apple} 0x3e8`),
    })
  })

  it('is asked in the old way where it does not know the new one', async () => {
    expect((await asked({ [MULTIPLIER]: word(WAD) })).says).toEqual({ multiplier: WAD, scheduled: null, paused: null })
  })

  it.each<[string, number, object | null]>([
    ['that is to come', NOW + 1, { to: 2n * WAD, effectiveAt: BigInt(NOW + 1) }],
    ['that has come', NOW, null],
    ['of long ago', 5, null],
  ])('names a schedule %s', async (_, effectiveAt, scheduled) => {
    const answers = {
      [UI_MULTIPLIER]: word(WAD),
      [EFFECTIVE_AT]: word(effectiveAt),
      [NEW_UI_MULTIPLIER]: word(2n * WAD),
    }
    expect((await asked(answers)).says).toEqual({ multiplier: WAD, scheduled, paused: null })
    const unaware = await asked(answers, null)
    expect(unaware.says).toEqual({ multiplier: WAD, scheduled, paused: null })
    expect(unaware.asked).toContain('eth_getBlockByNumber 0x3e8 false')
  })

  it('has no schedule where it names a time and no multiplier', async () => {
    expect((await asked({ [EFFECTIVE_AT]: word(NOW + 1) })).says).toMatchObject({ scheduled: null })
  })

  it('is not known where nobody knows the time of the block', async () => {
    const contracts = new FakeContracts()
    contracts.setAnswers(apple, { [EFFECTIVE_AT]: word(NOW + 1) })
    contracts.otherAnswers.set('eth_getBlockByNumber', null)
    const answer = lastValueFrom(readToken(contracts.request, apple, { number: BLOCK, timestamp: null }))
    expect(await failureOf(answer)).toMatchObject({ kind: 'unreadable' })
  })

  it.each<[string, Hex]>([
    ['nothing', '0x'],
    ['less than a word', '0x01'],
    ['more than a word', words(1, 2)],
  ])('that answers %s has no multiplier', async (_, answer) => {
    const { says } = await asked({ [UI_MULTIPLIER]: answer, [EFFECTIVE_AT]: answer, [PAUSED_FEATURES]: NOTHING })
    expect(says).toEqual({ multiplier: null, scheduled: null, paused: [] })
  })

  it.each<[string, Hex]>([
    ['nothing', '0x'],
    ['a feature that is none', words(0x20, 1, 256)],
    ['more than there are', words(0x20, 257, ...Array(257).fill(0))],
  ])('that answers %s has nothing that is known to be paused', async (_, answer) => {
    expect((await asked({ [PAUSED_FEATURES]: answer })).says).toMatchObject({ paused: null })
  })

  it.each<[string, unknown]>([
    ['null', null],
    ['a number', 5],
    ['a word', 'word'],
    ['odd hex', '0x1'],
    ['longer than any', `0x${'00'.repeat(2 ** 17)}`],
  ])('is not known where its answer is %s', async (_, answer) => {
    expect((await asked({ [UI_MULTIPLIER]: answer })).says).toMatchObject({ kind: 'unreadable' })
  })

  it('is not known where it cannot be asked', async () => {
    expect((await asked({ [PAUSED_FEATURES]: refused })).says).toBe(refused)
  })
})

describe('a feed', () => {
  const PHASE = 2n
  const rounds = { [AGGREGATOR]: word(bob), [PHASE_ID]: word(PHASE), [DECIMALS]: word(8) }
  const roundData = (round: bigint, { phase = PHASE, answer = 5n, updatedAt = 9n } = {}) =>
    words((phase << 64n) | round, BigInt.asUintN(256, answer), 8, updatedAt, (phase << 64n) | round)
  const asked = async (answers: Record<string, unknown>, kept?: unknown) => {
    const contracts = new FakeContracts()
    contracts.setAnswers(proxy, answers)
    contracts.otherAnswers.set('eth_getStorageAt', kept)
    const says = await failureOf(lastValueFrom(readFeed(contracts.request, proxy)))
    return { says, asked: contracts.requests }
  }

  it('says who makes its rounds, and the newest', async () => {
    const answers = { ...rounds, [LATEST_ROUND_DATA]: roundData(362n) }
    expect(await asked(answers)).toEqual({
      says: { aggregator: bob, phase: 2, decimals: 8, round: { answer: 5n, round: 362n, updatedAt: 9n } },
      asked: [AGGREGATOR, PHASE_ID, DECIMALS, LATEST_ROUND_DATA].map((selector) => `${selector} ${proxy} latest`),
    })
  })

  it('counts its rounds through its phases as the chain does', async () => {
    const data = words(36_893_488_147_419_103_594n, 1, 1, 1, 36_893_488_147_419_103_594n)
    expect((await asked({ ...rounds, [LATEST_ROUND_DATA]: data })).says).toMatchObject({
      phase: 2,
      round: { round: 362n },
    })
  })

  it('may answer with less than nothing', async () => {
    const data = roundData(1n, { answer: -1n })
    expect((await asked({ ...rounds, [LATEST_ROUND_DATA]: data })).says).toMatchObject({ round: { answer: -1n } })
  })

  it.each<[string, Record<string, unknown>]>([
    ['reverts', {}],
    ['says nothing', { [LATEST_ROUND_DATA]: '0x' }],
    ['says less than a round', { [LATEST_ROUND_DATA]: word(1) }],
    ['is none yet', { [LATEST_ROUND_DATA]: roundData(0n) }],
    ['was never made', { [LATEST_ROUND_DATA]: roundData(1n, { updatedAt: 0n }) }],
    ['is of another phase', { [LATEST_ROUND_DATA]: roundData(1n, { phase: 3n }) }],
  ])('has no round where that %s', async (_, answers) => {
    expect((await asked({ ...rounds, ...answers })).says).toEqual({
      aggregator: bob,
      phase: 2,
      decimals: 8,
      round: null,
    })
  })

  it.each<[string, Record<string, unknown>]>([
    ['no aggregator', { [AGGREGATOR]: word(0) }],
    ['an aggregator that is no address', { [AGGREGATOR]: `0x01${word(bob).slice(4)}` }],
    ['nothing for an aggregator', { [AGGREGATOR]: '0x' }],
    ['no phase', { [PHASE_ID]: '0x' }],
    ['a phase that is none', { [PHASE_ID]: word(65_536) }],
    ['no decimals', { [DECIMALS]: '0x' }],
    ['decimals that are none', { [DECIMALS]: word(256) }],
  ])('with %s is none', async (_, answers) => {
    expect((await asked({ ...rounds, ...answers })).says).toBeNull()
  })

  it('that may not be asked is looked up where it keeps its phase', async () => {
    const kept = `0x${'0'.repeat(20)}${bob.slice(2)}0102`
    expect(await asked({ [AGGREGATOR]: refused }, kept)).toEqual({
      says: { aggregator: bob, phase: 0x102, decimals: 8, round: null },
      asked: [`${AGGREGATOR} ${proxy} latest`, `eth_getStorageAt ${proxy} 0x2 latest`],
    })
  })

  it('that does not say who makes its rounds is looked up there too', async () => {
    const kept = `0x${'0'.repeat(20)}${bob.slice(2)}0102`
    const reverted = new UpstreamError('reverted', '3 execution reverted')
    expect((await asked({ [AGGREGATOR]: reverted }, kept)).says).toMatchObject({ aggregator: bob, phase: 0x102 })
    expect((await asked({ [AGGREGATOR]: '0x' }, new UpstreamError('unknown_method', '-32601'))).says).toBeNull()
  })

  it('keeps the zeros that its aggregator begins with', async () => {
    const low = `0x${'00'.repeat(4)}${'b0'.repeat(16)}`
    const kept = `0x${'0'.repeat(20)}${low.slice(2)}0001`
    expect((await asked({ [AGGREGATOR]: refused }, kept)).says).toMatchObject({ aggregator: low, phase: 1 })
  })

  it.each<[string, string]>([
    ['nothing', word(0)],
    ['a phase without an aggregator', word(2)],
    ['more than a phase', `0x01${'0'.repeat(18)}${bob.slice(2)}0002`],
  ])('that keeps %s there is none', async (_, kept) => {
    expect((await asked({ [AGGREGATOR]: refused }, kept)).says).toBeNull()
  })

  it.each([null, '0x', '0x2', 5])('of which %j is kept cannot be read', async (kept) => {
    expect((await asked({ [AGGREGATOR]: refused }, kept)).says).toMatchObject({ kind: 'unreadable' })
  })

  it('is not looked up where it could be asked another time', async () => {
    const busy = new UpstreamError('busy', 'over rate limit')
    expect(await asked({ [AGGREGATOR]: busy })).toEqual({ says: busy, asked: [`${AGGREGATOR} ${proxy} latest`] })
  })
})
