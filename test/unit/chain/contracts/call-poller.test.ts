import { BehaviorSubject, Subject, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Answered, asked } from '../../../../src/chain/contracts/call-poller.ts'
import type { AsOf } from '../../../../src/chain/contracts/reads.ts'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { behind } from '../fake-chain.ts'
import { apple, bob, secondOf, tesla, word, words } from '../node-json.ts'
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

const stands = { [UI_MULTIPLIER]: word(1), [EFFECTIVE_AT]: word(0), [PAUSED_FEATURES]: words(0x20, 0) }
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
const inquire = ({ tokens = [apple], feeds = [] }: { tokens?: readonly Hex[]; feeds?: readonly Hex[] } = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const contracts = new FakeContracts(clock)
  for (const token of [apple, tesla]) contracts.says(token, stands)
  contracts.says(proxy, { [AGGREGATOR]: word(bob), [PHASE_ID]: word(2), [DECIMALS]: word(8) })
  const chain: { head: AsOf | null } = { head: { number: 1_000, timestamp: secondOf(1_000) } }
  const lists = { tokens: new BehaviorSubject(tokens), feeds: new BehaviorSubject(feeds) }
  const again = new Subject<void>()
  const heard: Answered[] = []
  const said: string[] = []
  const failures: unknown[] = []
  const listening = asked({
    ...lists,
    ask: contracts.ask,
    head: () => chain.head,
    again,
    clock,
    say: (kind) => said.push(kind),
  }).subscribe({ next: (answer) => heard.push(answer), error: (failure) => failures.push(failure) })
  onTestFinished(() => listening.unsubscribe())
  /** Lets time pass; what was asked and heard meanwhile. */
  const pass = (ms: number) => {
    const [heardBefore, askedBefore] = [heard.length, contracts.asked.length]
    clock.maxFrames += ms
    clock.flush()
    clock.frame = clock.maxFrames
    return { heard: heard.slice(heardBefore), asked: contracts.asked.slice(askedBefore) }
  }
  return { contracts, chain, lists, again, said, failures, pass, leave: () => listening.unsubscribe() }
}

describe('a token', () => {
  it('is asked once, as soon as it is wanted', () => {
    const { pass, lists, said } = inquire()
    expect(pass(0).heard).toEqual([answerOf(apple)])
    lists.tokens.next([apple, tesla])
    expect(pass(1_000).heard).toEqual([answerOf(tesla)])
    expect(pass(HOUR_MS)).toEqual({ heard: [], asked: [] })
    expect(said).toEqual([])
  })

  it('is asked as of the head, once there is one', () => {
    const { chain, pass } = inquire()
    chain.head = null
    expect(pass(MINUTE_MS)).toEqual({ heard: [], asked: [] })
    chain.head = { number: 2_000, timestamp: 1 }
    expect(pass(1_000).heard).toEqual([answerOf(apple, 2_000)])
  })

  it('that is listed twice is asked once', () => {
    expect(inquire({ tokens: [apple, apple] }).pass(0).heard).toHaveLength(1)
  })

  it('that is not wanted any more is not asked', () => {
    const { contracts, lists, pass } = inquire({ tokens: [apple, tesla] })
    contracts.delayMs = 100
    pass(50)
    lists.tokens.next([apple])
    expect(pass(MINUTE_MS).heard).toEqual([answerOf(apple)])
  })

  it('is asked again when all are', () => {
    const { again, chain, pass } = inquire({ tokens: [apple, tesla] })
    pass(0)
    chain.head = { number: 1_001, timestamp: 1 }
    again.next()
    expect(pass(1_000).heard).toEqual([answerOf(apple, 1_001), answerOf(tesla, 1_001)])
  })

  it('that is being asked when all are asked again is asked again', () => {
    const { again, contracts, pass } = inquire()
    contracts.delayMs = 300
    pass(500)
    again.next()
    expect(pass(MINUTE_MS).heard).toEqual([answerOf(apple), answerOf(apple)])
  })

  it('that says nothing is asked again after a minute', () => {
    const { contracts, pass, said } = inquire()
    contracts.says(apple, { [UI_MULTIPLIER]: '0x', [PAUSED_FEATURES]: '0x' })
    expect(pass(MINUTE_MS - 1).heard).toEqual([])
    contracts.says(apple, stands)
    expect(pass(1_000).heard).toEqual([answerOf(apple)])
    expect(said).toEqual(['contract says nothing'])
  })

  it('is asked after a while where it could not be asked, and nobody else before', () => {
    const { contracts, pass, said } = inquire({ tokens: [apple, tesla] })
    contracts.trouble = new UpstreamError('busy', 'over rate limit')
    expect(pass(9_999)).toEqual({ heard: [], asked: [`${UI_MULTIPLIER} ${apple} 0x3e8`] })
    contracts.trouble = null
    expect(pass(1).heard).toEqual([answerOf(tesla), answerOf(apple)])
    expect(said).toEqual(['contract not asked'])
  })

  it('is left alone for as long as the upstream asks for', () => {
    const { contracts, pass } = inquire()
    contracts.trouble = new UpstreamError('busy', 'over rate limit', 30_000)
    pass(0)
    contracts.trouble = null
    expect(pass(29_999).asked).toEqual([])
    expect(pass(1).heard).toEqual([answerOf(apple)])
  })

  it('that the node is behind for is asked later about the same block, and others are asked meanwhile', () => {
    const { chain, contracts, pass } = inquire({ tokens: [apple, tesla] })
    contracts.says(apple, { [UI_MULTIPLIER]: behind() })
    expect(pass(0).heard).toEqual([answerOf(tesla)])
    contracts.says(apple, stands)
    chain.head = { number: 1_050, timestamp: 1 }
    expect(pass(10_000).heard).toEqual([answerOf(apple)])
  })

  it('that the node was behind for is asked about a newer block when all are asked again', () => {
    const { again, chain, contracts, pass } = inquire()
    contracts.says(apple, { [UI_MULTIPLIER]: behind() })
    pass(0)
    contracts.says(apple, stands)
    chain.head = { number: 1_050, timestamp: 1 }
    again.next()
    expect(pass(1_000).heard).toEqual([answerOf(apple, 1_050)])
  })
})

describe('where contracts may not be asked', () => {
  it.each(['forbidden', 'unknown_method', 'invalid'] as const)(
    'since that is %s, nobody is asked for an hour',
    (kind) => {
      const { contracts, pass, said } = inquire({ tokens: [apple, tesla] })
      contracts.trouble = new UpstreamError(kind, 'no')
      expect(pass(HOUR_MS - 1).asked).toEqual([`${UI_MULTIPLIER} ${apple} 0x3e8`])
      expect(said).toEqual(['contracts cannot be asked'])
      contracts.trouble = null
      expect(pass(1_000).heard).toEqual([answerOf(tesla), answerOf(apple)])
    },
  )

  it('feeds are looked up', () => {
    const { contracts, pass, said } = inquire({ feeds: [proxy] })
    contracts.trouble = forbidden
    contracts.besides.set('eth_getStorageAt', `0x${'0'.repeat(20)}${bob.slice(2)}0007`)
    const told = { type: 'feed', proxy, aggregator: bob, phase: 7, decimals: 8, round: null }
    expect(pass(0).heard).toEqual([told])
    const later = pass(MINUTE_MS)
    expect(later.heard).toEqual([told])
    expect(later.asked).toEqual([`eth_getStorageAt ${proxy} 0x2 latest`])
    expect(said).toEqual(['contracts cannot be asked'])
  })

  it('and nothing can be looked up either, that is tried once a minute', () => {
    const { contracts, pass, said } = inquire({ feeds: [proxy] })
    contracts.trouble = forbidden
    contracts.besides.set('eth_getStorageAt', new UpstreamError('unknown_method', 'no'))
    pass(0)
    expect(pass(5 * MINUTE_MS).asked).toHaveLength(5)
    expect(said.slice(0, 2)).toEqual(['contracts cannot be asked', 'contract not asked'])
  })
})

describe('a feed', () => {
  it('is asked every minute, with a head or without', () => {
    const { chain, contracts, pass } = inquire({ tokens: [], feeds: [proxy] })
    chain.head = null
    const told = { type: 'feed', proxy, aggregator: bob, phase: 2, decimals: 8, round: null }
    expect(pass(0).heard).toEqual([told])
    expect(pass(MINUTE_MS - 1).heard).toEqual([])
    contracts.says(proxy, { [LATEST_ROUND_DATA]: words((2n << 64n) | 5n, 6, 7, 8, 9) })
    expect(pass(1).heard).toEqual([{ ...told, round: { answer: 6n, round: 5n, updatedAt: 8n } }])
  })

  it('that is no feed is not heard, and asked again after a minute', () => {
    const { contracts, pass, said } = inquire({ tokens: [], feeds: [proxy] })
    contracts.says(proxy, { [AGGREGATOR]: '0x' })
    expect(pass(MINUTE_MS - 1).heard).toEqual([])
    contracts.says(proxy, { [AGGREGATOR]: word(bob) })
    expect(pass(1).heard).toHaveLength(1)
    expect(said).toEqual(['contract says nothing'])
  })

  it('is not asked again because the tokens are', () => {
    const { again, pass } = inquire({ tokens: [], feeds: [proxy] })
    pass(0)
    again.next()
    expect(pass(10_000).asked).toEqual([])
  })
})

describe('an inquiry', () => {
  it('asks one question at a time', () => {
    const { again, contracts, lists, pass } = inquire({ tokens: [apple, tesla], feeds: [proxy] })
    contracts.delayMs = 700
    pass(100)
    again.next()
    lists.tokens.next([tesla, apple, bob])
    pass(MINUTE_MS)
    expect(contracts.mostInFlight).toBe(1)
    expect(contracts.asked.length).toBeGreaterThan(10)
  })

  it('asks nobody any more once nobody listens', () => {
    const { leave, pass } = inquire({ feeds: [proxy] })
    leave()
    expect(pass(HOUR_MS).asked).toEqual([])
  })

  it('ends with a bug of ours', () => {
    const { contracts, failures, pass } = inquire()
    const bug = new TypeError('undefined is not a function')
    contracts.says(apple, { [UI_MULTIPLIER]: bug })
    pass(0)
    expect(failures).toEqual([bug])
  })
})
