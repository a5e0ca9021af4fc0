import { describe, expect, it } from 'vitest'
import { runAtOnce } from '../../../../../src/lib/turns.ts'
import { parseDecimal } from '../../../../../src/protocol/decimal.ts'
import { defaultSelectionOptions, type SelectionOptions } from '../../../../../src/protocol/parameters/selection.ts'
import type { Draft, Update } from '../../../../../src/protocol/updates.ts'
import type { Selection } from '../../../../../src/relay/edge/select/compiled-selection.ts'
import { Frame } from '../../../../../src/relay/edge/select/frame.ts'
import { KeyLookup } from '../../../../../src/relay/edge/select/key-history.ts'
import { createMatcher } from '../../../../../src/relay/edge/select/match.ts'
import type { Entry, TapeSubject } from '../../../../../src/relay/tape/tape.ts'
import { apple, tesla } from '../../tape/update-drafts.ts'
import { type ListenRequest, openTestEdge } from '../edge-fixture.ts'
import { amendOf, approvalAt, retractOf, sealOf, transferAt } from '../fact-drafts.ts'

const minimum = (text: string) => parseDecimal(text)
const small = transferAt({ index: 1 }, { reference_value: '5.00' })
const large = transferAt({ index: 2 }, { reference_value: '5000.00' })
const largeOnly = { min_value: minimum('1000') }

const grown = { ...small, reference_value: '6000.00' }

// Random tapes and selections are in match-random.test.ts. These cases are rare there, or beyond its selections.
it.each<[string, ListenRequest, readonly Draft[], readonly string[]]>([
  ['that min_value filtered out is filtered out', { options: largeOnly }, [small], []],
  ['that min_shares filtered out is filtered out', { options: { min_shares: minimum('2') } }, [small], []],
  ['that account filtered out is filtered out', { options: { account: [`0x${'ee'.repeat(20)}`] } }, [small], []],
  ['does not come to a selection of no token', { tokens: [] }, [small], []],
  [
    'that is small since its key was published again is filtered out',
    { options: largeOnly },
    [grown, retractOf(small), small],
    ['transfer', 'retract'],
  ],
  ['of which only an amend matched comes', { options: largeOnly }, [small, amendOf(small, grown)], ['amend', 'retract']],
])('a retract of a movement %s', async (_, request, before, types) => {
  const { tape, listen } = openTestEdge()
  const live = listen(request)
  await live.started
  for (const draft of [...before, retractOf(small)]) await tape.append([draft])
  expect(live.outlet.updates.map(({ type }) => type)).toEqual(types)
})

describe('a key that the tape no longer keeps', () => {
  const others = [approvalAt({ block: 8 }), approvalAt({ block: 9 })]

  const ofNav = { ...largeOnly, types: ['nav'] } as const

  it.each<[what: string, options: Partial<SelectionOptions>, last: Draft, later: readonly (readonly Draft[])[]]>([
    ['a retract', ofNav, retractOf(small), [others]],
    ['an amend', ofNav, amendOf(small, small), [others]],
    ['a seal', ofNav, sealOf([small]), [others]],
    ['a retract, though an amend is kept,', largeOnly, retractOf(small), [[amendOf(small, small)], others.slice(1)]],
  ])('may have matched: %s is sent', async (_, options, last, later) => {
    const { tape, listen } = openTestEdge({ bound: 2 })
    for (const batch of [[small], ...later]) await tape.append(batch)
    expect(tape.find({ key: small.key }).map(({ update }) => update.type)).not.toContain('transfer')
    const live = listen({ options })
    await live.started
    await tape.append([last])
    expect(live.outlet.updates.map(({ type }) => type)).toEqual([last.type])
  })
})

describe('a selection that changes', () => {
  it('decides by its state at the time of the retract', async () => {
    const { tape, hub, listen } = openTestEdge()
    const { listener, outlet, started } = listen({ tokens: [apple, tesla], options: { types: ['transfer'] } })
    await started
    await tape.append([small, transferAt({ address: tesla })])
    listener.selection = { ...listener.selection, tokens: new Set([tesla]) }
    hub.join(listener)
    await tape.append([retractOf(small)])
    const options = { ...listener.selection.options, min_value: minimum('1000') }
    listener.selection = { tokens: new Set([apple, tesla]), options }
    hub.join(listener)
    await tape.append([retractOf(transferAt({ address: tesla }))])
    expect(outlet.updates.map(({ type }) => type)).toEqual(['transfer', 'transfer'])
  })
})

describe('a key lookup', () => {
  const entryOf = (draft: Draft): Entry => {
    const update = { ...draft, id: 'k.9', prev: null } as Update
    return { seq: 9, update, text: JSON.stringify(update) }
  }
  /** A tape that holds two facts and records the lookups. */
  const counting = () => {
    const lookups: string[] = []
    const published = new Map([small, large].map((draft, index) => [draft.key, { ...entryOf(draft), seq: index + 1 }]))
    const memory = {
      find: (subject: TapeSubject) => {
        if (!('key' in subject)) return []
        lookups.push(subject.key)
        return [published.get(subject.key) ?? entryOf(small)]
      },
    }
    return { lookups, memory }
  }
  const matcherOf = (options: Partial<SelectionOptions>) =>
    matchWith({ tokens: null, options: { ...defaultSelectionOptions, ...options } })

  const follows = [sealOf([small, large]), retractOf(small), amendOf(large, large)]
  const elsewhere = new Set([tesla])
  it.each<[string, Selection['tokens'], Partial<SelectionOptions>, readonly Draft[], number]>([
    ['selections of all seals and retracts', null, {}, [small, ...follows], 4],
    ['movements', null, {}, [small, large], 2],
    ['movements that a value filter selects', null, largeOnly, [small, large], 1],
    ['movements in the sealed view', null, { stage: 'sealed' }, [small, large], 0],
    ['tokens outside the selection', elsewhere, largeOnly, follows, 0],
    ['tokens outside the selection, in the sealed view', elsewhere, { ...largeOnly, stage: 'sealed' }, follows, 0],
  ])('is not made for %s', (_, tokens, options, drafts, matches) => {
    const { lookups, memory } = counting()
    const frames = drafts.map((draft) => new Frame(entryOf(draft), new KeyLookup(memory)))
    expect(matchWith({ tokens, options: { ...defaultSelectionOptions, ...options } })(frames)).toHaveLength(matches)
    expect(lookups).toEqual([])
  })

  it('is made once per batch for all selections', () => {
    const { lookups, memory } = counting()
    const batch = [new Frame(entryOf(sealOf([small, large])), new KeyLookup(memory))]
    for (const value of ['1000', '2000', '3000']) {
      expect(matcherOf({ types: ['transfer'], min_value: minimum(value) })(batch)).toHaveLength(1)
    }
    expect(matcherOf({ types: ['approval'] })(batch)).toHaveLength(0)
    expect(matcherOf({ stage: 'sealed' })(batch)).toHaveLength(3)
    expect(lookups).toEqual([small.key, large.key])
  })

  it('of a large seal is made in steps', () => {
    const { lookups, memory } = counting()
    const steps = createMatcher({ tokens: null, options: { ...defaultSelectionOptions, stage: 'sealed' } })([
      new Frame(entryOf(sealOf([small, large])), new KeyLookup(memory)),
    ])
    expect([steps.next().done, lookups]).toEqual([false, [small.key]])
    expect([steps.next().done, lookups]).toEqual([false, [small.key, large.key]])
    expect(runAtOnce(steps)).toHaveLength(3)
  })
})

const matchWith = (selection: Selection) => (frames: readonly Frame[]) => runAtOnce(createMatcher(selection)(frames))
