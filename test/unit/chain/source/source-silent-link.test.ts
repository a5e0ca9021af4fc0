import { BehaviorSubject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { apple, keyOf, pendingLog, tesla } from '../node-json.ts'
import { down, feed, HEAD, live, MINUTE_MS, POLL_MS, push } from './source-fixture.ts'

/** One whose link pushes since the head was told; the node shows nothing pending, so only what is pushed speaks. */
const pushing = (pending: 'null' | 'shown' | 'latest' = 'null') => {
  const opened = feed()
  opened.chain.pending = pending
  opened.signal(live(), opened.head())
  opened.pass(POLL_MS)
  return opened
}
const silent = { announced: false }

describe('a subscription that was accepted and never delivers', () => {
  it('is found silent by three sealed logs of two blocks, and what is pre-confirmed is asked for from then on', () => {
    const { chain, pass, seal, statuses, told } = pushing('shown')
    seal(2, silent)
    expect(statuses()).toEqual(['pendingLogs ok'])
    seal(1, silent)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
    const log = chain.put(chain.head + 1)
    pass(POLL_MS)
    expect(told()).toEqual([`${keyOf(log)} poll`])
  })

  it('is found silent by three logs of a single block, ten seconds later', () => {
    const { pass, seal, statuses } = pushing('shown')
    seal(3, silent)
    pass(9_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
    pass(1_500)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
  })

  it('is found silent where its node shows nothing to ask for either', () => {
    const { seal, statuses } = pushing('null')
    for (let block = 0; block < 15; block += 1) seal(1, silent)
    expect(statuses()).toEqual(['pendingLogs ok', 'sealed no_pending'])
  })

  it('is found out with no log at all where the latest block is shown again and again as what is pending', () => {
    const { pass, seal, statuses, sealed } = pushing('latest')
    pass(3_000)
    expect(statuses()).toEqual(['pendingLogs ok', 'sealed no_pending'])
    seal(1, silent)
    expect(sealed().map(({ logs }) => logs.length)).toEqual([1])
  })

  it('is not believed again because it is accepted again', () => {
    const { pass, seal, signal, statuses } = pushing('shown')
    for (const logs of [2, 2]) seal(logs, silent)
    signal(live())
    pass(1_000)
    signal(down)
    pass(1_000)
    signal(live())
    pass(1_000)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent', 'poll unreachable', 'poll silent'])
  })

  it('is believed again when it delivers in time', () => {
    const { chain, pass, seal, signal, statuses } = pushing('shown')
    for (const logs of [2, 2]) seal(logs, silent)
    signal(push(pendingLog({ block: chain.head - 5 })))
    expect(statuses().at(-1)).toBe('poll silent')
    signal(push(pendingLog({ block: chain.head + 1 })))
    pass(250)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent', 'pendingLogs ok'])
  })

  it('is tried again every minute', () => {
    const { pass, seal, probed, clock } = pushing('shown')
    pass(MINUTE_MS)
    expect(probed).toEqual([])
    for (const logs of [2, 2]) seal(logs, silent)
    const since = clock.now()
    pass(3 * MINUTE_MS)
    expect(probed).toHaveLength(4)
    expect(probed[0]).toBeLessThanOrEqual(since)
    expect((probed[3] ?? 0) - (probed[0] ?? 0)).toBe(3 * MINUTE_MS)
  })

  it('is not tried again while it is lost, nor once it delivers', () => {
    const { chain, pass, seal, signal, probed } = pushing('shown')
    for (const logs of [2, 2]) seal(logs, silent)
    pass(POLL_MS)
    signal(down)
    pass(3 * MINUTE_MS)
    expect(probed).toHaveLength(1)
    signal(live(), push(pendingLog({ block: chain.head + 1 })))
    pass(3 * MINUTE_MS)
    expect(probed).toHaveLength(1)
  })
})

describe('a stream that is behind', () => {
  it('is found out by what it pushes, and what is pre-confirmed is asked for', () => {
    const { chain, pass, seal, signal, statuses } = pushing('shown')
    for (let block = 0; block < 3; block += 1) {
      signal(push(pendingLog({ block: chain.head - 450 + block })))
      seal(2, silent)
    }
    pass(250)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll behind'])
  })

  it('is not one whose logs come while their block is being sealed', () => {
    const { chain, seal, signal, statuses } = pushing('shown')
    for (let block = 0; block < 20; block += 1) {
      seal(2, { announced: block % 2 === 0 })
      signal(push(pendingLog({ block: chain.head - 1 })))
    }
    expect(statuses()).toEqual(['pendingLogs ok'])
  })
})

describe('a quiet market', () => {
  it('is never taken for a dead stream', () => {
    const { pass, seal, statuses, probed } = pushing('null')
    for (let block = 0; block < 300; block += 1) {
      seal(0)
      pass(1_800)
    }
    expect(statuses()).toEqual(['pendingLogs ok'])
    expect(probed).toEqual([])
  })

  it('with a log now and then is never taken for a dead stream while each is announced', () => {
    const { pass, seal, statuses } = pushing('null')
    for (let block = 0; block < 50; block += 1) {
      seal(block % 7 === 0 ? 1 : 0)
      pass(5_000)
    }
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('of which a single log is lost now and then is not silent', () => {
    const { seal, statuses } = pushing('null')
    for (let block = 0; block < 50; block += 1) seal(1, { announced: block % 3 === 2 })
    expect(statuses()).toEqual(['pendingLogs ok'])
  })
})

describe('what proves nothing against a stream', () => {
  it('was in the block that was being built when it began', () => {
    const { chain, signal, head, seal, statuses, pass } = feed()
    chain.pending = 'null'
    signal(head())
    for (let log = 0; log < 5; log += 1) chain.put(HEAD + 1)
    signal(live())
    seal(0)
    pass(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('was sealed right before it began, though no head had told of it yet', () => {
    const { chain, signal, pass, statuses } = feed()
    pass(0)
    for (const block of [HEAD + 1, HEAD + 1, HEAD + 2, HEAD + 2]) chain.put(block)
    chain.head = HEAD + 2
    signal(live())
    pass(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('is of tokens that it was asked for only now', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, signal, head, pass, statuses } = feed({ addresses })
    signal(live(), head())
    pass(POLL_MS)
    addresses.next([apple, tesla])
    for (const block of [HEAD + 1, HEAD + 2]) {
      for (let log = 0; log < 2; log += 1) chain.put(block, tesla)
      chain.head = block
      signal(head())
    }
    signal(live([apple, tesla]))
    pass(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('was sealed while nobody looked', () => {
    const { chain, signal, head, pass, statuses } = feed({ cursor: { number: HEAD - 50, hash: null } })
    for (let block = HEAD - 40; block <= HEAD; block += 1) chain.put(block)
    signal(live(), head())
    pass(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('is settled anew after a reorganisation', () => {
    const { chain, pass, seal, signal, head, statuses } = pushing('null')
    for (let block = 0; block < 5; block += 1) seal(2)
    const first = chain.reorganise(4)
    for (let block = first; block <= chain.head; block += 1) chain.put(block)
    signal(head())
    pass(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('is the word of a stream for what nobody asked it for', () => {
    const { chain, seal, signal, statuses } = pushing('shown')
    for (let block = 0; block < 3; block += 1) {
      signal(push(pendingLog({ block: chain.head + 1, address: tesla })))
      seal(2, silent)
    }
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
  })
})
