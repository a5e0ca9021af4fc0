import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parsePosition } from '../../../../../src/protocol/position.ts'
import { type DraftOf, Update, type UpdateType } from '../../../../../src/protocol/updates.ts'
import type { Entry } from '../../../../../src/relay/tape/tape.ts'
import { ArbitrarySelection, batchesOf, listenRequestOf, TapeActions } from '../arbitrary-tape.ts'
import { openEdge, sinceAfter } from '../edge-fixture.ts'

/** What a selection receives by the contract, found in one pass over the whole tape, without any lookup. */
function expectedOf(entries: readonly Entry[], { tokens, stage, types, min }: ArbitrarySelection): readonly string[] {
  const isMovement = (type: UpdateType) => type === 'transfer' || type === 'seize'
  type Content = Omit<Update, 'id' | 'prev' | 'time'>
  const passes = (content: Content) =>
    types.includes(content.type) &&
    (!isMovement(content.type) || min === null || ('reference_value' in content && Number(content.reference_value) >= min))
  /** For each current key: its content and time, whether this view emitted it, and whether the selection matched it. */
  const facts = new Map<string, { content: Content; time: string; isEmitted: boolean; hasMatched: boolean }>()
  const received: string[] = []
  for (const { update, text } of entries) {
    if (tokens && update.address !== null && !tokens.some((address) => address === update.address)) continue
    switch (update.type) {
      case 'retract':
      case 'amend': {
        const fact = facts.get(update.key)
        if (!fact) throw new Error('an impossible tape')
        const isNamed = types.includes(update.type) && !(min !== null && isMovement(update.fact_type))
        const content = update.type === 'amend' ? update.update : null
        if (fact.isEmitted && (isNamed || fact.hasMatched || (content && passes(content)))) received.push(text)
        if (content) {
          fact.content = content
          fact.hasMatched ||= fact.isEmitted && passes(content)
        } else facts.delete(update.key)
        break
      }
      case 'seal': {
        let hasMatched = false
        update.keys.forEach((key, index) => {
          const fact = facts.get(key)
          if (fact && !fact.isEmitted) {
            fact.isEmitted = true
            fact.hasMatched = passes(fact.content)
            const { block: before } = fact.content as DraftOf<'transfer'>
            const block = { ...before, hash: update.block.hash }
            const common = { id: `${update.id}.${index + 1}`, prev: null, time: fact.time, stage: 'sealed', block }
            // The schema of the contract puts the fields in their order.
            if (fact.hasMatched) received.push(JSON.stringify(Update.parse({ ...fact.content, ...common })))
          }
          hasMatched ||= fact?.hasMatched ?? false
        })
        if (hasMatched || types.includes('seal')) received.push(text)
        break
      }
      default: {
        const isEmitted = stage === 'preconfirmed' || !('stage' in update) || update.stage !== 'preconfirmed'
        const hasMatched = isEmitted && passes(update)
        if ('key' in update && update.key) facts.set(update.key, { content: update, time: update.time, isEmitted, hasMatched })
        if (hasMatched) received.push(text)
      }
    }
  }
  return received
}

/** A position as a number in stream order: updates emitted before a seal are smaller than the seal. */
function sequenceOf(position: string): number {
  const { seq = 0, n = null } = parsePosition(position) ?? {}
  return seq + (n === null ? 0 : n / 100 - 1)
}
const idOf = (text: string): string => JSON.parse(text).id

describe('any selection on any tape', () => {
  it('receives the same live, in a replay and after a resume from any position', async () => {
    await fc.assert(
      fc.asyncProperty(TapeActions, ArbitrarySelection, async (actions, selected) => {
        const edge = openEdge()
        const { tape, listen, close } = edge
        try {
          const request = listenRequestOf(selected)
          const live = listen(request)
          await live.started
          const batches = batchesOf(actions)
          const midway = Math.floor(batches.length / 2)
          let joining = live
          for (const [index, batch] of batches.entries()) {
            if (index === midway) joining = listen({ ...request, since: { from: 'start' } })
            await tape.append(batch)
          }
          await joining.started
          const expected = expectedOf(await tape.readAfter(0, 1_000), selected)
          expect(live.outlet.publishedLines).toEqual(expected)
          expect(joining.outlet.publishedLines).toEqual(expected)
          expect(live.listener.sent).toBe(expected.length)
          // Another edge has nothing in memory: it reads everything from the tape.
          const other = openEdge({ existingTape: tape })
          const sequencePositions = Array.from({ length: tape.end() + 1 }, (_, seq) => `${tape.epoch}.${seq}`)
          const within = expected.map(idOf).filter((id) => !sequencePositions.includes(id))
          for (const position of [...sequencePositions, ...within]) {
            const rest = expected.filter((text) => sequenceOf(idOf(text)) > sequenceOf(position))
            for (const { listen } of [edge, other]) {
              const resumed = listen({ ...request, since: sinceAfter(position) })
              await resumed.started
              expect(resumed.outlet.publishedLines).toEqual(rest)
              resumed.leave()
            }
          }
        } finally {
          await close()
        }
      }),
      { numRuns: 300 },
    )
  })
})
