import { describe, expect, it } from 'vitest'
import { examplesOf } from '../../../src/protocol/contract-examples.ts'
import { Notice } from '../../../src/protocol/notices.ts'

/** The contract's table of connection messages; `?` marks an optional field. */
const fields: Readonly<Record<string, string>> = {
  hello: 'id end oldest protocol server connection chain_id heartbeat_s limits source head demo durable?',
  subscribed: 'req? id symbols types stage min_value min_shares account rejected resume',
  unsubscribed: 'req? symbols',
  snapshot: 'id symbol address as_of token token_warnings multiplier multiplier_source scheduled paused supply nav quote session',
  live: 'id replayed',
  heartbeat: 'id end time head source sent backlog',
  gap: 'id reason after through backfill',
  error: 'req? code reason message details?',
  bye: 'id reason retry_ms',
  pong: 'req? time',
}
const names = (type: string): string[] => (fields[type] ?? '').split(' ')
const example = (type: string): Record<string, unknown> => ({ ...examplesOf(type)[0] })
const isNotice = (given: unknown): boolean => Notice.safeParse(given).success

describe('the messages of a connection', () => {
  it('have the ten types of the contract', () => {
    expect(Notice.options.map((schema) => schema.shape.type.value)).toEqual(Object.keys(fields))
  })

  it.each(Notice.options.map((schema) => [schema.shape.type.value, schema] as const))(
    'have the fields of %s in the order of the contract',
    (type, schema) => {
      expect(Object.keys(schema.shape)).toEqual(['type', ...names(type).map((name) => name.replace('?', ''))])
    },
  )

  it.each(Object.keys(fields))('require every field of %s that is not marked as optional', (type) => {
    for (const name of names(type)) {
      const { [name.replace('?', '')]: _, ...rest } = example(type)
      expect([name, isNotice(rest)]).toEqual([name, name.endsWith('?')])
    }
  })

  it('have the limits, the head and the supply in the order of the contract', () => {
    const hello = Notice.parse(example('hello'))
    const snapshot = Notice.parse(example('snapshot'))
    if (hello.type !== 'hello' || snapshot.type !== 'snapshot') throw new Error('unreachable')
    expect(Object.keys(hello.limits).join(' ')).toBe(
      'symbols_max selections_max replay_max backlog_bytes message_bytes retention_ms',
    )
    expect(Object.keys(hello.head).join(' ')).toBe('pending sealed safe finalized')
    expect(Object.keys(snapshot.supply).join(' ')).toBe('tokens shares')
  })

  it.each(['hello', 'subscribed', 'snapshot', 'bye'])('may have no id in %s', (type) => {
    expect(isNotice({ ...example(type), id: null })).toBe(true)
  })

  it.each(['live', 'heartbeat', 'gap'])('always have an id in %s', (type) => {
    expect(isNotice({ ...example(type), id: null })).toBe(false)
  })

  it('include a gap for each of four reasons', () => {
    for (const reason of ['expired', 'epoch', 'ahead', 'long']) {
      expect(isNotice({ ...example('gap'), reason })).toBe(true)
    }
    expect(isNotice({ ...example('gap'), reason: 'lost' })).toBe(false)
  })

  it('include a gap without a position and with a backfill', () => {
    expect(isNotice({ ...example('gap'), after: null, backfill: '/v1/events?after=k3f9a1.412' })).toBe(true)
  })

  it('include a snapshot with a scheduled multiplier and unknown values', () => {
    const scheduled = { multiplier: '2', effective_at: '2026-11-23T14:30:00.000Z' }
    const supply = { tokens: null, shares: null }
    expect(isNotice({ ...example('snapshot'), scheduled, multiplier: null, multiplier_source: null, supply })).toBe(true)
  })
})
