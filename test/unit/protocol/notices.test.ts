import { describe, expect, it } from 'vitest'
import { examplesOf } from '../../../src/protocol/contract-examples.ts'
import { Notice } from '../../../src/protocol/notices.ts'

/** Fields that the contract calls optional, or that its example leaves out. */
const optionalFields = ['req', 'details', 'durable']
const noticeTypes = Notice.options.map((schema) => schema.shape.type.value)
const example = (type: string): Record<string, unknown> => ({ ...examplesOf(type)[0] })
const isNotice = (given: unknown): boolean => Notice.safeParse(given).success

describe('the messages of a connection', () => {
  // That the examples have the fields of the schemas, in order, is in protocol-readme.test.ts.
  it.each(noticeTypes)('require every field of %s that is not optional', (type) => {
    for (const name of Object.keys(example(type))) {
      const { [name]: _, ...rest } = example(type)
      expect([name, isNotice(rest)]).toEqual([name, optionalFields.includes(name)])
    }
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
