import { describe, expect, it } from 'vitest'
import type { Signal } from '../../../../src/chain/link/socket.ts'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { apple, keyOf, pendingLog, word } from '../node-json.ts'
import { down, feed, HEAD, live, MINUTE_MS, POLL_MS, push, SILENCE_MS } from './source-fixture.ts'

const unreachable = new UpstreamError('unreachable', 'ECONNREFUSED')

/** One whose link pushes since the head was told. */
const pushing = () => {
  const opened = feed()
  opened.signal(live(), opened.head())
  opened.pass(POLL_MS)
  return opened
}
const numbers = (sealed: readonly { readonly number: number }[]) => sealed.map(({ number }) => number - HEAD)

describe('a link that is lost', () => {
  it('gives way to polling at once, from the newest head on', () => {
    const { chain, pass, signal, seal, told, statuses } = pushing()
    seal(0)
    signal(down)
    const log = chain.put(HEAD + 2)
    pass(POLL_MS)
    expect(chain.ranges().at(-1)).toEqual([HEAD + 1, 'pending'])
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable'])
  })

  it('again and again never interrupts the polling that stands in', () => {
    const { chain, pass, signal, told } = feed()
    pass(0)
    chain.delayMs = 60
    const log = chain.put(HEAD + 1)
    // Were polling begun anew each time, no question would ever be answered.
    for (let times = 0; times < 20; times += 1) {
      pass(50)
      signal(down)
    }
    expect(told()).toContain(`${keyOf(log)} poll`)
  })

  it('and cannot be opened leaves polling to be the source', () => {
    const { pass, signal, statuses } = feed()
    pass(0)
    signal(down)
    pass(POLL_MS * 2)
    expect(statuses()).toEqual(['poll unreachable'])
  })

  it('with the rest of the upstream is down when the silence is too long', () => {
    const { chain, pass, signal, statuses } = pushing()
    chain.trouble = unreachable
    signal(down)
    pass(SILENCE_MS)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable'])
    pass(500)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable', 'down unreachable'])
  })

  it('comes back as the source, and what was sealed meanwhile is told', () => {
    const { chain, pass, signal, head, statuses, sealed, seal } = pushing()
    signal(down)
    chain.trouble = unreachable
    pass(10_000)
    const logs = [chain.put(HEAD + 1), chain.put(HEAD + 3)]
    chain.head = HEAD + 4
    chain.trouble = null
    signal(live(), head())
    pass(2_000)
    seal(1)
    expect(statuses().slice(2)).toEqual(['down unreachable', 'pendingLogs unreachable', 'pendingLogs ok'])
    expect(numbers(sealed())).toEqual([1, 2, 3, 4, 5])
    expect(
      sealed()
        .slice(0, 4)
        .flatMap((block) => block.logs.map(({ key }) => key)),
    ).toEqual(logs.map(keyOf))
    expect(sealed().map(({ via }) => via)).toEqual([...Array(4).fill('backfill'), 'sealed'])
  })
})

describe('a node that cannot be asked while the link pushes', () => {
  it('keeps nobody from hearing, is said to be unreachable, and settles all when it is back', () => {
    const { chain, pass, seal, statuses, sealed, told } = pushing()
    chain.trouble = unreachable
    for (let block = 0; block < 40; block += 1) seal(1)
    expect(told()).toHaveLength(40)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs unreachable'])
    expect(sealed()).toEqual([])
    chain.trouble = null
    pass(5_000)
    expect(numbers(sealed())).toEqual(Array.from({ length: 40 }, (_, index) => index + 1))
    expect(sealed().every(({ logs }) => logs.length === 1)).toBe(true)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs unreachable', 'pendingLogs ok'])
  })

  it('from the beginning on lets what is pushed begin all the same', () => {
    const { chain, signal, head, statuses, told } = feed()
    chain.trouble = unreachable
    signal(live(), head(), push(pendingLog({ block: HEAD + 1 })))
    expect(statuses()).toEqual(['pendingLogs ok'])
    expect(told()).toEqual([`${keyOf({ block: HEAD + 1 })} pendingLogs`])
  })
})

describe('heads', () => {
  it('that are pushed no more are asked for within the silence, and then with every poll', () => {
    const { chain, pass, seal, sealed, statuses } = pushing()
    seal(1)
    chain.head += 1
    pass(SILENCE_MS + POLL_MS)
    expect(numbers(sealed())).toEqual([1, 2])
    for (let block = 0; block < 5; block += 1) {
      chain.head += 1
      pass(SILENCE_MS + POLL_MS)
    }
    chain.head += 1
    pass(POLL_MS)
    expect(numbers(sealed())).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('that were never pushed are asked for with every poll', () => {
    const { chain, pass, signal, sealed } = feed()
    signal(live())
    pass(POLL_MS)
    for (let block = 0; block < 10; block += 1) {
      chain.head += 1
      pass(POLL_MS)
    }
    pass(POLL_MS)
    expect(numbers(sealed())).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })

  it('that are pushed by a node that is behind are asked for within the silence', () => {
    const { chain, pass, signal, head, sealed } = pushing()
    for (let block = 0; block < 40; block += 1) {
      chain.head += 1
      signal(head(chain.head - 20))
      pass(POLL_MS)
    }
    // By then its own heads tell of no more than the first 20.
    expect(numbers(sealed()).at(-1)).toBeGreaterThanOrEqual(40 - SILENCE_MS / POLL_MS)
  })

  it('that rest for half a minute are said to be stale, once, and nothing else changes', () => {
    const { pass, seal, statuses } = pushing()
    pass(29_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
    pass(MINUTE_MS)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs stale_head'])
    seal(1)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs stale_head', 'pendingLogs ok'])
  })

  it('are told as they rise, each once', () => {
    const { chain, signal, head, seal, all } = pushing()
    seal(0)
    seal(0)
    signal(head(HEAD + 1), head(chain.head))
    expect(all('head').flatMap(({ sealed }) => sealed ?? [])).toEqual([HEAD, HEAD + 1, HEAD + 2])
  })
})

describe('a node that refuses every subscription', () => {
  const refusing: Signal = { type: 'down', reason: 'logs refused: method not found', refused: true }

  it('is polled and says so, until it cannot even be reached, or can be listened to again', () => {
    const { pass, signal, head, statuses } = feed()
    signal(refusing)
    pass(POLL_MS)
    expect(statuses()).toEqual(['poll refused'])
    signal(refusing)
    pass(POLL_MS)
    signal(down)
    pass(POLL_MS)
    expect(statuses()).toEqual(['poll refused', 'poll unreachable'])
    signal(live(), head())
    pass(POLL_MS)
    signal(refusing)
    pass(POLL_MS)
    expect(statuses().slice(2)).toEqual(['pendingLogs ok', 'poll refused'])
  })
})

describe('a node that refuses pendingLogs', () => {
  const refused = live([apple], 'logs')

  it('is polled and says so; its blocks are settled as their heads are pushed', () => {
    const { chain, pass, signal, head, seal, told, sealed, statuses } = feed()
    signal(refused, head())
    const log = chain.put(HEAD + 1)
    pass(POLL_MS)
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['poll refused'])
    seal(0)
    expect(sealed().map(({ logs }) => logs.length)).toEqual([1])
  })

  it('and pre-confirms nothing is heard by what is sealed, without being asked all the time', () => {
    const { chain, pass, signal, head, seal, statuses, sealed } = feed()
    chain.pending = 'latest'
    signal(refused, head())
    pass(POLL_MS)
    expect(statuses()).toEqual(['sealed no_pending'])
    const before = chain.asked.length
    for (let block = 0; block < 50; block += 1) seal(0)
    expect(sealed()).toHaveLength(50)
    const others = chain.asked.slice(before).filter(({ method }) => method !== 'eth_getLogs')
    expect(others.length).toBeLessThan(5)
  })

  it('is asked every minute whether it does by now, and is the source as soon as it does', () => {
    const { pass, signal, head, probed, statuses, seal } = feed()
    signal(refused, head())
    pass(2 * MINUTE_MS + POLL_MS)
    expect(probed).toHaveLength(3)
    expect(statuses()).toEqual(['poll refused', 'poll stale_head'])
    signal(live(), refused)
    seal(1)
    expect(statuses().at(-1)).toBe('pendingLogs ok')
  })

  it('finds pre-confirmations again within a minute where there were none', () => {
    const { chain, pass, signal, head, seal, statuses, told } = feed()
    chain.pending = 'latest'
    signal(refused, head())
    pass(POLL_MS)
    chain.pending = 'shown'
    for (let block = 0; block < 300; block += 1) seal(0)
    expect(statuses()).toEqual(['sealed no_pending', 'poll refused'])
    const log = chain.put(chain.head + 1)
    pass(POLL_MS)
    expect(told().at(-1)).toBe(`${keyOf(log)} poll`)
  })
})

describe('finality', () => {
  it('is told, and shows a reorganisation that no head showed', () => {
    const { chain, pass, seal, all, sealed } = feed({ finalityPollMs: 1_000 })
    pass(0)
    for (let block = 0; block < 5; block += 1) seal(0)
    chain.safe = HEAD + 2
    pass(1_000)
    expect(all('finality').map(({ stage, block }) => [stage, block.number])).toEqual([['safe', HEAD + 2]])
    chain.reorganise(2)
    chain.safe = HEAD + 4
    pass(1_000)
    expect(sealed().at(-1)?.hash).toBe(chain.hashOf(HEAD + 5))
  })

  it('is told only when that very block is settled', () => {
    const { chain, pass, seal, heard } = feed({ finalityPollMs: 1_000 })
    pass(0)
    for (let block = 0; block < 5; block += 1) seal(1)
    chain.reorganise(2)
    chain.safe = HEAD + 4
    pass(1_000)
    const settledAt = heard.findIndex(
      (one) => one.type === 'sealed' && one.blocks.some(({ hash }) => hash === chain.hashOf(HEAD + 4)),
    )
    expect(settledAt).toBeGreaterThan(0)
    expect(heard.findIndex(({ type }) => type === 'finality')).toBe(settledAt + 1)
  })

  it('after a restart is told only once it is known that what was settled still stands', () => {
    const { chain, pass, heard, signal, head } = feed({
      finalityPollMs: 1_000,
      cursor: { number: HEAD - 2, hash: word(77) },
    })
    chain.safe = HEAD - 3
    pass(500)
    signal(head(HEAD))
    pass(2_000)
    const types = heard.map(({ type }) => type)
    expect(types).toContain('finality')
    expect(types.indexOf('sealed')).toBeLessThan(types.indexOf('finality'))
  })
})
