import { describe, expect, it } from 'vitest'
import { Frame } from '../../../../src/edge/select/frame.ts'
import { createMatcher } from '../../../../src/edge/select/match.ts'
import { parseDecimal } from '../../../../src/protocol/decimal.ts'
import { defaultSelectionOptions, type SelectionOptions } from '../../../../src/protocol/selection.ts'
import { type Draft, type Update, updateTypes } from '../../../../src/protocol/updates.ts'
import type { Entry } from '../../../../src/tape/tape.ts'
import { apple, tesla } from '../../tape/update-drafts.ts'
import { type ListenRequest, openTestEdge } from '../edge-fixture.ts'
import { amendOf, approvalAt, retractOf, sealedAt, sealOf, transferAt } from '../fact-drafts.ts'

const minimum = (text: string) => parseDecimal(text)
const small = transferAt({ index: 1 }, { reference_value: '5.00' })
const large = transferAt({ index: 2 }, { reference_value: '5000.00' })
const grownTransfer = { ...small, reference_value: '6000.00' }
const shrunkTransfer = { ...large, reference_value: '1.00' }
const allowance = approvalAt({ index: 3 })
const largeOnly = { minValue: minimum('1000') }

/** What is heard of these turns by one who was there; one who comes later hears the very same. */
async function receivedBy(
  request: ListenRequest,
  ...batches: readonly (readonly Draft[])[]
): Promise<readonly Update[]> {
  const { tape, listen } = openTestEdge()
  const live = listen(request)
  await live.started
  for (const batch of batches) await tape.append(batch)
  const later = listen({ ...request, since: { from: 'start' } })
  await later.started
  expect(later.outlet.publishedLines).toEqual(live.outlet.publishedLines)
  return live.outlet.updates
}
const receivedTypes = async (options: Partial<SelectionOptions>, ...batches: readonly (readonly Draft[])[]) =>
  (await receivedBy({ options }, ...batches)).map(({ type }) => type)

describe('a retraction', () => {
  it('comes to who was told, though they named another type', async () => {
    expect(await receivedTypes({ types: ['transfer'] }, [large], [retractOf(large)])).toEqual(['transfer', 'retract'])
  })

  it('comes in the turn in which its key was told', async () => {
    expect(await receivedTypes({ types: ['transfer'] }, [large, retractOf(large)])).toEqual(['transfer', 'retract'])
  })

  it('of what somebody was not told comes to them if they named retractions, all types, or none', async () => {
    for (const options of [{ types: ['retract' as const] }, { types: updateTypes }, {}]) {
      expect(await receivedTypes(options, [allowance], [retractOf(allowance)])).toContain('retract')
    }
  })

  it('of what somebody was not told does not come to them if they named other types', async () => {
    expect(await receivedTypes({ types: ['transfer', 'nav'] }, [allowance], [retractOf(allowance)])).toEqual([])
  })

  it.each<[string, Partial<SelectionOptions>]>([
    ['min_value', largeOnly],
    ['min_shares', { minShares: minimum('2') }],
    ['party', { party: `0x${'ee'.repeat(20)}` }],
  ])('of a movement that %s kept away stays away too', async (_, options) => {
    expect(await receivedTypes(options, [small], [retractOf(small)])).toEqual([])
  })

  it('of a movement that a value filter let through comes', async () => {
    expect(await receivedTypes(largeOnly, [small, large], [retractOf(large), retractOf(small)])).toEqual([
      'transfer',
      'retract',
    ])
  })

  it('of anything else comes to those with a value filter as to all', async () => {
    expect(await receivedTypes(largeOnly, [allowance], [retractOf(allowance)])).toEqual(['retract'])
  })

  it('of another token does not come, whatever was told of it', async () => {
    const other = transferAt({ address: tesla })
    expect(await receivedBy({ tokens: [apple] }, [other], [retractOf(other)])).toEqual([])
    expect(await receivedBy({ tokens: [] }, [small], [retractOf(small)])).toEqual([])
  })

  it('comes to who was told an amendment only', async () => {
    expect(await receivedTypes(largeOnly, [small], [amendOf(small, grownTransfer)], [retractOf(small)])).toEqual([
      'amend',
      'retract',
    ])
  })

  it('comes to who was told before an amendment took it out of their filter', async () => {
    expect(await receivedTypes(largeOnly, [large], [amendOf(large, shrunkTransfer)], [retractOf(large)])).toEqual([
      'transfer',
      'amend',
      'retract',
    ])
  })

  it('looks at the present life of its key, not at a former one', async () => {
    const again = { ...large, reference_value: '1.00' }
    expect(await receivedTypes(largeOnly, [large], [retractOf(large)], [again], [retractOf(again)])).toEqual([
      'transfer',
      'retract',
    ])
  })
})

describe('an amendment', () => {
  it('comes to who was told, though they named another type and its content passes no more', async () => {
    const options = { ...largeOnly, types: ['transfer' as const] }
    expect(await receivedTypes(options, [large], [amendOf(large, shrunkTransfer)])).toEqual(['transfer', 'amend'])
  })

  it('comes where its new content passes, though nothing was told before', async () => {
    const options = { ...largeOnly, types: ['transfer' as const] }
    expect(await receivedTypes(options, [small], [amendOf(small, grownTransfer)])).toEqual(['amend'])
  })

  it('comes to who named the new type, and goes on coming', async () => {
    const seized = { ...small, type: 'seize' as const }
    const batches = [[small], [amendOf(small, seized)], [amendOf(small, small)], [retractOf(small)]]
    expect(await receivedTypes({ types: ['seize'] }, ...batches)).toEqual(['amend', 'amend', 'retract'])
  })

  it('of a movement that a value filter kept away stays away while it is kept away', async () => {
    expect(await receivedTypes(largeOnly, [small], [amendOf(small, { ...small, memo: null })])).toEqual([])
  })

  it('comes to all who named its type, where no value filter is set', async () => {
    expect(await receivedTypes({ types: ['amend'] }, [small], [amendOf(small, grownTransfer)])).toEqual(['amend'])
  })
})

describe('a seal', () => {
  it('comes to who was told one of its keys, though they named another type', async () => {
    const batches = [[small, allowance], [sealOf([small, allowance])]]
    expect(await receivedTypes({ types: ['approval'] }, ...batches)).toEqual(['approval', 'seal'])
    expect(await receivedTypes({ ...largeOnly, types: ['transfer'] }, ...batches)).toEqual([])
  })

  it('comes to all who named it, whatever their value filter', async () => {
    expect(await receivedTypes(largeOnly, [small], [sealOf([small])])).toEqual(['seal'])
    expect(await receivedTypes({ types: ['seal'] }, [small], [sealOf([small])])).toEqual(['seal'])
  })

  it('comes to who was told a key when it was sealed already', async () => {
    const late = sealedAt(small)
    expect(await receivedTypes({ types: ['transfer'] }, [late, sealOf([late])])).toEqual(['transfer', 'seal'])
  })

  it('comes to who was told an amendment only', async () => {
    const options = { ...largeOnly, types: ['transfer' as const] }
    expect(await receivedTypes(options, [small], [amendOf(small, grownTransfer), sealOf([small])])).toEqual([
      'amend',
      'seal',
    ])
  })

  it('does not come for what is folded into another: that was told under its key', async () => {
    const batches = [[allowance], [sealOf([allowance, { index: 9 }])]]
    expect(await receivedTypes({ types: ['transfer'] }, ...batches)).toEqual([])
  })

  it('does not come for what was retracted before', async () => {
    const batches = [[small], [retractOf(small), sealedAt(allowance), sealOf([allowance])]]
    expect(await receivedTypes({ types: ['transfer'] }, ...batches)).toEqual(['transfer', 'retract'])
  })
})

describe('what was told and is no longer kept', () => {
  /** A tape that holds two messages that the count may take, and has taken all that came before them. */
  const heardAfterEviction = async (options: Partial<SelectionOptions>, last: Draft) => {
    const { tape, listen } = openTestEdge({ bound: 2 })
    await tape.append([small])
    await tape.append([approvalAt({ block: 8 }), approvalAt({ block: 9 })])
    expect(tape.readKey(small.key)).toEqual([])
    const live = listen({ options })
    await live.started
    await tape.append([last])
    return live.outlet.updates.map(({ type }) => type)
  }

  it.each([retractOf(small), amendOf(small, small), sealOf([small])])(
    'may have been heard: $type comes',
    async (last) => {
      expect(await heardAfterEviction({ ...largeOnly, types: ['nav'] }, last)).toEqual([last.type])
    },
  )

  it('is missed even where an amendment of it is kept', async () => {
    const { tape, listen } = openTestEdge({ bound: 2 })
    await tape.append([small])
    await tape.append([amendOf(small, small)])
    await tape.append([approvalAt({ block: 8 })])
    const live = listen({ options: largeOnly })
    await live.started
    await tape.append([retractOf(small)])
    expect(live.outlet.updates.map(({ type }) => type)).toEqual(['retract'])
  })
})

describe('a selection that changes', () => {
  it('is asked as it is when the retraction comes', async () => {
    const { tape, hub, listen } = openTestEdge()
    const { listener, outlet, started } = listen({ tokens: [apple, tesla], options: { types: ['transfer'] } })
    await started
    await tape.append([small, transferAt({ address: tesla })])
    listener.tokens = new Set([tesla])
    hub.join(listener)
    await tape.append([retractOf(small)])
    listener.tokens = new Set([apple, tesla])
    listener.options = { ...listener.options, minValue: minimum('1000') }
    hub.join(listener)
    await tape.append([retractOf(transferAt({ address: tesla }))])
    expect(outlet.updates.map(({ type }) => type)).toEqual(['transfer', 'transfer'])
  })
})

describe('looking things up', () => {
  const entryOf = (draft: Draft): Entry => {
    const update = { ...draft, id: 'k.9', prev: null } as Update
    return { seq: 9, update, text: JSON.stringify(update) }
  }
  /** A tape that was told these two before, and counts how often it is asked. */
  const counting = () => {
    const request: string[] = []
    const told = new Map([small, large].map((draft, index) => [draft.key, { ...entryOf(draft), seq: index + 1 }]))
    const memory = {
      readKey: (key: string) => {
        request.push(key)
        return [told.get(key) ?? entryOf(small)]
      },
      sealsOfToken: () => [],
    }
    return { request, memory }
  }
  const hear = (options: Partial<SelectionOptions>) =>
    createMatcher({ tokens: null, options: { ...defaultSelectionOptions, ...options } })

  it('costs nothing for those who hear all seals and retractions anyway', () => {
    const { request, memory } = counting()
    const batch = [small, sealOf([small, large]), retractOf(small), amendOf(large, large)]
    expect(hear({})(batch.map((draft) => new Frame(entryOf(draft), memory)))).toHaveLength(4)
    expect(request).toEqual([])
  })

  it('costs nothing for what moves', () => {
    const { request, memory } = counting()
    for (const options of [{}, largeOnly, { stage: 'sealed' as const }]) {
      hear(options)([small, large].map((draft) => new Frame(entryOf(draft), memory)))
    }
    expect(request).toEqual([])
  })

  it('is done once for all who ask in a turn', () => {
    const { request, memory } = counting()
    const batch = [new Frame(entryOf(sealOf([small, large])), memory)]
    for (const value of ['1000', '2000', '3000']) {
      expect(hear({ types: ['transfer'], minValue: minimum(value) })(batch)).toHaveLength(1)
    }
    expect(hear({ types: ['approval'] })(batch)).toHaveLength(0)
    expect(hear({ stage: 'sealed' })(batch)).toHaveLength(3)
    expect(request).toEqual([small.key, large.key])
  })

  it('is not done for tokens that nobody asked for', () => {
    const { request, memory } = counting()
    const batch = [new Frame(entryOf(sealOf([small])), memory), new Frame(entryOf(retractOf(small)), memory)]
    for (const stage of ['sealed', 'preconfirmed'] as const) {
      const selection = { tokens: new Set([tesla]), options: { ...defaultSelectionOptions, ...largeOnly, stage } }
      expect(createMatcher(selection)(batch)).toEqual([])
    }
    expect(request).toEqual([])
  })
})
