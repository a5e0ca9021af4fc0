import { describe, expect, it } from 'vitest'
import { readFact } from '../../../../src/edge/history/fact-life.ts'
import { View } from '../../../../src/edge/select/view.ts'
import { Refusal } from '../../../../src/protocol/refusal.ts'
import type { Draft } from '../../../../src/protocol/updates.ts'
import { anyOpenKeyNotes, headNote, Notes } from '../../../../src/tape/notes.ts'
import { apple, notesOfTokens, tesla } from '../../tape/update-drafts.ts'
import { openTestEdge } from '../edge-fixture.ts'
import { amendOf, pauseAt, retractOf, sealedAt, sealOf, transferAt } from '../fact-drafts.ts'

const published = transferAt({ index: 1 })
const other = transferAt({ index: 2 })
/** A log that was never told by itself; the seals list it as a part of another. */
const foldedPosition = { index: 9 }
const foldedKey = sealOf([foldedPosition]).keys[0] ?? ''

type Head = Partial<Record<'safe' | 'finalized', number>>

/** What is known of a key after these turns, and every message of the tape. */
async function factAfter(batches: readonly (readonly Draft[])[], key: string = published.key, head: Head = {}) {
  const { tape } = openTestEdge({ bound: 6 })
  const heads = { pending: null, sealed: null, safe: head.safe ?? null, finalized: head.finalized ?? null }
  const tokens = [apple, tesla].map((address) => ({ address, symbol: address }))
  await tape.append([], notesOfTokens(tokens).set(headNote, heads))
  for (const turn of batches) await tape.append(turn)
  const fact = readFact(key, { tape, view: new View(tape) })
  const entries = await tape.readAfter(0, 100)
  const places = fact.texts.map((text) => entries.findIndex((entry) => entry.text === text) + 1)
  return { ...fact, places }
}
const stageAfter = async (batches: readonly (readonly Draft[])[], key?: string, head?: Head) =>
  (await factAfter(batches, key, head)).stage

describe('all about one fact', () => {
  it('is every message about it, oldest first, with the seals that list it and no others, in the same text', async () => {
    const batches = [
      [published, other],
      [amendOf(published, { ...published, shares: '7' })],
      [sealOf([published, other]), sealOf([], 7, 0, tesla)],
      [sealOf([other], 8)],
    ]
    const { key, places } = await factAfter(batches)
    expect(key).toBe(published.key)
    expect(places).toEqual([1, 3, 4])
  })

  it('is found in whatever case its hash is written', async () => {
    const upper = published.key.replace(/0x[0-9a-f]+/, (hash) => `0x${hash.slice(2).toUpperCase()}`)
    expect((await factAfter([[published]], upper)).key).toBe(published.key)
  })

  it('that was folded into another is the seals that list it', async () => {
    const { places, stage } = await factAfter([[published], [sealOf([published, foldedPosition])]], foldedKey)
    expect([places, stage]).toEqual([[2], 'sealed'])
  })
})

describe('the stage of one fact', () => {
  const sealed = [[published], [sealOf([published])]]

  it('is preconfirmed while it is open, also when amended', async () => {
    expect(await stageAfter([[published]])).toBe('preconfirmed')
    expect(await stageAfter([[published], [amendOf(published, { ...published, shares: '7' })]])).toBe('preconfirmed')
  })

  it('is sealed once a seal lists it or it was told as sealed', async () => {
    expect(await stageAfter(sealed)).toBe('sealed')
    expect(await stageAfter([[sealedAt(published)]])).toBe('sealed')
    expect(await stageAfter([[published], [amendOf(published, sealedAt({ ...published, shares: '7' }))]])).toBe(
      'sealed',
    )
  })

  it('stays sealed when it is amended afterwards, and when its block is sealed again with it', async () => {
    const again = amendOf(published, sealedAt({ ...published, shares: '7' }))
    expect(await stageAfter([...sealed, [again, sealOf([published], 7, 1)]])).toBe('sealed')
  })

  it('follows the watermarks by the number of its block', async () => {
    expect(await stageAfter(sealed, published.key, { safe: 6, finalized: 5 })).toBe('sealed')
    expect(await stageAfter(sealed, published.key, { safe: 7, finalized: 6 })).toBe('safe')
    expect(await stageAfter(sealed, published.key, { safe: 9, finalized: 7 })).toBe('finalized')
  })

  it('is never safe while it is open or retracted', async () => {
    expect(await stageAfter([[published]], published.key, { safe: 9, finalized: 9 })).toBe('preconfirmed')
    expect(await stageAfter([[published], [retractOf(published)]], published.key, { safe: 9, finalized: 9 })).toBe(
      'retracted',
    )
  })

  it('is retracted once it was taken back, until it is told anew', async () => {
    const gone = [...sealed, [retractOf(published, 'reorg'), sealOf([], 7, 1)]]
    expect(await stageAfter(gone)).toBe('retracted')
    expect(await stageAfter([...gone, [sealedAt(published, 2), sealOf([published], 7, 2)]])).toBe('sealed')
  })

  it('is that of its new life where it is told again, and what is kept of the old one stands before it', async () => {
    const batches = [...sealed, [retractOf(published, 'reorg'), sealOf([], 7, 1)]]
    expect(await factAfter([...batches, [published]])).toMatchObject({ stage: 'preconfirmed', places: [1, 2, 3, 5] })
    const again = [...batches, [published], [sealOf([published], 7, 2)]]
    expect(await factAfter(again, published.key, { safe: 7 })).toMatchObject({ stage: 'safe', places: [1, 2, 3, 5, 6] })
    expect(await stageAfter([...again, [retractOf(published, 'reorg')]])).toBe('retracted')
  })

  it('of what was folded into another ends with the block that held it', async () => {
    const batches = [[published], [sealOf([published, foldedPosition])], [sealOf([published], 7, 1)]]
    expect(await factAfter(batches, foldedKey)).toMatchObject({ stage: 'retracted', places: [2] })
    const back = sealOf([published, foldedPosition], 7, 2)
    expect(await stageAfter([...batches, [back]], foldedKey)).toBe('sealed')
  })

  it("is not told by a seal of another token's block", async () => {
    const elsewhere = { ...transferAt({ index: 1, address: tesla }), key: published.key }
    const batches = [
      [published],
      [sealOf([published])],
      [retractOf(published, 'reorg'), sealedAt(elsewhere), sealOf([elsewhere], 7, 1, tesla), sealOf([], 7, 1)],
    ]
    expect(await stageAfter(batches)).toBe('sealed')
  })

  it('is known from what is left where the telling is no longer kept', async () => {
    const corporate = pauseAt({ index: 3 })
    const crowd = [4, 5, 6, 7].map((index) => transferAt({ index }))
    const { stage, places } = await factAfter([
      [published],
      [sealOf([published, corporate])],
      crowd,
      [sealOf(crowd, 8)],
    ])
    expect([stage, places]).toEqual(['sealed', [1]])
  })
})

describe('a fact of which the count left only an amendment', () => {
  const crowd = [4, 5, 6, 7, 8, 9].map((index) => transferAt({ index }))
  const batches = [[published], [amendOf(published, published)], [sealOf([published])], crowd]

  it('was sealed, though it was open when it was amended', async () => {
    expect(await factAfter(batches, published.key, { finalized: 7 })).toMatchObject({ stage: 'finalized', places: [1] })
  })

  it('is open as long as an end of it is owed', async () => {
    const { tape } = openTestEdge({ bound: 6 })
    await tape.append([], new Notes().set(anyOpenKeyNotes.at(published.key), {}))
    for (const turn of batches) await tape.append(turn)
    expect(readFact(published.key, { tape, view: new View(tape) })).toMatchObject({ stage: 'preconfirmed' })
  })
})

describe('a fact that cannot be given', () => {
  const refused = async (key: string): Promise<Refusal> => {
    const failure = await factAfter([[published]], key).catch((given: unknown) => given)
    if (failure instanceof Refusal) return failure
    throw new Error('it was answered')
  }

  it.each([
    '',
    '7',
    'k3f9a1.7',
    '7-0xab-1',
    published.key.replace('7-', '07-'),
    `${published.key}-1`,
    published.key.replace('0x', ''),
  ])('is refused with a sentence about keys: %s', async (key) => {
    const { code, message, details } = await refused(key)
    expect([code, details]).toEqual([400, { parameter: 'key' }])
    expect(message).toContain('<block number>-<transaction hash>-<log index>')
  })

  it('is unknown where nothing was told, and says where parts of another are found', async () => {
    for (const key of [other.key, foldedKey]) {
      const { code, reason, message } = await refused(key)
      expect([code, reason]).toEqual([404, 'unknown_key'])
      expect(message).toContain(key)
      expect(message).toContain('seal')
    }
  })
})
