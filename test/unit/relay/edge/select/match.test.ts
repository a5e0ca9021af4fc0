import { describe, expect, it } from 'vitest'
import { runAtOnce } from '../../../../../src/lib/turns.ts'
import { parseDecimal } from '../../../../../src/protocol/decimal.ts'
import { defaultSelectionOptions, type SelectionOptions } from '../../../../../src/protocol/parameters/selection.ts'
import { type Draft, type Update, updateTypes } from '../../../../../src/protocol/updates.ts'
import type { Selection } from '../../../../../src/relay/edge/select/compiled-selection.ts'
import { Frame } from '../../../../../src/relay/edge/select/frame.ts'
import { KeyLookup } from '../../../../../src/relay/edge/select/key-history.ts'
import { createMatcher } from '../../../../../src/relay/edge/select/match.ts'
import type { Entry } from '../../../../../src/relay/tape/tape.ts'
import { apple, tesla } from '../../tape/update-drafts.ts'
import { type ListenRequest, openTestEdge } from '../edge-fixture.ts'
import { amendOf, approvalAt, retractOf, sealedAt, sealOf, transferAt } from '../fact-drafts.ts'

const minimum = (text: string) => parseDecimal(text)
const small = transferAt({ index: 1 }, { reference_value: '5.00' })
const large = transferAt({ index: 2 }, { reference_value: '5000.00' })
const grownTransfer = { ...small, reference_value: '6000.00' }
const shrunkTransfer = { ...large, reference_value: '1.00' }
const allowance = approvalAt({ index: 3 })
const largeOnly = { min_value: minimum('1000') }

/** The updates that a live listener receives; a later replay receives exactly the same. */
async function receivedBy(request: ListenRequest, ...batches: readonly (readonly Draft[])[]): Promise<readonly Update[]> {
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

describe('a retract', () => {
  it('follows a key that the selection received, though it names another type', async () => {
    expect(await receivedTypes({ types: ['transfer'] }, [large], [retractOf(large)])).toEqual(['transfer', 'retract'])
  })

  it('follows a key of the same batch', async () => {
    expect(await receivedTypes({ types: ['transfer'] }, [large, retractOf(large)])).toEqual(['transfer', 'retract'])
  })

  it('of a key that did not match comes to selections of retracts, all types, or the default types', async () => {
    for (const options of [{ types: ['retract' as const] }, { types: updateTypes }, {}]) {
      expect(await receivedTypes(options, [allowance], [retractOf(allowance)])).toContain('retract')
    }
  })

  it('of a key that did not match does not come to selections of other types', async () => {
    expect(await receivedTypes({ types: ['transfer', 'nav'] }, [allowance], [retractOf(allowance)])).toEqual([])
  })

  it.each<[string, Partial<SelectionOptions>]>([
    ['min_value', largeOnly],
    ['min_shares', { min_shares: minimum('2') }],
    ['account', { account: [`0x${'ee'.repeat(20)}`] }],
  ])('of a movement that %s filtered out is filtered out too', async (_, options) => {
    expect(await receivedTypes(options, [small], [retractOf(small)])).toEqual([])
  })

  it('of a movement that passed a value filter comes', async () => {
    expect(await receivedTypes(largeOnly, [small, large], [retractOf(large), retractOf(small)])).toEqual(['transfer', 'retract'])
  })

  it('of anything but a movement passes value filters', async () => {
    expect(await receivedTypes(largeOnly, [allowance], [retractOf(allowance)])).toEqual(['retract'])
  })

  it('of another token does not come', async () => {
    const other = transferAt({ address: tesla })
    expect(await receivedBy({ tokens: [apple] }, [other], [retractOf(other)])).toEqual([])
    expect(await receivedBy({ tokens: [] }, [small], [retractOf(small)])).toEqual([])
  })

  it('follows a key of which only an amend matched', async () => {
    expect(await receivedTypes(largeOnly, [small], [amendOf(small, grownTransfer)], [retractOf(small)])).toEqual([
      'amend',
      'retract',
    ])
  })

  it('follows a key that an amend moved out of the filter', async () => {
    expect(await receivedTypes(largeOnly, [large], [amendOf(large, shrunkTransfer)], [retractOf(large)])).toEqual([
      'transfer',
      'amend',
      'retract',
    ])
  })

  it('depends on the last publication of its key, not on earlier ones', async () => {
    const again = { ...large, reference_value: '1.00' }
    expect(await receivedTypes(largeOnly, [large], [retractOf(large)], [again], [retractOf(again)])).toEqual([
      'transfer',
      'retract',
    ])
  })
})

describe('an amend', () => {
  it('follows a key that the selection received, though its new content does not pass', async () => {
    const options = { ...largeOnly, types: ['transfer' as const] }
    expect(await receivedTypes(options, [large], [amendOf(large, shrunkTransfer)])).toEqual(['transfer', 'amend'])
  })

  it('comes when its new content passes, though the key did not match before', async () => {
    const options = { ...largeOnly, types: ['transfer' as const] }
    expect(await receivedTypes(options, [small], [amendOf(small, grownTransfer)])).toEqual(['amend'])
  })

  it('comes to selections of the new type, and so do later amends', async () => {
    const seized = { ...small, type: 'seize' as const }
    const batches = [[small], [amendOf(small, seized)], [amendOf(small, small)], [retractOf(small)]]
    expect(await receivedTypes({ types: ['seize'] }, ...batches)).toEqual(['amend', 'amend', 'retract'])
  })

  it('of a filtered movement is filtered while its content does not pass', async () => {
    expect(await receivedTypes(largeOnly, [small], [amendOf(small, { ...small, memo: null })])).toEqual([])
  })

  it('comes to selections of its type without a value filter', async () => {
    expect(await receivedTypes({ types: ['amend'] }, [small], [amendOf(small, grownTransfer)])).toEqual(['amend'])
  })
})

describe('a seal', () => {
  it('follows one of its keys that the selection received, though it names another type', async () => {
    const batches = [[small, allowance], [sealOf([small, allowance])]]
    expect(await receivedTypes({ types: ['approval'] }, ...batches)).toEqual(['approval', 'seal'])
    expect(await receivedTypes({ ...largeOnly, types: ['transfer'] }, ...batches)).toEqual([])
  })

  it('comes to selections of its type, with any value filter', async () => {
    expect(await receivedTypes(largeOnly, [small], [sealOf([small])])).toEqual(['seal'])
    expect(await receivedTypes({ types: ['seal'] }, [small], [sealOf([small])])).toEqual(['seal'])
  })

  it('follows a key that was published as sealed', async () => {
    const late = sealedAt(small)
    expect(await receivedTypes({ types: ['transfer'] }, [late, sealOf([late])])).toEqual(['transfer', 'seal'])
  })

  it('follows a key of which only an amend matched', async () => {
    const options = { ...largeOnly, types: ['transfer' as const] }
    expect(await receivedTypes(options, [small], [amendOf(small, grownTransfer), sealOf([small])])).toEqual(['amend', 'seal'])
  })

  it('does not come for a log folded into another, which was published under the key of that', async () => {
    const batches = [[allowance], [sealOf([allowance, { index: 9 }])]]
    expect(await receivedTypes({ types: ['transfer'] }, ...batches)).toEqual([])
  })

  it('does not come for a key that was retracted before', async () => {
    const batches = [[small], [retractOf(small), sealedAt(allowance), sealOf([allowance])]]
    expect(await receivedTypes({ types: ['transfer'] }, ...batches)).toEqual(['transfer', 'retract'])
  })
})

describe('a key that the tape no longer keeps', () => {
  /** The types received after a fact was evicted from a tape that keeps two updates. */
  const receivedAfterEviction = async (options: Partial<SelectionOptions>, last: Draft) => {
    const { tape, listen } = openTestEdge({ bound: 2 })
    await tape.append([small])
    await tape.append([approvalAt({ block: 8 }), approvalAt({ block: 9 })])
    expect(tape.readKey(small.key)).toEqual([])
    const live = listen({ options })
    await live.started
    await tape.append([last])
    return live.outlet.updates.map(({ type }) => type)
  }

  it.each([retractOf(small), amendOf(small, small), sealOf([small])])('may have matched: $type comes', async (last) => {
    expect(await receivedAfterEviction({ ...largeOnly, types: ['nav'] }, last)).toEqual([last.type])
  })

  it('may have matched even when an amend of it is kept', async () => {
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
  it('decides by its state at the time of the retract', async () => {
    const { tape, hub, listen } = openTestEdge()
    const { listener, outlet, started } = listen({ tokens: [apple, tesla], options: { types: ['transfer'] } })
    await started
    await tape.append([small, transferAt({ address: tesla })])
    listener.tokens = new Set([tesla])
    hub.join(listener)
    await tape.append([retractOf(small)])
    listener.tokens = new Set([apple, tesla])
    listener.options = { ...listener.options, min_value: minimum('1000') }
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
      readKey: (key: string) => {
        lookups.push(key)
        return [published.get(key) ?? entryOf(small)]
      },
      sealsOfToken: () => [],
    }
    return { lookups, memory }
  }
  const matcherOf = (options: Partial<SelectionOptions>) =>
    matchWith({ tokens: null, options: { ...defaultSelectionOptions, ...options } })

  it('is not made for selections of all seals and retracts', () => {
    const { lookups, memory } = counting()
    const batch = [small, sealOf([small, large]), retractOf(small), amendOf(large, large)]
    expect(matcherOf({})(batch.map((draft) => new Frame(entryOf(draft), new KeyLookup(memory))))).toHaveLength(4)
    expect(lookups).toEqual([])
  })

  it('is not made for movements', () => {
    const { lookups, memory } = counting()
    for (const options of [{}, largeOnly, { stage: 'sealed' as const }]) {
      matcherOf(options)([small, large].map((draft) => new Frame(entryOf(draft), new KeyLookup(memory))))
    }
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

  it('is not made for tokens outside the selection', () => {
    const { lookups, memory } = counting()
    const batch = [
      new Frame(entryOf(sealOf([small])), new KeyLookup(memory)),
      new Frame(entryOf(retractOf(small)), new KeyLookup(memory)),
    ]
    for (const stage of ['sealed', 'preconfirmed'] as const) {
      const selection = { tokens: new Set([tesla]), options: { ...defaultSelectionOptions, ...largeOnly, stage } }
      expect(matchWith(selection)(batch)).toEqual([])
    }
    expect(lookups).toEqual([])
  })
})

const matchWith = (selection: Selection) => (frames: readonly Frame[]) => runAtOnce(createMatcher(selection)(frames))
