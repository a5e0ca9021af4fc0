import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parsePosition } from '../../../../src/protocol/position.ts'
import { type DraftOf, Update, type UpdateType } from '../../../../src/protocol/updates.ts'
import type { Entry } from '../../../../src/tape/tape.ts'
import { ArbitrarySelection, batchesOf, listenRequestOf, TapeActions } from '../arbitrary-tape.ts'
import { openEdge, sinceAfter } from '../edge-fixture.ts'

/**
 * What the contract's words say that a selection hears, found by going through the whole tape once and remembering what
 * was told: nothing of it looks anything up.
 */
function expectedOf(entries: readonly Entry[], { tokens, stage, types, min }: ArbitrarySelection): readonly string[] {
  const isMovement = (type: UpdateType) => type === 'transfer' || type === 'seize'
  type Content = Omit<Update, 'id' | 'prev' | 'time'>
  const passes = (content: Content) =>
    types.includes(content.type) &&
    (!isMovement(content.type) ||
      min === null ||
      ('reference_value' in content && Number(content.reference_value) >= min))
  /** Of each key that lives: what it is now, since when, whether this view has it, and whether this listener was told. */
  const facts = new Map<string, { content: Content; time: string; has: boolean; told: boolean }>()
  const received: string[] = []
  for (const { update, text } of entries) {
    if (tokens && update.address !== null && !tokens.some((address) => address === update.address)) continue
    switch (update.type) {
      case 'retract':
      case 'amend': {
        const life = facts.get(update.key)
        if (!life) throw new Error('a tape that cannot be')
        const named = types.includes(update.type) && !(min !== null && isMovement(update.of))
        const content = update.type === 'amend' ? update.update : null
        if (life.has && (named || life.told || (content && passes(content)))) received.push(text)
        if (content) {
          life.content = content
          life.told ||= life.has && passes(content)
        } else facts.delete(update.key)
        break
      }
      case 'seal': {
        let told = false
        update.keys.forEach((key, index) => {
          const life = facts.get(key)
          if (life && !life.has) {
            life.has = true
            life.told = passes(life.content)
            const { block: before } = life.content as DraftOf<'transfer'>
            const block = { ...before, hash: update.block.hash }
            const common = { id: `${update.id}.${index + 1}`, prev: null, time: life.time, stage: 'sealed', block }
            // The schema of the contract puts the fields in their order.
            if (life.told) received.push(JSON.stringify(Update.parse({ ...life.content, ...common })))
          }
          told ||= life?.told ?? false
        })
        if (told || types.includes('seal')) received.push(text)
        break
      }
      default: {
        const has = stage === 'preconfirmed' || !('stage' in update) || update.stage !== 'preconfirmed'
        const told = has && passes(update)
        if ('key' in update && update.key) facts.set(update.key, { content: update, time: update.time, has, told })
        if (told) received.push(text)
      }
    }
  }
  return received
}

/** A place as a number that grows with the stream: what is given before a seal stands before the seal. */
function sequenceOf(position: string): number {
  const { seq = 0, n = null } = parsePosition(position) ?? {}
  return seq + (n === null ? 0 : n / 100 - 1)
}
const idOf = (text: string): string => JSON.parse(text).id

describe('whatever is on the tape and whoever asks', () => {
  it('hears the same live, on coming later, and on coming back from any place', async () => {
    await fc.assert(
      fc.asyncProperty(TapeActions, ArbitrarySelection, async (deeds, selected) => {
        const house = openEdge()
        const { tape, listen, close } = house
        try {
          const asked = listenRequestOf(selected)
          const live = listen(asked)
          await live.started
          const turns = batchesOf(deeds)
          const midway = Math.floor(turns.length / 2)
          let joining = live
          for (const [index, turn] of turns.entries()) {
            if (index === midway) joining = listen({ ...asked, since: { from: 'start' } })
            await tape.append(turn)
          }
          await joining.started
          const expected = expectedOf(await tape.readAfter(0, 1_000), selected)
          expect(live.outlet.publishedLines).toEqual(expected)
          expect(joining.outlet.publishedLines).toEqual(expected)
          expect(live.listener.sent).toBe(expected.length)
          // Another edge has nothing at hand: all that it says, the tape says.
          const other = openEdge({ existingTape: tape })
          const everywhere = Array.from({ length: tape.end() + 1 }, (_, seq) => `${tape.epoch}.${seq}`)
          const within = expected.map(idOf).filter((id) => !everywhere.includes(id))
          for (const place of [...everywhere, ...within]) {
            const rest = expected.filter((text) => sequenceOf(idOf(text)) > sequenceOf(place))
            for (const { listen } of [house, other]) {
              const back = listen({ ...asked, since: sinceAfter(place) })
              await back.started
              expect(back.outlet.publishedLines).toEqual(rest)
              back.leave()
            }
          }
        } finally {
          await close()
        }
      }),
      { numRuns: 300 },
    )
  })

  it('is given in the sealed view each key once in each life, and nothing that is not sealed', async () => {
    await fc.assert(
      fc.asyncProperty(TapeActions, async (deeds) => {
        const { tape, listen, close } = openEdge()
        try {
          const types = ['transfer', 'seize', 'approval', 'pause', 'seal', 'retract', 'amend'] as const
          for (const turn of batchesOf(deeds)) await tape.append(turn)
          const { outlet, started } = listen({ options: { stage: 'sealed', types }, since: { from: 'start' } })
          await started
          const held = new Set<string>()
          for (const update of outlet.updates) {
            if (update.type === 'seal') {
              const listed = update.keys.filter((_, index) => update.types[index] !== 'part')
              expect(listed.filter((key) => !held.has(key))).toEqual([])
            } else if (update.type === 'retract') expect(held.delete(update.key)).toBe(true)
            else if (update.type === 'amend') expect(held.has(update.key)).toBe(true)
            else if ('key' in update && update.key) {
              expect(update).toMatchObject({ stage: 'sealed', block: { hash: expect.any(String) } })
              expect(held.has(update.key)).toBe(false)
              held.add(update.key)
            }
          }
        } finally {
          await close()
        }
      }),
      { numRuns: 150 },
    )
  })
})
