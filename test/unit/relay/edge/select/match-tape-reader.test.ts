import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runAtOnce } from '../../../../../src/lib/turns.ts'
import { defaultSelectionOptions } from '../../../../../src/protocol/parameters/selection.ts'
import { framesOf } from '../../../../../src/relay/edge/select/frame.ts'
import { createMatcher } from '../../../../../src/relay/edge/select/match.ts'
import type { Entry } from '../../../../../src/relay/tape/tape.ts'
import type { TestTape } from '../../../../support/local-tape.ts'
import { ArbitrarySelection, batchesOf, listenRequestOf, TapeActions } from '../arbitrary-tape.ts'
import { openEdge, openTestEdge, sinceAfter, withEdge } from '../edge-fixture.ts'
import { pauseAt, sealOf, transferAt } from '../fact-drafts.ts'

/** A compiled selection. */
const selectionOf = (selected: ArbitrarySelection) => {
  const { tokens, options } = listenRequestOf(selected)
  return { tokens: tokens ? new Set(tokens) : null, options: { ...defaultSelectionOptions, ...options } }
}
type Selection = ReturnType<typeof selectionOf>

/** The entries that a tape reader finds for a selection. */
async function readMatching(tape: TestTape, { tokens, options }: Selection, order: 'asc' | 'desc'): Promise<readonly Entry[]> {
  const types = new Set(options.types)
  const range = { after: 0, before: tape.end() + 1, order, limit: 1_000 }
  const { entries } = tape.read({ tokens, types, followersOf: types }, range)
  return order === 'asc' ? entries : entries.toReversed()
}

const matchLive = (tape: TestTape, selection: Selection, entries: readonly Entry[]): readonly string[] =>
  runAtOnce(createMatcher(selection)(framesOf(entries, tape))).map(({ entry }) => entry.text)

describe('a tape reader for a selection', () => {
  it('finds everything that matches, after any eviction', async () => {
    const Bounds = fc.constantFrom(2, 5, 10, 1_000)
    await fc.assert(
      fc.asyncProperty(TapeActions, ArbitrarySelection, Bounds, (actions, selected, bound) =>
        withEdge(
          async ({ tape }) => {
            for (const batch of batchesOf(actions)) await tape.append(batch)
            const selection = selectionOf(selected)
            const expected = matchLive(tape, selection, await tape.readAfter(0, 1_000))
            for (const order of ['asc', 'desc'] as const) {
              expect(matchLive(tape, selection, await readMatching(tape, selection, order))).toEqual(expected)
            }
          },
          { bound },
        ),
      ),
      { numRuns: 300 },
    )
  })
})

describe('a replay that is too long', () => {
  it('counts updates that eviction spared: a seal may still emit them', async () => {
    const { tape, listen } = openTestEdge({ bound: 60, replay: 20 })
    const pauses = Array.from({ length: 50 }, (_, index) => pauseAt({ index }))
    await tape.append(pauses)
    await tape.append(Array.from({ length: 100 }, (_, index) => transferAt({ index: 50 + index })))
    await tape.append([sealOf(pauses)])
    const before = sinceAfter(`${tape.epoch}.${tape.end() - 1}`)
    const { outlet, started } = listen({ options: { stage: 'sealed' }, since: before })
    await started
    expect(outlet.messages.map(({ type }) => type)).toEqual(['hello', 'subscribed', 'gap', 'live'])
  })

  it('is recognised exactly as by counting', async () => {
    await fc.assert(
      fc.asyncProperty(TapeActions, ArbitrarySelection, fc.integer({ min: 1, max: 12 }), async (actions, selected, replay) => {
        const counted = openEdge()
        const bounded = openEdge({ existingTape: counted.tape, replay })
        try {
          for (const batch of batchesOf(actions)) await counted.tape.append(batch)
          const request = { ...listenRequestOf(selected), since: { from: 'start' } as const }
          const [all, limited] = [counted.listen(request), bounded.listen(request)]
          await Promise.all([all.started, limited.started])
          const isLong = limited.outlet.messages.some((message) => message.type === 'gap' && message.reason === 'long')
          expect(isLong).toBe(all.outlet.publishedLines.length > replay && counted.tape.end() > replay)
        } finally {
          await bounded.close()
          await counted.close()
        }
      }),
      { numRuns: 200 },
    )
  })
})
