import { BehaviorSubject, NEVER, type Observable, ReplaySubject, Subject, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Heard, source } from '../../src/chain/source.ts'
import { UpstreamError } from '../../src/chain/upstream-error.ts'
import type { Hex } from '../../src/protocol/parts.ts'
import { FakeChain } from './chain.ts'
import type { Signal } from './node.ts'
import { apple, header, keyOf, pendingLog, sealedLog, tesla } from './wire.ts'

const HEAD = 1_000
const POLL_MS = 200
const SILENCE_MS = 3_000
const down: Signal = { type: 'down', reason: 'closed with 1000' }
const live = (addresses: readonly Hex[]): Signal => ({ type: 'live', of: 'pendingLogs', addresses })
const head = (block: number): Signal => ({ type: 'head', header: header(block) })
const push = (log: unknown, receivedAt = 0): Signal => ({ type: 'log', of: 'pendingLogs', log, receivedAt })

/** A source in virtual time, on a chain and a link that do as they are told. */
const open = ({
  linked = true,
  cursor = null,
  addresses = new BehaviorSubject<readonly Hex[]>([apple]),
}: {
  linked?: boolean
  cursor?: number | null
  addresses?: Observable<readonly Hex[]>
} = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(HEAD, clock)
  const signals = new Subject<Signal>()
  const lists = new ReplaySubject<readonly Hex[]>()
  const heard: Heard[] = []
  const said: string[] = []
  const options = {
    ask: chain.ask,
    link: linked
      ? (wanted: Observable<readonly Hex[]>) => {
          wanted.subscribe(lists)
          return signals
        }
      : null,
    addresses,
    cursor,
    pendingPollMs: POLL_MS,
    silenceMs: SILENCE_MS,
    backfillBoundMs: 3_600_000,
    clock,
    say: (kind: string) => said.push(kind),
  }
  const listening = source(options).subscribe({ next: (one) => heard.push(one) })
  onTestFinished(() => listening.unsubscribe())
  const all = <Type extends Heard['type']>(type: Type) =>
    heard.filter((one): one is Extract<Heard, { type: Type }> => one.type === type)
  return {
    chain,
    clock,
    heard,
    said,
    lists,
    all,
    signal: (...some: Signal[]) => {
      for (const one of some) signals.next(one)
    },
    /** Lets time pass. */
    pass: (ms: number) => {
      clock.maxFrames += ms
      clock.flush()
      clock.frame = clock.maxFrames
    },
    told: () => all('log').map(({ log, via, sealed }) => `${log.key} ${via}${sealed ? ' sealed' : ''}`),
    statuses: () => all('status').map((status) => `${status.source} ${status.reason}`),
    polls: () => chain.asked.length,
    questions: () => chain.ranges().length,
  }
}

describe('without a link the source polls', () => {
  it('and tells whose logs it hears, what is pre-confirmed, and that it polls', () => {
    const { chain, pass, heard, told, statuses, all } = open({ linked: false })
    const log = chain.put(HEAD + 1)
    pass(0)
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['poll ok'])
    expect(all('hearing')).toEqual([{ type: 'hearing', addresses: [apple] }])
    expect(heard.findIndex(({ type }) => type === 'hearing')).toBeLessThan(
      heard.findIndex(({ type }) => type === 'log'),
    )
    expect(all('head').at(-1)).toEqual({ type: 'head', sealed: null, pending: HEAD + 1 })
  })

  it('but asks for no logs while no token is known', () => {
    const { pass, questions, statuses } = open({ linked: false, addresses: NEVER })
    pass(2_000)
    expect(questions()).toBe(0)
    expect(statuses()).toEqual([])
  })

  it('at its pace, and for logs only when the pending state moved', () => {
    const { chain, pass, questions, polls } = open({ linked: false })
    pass(0)
    expect(questions()).toBe(1)
    const before = polls()
    pass(5 * POLL_MS)
    expect(questions()).toBe(1)
    expect(polls()).toBe(before + 5)
    chain.put(HEAD + 1)
    pass(POLL_MS)
    expect(questions()).toBe(2)
  })

  it('and hears each log at the next poll, with the time at which it came', () => {
    const { chain, pass, all } = open({ linked: false })
    pass(0)
    pass(POLL_MS / 2)
    const log = chain.put(HEAD + 1)
    pass(POLL_MS)
    expect(all('log').map((one) => [one.log.key, one.receivedAt])).toEqual([[keyOf(log), POLL_MS]])
  })

  it('and leaves no hole when blocks are quicker than it is', () => {
    const { chain, pass, told } = open({ linked: false })
    pass(0)
    const logs = [1, 2, 3, 4, 5].map((ahead) => chain.put(HEAD + ahead))
    chain.head = HEAD + 4
    pass(POLL_MS)
    expect(told()).toEqual(logs.map((log, index) => `${keyOf(log)} poll${index < 4 ? ' sealed' : ''}`))
  })

  it('and hears new tokens with the next poll, though nothing moved', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, pass, told, all } = open({ linked: false, addresses })
    const log = chain.put(HEAD + 1, tesla)
    pass(POLL_MS)
    expect(told()).toEqual([])
    addresses.next([tesla])
    pass(POLL_MS)
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(all('hearing').at(-1)).toEqual({ type: 'hearing', addresses: [tesla] })
  })

  it('and never asks again before it was answered', () => {
    const { chain, pass, questions } = open({ linked: false })
    chain.delayMs = 700
    chain.put(HEAD + 1)
    pass(5_000)
    expect(questions()).toBeGreaterThan(0)
    expect(chain.mostInFlight).toBe(1)
  })

  it('and moves the cursor with each reading', () => {
    const { chain, pass, all } = open({ linked: false, cursor: HEAD - 3 })
    pass(0)
    chain.head = HEAD + 2
    pass(POLL_MS)
    expect(all('cursor').map(({ sealed }) => sealed)).toEqual([HEAD, HEAD + 2])
  })

  it('and after a restart tells what was missed as caught up', () => {
    const { chain, pass, told } = open({ linked: false, cursor: HEAD - 3 })
    const log = chain.put(HEAD - 2)
    pass(0)
    expect(told()).toEqual([`${keyOf(log)} backfill sealed`])
  })

  it('and takes nothing back when nodes behind one name stand at different heights', () => {
    const { chain, pass, all, statuses } = open({ linked: false })
    pass(0)
    const logs = [chain.put(HEAD + 1), chain.put(HEAD + 2)]
    chain.head = HEAD + 2
    pass(POLL_MS)
    chain.head = HEAD
    pass(POLL_MS)
    chain.head = HEAD + 3
    pass(POLL_MS)
    expect(new Set(all('log').map(({ log }) => log.key))).toEqual(new Set(logs.map(keyOf)))
    expect(all('hole')).toEqual([])
    expect(statuses()).toEqual(['poll ok'])
  })
})

describe('the pending block', () => {
  it('without number and hash is a pre-confirmation if it follows the latest', () => {
    const { chain, pass, statuses, told } = open({ linked: false })
    chain.pending = 'numberless'
    const log = chain.put(HEAD + 1)
    pass(0)
    expect(statuses()).toEqual(['poll ok'])
    expect(told()).toEqual([`${keyOf(log)} poll`])
  })

  it.each(['latest', 'null'] as const)(
    'that reads as %s means that nothing is pre-confirmed, and sealed logs are told',
    (pending) => {
      const { chain, pass, statuses, told, said } = open({ linked: false })
      chain.pending = pending
      pass(0)
      expect(statuses()).toEqual(['sealed no_pending'])
      const log = chain.put(HEAD + 1)
      chain.head = HEAD + 1
      pass(POLL_MS)
      expect(told()).toEqual([`${keyOf(log)} poll sealed`])
      expect(said).toEqual([])
    },
  )

  it('that comes back is polled again', () => {
    const { chain, pass, statuses } = open({ linked: false })
    chain.pending = 'null'
    pass(0)
    chain.pending = 'shown'
    pass(POLL_MS)
    expect(statuses()).toEqual(['sealed no_pending', 'poll ok'])
  })
})

describe('an upstream that fails', () => {
  it('is down once it was silent for too long, not before, and is back with its first answer', () => {
    const { chain, pass, statuses, said, told } = open({ linked: false })
    pass(0)
    chain.trouble = new UpstreamError('unreachable', 'HTTP 503')
    const log = chain.put(HEAD + 1)
    pass(SILENCE_MS)
    expect(statuses()).toEqual(['poll ok'])
    pass(500)
    expect(statuses()).toEqual(['poll ok', 'down unreachable'])
    expect(said).toContain('polling failed')
    chain.trouble = null
    pass(POLL_MS)
    expect(statuses()).toEqual(['poll ok', 'down unreachable', 'poll ok'])
    expect(told()).toEqual([`${keyOf(log)} poll`])
  })

  it('from the beginning is down too', () => {
    const { chain, pass, statuses } = open({ linked: false })
    chain.trouble = new UpstreamError('unreachable', 'ECONNREFUSED')
    pass(SILENCE_MS + 500)
    expect(statuses()).toEqual(['down unreachable'])
  })
})

describe('a link that lives', () => {
  it('is the source: what it pushes is told and nothing is polled', () => {
    const { pass, signal, told, statuses, polls, all } = open()
    signal(live([apple]))
    const before = polls()
    const wire = [pendingLog({ block: HEAD + 1 }), pendingLog({ block: HEAD + 1, index: 1 })]
    signal(push(wire[0], 7), push([...wire, null]))
    pass(10_000)
    expect(polls()).toBe(before)
    expect(statuses()).toEqual(['pendingLogs ok'])
    const first = `${keyOf({ block: HEAD + 1 })} pendingLogs`
    expect(told()).toEqual([first, first, `${keyOf({ block: HEAD + 1, index: 1 })} pendingLogs`])
    expect(all('log')[0]?.receivedAt).toBe(7)
    expect(all('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
  })

  it('is told which tokens are wanted', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { lists } = open({ addresses })
    addresses.next([apple, tesla])
    const heard: (readonly Hex[])[] = []
    lists.subscribe((list) => heard.push(list))
    expect(heard).toEqual([[apple], [apple, tesla]])
  })

  it('says whose logs are heard as soon as they are', () => {
    const { signal, all } = open()
    signal(live([apple, tesla]))
    expect(all('hearing')[0]).toEqual({ type: 'hearing', addresses: [apple, tesla] })
  })

  it('does not wait to be polled for first: until it lives, polling stands in', () => {
    const { chain, pass, signal, told, statuses } = open()
    const log = chain.put(HEAD + 1)
    pass(0)
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual([])
    signal(live([apple]))
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('and one that cannot be opened leaves polling to be the source', () => {
    const { pass, signal, statuses } = open()
    pass(0)
    signal(down)
    pass(POLL_MS * 2)
    expect(statuses()).toEqual(['poll unreachable'])
  })

  it('begins, on a tape that knows nothing, right before the first thing it pushes', () => {
    const { chain, signal, heard, all } = open()
    chain.trouble = new UpstreamError('busy', 'over rate limit')
    signal(live([apple]), push(pendingLog({ block: HEAD + 1 })))
    expect(all('cursor')).toEqual([{ type: 'cursor', sealed: HEAD }])
    expect(heard.findIndex(({ type }) => type === 'cursor')).toBeLessThan(heard.findIndex(({ type }) => type === 'log'))
    expect(all('hearing')).toEqual([{ type: 'hearing', addresses: [apple] }])
  })

  it('closes with one question the hole between what was heard before and what it pushes', () => {
    const { chain, pass, signal, told, questions } = open()
    pass(0)
    const before = questions()
    const log = chain.put(HEAD + 1)
    signal(live([apple]))
    pass(10_000)
    expect(questions()).toBe(before + 1)
    expect(chain.ranges().at(-1)).toEqual([HEAD, 'pending'])
    expect(told()).toEqual([`${keyOf(log)} poll`])
  })

  it('asks the closing question until it is answered', () => {
    const { chain, pass, signal, told, statuses } = open()
    chain.trouble = new UpstreamError('busy', 'over rate limit')
    signal(live([apple]))
    pass(3_500)
    const log = chain.put(HEAD + 1)
    chain.trouble = null
    expect(told()).toEqual([])
    pass(1_000)
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('closes the hole again after each new subscription, for the tokens wanted now', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, signal, told, questions, all } = open({ addresses })
    signal(live([apple]))
    const before = questions()
    const log = chain.put(HEAD + 1, tesla)
    addresses.next([apple, tesla])
    expect(told()).toEqual([])
    signal(live([apple, tesla]))
    expect(questions()).toBe(before + 1)
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(all('hearing').at(-1)).toEqual({ type: 'hearing', addresses: [apple, tesla] })
  })

  it('moves the cursor with its heads, but only once the hole is closed', () => {
    const { chain, pass, signal, all } = open({ cursor: HEAD - 5 })
    chain.trouble = new UpstreamError('busy', 'over rate limit')
    signal(live([apple]), head(HEAD + 1))
    expect(all('head').at(-1)).toEqual({ type: 'head', sealed: HEAD + 1, pending: null })
    expect(all('cursor')).toEqual([])
    chain.trouble = null
    pass(1_000)
    signal(head(HEAD + 2))
    expect(all('cursor').map(({ sealed }) => sealed)).toEqual([HEAD, HEAD + 2])
  })

  it('begins at the first block of a chain that has just begun, not before it', () => {
    const { chain, signal, all } = open()
    chain.trouble = new UpstreamError('busy', 'over rate limit')
    signal(live([apple]), head(0))
    expect(all('cursor')).toEqual([{ type: 'cursor', sealed: 0 }])
  })

  it('may send a head that cannot be read', () => {
    const { signal, all } = open()
    signal(live([apple]), { type: 'head', header: { number: 'five' } }, { type: 'head', header: null })
    expect(all('unreadable')).toHaveLength(2)
  })
})

describe('a link that is lost', () => {
  it('gives way to polling at once, from the newest head on', () => {
    const { chain, pass, signal, told, statuses } = open()
    signal(live([apple]))
    pass(5_000)
    chain.head = HEAD + 3
    signal(head(HEAD + 3))
    signal(down)
    const log = chain.put(HEAD + 4)
    pass(0)
    expect(chain.ranges().at(-1)).toEqual([HEAD + 3, 'pending'])
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable'])
  })

  it('and lost again and again never interrupts the polling that stands in', () => {
    const { chain, pass, signal, told } = open()
    pass(0)
    chain.delayMs = 150
    const log = chain.put(HEAD + 1)
    // Were polling begun anew each time, no question would ever be answered.
    for (let times = 0; times < 20; times += 1) {
      pass(100)
      signal(down)
    }
    expect(told()).toContain(`${keyOf(log)} poll`)
  })

  it('with the rest of the upstream is down when the silence is too long', () => {
    const { chain, pass, signal, statuses } = open()
    signal(live([apple]))
    pass(60_000)
    chain.trouble = new UpstreamError('unreachable', 'ECONNREFUSED')
    signal(down)
    pass(SILENCE_MS)
    expect(statuses()).toEqual(['pendingLogs ok'])
    pass(500)
    expect(statuses()).toEqual(['pendingLogs ok', 'down unreachable'])
  })

  it('comes back as the source, and what came meanwhile is not lost', () => {
    const { chain, pass, signal, told, statuses, polls } = open()
    signal(live([apple]), down)
    pass(0)
    chain.trouble = new UpstreamError('unreachable', 'ECONNREFUSED')
    const log = chain.put(HEAD + 1)
    chain.head = HEAD + 2
    pass(2_000)
    chain.trouble = null
    signal(live([apple]))
    expect(told()).toEqual([`${keyOf(log)} poll sealed`])
    expect(statuses().at(-1)).toBe('pendingLogs ok')
    const before = polls()
    pass(5_000)
    expect(polls()).toBe(before)
  })
})

describe('a node that refuses pendingLogs', () => {
  const sealedOnly: Signal = { type: 'live', of: 'logs', addresses: [apple] }

  it('is polled, says so, and its sealed logs are told as they are pushed', () => {
    const { chain, pass, signal, told, statuses } = open()
    signal(sealedOnly)
    const log = chain.put(HEAD + 1)
    pass(0)
    signal({ type: 'log', of: 'logs', log: sealedLog({ block: HEAD + 1 }), receivedAt: 0 })
    expect(told()).toEqual([`${keyOf(log)} poll`, `${keyOf(log)} sealed sealed`])
    expect(statuses()).toEqual(['poll refused'])
  })

  it('and pre-confirms nothing is heard by its sealed logs', () => {
    const { chain, pass, signal, statuses } = open()
    chain.pending = 'latest'
    signal(sealedOnly)
    pass(POLL_MS)
    expect(statuses()).toEqual(['sealed no_pending'])
  })
})
