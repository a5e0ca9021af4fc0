import { BehaviorSubject, Subject, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type ContractAnswer, pollContracts } from '../../../../src/chain/contracts/call-poller.ts'
import type { BlockRef } from '../../../../src/chain/contracts/reads.ts'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { behindError } from '../fake-chain.ts'
import { apple, bob, tesla, timestampOf, word, words } from '../node-json.ts'
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
const HOUR_MS = 60 * MINUTE_MS

const defaultAnswers = { [UI_MULTIPLIER]: word(1), [EFFECTIVE_AT]: word(0), [PAUSED_FEATURES]: words(0x20, 0) }
const forbidden = new UpstreamError('forbidden', '-32601 rpc method is not whitelisted', null, true)
const answerOf = (address: Hex, block = 1_000) => ({
  type: 'token',
  address,
  block,
  multiplier: 1n,
  scheduled: null,
  paused: [],
})

/** An inquiry in virtual time, among contracts that answer as they are told. */
const openCallPoller = ({ tokens = [apple], feeds = [] }: { tokens?: readonly Hex[]; feeds?: readonly Hex[] } = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const contracts = new FakeContracts(clock)
  for (const token of [apple, tesla]) contracts.setAnswers(token, defaultAnswers)
  contracts.setAnswers(proxy, { [AGGREGATOR]: word(bob), [PHASE_ID]: word(2), [DECIMALS]: word(8) })
  const chain: { head: BlockRef | null } = { head: { number: 1_000, timestamp: timestampOf(1_000) } }
  const lists = { tokens: new BehaviorSubject(tokens), feeds: new BehaviorSubject(feeds) }
  const restart = new Subject<void>()
  const answers: ContractAnswer[] = []
  const warnings: string[] = []
  const failures: unknown[] = []
  const subscription = pollContracts({
    ...lists,
    request: contracts.request,
    head: () => chain.head,
    refresh: restart,
    clock,
    warn: (kind) => warnings.push(kind),
  }).subscribe({ next: (answer) => answers.push(answer), error: (failure) => failures.push(failure) })
  onTestFinished(() => subscription.unsubscribe())
  /** Lets time pass; what was asked and heard meanwhile. */
  const advance = (ms: number) => {
    const [answersBefore, requestsBefore] = [answers.length, contracts.requests.length]
    clock.maxFrames += ms
    clock.flush()
    clock.frame = clock.maxFrames
    return { answers: answers.slice(answersBefore), asked: contracts.requests.slice(requestsBefore) }
  }
  return { contracts, chain, lists, restart, warnings, failures, advance, close: () => subscription.unsubscribe() }
}

describe('a token', () => {
  it('is asked once, as soon as it is wanted', () => {
    const { advance, lists, warnings } = openCallPoller()
    expect(advance(0).answers).toEqual([answerOf(apple)])
    lists.tokens.next([apple, tesla])
    expect(advance(1_000).answers).toEqual([answerOf(tesla)])
    expect(advance(HOUR_MS)).toEqual({ answers: [], asked: [] })
    expect(warnings).toEqual([])
  })

  it('is asked as of the head, once there is one', () => {
    const { chain, advance } = openCallPoller()
    chain.head = null
    expect(advance(MINUTE_MS)).toEqual({ answers: [], asked: [] })
    chain.head = { number: 2_000, timestamp: 1 }
    expect(advance(1_000).answers).toEqual([answerOf(apple, 2_000)])
  })

  it('that is listed twice is asked once', () => {
    expect(openCallPoller({ tokens: [apple, apple] }).advance(0).answers).toHaveLength(1)
  })

  it('that is not wanted any more is not asked', () => {
    const { contracts, lists, advance } = openCallPoller({ tokens: [apple, tesla] })
    contracts.delayMs = 100
    advance(50)
    lists.tokens.next([apple])
    expect(advance(MINUTE_MS).answers).toEqual([answerOf(apple)])
  })

  it('is asked again when all are', () => {
    const { restart, chain, advance } = openCallPoller({ tokens: [apple, tesla] })
    advance(0)
    chain.head = { number: 1_001, timestamp: 1 }
    restart.next()
    expect(advance(1_000).answers).toEqual([answerOf(apple, 1_001), answerOf(tesla, 1_001)])
  })

  it('that is being asked when all are asked again is asked again', () => {
    const { restart, contracts, advance } = openCallPoller()
    contracts.delayMs = 300
    advance(500)
    restart.next()
    expect(advance(MINUTE_MS).answers).toEqual([answerOf(apple), answerOf(apple)])
  })

  it('that says nothing is asked again after a minute', () => {
    const { contracts, advance, warnings } = openCallPoller()
    contracts.setAnswers(apple, { [UI_MULTIPLIER]: '0x', [PAUSED_FEATURES]: '0x' })
    expect(advance(MINUTE_MS - 1).answers).toEqual([])
    contracts.setAnswers(apple, defaultAnswers)
    expect(advance(1_000).answers).toEqual([answerOf(apple)])
    expect(warnings).toEqual(['contract returns nothing'])
  })

  it('is asked after a while where it could not be asked, and nobody else before', () => {
    const { contracts, advance, warnings } = openCallPoller({ tokens: [apple, tesla] })
    contracts.failure = new UpstreamError('busy', 'over rate limit')
    expect(advance(9_999)).toEqual({ answers: [], asked: [`${UI_MULTIPLIER} ${apple} 0x3e8`] })
    contracts.failure = null
    expect(advance(1).answers).toEqual([answerOf(tesla), answerOf(apple)])
    expect(warnings).toEqual(['contract read failed'])
  })

  it('is left alone for as long as the upstream asks for', () => {
    const { contracts, advance } = openCallPoller()
    contracts.failure = new UpstreamError('busy', 'over rate limit', 30_000)
    advance(0)
    contracts.failure = null
    expect(advance(29_999).asked).toEqual([])
    expect(advance(1).answers).toEqual([answerOf(apple)])
  })

  it('that the node is behind for is asked later about the same block, and others are asked meanwhile', () => {
    const { chain, contracts, advance } = openCallPoller({ tokens: [apple, tesla] })
    contracts.setAnswers(apple, { [UI_MULTIPLIER]: behindError() })
    expect(advance(0).answers).toEqual([answerOf(tesla)])
    contracts.setAnswers(apple, defaultAnswers)
    chain.head = { number: 1_050, timestamp: 1 }
    expect(advance(10_000).answers).toEqual([answerOf(apple)])
  })

  it('that the node was behind for is asked about a newer block when all are asked again', () => {
    const { restart, chain, contracts, advance } = openCallPoller()
    contracts.setAnswers(apple, { [UI_MULTIPLIER]: behindError() })
    advance(0)
    contracts.setAnswers(apple, defaultAnswers)
    chain.head = { number: 1_050, timestamp: 1 }
    restart.next()
    expect(advance(1_000).answers).toEqual([answerOf(apple, 1_050)])
  })
})

describe('where contracts may not be asked', () => {
  it.each(['forbidden', 'unknown_method', 'invalid'] as const)(
    'since that is %s, nobody is asked for an hour',
    (kind) => {
      const { contracts, advance, warnings } = openCallPoller({ tokens: [apple, tesla] })
      contracts.failure = new UpstreamError(kind, 'no')
      expect(advance(HOUR_MS - 1).asked).toEqual([`${UI_MULTIPLIER} ${apple} 0x3e8`])
      expect(warnings).toEqual(['contract reads refused'])
      contracts.failure = null
      expect(advance(1_000).answers).toEqual([answerOf(tesla), answerOf(apple)])
    },
  )

  it('feeds are looked up', () => {
    const { contracts, advance, warnings } = openCallPoller({ feeds: [proxy] })
    contracts.failure = forbidden
    contracts.otherAnswers.set('eth_getStorageAt', `0x${'0'.repeat(20)}${bob.slice(2)}0007`)
    const told = { type: 'feed', proxy, aggregator: bob, phase: 7, decimals: 8, round: null }
    expect(advance(0).answers).toEqual([told])
    const later = advance(MINUTE_MS)
    expect(later.answers).toEqual([told])
    expect(later.asked).toEqual([`eth_getStorageAt ${proxy} 0x2 latest`])
    expect(warnings).toEqual(['contract reads refused'])
  })

  it('and nothing can be looked up either, that is tried once a minute', () => {
    const { contracts, advance, warnings } = openCallPoller({ feeds: [proxy] })
    contracts.failure = forbidden
    contracts.otherAnswers.set('eth_getStorageAt', new UpstreamError('unknown_method', 'no'))
    advance(0)
    expect(advance(5 * MINUTE_MS).asked).toHaveLength(5)
    expect(warnings.slice(0, 2)).toEqual(['contract reads refused', 'contract read failed'])
  })
})

describe('a feed', () => {
  it('is asked every minute, with a head or without', () => {
    const { chain, contracts, advance } = openCallPoller({ tokens: [], feeds: [proxy] })
    chain.head = null
    const told = { type: 'feed', proxy, aggregator: bob, phase: 2, decimals: 8, round: null }
    expect(advance(0).answers).toEqual([told])
    expect(advance(MINUTE_MS - 1).answers).toEqual([])
    contracts.setAnswers(proxy, { [LATEST_ROUND_DATA]: words((2n << 64n) | 5n, 6, 7, 8, 9) })
    expect(advance(1).answers).toEqual([{ ...told, round: { answer: 6n, round: 5n, updatedAt: 8n } }])
  })

  it('that is no feed is not heard, and asked again after a minute', () => {
    const { contracts, advance, warnings } = openCallPoller({ tokens: [], feeds: [proxy] })
    contracts.setAnswers(proxy, { [AGGREGATOR]: '0x' })
    expect(advance(MINUTE_MS - 1).answers).toEqual([])
    contracts.setAnswers(proxy, { [AGGREGATOR]: word(bob) })
    expect(advance(1).answers).toHaveLength(1)
    expect(warnings).toEqual(['contract returns nothing'])
  })

  it('is not asked again because the tokens are', () => {
    const { restart, advance } = openCallPoller({ tokens: [], feeds: [proxy] })
    advance(0)
    restart.next()
    expect(advance(10_000).asked).toEqual([])
  })
})

describe('an inquiry', () => {
  it('asks one question at a time', () => {
    const { restart, contracts, lists, advance } = openCallPoller({ tokens: [apple, tesla], feeds: [proxy] })
    contracts.delayMs = 700
    advance(100)
    restart.next()
    lists.tokens.next([tesla, apple, bob])
    advance(MINUTE_MS)
    expect(contracts.mostInFlight).toBe(1)
    expect(contracts.requests.length).toBeGreaterThan(10)
  })

  it('asks nobody any more once nobody listens', () => {
    const { close, advance } = openCallPoller({ feeds: [proxy] })
    close()
    expect(advance(HOUR_MS).asked).toEqual([])
  })

  it('ends with a bug of ours', () => {
    const { contracts, failures, advance } = openCallPoller()
    const bug = new TypeError('undefined is not a function')
    contracts.setAnswers(apple, { [UI_MULTIPLIER]: bug })
    advance(0)
    expect(failures).toEqual([bug])
  })
})
