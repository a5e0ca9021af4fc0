import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { readFeed } from '../../../../../src/relay/chain/contracts/feed-contract.ts'
import { readToken } from '../../../../../src/relay/chain/contracts/token-contract.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { apple, blockHash, bob, header, timestampOf, word, words } from '../node-json.ts'
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

describe('the read of a token', () => {
  const read = async (answers: Record<string, unknown>, block: unknown = header(BLOCK), hash: Hex | null = blockHash(BLOCK)) => {
    const contracts = new FakeContracts()
    contracts.setAnswers(apple, answers)
    contracts.otherAnswers.set('eth_getBlockByNumber', block)
    const result = await failureOf(readToken(contracts.request, apple, { number: BLOCK, hash }))
    return { result, requests: contracts.requests }
  }

  it('returns multiplier and pauses at a block', async () => {
    const answers = { [UI_MULTIPLIER]: word(AAPL), [EFFECTIVE_AT]: word(0), [PAUSED_FEATURES]: words(0x20, 2, 0, 3) }
    expect(await read(answers)).toEqual({
      result: { multiplier: AAPL, scheduled: null, paused: [0, 3] },
      requests: [
        'eth_getBlockByNumber 0x3e8 false',
        ...[UI_MULTIPLIER, EFFECTIVE_AT, PAUSED_FEATURES].map((selector) => `${selector} ${apple} 0x3e8`),
        'eth_getBlockByNumber 0x3e8 false',
      ],
    })
  })

  it('is null if the block is another one by then, where its hash is known', async () => {
    const answers = { [UI_MULTIPLIER]: word(AAPL) }
    expect((await read(answers, header(BLOCK), blockHash(7))).result).toBeNull()
    expect((await read(answers, header(BLOCK), null)).result).toEqual({ multiplier: AAPL, scheduled: null, paused: null })
  })

  it('falls back to the older multiplier function', async () => {
    expect((await read({ [MULTIPLIER]: word(WAD) })).result).toEqual({ multiplier: WAD, scheduled: null, paused: null })
  })

  it.each<[string, number, object | null]>([
    ['of the future', NOW + 1, { to: 2n * WAD, effectiveAt: BigInt(NOW + 1) }],
    ['that takes effect now', NOW, null],
    ['of long ago', 5, null],
  ])('reads a schedule %s', async (_, effectiveAt, scheduled) => {
    const answers = { [UI_MULTIPLIER]: word(WAD), [EFFECTIVE_AT]: word(effectiveAt), [NEW_UI_MULTIPLIER]: word(2n * WAD) }
    expect((await read(answers)).result).toEqual({ multiplier: WAD, scheduled, paused: null })
  })

  it('has no schedule when the contract has a time but no multiplier', async () => {
    expect((await read({ [EFFECTIVE_AT]: word(NOW + 1) })).result).toMatchObject({ scheduled: null })
  })

  it.each<[string, string, unknown]>([
    ['unreadable', 'the time of the block is unknown', { ...header(BLOCK), timestamp: null }],
    ['unreadable', 'the block has another form', 5],
    ['behind', 'the node lacks the block', null],
  ])('fails as %s when %s', async (kind, _, block) => {
    const answers = { [EFFECTIVE_AT]: word(NOW + 1), [NEW_UI_MULTIPLIER]: word(2n * WAD) }
    expect((await read(answers, block)).result).toMatchObject({ kind })
  })

  it.each<[string, Hex]>([
    ['nothing', '0x'],
    ['more than a word', words(1, 2)],
  ])('has no multiplier when the contract returns %s', async (_, answer) => {
    const { result } = await read({ [UI_MULTIPLIER]: answer, [EFFECTIVE_AT]: answer, [PAUSED_FEATURES]: NOTHING })
    expect(result).toEqual({ multiplier: null, scheduled: null, paused: [] })
  })

  it.each<[string, Hex]>([
    ['no data', '0x'],
    ['an unknown feature', words(0x20, 1, 256)],
    ['too many features', words(0x20, 257, ...Array(257).fill(0))],
  ])('has no pauses when the contract returns %s', async (_, answer) => {
    expect((await read({ [PAUSED_FEATURES]: answer })).result).toMatchObject({ paused: null })
  })

  it.each<[string, unknown]>([
    ['odd hex', '0x1'],
    ['too long', `0x${'00'.repeat(2 ** 17)}`],
  ])('fails when the answer is %s', async (_, answer) => {
    expect((await read({ [UI_MULTIPLIER]: answer })).result).toMatchObject({ kind: 'unreadable' })
  })

  it('fails when the call is refused', async () => {
    expect((await read({ [PAUSED_FEATURES]: refused })).result).toBe(refused)
  })
})

describe('the read of a feed', () => {
  const PHASE = 2n
  const rounds = { [AGGREGATOR]: word(bob), [PHASE_ID]: word(PHASE), [DECIMALS]: word(8) }
  const roundData = (round: bigint, { phase = PHASE, answer = 5n, updatedAt = 9n } = {}) =>
    words((phase << 64n) | round, BigInt.asUintN(256, answer), 8, updatedAt, (phase << 64n) | round)
  const read = async (answers: Record<string, unknown>, stored?: unknown) => {
    const contracts = new FakeContracts()
    contracts.setAnswers(proxy, answers)
    contracts.otherAnswers.set('eth_getStorageAt', stored)
    const result = await failureOf(readFeed(contracts.request, proxy))
    return { result, requests: contracts.requests }
  }

  it('returns the aggregator and the newest round', async () => {
    const answers = { ...rounds, [LATEST_ROUND_DATA]: roundData(362n) }
    expect(await read(answers)).toEqual({
      result: { aggregator: bob, phase: 2, decimals: 8, round: { answer: 5n, round: 362n, updatedAt: 9n } },
      requests: [AGGREGATOR, PHASE_ID, DECIMALS, LATEST_ROUND_DATA].map((selector) => `${selector} ${proxy} latest`),
    })
  })

  it('accepts a negative answer', async () => {
    const data = roundData(1n, { answer: -1n })
    expect((await read({ ...rounds, [LATEST_ROUND_DATA]: data })).result).toMatchObject({ round: { answer: -1n } })
  })

  it.each<[string, Record<string, unknown>]>([
    ['reverts', {}],
    ['is shorter than a round', { [LATEST_ROUND_DATA]: word(1) }],
    ['is round zero', { [LATEST_ROUND_DATA]: roundData(0n) }],
    ['has no update time', { [LATEST_ROUND_DATA]: roundData(1n, { updatedAt: 0n }) }],
    ['is of another phase', { [LATEST_ROUND_DATA]: roundData(1n, { phase: 3n }) }],
  ])('has no round when that %s', async (_, answers) => {
    expect((await read({ ...rounds, ...answers })).result).toEqual({ aggregator: bob, phase: 2, decimals: 8, round: null })
  })

  it.each<[string, Record<string, unknown>]>([
    ['no aggregator', { [AGGREGATOR]: word(0) }],
    ['an aggregator that is not an address', { [AGGREGATOR]: `0x01${word(bob).slice(4)}` }],
    ['no phase', { [PHASE_ID]: '0x' }],
    ['a phase out of range', { [PHASE_ID]: word(65_536) }],
    ['no decimals', { [DECIMALS]: '0x' }],
    ['decimals out of range', { [DECIMALS]: word(256) }],
  ])('with %s returns null', async (_, answers) => {
    expect((await read({ ...rounds, ...answers })).result).toBeNull()
  })

  const low: Hex = `0x${'00'.repeat(4)}${'b0'.repeat(16)}`
  it.each<[string, UpstreamError, Hex]>([
    ['calls are refused', refused, bob],
    ['the aggregator is missing', new UpstreamError('reverted', '3 execution reverted'), bob],
    ['its address begins with zeros', refused, low],
  ])('falls back to the stored phase when %s', async (_, failure, aggregator) => {
    expect(await read({ [AGGREGATOR]: failure }, `0x${'0'.repeat(20)}${aggregator.slice(2)}0102`)).toEqual({
      result: { aggregator, phase: 0x102, decimals: 8, round: null },
      requests: [`${AGGREGATOR} ${proxy} latest`, `eth_getStorageAt ${proxy} 0x2 latest`],
    })
  })

  it('returns null when the aggregator is missing and storage is refused', async () => {
    expect((await read({ [AGGREGATOR]: '0x' }, new UpstreamError('unknown_method', '-32601'))).result).toBeNull()
  })

  it.each<[string, string]>([
    ['a phase without an aggregator', word(2)],
    ['more than a phase', `0x01${'0'.repeat(18)}${bob.slice(2)}0002`],
  ])('returns null when storage holds %s', async (_, stored) => {
    expect((await read({ [AGGREGATOR]: refused }, stored)).result).toBeNull()
  })

  it.each([null, '0x2'])('fails when storage holds %j', async (stored) => {
    expect((await read({ [AGGREGATOR]: refused }, stored)).result).toMatchObject({ kind: 'unreadable' })
  })

  it('does not read storage after a temporary failure', async () => {
    const busy = new UpstreamError('busy', 'over rate limit')
    expect(await read({ [AGGREGATOR]: busy })).toEqual({ result: busy, requests: [`${AGGREGATOR} ${proxy} latest`] })
  })
})
