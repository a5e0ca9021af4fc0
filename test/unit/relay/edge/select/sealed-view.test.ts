import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { parseDecimal } from '../../../../../src/protocol/decimal.ts'
import type { Message, NoticeOf } from '../../../../../src/protocol/notices.ts'
import type { SelectionOptions } from '../../../../../src/protocol/parameters/selection.ts'
import type { Draft, Update } from '../../../../../src/protocol/updates.ts'
import { status } from '../../tape/update-drafts.ts'
import { openTestEdge, sinceAfter } from '../edge-fixture.ts'
import { amendOf, at, pauseAt, retractOf, sealedAt, sealOf, transferAt } from '../fact-drafts.ts'

const first = transferAt({ index: 1 })
const second = transferAt({ index: 2 })
const third = transferAt({ index: 3 })
const sealedOnly = { stage: 'sealed' as const }

const sequenceOf = ({ id }: Update): string => id.slice(id.indexOf('.') + 1)
/** The type and position of each update, as in `transfer 4.1`. */
const summarise = (updates: readonly Update[]) => updates.map((update) => `${update.type} ${sequenceOf(update)}`)
/** The same with gaps and `live`. */
const linesOf = (messages: readonly Message[], epoch: string): readonly string[] =>
  messages.flatMap((message) => {
    if (message.type === 'gap') return [`gap ${message.reason} ${message.after} to ${message.id}`.replaceAll(`${epoch}.`, '')]
    if (message.type === 'live') return [`live ${message.id}`.replaceAll(`${epoch}.`, '')]
    return 'prev' in message ? summarise([message]) : []
  })

// Random tapes and selections are in match-random.test.ts.
it('a pre-confirmed fact has the content of its last amend and the time of its publication', async () => {
  const { tape, listen } = openTestEdge()
  const { outlet, started } = listen({ options: sealedOnly })
  await started
  const memo = `0x${'ab'.repeat(32)}` as const
  const later = { ...first, time: new Date(at + 5_000).toISOString() }
  await tape.append([first])
  await tape.append([amendOf(later, { ...later, shares: '7' })])
  await tape.append([amendOf(later, sealedAt({ ...later, memo })), sealOf([first])])
  const [transfer] = outlet.updates
  expect(summarise(outlet.updates)).toEqual(['transfer 4.1', 'seal 4'])
  expect(transfer).toMatchObject({ stage: 'sealed', memo, time: first.time, prev: null })
})

const large = { ...first, reference_value: '5000.00' }
it.each<[string, readonly (readonly Draft[])[], readonly string[]]>([
  // This view never emitted the large one, only the small one.
  ['shrank', [[large], [amendOf(large, sealedAt(first)), sealOf([large])], [retractOf(large, 'reorg')]], []],
  [
    'grew',
    [[first], [amendOf(first, sealedAt(large)), sealOf([first])], [retractOf(first, 'reorg')]],
    ['transfer 3.1', 'seal 3', 'retract 4'],
  ],
])('a retract of a fact that %s before its seal is judged by the emitted content', async (_, batches, expected) => {
  const { tape, listen } = openTestEdge()
  const { outlet, started } = listen({ options: { ...sealedOnly, types: ['transfer'], min_value: parseDecimal('1000') } })
  await started
  for (const batch of batches) await tape.append(batch)
  expect(summarise(outlet.updates)).toEqual(expected)
})

describe('a fact that the tape no longer keeps', () => {
  it('may have been emitted: its retract or amend comes, unless that shows that it was never sealed', async () => {
    const { tape, listen } = openTestEdge()
    const { outlet, started } = listen({ options: { ...sealedOnly, types: ['nav'] } })
    await started
    await tape.append([retractOf(first, 'not_sealed'), amendOf(first, first)])
    await tape.append([retractOf(first, 'reorg'), retractOf(first, 'replaced'), amendOf(first, sealedAt(first))])
    expect(summarise(outlet.updates)).toEqual(['retract 3', 'retract 4', 'amend 5'])
  })

  it('does not include seals of kept publications: nothing is emitted twice on a full tape', async () => {
    const pause = pauseAt({ index: 1 })
    const { tape, listen } = openTestEdge({ bound: 3 })
    const { outlet, started } = listen({ options: sealedOnly })
    await started
    await tape.append([pause, sealOf([pause])])
    for (let block = 20; block < 30; block += 1) await tape.append([transferAt({ block })])
    await tape.append([sealOf([pause], 7, 1)])
    expect(summarise(outlet.updates)).toEqual(['pause 2.1', 'seal 2', 'seal 13'])
  })
})

describe('a resume in the sealed view', () => {
  const batches = [[first, second, third], [sealOf([first, second, third])], [status({ at })]]
  const all = ['transfer 4.1', 'transfer 4.2', 'transfer 4.3', 'seal 4', 'status 5']
  it.each<[string, Partial<SelectionOptions>, string, readonly string[]]>([
    ['4.99', sealedOnly, '4.99', [...all.slice(3), 'live 5']],
    ['5.1', sealedOnly, '5.1', [...all.slice(4), 'live 5']],
    ['6.1', sealedOnly, 'null', ['gap ahead 6.1 to 5', 'live 5']],
    // Outside the sealed view a stream starts just before the seal.
    ['4.2', {}, '3', ['seal 4', 'status 5', 'live 5']],
  ])('after %s with %j starts at %s with the next update', async (position, options, start, lines) => {
    const { tape, listen } = openTestEdge()
    for (const batch of batches) await tape.append(batch)
    const { outlet, started, listener } = listen({ options, since: sinceAfter(`${tape.epoch}.${position}`) })
    await started
    const [hello, subscribed, ...rest] = outlet.messages as [NoticeOf<'hello'>, NoticeOf<'subscribed'>, ...Message[]]
    expect([hello.id, subscribed.id].map((id) => String(id).replace(`${tape.epoch}.`, ''))).toEqual([start, start])
    expect(linesOf(rest, tape.epoch)).toEqual(lines)
    const count = start === 'null' ? 0 : lines.length - 1
    expect([listener.sent, rest.find((message) => message.type === 'live')?.replayed]).toEqual([count, count])
  })

  it('reports an expired gap when the seal itself may be evicted', async () => {
    const { tape, listen } = openTestEdge({ bound: 1 })
    for (const batch of batches) await tape.append(batch)
    expect(tape.oldest()).toBe(4)
    const { outlet, started } = listen({ options: sealedOnly, since: sinceAfter(`${tape.epoch}.4.2`) })
    await started
    const gap = { reason: 'expired', after: `${tape.epoch}.4.2`, through: `${tape.epoch}.4` }
    expect(outlet.messages.find(({ type }) => type === 'gap')).toMatchObject(gap)
    expect(summarise(outlet.updates)).toEqual(['status 5'])
  })
})

describe('a replay of the sealed view', () => {
  const many = Array.from({ length: 450 }, (_, index) => transferAt({ index }))

  it('waits for the reader inside a seal too, and tracks its position there', async () => {
    const { tape, hub, listen } = openTestEdge()
    await tape.append(many)
    await tape.append([sealOf(many)])
    const { outlet, listener } = listen({ options: sealedOnly, since: { from: 'start' }, roomBytes: 1_000 })
    const positions = new Set<string | null>()
    while (listener.phase.name !== 'live') {
      await yieldToEventLoop()
      if (outlet.publishedLines.length > 0) positions.add(hub.positionOf(listener))
      outlet.drain()
    }
    expect(summarise(outlet.updates)).toEqual([...many.map((_, index) => `transfer 451.${index + 1}`), 'seal 451'])
    const within = [100, 200, 300, 400].map((n) => `${tape.epoch}.451.${n}`)
    expect([...positions]).toEqual([...within, `${tape.epoch}.451`])
  })

  it('is counted by the updates that it emits', async () => {
    const { tape, listen } = openTestEdge({ replay: 300 })
    await tape.append(many)
    await tape.append([sealOf(many)])
    const gapsOf = async (position: string, options: Partial<SelectionOptions>) => {
      const { outlet, started } = listen({ options, since: sinceAfter(`${tape.epoch}.${position}`) })
      await started
      return outlet.messages.flatMap((message) => (message.type === 'gap' ? [message.reason] : []))
    }
    expect(await gapsOf('451.149', sealedOnly)).toEqual(['long'])
    expect(await gapsOf('451.151', sealedOnly)).toEqual([])
    expect(await gapsOf('450', {})).toEqual([])
  })
})

describe('a live listener of the sealed view that lacks keys whose publication was evicted', () => {
  async function received(options: Partial<SelectionOptions>, evictedCount: number, count: number) {
    const { tape, listen } = openTestEdge({ bound: count - evictedCount + 1 })
    const { listener, outlet, started } = listen({ options })
    await started
    const facts = Array.from({ length: count }, (_, index) => transferAt({ index }))
    for (const fact of facts) await tape.append([fact])
    await tape.append([sealOf(facts)])
    while (listener.phase.name !== 'live') await yieldToEventLoop()
    await tape.append([transferAt({ block: 8 })])
    await tape.append([sealOf([transferAt({ block: 8 })], 8)])
    return linesOf(outlet.messages.slice(3), tape.epoch)
  }

  it.each<[string, number, number]>([
    ['of a short seal', 5, 2],
    ['of a seal that is delivered in parts', 600, 6],
    ['of half of such a seal', 600, 300],
  ])('gets a gap, the rest and live again: %s', async (_, count, evicted) => {
    const seal = count + 1
    const given = Array.from({ length: count - evicted }, (_, index) => `transfer ${seal}.${evicted + index + 1}`)
    expect(await received(sealedOnly, evicted, count)).toEqual([
      `gap expired ${count} to ${seal}.${evicted}`,
      ...given,
      `seal ${seal}`,
      `live ${seal}`,
      `transfer ${seal + 2}.1`,
      `seal ${seal + 2}`,
    ])
  })

  it('is not interrupted where its selection lacks none of them', async () => {
    expect(await received({ ...sealedOnly, types: ['seal'] }, 2, 5)).toEqual(['seal 6', 'seal 8'])
    expect(await received({ types: ['transfer'] }, 2, 5)).not.toContainEqual(expect.stringMatching(/gap|live/))
  })
})

describe('a heartbeat in the sealed view', () => {
  it('carries the id of the last seal sent and the count of updates', async () => {
    const { tape, beat, listen, clock } = openTestEdge()
    const { outlet, started } = listen({ options: { ...sealedOnly, types: ['transfer'] }, heartbeatMs: 1_000 })
    await started
    await tape.append([first, second])
    clock.now += 1_000
    await beat()
    await tape.append([sealOf([first, second])])
    clock.now += 1_000
    await beat()
    expect(outlet.messages.filter(({ type }) => type === 'heartbeat')).toMatchObject([
      { id: `${tape.epoch}.2`, sent: 0 },
      { id: `${tape.epoch}.3`, sent: 3 },
    ])
  })
})
