import { describe, expect, it } from 'vitest'
import { followedKeys, type KeyStage, stageAfter } from '../../../src/protocol/key-life.ts'
import { contentsBefore, keyEventOf } from '../../../src/protocol/key-messages.ts'
import type { Update } from '../../../src/protocol/updates.ts'

const publish = (stage: string, late = false) => ({ type: 'transfer', key: 'k', stage, late })
const amend = (stage: string) => ({ type: 'amend', key: 'k', update: { type: 'transfer', key: 'k', stage } })
const retract = { type: 'retract', key: 'k' }
const seal = { type: 'seal', keys: ['a', 'k', 'b'], types: ['transfer', 'part', 'log'] }

describe('the life of a key', () => {
  it.each([
    ['a pre-confirmation', [publish('preconfirmed')], 'preconfirmed'],
    ['a publication with its block', [publish('sealed')], 'sealed'],
    ['an amend of an open key', [publish('preconfirmed'), amend('preconfirmed')], 'preconfirmed'],
    ['an amend with the block', [publish('preconfirmed'), amend('sealed')], 'sealed'],
    ['an amend of a sealed key', [publish('sealed'), amend('preconfirmed')], 'sealed'],
    ['an amend whose publication is not known', [amend('preconfirmed')], 'preconfirmed'],
    ['a seal', [publish('preconfirmed'), seal], 'sealed'],
    ['a retract of a sealed key', [publish('preconfirmed'), seal, retract], 'retracted'],
    ['a publication after a retract', [publish('preconfirmed'), retract, publish('preconfirmed')], 'preconfirmed'],
  ] as const)('is at its stage after %s', (_, messages, stage) => {
    expect(messages.reduce<KeyStage>((before, message) => stageAfter(before, message), 'preconfirmed')).toBe(stage)
  })

  it('is followed by its retract and amend, and by seals that list more than a part of another fact', () => {
    expect(
      [retract, amend('sealed'), seal, { ...seal, types: ['log', 'log', 'log'] }, publish('sealed')].map(followedKeys),
    ).toEqual([...[['k'], ['k'], ['a', 'b'], ['a', 'k', 'b'], []]])
  })

  it('has the contents since its last publication, before a position', () => {
    const messages = [
      amend('sealed'),
      publish('preconfirmed'),
      retract,
      publish('preconfirmed'),
      amend('sealed'),
      publish('sealed'),
    ]
    const entries = messages.map((update, seq) => ({ seq, update: update as unknown as Update }))
    const seqsBefore = (seq: number) => contentsBefore(entries, seq).map((content) => content.seq)
    expect([1, 2, 3, 5, 9].map(seqsBefore)).toEqual([[], [1], [], [3, 4], [3, 4, 5]])
  })

  it('counts a late fact as backfilled if its block is over a minute older than the message, or of unknown age', () => {
    const time = '2026-11-20T14:05:00.000Z'
    const late = (timestamp: string | null) => keyEventOf({ ...publish('sealed', true), time, block: { timestamp } })
    expect(late('2026-11-20T14:04:00.000Z')).toBe('late')
    expect(late('2026-11-20T14:03:59.999Z')).toBe('backfilled')
    expect(late(null)).toBe('backfilled')
    expect(
      [publish('preconfirmed'), publish('sealed'), { type: 'nav' }].map((message) => keyEventOf({ ...message, time })),
    ).toEqual([...['preconfirmed', null, null]])
  })
})
