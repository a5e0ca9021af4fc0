import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { type ContractAnswer, ContractPoller } from '../../../../../src/relay/chain/contracts/contract-poller.ts'
import type { BlockRef } from '../../../../../src/relay/chain/contracts/token-contract.ts'
import type { RequestBatchFn } from '../../../../../src/relay/chain/rpc/endpoint-pool.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { advanceClock } from '../../../../support/virtual-time.ts'
import { behindError } from '../fake-chain.ts'
import { apple, blockHash, bob, header, tesla, word, words } from '../node-json.ts'
import {
  AGGREGATOR,
  DECIMALS,
  EFFECTIVE_AT,
  FakeContracts,
  LATEST_ROUND_DATA,
  PAUSED_FEATURES,
  PHASE_ID,
  UI_MULTIPLIER,
} from './fake-contracts.ts'

const proxy: Hex = `0x${'fe'.repeat(20)}`
const MINUTE_MS = 60_000
const REFRESH_MS = 15_000
const HOUR_MS = 60 * MINUTE_MS

const defaultAnswers = { [UI_MULTIPLIER]: word(1), [EFFECTIVE_AT]: word(0), [PAUSED_FEATURES]: words(0x20, 0) }
const forbidden = new UpstreamError('forbidden', '-32601 rpc method is not whitelisted', null, true)
const answerOf = (address: Hex, block = 1_000) => ({ type: 'token', address, block, multiplier: 1n, scheduled: null, paused: [] })

/** A poller in virtual time, with scripted contracts. */
const openCallPoller = ({
  tokens = [apple],
  feeds = [],
  registry,
}: Partial<Record<'tokens' | 'feeds', Hex[]>> & { registry?: Hex } = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const contracts = new FakeContracts(clock)
  for (const token of [apple, tesla]) contracts.setAnswers(token, defaultAnswers)
  contracts.setAnswers(proxy, { [AGGREGATOR]: word(bob), [PHASE_ID]: word(2), [DECIMALS]: word(8) })
  contracts.otherAnswers.set('eth_getBlockByNumber', header(1_000))
  const chain: { head: BlockRef | null } = { head: { number: 1_000, hash: blockHash(1_000) } }
  const answers: ContractAnswer[] = []
  const warnings: string[] = []
  const failures: unknown[] = []
  const batchSizes: number[] = []
  const requestBatch: RequestBatchFn = (batch, signal) => {
    batchSizes.push(batch.length)
    return Promise.all(
      batch.map(({ method, params }) =>
        contracts.request(method, params, signal).then(
          (result) => ({ ok: true, result }) as const,
          (error: UpstreamError) => ({ ok: false, error }) as const,
        ),
      ),
    )
  }
  const poller = new ContractPoller({
    request: contracts.request,
    requestBatch,
    feeds,
    registry: registry ? { address: registry, stocksRefreshMs: REFRESH_MS } : null,
    head: () => chain.head,
    clock,
    log: (kind) => warnings.push(kind),
  })
  poller.setTokens(tokens)
  const subscription = poller
    .answers()
    .subscribe({ next: (answer) => answers.push(answer), error: (failure) => failures.push(failure) })
  onTestFinished(() => subscription.unsubscribe())
  /** Lets time pass, and returns the answers and requests of that time. */
  const advance = async (ms: number) => {
    const [answersBefore, requestsBefore] = [answers.length, contracts.requests.length]
    await advanceClock(clock, ms)
    return { answers: answers.slice(answersBefore), requests: contracts.requests.slice(requestsBefore) }
  }
  /** Reads everything at a block before it is settled. Returns the answers. */
  const readAt = async (block: BlockRef) => {
    chain.head = null
    let isDone = false
    const answersBefore = answers.length
    const read = poller.readAt(block, new AbortController().signal).finally(() => {
      isDone = true
    })
    while (!isDone) await advance(0)
    await read
    return answers.slice(answersBefore)
  }
  return { contracts, chain, poller, warnings, failures, advance, readAt, batchSizes }
}

/** The request for the block as of which the contracts are read. */
const HEADER = 'eth_getBlockByNumber 0x3e8 false'

describe('a token of the contract poller', () => {
  it('is read once, as soon as it is listed', async () => {
    const { advance, poller, warnings } = openCallPoller()
    expect((await advance(0)).answers).toEqual([answerOf(apple)])
    poller.setTokens([apple, tesla])
    expect((await advance(1_000)).answers).toEqual([answerOf(tesla)])
    expect(await advance(HOUR_MS)).toEqual({ answers: [], requests: [] })
    expect(warnings).toEqual([])
  })

  it('is read at the head, once there is one', async () => {
    const { chain, advance } = openCallPoller()
    chain.head = null
    expect(await advance(MINUTE_MS)).toEqual({ answers: [], requests: [] })
    chain.head = { number: 2_000, hash: null }
    expect((await advance(1_000)).answers).toEqual([answerOf(apple, 2_000)])
  })

  it('that is no longer listed is not read', async () => {
    const { contracts, poller, advance } = openCallPoller({ tokens: [apple, tesla] })
    contracts.delayMs = 100
    await advance(50)
    poller.setTokens([apple])
    expect((await advance(MINUTE_MS)).answers).toEqual([answerOf(apple)])
  })

  it('is read again only if a refresh begins at its block or before', async () => {
    const { poller, chain, advance } = openCallPoller()
    await advance(0)
    chain.head = { number: 1_001, hash: null }
    poller.setTokens([apple, tesla])
    await advance(1_000)
    poller.refreshTokens(1_002)
    expect(await advance(1_000)).toEqual({ answers: [], requests: [] })
    poller.refreshTokens(1_001)
    expect((await advance(1_000)).answers).toEqual([answerOf(tesla, 1_001)])
    poller.refreshTokens(1_000)
    expect((await advance(1_000)).answers).toEqual([answerOf(apple, 1_001), answerOf(tesla, 1_001)])
  })

  it('is only read again if a refresh comes during the read', async () => {
    const { poller, contracts, chain, advance } = openCallPoller()
    contracts.delayMs = 300
    await advance(500)
    chain.head = { number: 900, hash: null }
    poller.refreshTokens(0)
    expect((await advance(MINUTE_MS)).answers).toEqual([answerOf(apple, 900)])
  })

  it('that returns nothing is read again after a minute', async () => {
    const { contracts, advance, warnings } = openCallPoller()
    contracts.setAnswers(apple, { [UI_MULTIPLIER]: '0x', [PAUSED_FEATURES]: '0x' })
    expect((await advance(MINUTE_MS - 1)).answers).toEqual([])
    contracts.setAnswers(apple, defaultAnswers)
    expect((await advance(1_000)).answers).toEqual([answerOf(apple)])
    expect(warnings).toEqual(['contract_empty'])
  })

  it('is read again some time after a failure, and no other token before', async () => {
    const { contracts, advance, warnings } = openCallPoller({ tokens: [apple, tesla] })
    contracts.failure = new UpstreamError('busy', 'over rate limit')
    expect(await advance(9_999)).toEqual({ answers: [], requests: [HEADER, `${UI_MULTIPLIER} ${apple} 0x3e8`] })
    contracts.failure = null
    expect((await advance(1)).answers).toEqual([answerOf(tesla), answerOf(apple)])
    expect(warnings).toEqual(['contract_failed'])
  })

  it('is not read before the Retry-After of the upstream', async () => {
    const { contracts, advance } = openCallPoller()
    contracts.failure = new UpstreamError('busy', 'over rate limit', 30_000)
    await advance(0)
    contracts.failure = null
    expect((await advance(29_999)).requests).toEqual([])
    expect((await advance(1)).answers).toEqual([answerOf(apple)])
  })

  it('is read later at the same block when the node lags behind, while others are read', async () => {
    const { chain, contracts, advance } = openCallPoller({ tokens: [apple, tesla] })
    contracts.setAnswers(apple, { [UI_MULTIPLIER]: behindError() })
    expect((await advance(0)).answers).toEqual([answerOf(tesla)])
    contracts.setAnswers(apple, defaultAnswers)
    chain.head = { number: 1_050, hash: null }
    expect((await advance(10_000)).answers).toEqual([answerOf(apple)])
  })
})

describe('the answer of a token that the contract poller read from another block than the settled one', () => {
  const replaced = header(1_001)
  const settled: BlockRef = { number: 1_001, hash: blockHash(7) }

  it('does not count, and it is read again after some time where no reorg is found', async () => {
    const { chain, contracts, advance, warnings } = openCallPoller()
    chain.head = settled
    contracts.otherAnswers.set('eth_getBlockByNumber', replaced)
    expect((await advance(9_999)).answers).toEqual([])
    contracts.otherAnswers.set('eth_getBlockByNumber', { ...replaced, hash: settled.hash })
    expect((await advance(1)).answers).toEqual([answerOf(apple, 1_001)])
    expect(warnings).toEqual(['contract_of_another_block'])
  })
})

describe('the contract poller of a node that refuses calls', () => {
  it.each(['forbidden', 'unknown_method', 'invalid'] as const)('sends no call for an hour after %s', async (kind) => {
    const { contracts, advance, warnings } = openCallPoller({ tokens: [apple, tesla] })
    contracts.failure = new UpstreamError(kind, 'no')
    expect((await advance(HOUR_MS - 1)).requests).toEqual([HEADER, `${UI_MULTIPLIER} ${apple} 0x3e8`])
    expect(warnings).toEqual(['contracts_refused'])
    contracts.failure = null
    expect((await advance(1_000)).answers).toEqual([answerOf(tesla), answerOf(apple)])
  })

  it('reads feeds from storage', async () => {
    const { contracts, advance, warnings } = openCallPoller({ feeds: [proxy] })
    contracts.failure = forbidden
    contracts.otherAnswers.set('eth_getStorageAt', `0x${'0'.repeat(20)}${bob.slice(2)}0007`)
    const answers = [{ type: 'feed', proxy, aggregator: bob, phase: 7, decimals: 8, round: null }]
    expect((await advance(0)).answers).toEqual(answers)
    expect(await advance(MINUTE_MS)).toEqual({ answers, requests: [`eth_getStorageAt ${proxy} 0x2 latest`] })
    expect(warnings).toEqual(['contracts_refused'])
  })

  it('retries once a minute when storage is refused too', async () => {
    const { contracts, advance, warnings } = openCallPoller({ feeds: [proxy] })
    contracts.failure = forbidden
    contracts.otherAnswers.set('eth_getStorageAt', new UpstreamError('unknown_method', 'no'))
    await advance(0)
    expect((await advance(5 * MINUTE_MS)).requests).toHaveLength(5)
    expect(warnings.slice(0, 2)).toEqual(['contracts_refused', 'contract_failed'])
  })
})

describe('a feed of the contract poller', () => {
  it('is read every minute, with or without a head', async () => {
    const { chain, contracts, advance } = openCallPoller({ tokens: [], feeds: [proxy] })
    chain.head = null
    const feedAnswer = { type: 'feed', proxy, aggregator: bob, phase: 2, decimals: 8, round: null }
    expect((await advance(0)).answers).toEqual([feedAnswer])
    expect((await advance(MINUTE_MS - 1)).answers).toEqual([])
    contracts.setAnswers(proxy, { [LATEST_ROUND_DATA]: words((2n << 64n) | 5n, 6, 7, 8, 9) })
    expect((await advance(1)).answers).toEqual([{ ...feedAnswer, round: { answer: 6n, round: 5n, updatedAt: 8n } }])
  })
})

describe('the contract poller', () => {
  it('sends one request at a time', async () => {
    const { poller, contracts, advance } = openCallPoller({ tokens: [apple, tesla], feeds: [proxy] })
    contracts.delayMs = 700
    await advance(100)
    poller.refreshTokens(0)
    poller.setTokens([tesla, apple, bob])
    await advance(MINUTE_MS)
    expect(contracts.mostInFlight).toBe(1)
    expect(contracts.requests.length).toBeGreaterThan(10)
  })

  it('passes on an error of our own', async () => {
    const { contracts, failures, advance } = openCallPoller()
    const bug = new TypeError('undefined is not a function')
    contracts.setAnswers(apple, { [UI_MULTIPLIER]: bug })
    await advance(0)
    expect(failures).toEqual([bug])
  })
})

describe('the registry of the oracle', () => {
  const registry: Hex = `0x${'0c'.repeat(20)}`
  const call = (token: Hex) => `0xd4197e82${token.slice(2).padStart(64, '0')}`
  const frozenOf = (answers: readonly ContractAnswer[]) =>
    answers.flatMap((answer) => (answer.type === 'oracle' ? [{ [answer.address]: answer.frozen }] : []))

  it('is asked for every token, again and again', async () => {
    const { contracts, advance } = openCallPoller({ tokens: [apple, tesla], registry })
    contracts.setAnswers(registry, { [call(apple)]: words(1, 0), [call(tesla)]: words(1, 1) })
    expect(frozenOf((await advance(0)).answers)).toEqual([{ [apple]: false }, { [tesla]: true }])
    contracts.setAnswers(registry, { [call(apple)]: words(1, 1) })
    expect(frozenOf((await advance(REFRESH_MS)).answers)).toEqual([{ [apple]: true }, { [tesla]: true }])
  })

  it.each([
    ['answers another form', word(1)],
    ['answers something else than a bool', words(1, 2)],
  ])('says nothing where it %s', async (_, answer) => {
    const { contracts, advance } = openCallPoller({ registry })
    contracts.setAnswers(registry, { [call(apple)]: answer })
    expect(frozenOf((await advance(0)).answers)).toEqual([{ [apple]: null }])
  })

  it('says nothing any more once it failed for a minute', async () => {
    const { contracts, advance } = openCallPoller({ registry })
    contracts.setAnswers(registry, { [call(apple)]: words(1, 1) })
    await advance(0)
    contracts.failure = new UpstreamError('unreachable', 'HTTP 502', null, true)
    expect(frozenOf((await advance(MINUTE_MS - 1_000)).answers)).toEqual([])
    expect(frozenOf((await advance(REFRESH_MS)).answers)).toContainEqual({ [apple]: null })
  })

  it.each([
    ['fails', new UpstreamError('unknown', '-32000 something', null, true)],
    ['is refused', forbidden],
  ])('that %s holds back no token', async (_, failure) => {
    const { contracts, advance, poller } = openCallPoller({ tokens: [apple], registry })
    contracts.setAnswers(registry, { [call(apple)]: failure, [call(tesla)]: failure })
    expect((await advance(0)).answers).toEqual([answerOf(apple)])
    poller.setTokens([apple, tesla])
    expect((await advance(2_000)).answers).toEqual([answerOf(tesla)])
  })
})

describe('what a block left behind', () => {
  const past = { number: 1_000, hash: blockHash(1_000) }

  it('is read of all tokens and feeds together, at that block', async () => {
    const { contracts, readAt, batchSizes } = openCallPoller({ tokens: [apple, tesla], feeds: [proxy] })
    contracts.setAnswers(proxy, { [LATEST_ROUND_DATA]: words((2n << 64n) | 7n, 100, 50, 60, (2n << 64n) | 7n) })
    const answers = await readAt(past)
    const feed = { type: 'feed', proxy, aggregator: bob, phase: 2, decimals: 8, round: { answer: 100n, round: 7n, updatedAt: 60n } }
    expect(answers).toEqual(expect.arrayContaining([answerOf(apple), answerOf(tesla), feed]))
    expect(batchSizes[0]).toBe(3)
    expect(contracts.requests.filter((request) => request.startsWith(LATEST_ROUND_DATA))).toContain(
      `${LATEST_ROUND_DATA} ${proxy} 0x3e8`,
    )
  })

  it('omits a contract that fails, and is given up where the node has nothing of the block', async () => {
    const opened = openCallPoller({ tokens: [apple, tesla] })
    opened.contracts.setAnswers(apple, { [EFFECTIVE_AT]: new UpstreamError('gone', 'missing trie node') })
    expect(await opened.readAt(past)).toEqual([answerOf(tesla)])
    opened.contracts.failure = forbidden
    expect(await opened.readAt(past)).toEqual([])
  })
})
