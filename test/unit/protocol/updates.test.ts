import { describe, expect, it } from 'vitest'
import { examplesOf } from '../../../src/protocol/contract-examples.ts'
import { defaultTypes, factRows, movementTypes, Update, updateTypes } from '../../../src/protocol/updates.ts'

const logFields = 'key stage late block tx'.split(' ')
/** Fields that the contract calls optional; the examples of the contract have all the others. */
const optionalFields: Readonly<Record<string, readonly string[]>> = {
  ...{ multiplier: logFields, pause: logFields, token: logFields },
}

const example = (type: string): Record<string, unknown> => ({ ...examplesOf(type)[0] })
const isUpdate = (given: unknown): boolean => Update.safeParse(given).success

describe('the schemas of the tape', () => {
  it.each(Object.values(factRows))('compare facts by fields that they have', ({ schema, content }) => {
    expect(Object.keys(schema.shape)).toEqual(expect.arrayContaining([...content]))
  })

  it('default to all types but approval, log and bar', () => {
    expect(updateTypes.filter((type) => !defaultTypes.includes(type))).toEqual(['approval', 'log', 'bar'])
  })

  it('have four movement types', () => {
    expect([...movementTypes]).toEqual(['transfer', 'mint', 'burn', 'seize'])
  })
})

describe('a message on the tape', () => {
  // That the examples have the fields of the schemas, in order, is in protocol-readme.test.ts.
  it.each(updateTypes)('%s requires each of its fields that is not optional', (type) => {
    for (const field of Object.keys(example(type))) {
      const { [field]: _, ...rest } = example(type)
      expect([field, isUpdate(rest)]).toEqual([field, optionalFields[type]?.includes(field) ?? false])
    }
  })

  it.each(['hole', 'finality', 'status', 'session'])('%s has no symbol and no address of its own', (type) => {
    expect(isUpdate({ ...example(type), symbol: 'AAPLc' })).toBe(false)
    expect(isUpdate({ ...example(type), address: example('transfer').address })).toBe(false)
  })

  it('about one token has an address in lower case', () => {
    const transfer = example('transfer')
    expect(isUpdate({ ...transfer, address: null })).toBe(false)
    expect(isUpdate({ ...transfer, address: String(transfer.address).toUpperCase().replace('0X', '0x') })).toBe(false)
  })

  it.each([
    ['amount', ['1.50', '+1', '1e3', '01', '.5', '1.', '', 1.5]],
    ['reference_value', ['486', '486.4', '486.450', '1e2', 486.45]],
    ['raw', ['-1', '1.5', '01', '0x1', 150]],
    ['time', ['2026-11-20T14:05:12Z', '2026-11-20T14:05:12.441+00:00', '2026-11-20 14:05:12.441Z', 1_763_647_512]],
    ['id', ['K3.1', 'k3', 'k3.', 'k3.01', 'k3.1.0', 18_422]],
    ['stage', ['pending', 'safe', null]],
    ['memo', ['0x', '', 'invoice 7731']],
    ['key', [`1-0x${'AB'.repeat(32)}-0`, '', null]],
  ] as const)('is refused with %s in another form', (field, values) => {
    for (const value of values) {
      expect([value, isUpdate({ ...example('transfer'), [field]: value })]).toEqual([value, false])
    }
  })

  it('may have null for an unknown value', () => {
    for (const field of ['amount', 'multiplier', 'shares', 'reference_value', 'memo', 'prev']) {
      expect(isUpdate({ ...example('transfer'), [field]: null })).toBe(true)
    }
  })

  it('may have fields of a later version', () => {
    expect(isUpdate({ ...example('transfer'), venue: 'x' })).toBe(true)
  })
})

describe('an amend', () => {
  it.each(['transfer', 'mint', 'burn', 'seize', 'approval', 'multiplier', 'pause', 'action', 'token', 'log'])(
    'carries a whole %s without the fields that the tape adds',
    (type) => {
      const { id: _id, prev: _prev, time: _time, ...update } = example(type)
      const amend = { ...example('amend'), fact_type: type, update }
      expect(JSON.stringify(Update.parse(amend))).toBe(JSON.stringify(amend))
    },
  )

  it.each(['nav', 'retract', 'seal', 'hole', 'finality', 'status', 'amend'])('never carries a %s', (type) => {
    const { id: _id, prev: _prev, time: _time, ...update } = example(type)
    expect(isUpdate({ ...example('amend'), fact_type: type, update })).toBe(false)
  })
})

describe('a seal', () => {
  it('names the type of each log, or part if it was folded into another', () => {
    expect(isUpdate({ ...example('seal'), types: ['transfer', 'part'] })).toBe(true)
    expect(isUpdate({ ...example('seal'), types: ['transfer', 'nav'] })).toBe(false)
  })

  it('may be empty, when a block lost all logs of the token', () => {
    const nothing = 'e3b0c44298fc1c149afbf4c8996fb924'
    expect(isUpdate({ ...example('seal'), keys: [], types: [], late_keys: [], count: 0, digest: nothing })).toBe(true)
  })
})
