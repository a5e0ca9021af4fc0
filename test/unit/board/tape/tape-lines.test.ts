import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isFolded, type TapeLine, TapeLines } from '../../../../src/board/tape/tape-lines.ts'
import type { Update } from '../../../../src/sdk/client/index.ts'

let seq = 0
const update = (fields: object) => {
  seq += 1
  return { id: `e.${seq}`, symbol: 'A', address: '0xa', time: new Date(seq * 1_000).toISOString(), ...fields } as unknown as Update
}
const transfer = (key: string, more: object = {}) =>
  update({ type: 'transfer', key, stage: 'preconfirmed', late: false, block: { number: 1, hash: null }, ...more })
const seal = (...keys: string[]) => update({ type: 'seal', keys, block: { number: 1, hash: '0xb' } })
const retract = (key: string, reason = 'not_sealed') => update({ type: 'retract', key, reason, replaced_by: null })
const amend = (key: string, memo: string) =>
  update({
    type: 'amend',
    key,
    changed: ['memo'],
    update: { type: 'transfer', key, stage: 'preconfirmed', memo, block: { number: 1, hash: null } },
  })
const session = () => update({ type: 'session', symbol: '*', address: null })

const shown = (lines: TapeLines) =>
  lines.all.map(({ id, content, isSealed, retraction, amended }) => [id, content, isSealed, retraction?.reason, amended])

const applied = (updates: readonly Update[]) => {
  const lines = new TapeLines()
  for (const item of updates) lines.apply(item)
  return lines
}
const last = (lines: TapeLines): TapeLine => {
  const line = lines.at(lines.newest)
  if (!line) throw new Error('there is no line')
  return line
}

describe('a line of the tape', () => {
  it('becomes sealed in its place, with the hash of the block', () => {
    const lines = applied([transfer('k'), session()])
    lines.apply(seal('k'))
    expect(lines.all.map(({ isSealed }) => isSealed)).toEqual([true, false])
    expect(lines.find('k')?.content).toMatchObject({ block: { hash: '0xb' } })
  })
  it.each<[string, readonly Update[], readonly string[]]>([
    ['stays where it was when it is retracted', [transfer('k'), session(), retract('k', 'reorg')], ['reorg', 'open']],
    ['is revived by a seal of another block', [transfer('k'), retract('k', 'reorg'), seal('k')], ['sealed']],
    [
      'is another line when the fact is published again',
      [transfer('k'), retract('k'), transfer('k'), seal('k')],
      ['not_sealed', 'sealed'],
    ],
  ])('%s', (_, updates, states) => {
    const found = applied(updates).all.map(({ isSealed, retraction }) => retraction?.reason ?? (isSealed ? 'sealed' : 'open'))
    expect(found).toEqual(states)
  })

  const swap = (key: string, hash: string, raw: string) =>
    update({ type: 'trade', key, raw, tx: { hash }, stage: 'preconfirmed', block: { number: 1, hash: null } })
  const moved = (key: string, hash: string, raw: string) => transfer(key, { raw, tx: { hash } })
  it.each<[string, readonly Update[], readonly string[]]>([
    ['after its transfer', [moved('k', 't', '5'), session(), swap('s', 't', '5')], ['k']],
    ['before its transfer', [swap('s', 't', '5'), moved('k', 't', '5')], ['k']],
    ['of another amount', [moved('k', 't', '6'), swap('s', 't', '5')], []],
    ['of another transaction', [moved('k', 'u', '5'), swap('s', 't', '5')], []],
    ['beside two equal transfers', [moved('k', 't', '5'), moved('l', 't', '5'), swap('s', 't', '5')], ['l']],
    ['beside another equal trade', [moved('k', 't', '5'), swap('s', 't', '5'), swap('r', 't', '5')], ['k']],
  ])('of a trade %s says what the line of the transfer says', (_, updates, folded) => {
    expect(applied(updates).all.flatMap((line) => (isFolded(line) ? [line.id] : []))).toEqual(folded)
  })

  it('has the content of its newest amend, at its own time and position', () => {
    const told = transfer('k')
    const lines = applied([told, amend('k', '0x1'), amend('k', '0x2')])
    expect(last(lines)).toMatchObject({ amended: ['memo', 'memo'], content: { memo: '0x2', id: told.id, time: told.time } })
  })

  it('whose end may be lost in a gap says so, until the relay tells how it ended', () => {
    const gap = { type: 'gap', id: 'e.gap', reason: 'missed', after: null, through: 'e.gap', backfill: null, time: '' } as const
    const lines = applied([transfer('sealed'), seal('sealed'), transfer('k'), transfer('l'), transfer('m')])
    lines.apply(gap)
    const unsure = () => lines.all.flatMap(({ id, isUnsure }) => (isUnsure ? [id] : []))
    expect(unsure()).toEqual(['k', 'l', 'm'])
    lines.apply(transfer('k', { stage: 'sealed', late: true }))
    lines.apply(seal('l'))
    expect(unsure()).toEqual(['m'])
    expect(lines.all.map(({ id, isSealed }) => [id, isSealed])).toEqual([
      ['sealed', true],
      ['k', true],
      ['l', true],
      ['m', false],
      ['e.gap', false],
    ])
  })

  it('is another object after a change, and the same one otherwise', () => {
    const lines = applied([transfer('k'), transfer('l')])
    const [k, l] = lines.all
    lines.apply(seal('k'))
    expect([lines.all[0] === k, lines.all[1] === l]).toEqual([false, true])
  })

  it('ends as the newest one of a fact that was published twice, also when it is read later', () => {
    const updates = [transfer('k'), retract('k'), transfer('k'), seal('k')]
    const lines = new TapeLines()
    lines.prepend(updates.slice(3), true)
    lines.prepend(updates.slice(0, 3).reverse(), false)
    expect(shown(lines)).toEqual(shown(applied(updates)))
    lines.apply(retract('k', 'reorg'))
    expect(lines.all.map(({ retraction }) => retraction?.reason)).toEqual(['not_sealed', 'reorg'])
  })
})

describe('the list', () => {
  const keys = ['a', 'b', 'c', 'd']
  const event = fc.oneof(
    fc.constantFrom(...keys).map((key) => () => transfer(key)),
    fc.subarray(keys, { minLength: 1 }).map((some) => () => seal(...some)),
    fc.constantFrom(...keys).map((key) => () => retract(key)),
    fc.tuple(fc.constantFrom(...keys), fc.string()).map(
      ([key, memo]) =>
        () =>
          amend(key, memo),
    ),
    fc.constant(session),
  )

  it('is the same whether messages came live or were read later, page by page', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), fc.integer({ min: 1, max: 7 }), fc.nat(40), (events, pageSize, live) => {
        const updates = events.map((make) => make())
        const split = Math.max(0, updates.length - live)
        const lines = new TapeLines()
        for (const item of updates.slice(split)) lines.apply(item)
        for (let end = split; end > 0; end -= pageSize) {
          const start = Math.max(0, end - pageSize)
          lines.prepend(updates.slice(start, end).reverse(), start > 0)
        }
        expect(shown(lines)).toEqual(shown(applied(updates)))
        expect(lines.all.every(({ nth }, index) => lines.at(nth) === lines.all[index])).toBe(true)
      }),
    )
  })

  const manyTransfers = (count: number) => Array.from({ length: count }, (_, nth) => transfer(String(nth)))

  it('drops its oldest lines beyond its bound, and knows from where to read them again', () => {
    const many = manyTransfers(21_000)
    const lines = applied(many)
    expect([lines.all.length, lines.all[0]?.id, lines.hasOlder]).toEqual([20_000, '1000', true])
    expect([lines.find('999'), lines.find('1000')?.nth, lines.newest]).toEqual([undefined, 1_001, 21_000])
    expect(lines.droppedBefore).toBe(many[1_000]?.id)
    lines.prepend(many.slice(0, 1_000).reverse(), false)
    expect([lines.at(1)?.id, lines.droppedBefore]).toEqual(['0', null])
  })

  it('keeps more while a reader is away from the newest, and is short again after that', () => {
    const lines = new TapeLines()
    lines.isHeld = true
    const many = manyTransfers(41_002)
    for (const item of many.slice(0, 40_999)) lines.apply(item)
    expect([lines.all.length, lines.hasRoom]).toEqual([40_999, false])
    for (const item of many.slice(40_999, 41_001)) lines.apply(item)
    expect(lines.all.length).toBe(40_001)
    lines.isHeld = false
    for (const item of many.slice(41_001)) lines.apply(item)
    expect([lines.all.length, lines.hasRoom, lines.at(lines.newest)?.id]).toEqual([20_000, true, '41001'])
  })
})
