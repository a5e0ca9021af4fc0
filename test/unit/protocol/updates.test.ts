import { describe, expect, it } from 'vitest'
import { examplesOf } from '../../../src/docs/examples.ts'
import { defaultTypes, movementTypes, Update, updateTypes } from '../../../src/protocol/updates.ts'

/** The contract's tables, word for word: what every message on the tape begins with, and what it goes on with. */
const commonFields = 'type id prev symbol address time'
const logFields = 'key stage late block tx'
const movementFields = 'key stage late from to raw amount multiplier shares reference_value nav memo block tx ingest'
const fieldsByType: Readonly<Record<string, string>> = {
  transfer: movementFields,
  mint: movementFields,
  burn: movementFields,
  seize: movementFields,
  approval: 'key stage late owner spender raw amount block tx ingest',
  multiplier: `phase from to effective_at source ${logFields}`,
  pause: `change features feature_ids paused source ${logFields}`,
  action: 'key stage late action_id description uri keys block tx',
  token: `change changed token before source ${logFields}`,
  nav: 'nav before source',
  log: 'key stage late topics data block tx',
  retract: 'key of was reason by now block',
  amend: 'key of was changed update',
  seal: 'block keys types late_keys count digest',
  hole: 'blocks reason',
  finality: 'stage block',
  status: 'source since reason head',
}

const example = (type: string): Record<string, unknown> => ({ ...examplesOf(type)[0] })
const isUpdate = (given: unknown): boolean => Update.safeParse(given).success

describe('the tape', () => {
  it('knows the seventeen types of the contract', () => {
    expect(updateTypes).toEqual(Object.keys(fieldsByType))
  })

  it.each(Update.options.map((schema) => [schema.shape.type.value, schema] as const))(
    'writes the fields of %s in the order of the contract, the common six first',
    (type, schema) => {
      expect(Object.keys(schema.shape).join(' ')).toBe(`${commonFields} ${fieldsByType[type]}`)
    },
  )

  it('writes the parts in the order of the contract', () => {
    const read = Update.parse(examplesOf('transfer')[0])
    if (read.type !== 'transfer') throw new Error('unreachable')
    expect(Object.keys(read.nav).join(' ')).toBe('price updated_at age_s state bound_s')
    expect(Object.keys(read.block).join(' ')).toBe('number hash timestamp')
    expect(Object.keys(read.tx).join(' ')).toBe('hash index log_index')
    expect(Object.keys(read.ingest).join(' ')).toBe('source received_at published_at')
  })

  it('gives all types but approval and log to who names none', () => {
    expect(updateTypes.filter((type) => !defaultTypes.includes(type))).toEqual(['approval', 'log'])
  })

  it('calls four types movements', () => {
    expect([...movementTypes]).toEqual(['transfer', 'mint', 'burn', 'seize'])
  })
})

describe('a message on the tape', () => {
  it.each(updateTypes)('%s lacks none of the common six', (type) => {
    for (const field of commonFields.split(' ')) {
      const { [field]: _, ...rest } = example(type)
      expect(isUpdate(rest)).toBe(false)
    }
  })

  it.each(updateTypes)('%s lacks no field that it always has', (type) => {
    const optional = new Set(['multiplier', 'pause', 'token'].includes(type) ? logFields.split(' ') : [])
    for (const field of (fieldsByType[type] ?? '').split(' ')) {
      const { [field]: _, ...rest } = example(type)
      expect([field, isUpdate(rest)]).toEqual([field, optional.has(field)])
    }
  })

  it.each(['hole', 'finality', 'status'])('%s concerns everyone', (type) => {
    expect(isUpdate({ ...example(type), symbol: 'AAPLc' })).toBe(false)
    expect(isUpdate({ ...example(type), address: example('transfer').address })).toBe(false)
  })

  it('of one token has an address in lower case', () => {
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
  ] as const)('refuses a %s in another form', (field, wrongs) => {
    for (const wrong of wrongs) {
      expect([wrong, isUpdate({ ...example('transfer'), [field]: wrong })]).toEqual([wrong, false])
    }
  })

  it('says null where it does not know, never less', () => {
    for (const field of ['amount', 'multiplier', 'shares', 'reference_value', 'memo', 'prev']) {
      expect(isUpdate({ ...example('transfer'), [field]: null })).toBe(true)
    }
  })

  it('lets a later version add fields', () => {
    expect(isUpdate({ ...example('transfer'), venue: 'x' })).toBe(true)
  })
})

describe('an amendment', () => {
  it.each(['transfer', 'mint', 'burn', 'seize', 'approval', 'multiplier', 'pause', 'action', 'token', 'log'])(
    'carries a whole %s without what the tape gives',
    (type) => {
      const { id: _id, prev: _prev, time: _time, ...update } = example(type)
      const amend = { ...example('amend'), of: type, update }
      expect(JSON.stringify(Update.parse(amend))).toBe(JSON.stringify(amend))
    },
  )

  it.each(['nav', 'retract', 'seal', 'hole', 'finality', 'status', 'amend'])('is never of a %s', (type) => {
    const { id: _id, prev: _prev, time: _time, ...update } = example(type)
    expect(isUpdate({ ...example('amend'), of: type, update })).toBe(false)
  })
})

describe('a seal', () => {
  it('names what each log was told as, or that it is part of another', () => {
    expect(isUpdate({ ...example('seal'), types: ['transfer', 'part'] })).toBe(true)
    expect(isUpdate({ ...example('seal'), types: ['transfer', 'nav'] })).toBe(false)
  })

  it('of a block in which the token has no log any more is empty', () => {
    const nothing = 'e3b0c44298fc1c149afbf4c8996fb924'
    expect(isUpdate({ ...example('seal'), keys: [], types: [], late_keys: [], count: 0, digest: nothing })).toBe(true)
  })
})
