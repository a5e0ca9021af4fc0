import { describe, expect, it } from 'vitest'
import type { Draft } from '../../../../../src/protocol/updates.ts'
import { readFact } from '../../../../../src/relay/edge/history/fact-life.ts'
import { CurrentState } from '../../../../../src/relay/edge/select/current-state.ts'
import { headNote } from '../../../../../src/relay/notes/published-notes.ts'
import { apple, notesOfTokens, tesla } from '../../tape/update-drafts.ts'
import { openTestEdge } from '../edge-fixture.ts'
import { amendOf, pauseAt, retractOf, sealedAt, sealOf, transferAt } from '../fact-drafts.ts'

const published = transferAt({ index: 1 })
const other = transferAt({ index: 2 })
/** A log that is folded into another: the seals list it as a part. */
const foldedPosition = { index: 9 }
const foldedKey = sealOf([foldedPosition]).keys[0] ?? ''

type Head = Partial<Record<'safe' | 'finalized', number>>

/** The fact of a key after these batches; `seqs` are the sequence numbers of its updates. */
async function factAfter(batches: readonly (readonly Draft[])[], key: string = published.key, head: Head = {}) {
  const { tape } = openTestEdge({ bound: 6 })
  const heads = { pending: null, sealed: null, safe: head.safe ?? null, finalized: head.finalized ?? null }
  const tokens = [apple, tesla].map((address) => ({ address, symbol: address }))
  await tape.append([], notesOfTokens(tokens).set(headNote, heads))
  for (const batch of batches) await tape.append(batch)
  const fact = readFact(key, { tape, current: new CurrentState(tape.notes) })
  const entries = await tape.readAfter(0, 100)
  const seqs = fact.texts.map((text) => entries.findIndex((entry) => entry.text === text) + 1)
  return { ...fact, seqs }
}
const stageAfter = async (batches: readonly (readonly Draft[])[], key?: string, head?: Head) =>
  (await factAfter(batches, key, head)).stage

describe('the updates of one fact', () => {
  it('are all updates about it in the tape order, with the seals that list it, in the same text', async () => {
    const batches = [
      [published, other],
      [amendOf(published, { ...published, shares: '7' })],
      [sealOf([published, other]), sealOf([], 7, 0, tesla)],
      [sealOf([other], 8)],
    ]
    // A hash may be in capitals.
    const upper = published.key.replace(/0x[0-9a-f]+/, (hash) => `0x${hash.slice(2).toUpperCase()}`)
    for (const asked of [published.key, upper])
      expect(await factAfter(batches, asked)).toMatchObject({ key: published.key, seqs: [1, 3, 4] })
  })
})

describe('the stage of one fact', () => {
  const sealed = [[published], [sealOf([published])]]

  const amended = { ...published, shares: '7' }
  const gone = [...sealed, [retractOf(published, 'reorg'), sealOf([], 7, 1)]]
  const asPart: Draft = { ...sealOf([other, published], 7, 1), types: ['transfer', 'part'] }
  const elsewhere = { ...transferAt({ index: 1, address: tesla }), key: published.key }

  it.each<[string, string, readonly (readonly Draft[])[], Head?]>([
    ['preconfirmed', 'while the key is open', [[published]]],
    ['preconfirmed', 'while the key is open, though the heads are beyond it', [[published]], { safe: 9, finalized: 9 }],
    ['sealed', 'once a seal lists the key', sealed],
    [
      'sealed',
      'after an amend, and when its block is sealed again with it',
      [...sealed, [amendOf(published, sealedAt(amended)), sealOf([published], 7, 1)]],
    ],
    ['sealed', 'beyond the heads', sealed, { safe: 6, finalized: 5 }],
    ['safe', 'up to the safe head', sealed, { safe: 7, finalized: 6 }],
    ['finalized', 'up to the finalized head', sealed, { safe: 9, finalized: 7 }],
    ['retracted', 'after a retract, wherever the heads are', [[published], [retractOf(published)]], { safe: 9, finalized: 9 }],
    ['retracted', 'after a reorg', gone],
    ['sealed', 'where it is published anew', [...gone, [sealedAt(published, 2), sealOf([published], 7, 2)]]],
    [
      'retracted',
      'where a seal lists its log as part of another fact',
      [...sealed, [retractOf(published, 'reorg'), asPart]],
      { safe: 9 },
    ],
    [
      'sealed',
      "where another token's block is sealed again without the key",
      [...sealed, [retractOf(published, 'reorg'), sealedAt(elsewhere), sealOf([elsewhere], 7, 1, tesla), sealOf([], 7, 1)]],
    ],
  ])('is %s %s', async (stage, _, batches, head) => {
    expect(await stageAfter(batches, published.key, head)).toBe(stage)
  })

  it('is that of the new publication when the key is published again, after its older updates', async () => {
    expect(await factAfter([...gone, [published]])).toMatchObject({ stage: 'preconfirmed', seqs: [1, 2, 3, 5] })
    const again = [...gone, [published], [sealOf([published], 7, 2)]]
    expect(await factAfter(again, published.key, { safe: 7 })).toMatchObject({ stage: 'safe', seqs: [1, 2, 3, 5, 6] })
    expect(await stageAfter([...again, [retractOf(published, 'reorg')]])).toBe('retracted')
  })

  it('of a folded log ends with the block that held it', async () => {
    const held = [[published], [sealOf([published, foldedPosition])]]
    expect(await factAfter(held, foldedKey)).toMatchObject({ stage: 'sealed', seqs: [2] })
    const batches = [...held, [sealOf([published], 7, 1)]]
    expect(await factAfter(batches, foldedKey)).toMatchObject({ stage: 'retracted', seqs: [2] })
    const resealed = sealOf([published, foldedPosition], 7, 2)
    expect(await stageAfter([...batches, [resealed]], foldedKey)).toBe('sealed')
  })

  it('comes from the remaining updates when the publication is evicted', async () => {
    const corporate = pauseAt({ index: 3 })
    const later = [4, 5, 6, 7].map((index) => transferAt({ index }))
    const { stage, seqs } = await factAfter([[published], [sealOf([published, corporate])], later, [sealOf(later, 8)]])
    expect([stage, seqs]).toEqual(['sealed', [1]])
  })
})

it('a fact of which eviction by count left only an amend is sealed, though the amend is preconfirmed', async () => {
  const later = [4, 5, 6, 7, 8, 9].map((index) => transferAt({ index }))
  const batches = [[published], [amendOf(published, published)], [sealOf([published])], later]
  expect(await factAfter(batches, published.key, { finalized: 7 })).toMatchObject({ stage: 'finalized', seqs: [1] })
})

describe('a fact that cannot be read', () => {
  it.each([
    ...['', '7', 'k3f9a1.7', '7-0xab-1', `${published.key}-1`],
    ...[published.key.replace('7-', '07-'), published.key.replace('0x', '')],
  ])('is refused with the format of a key: %s', async (key) => {
    const message = expect.stringContaining('<block number>-<transaction hash>-<log index>')
    await expect(factAfter([[published]], key)).rejects.toMatchObject({ code: 400, details: { parameter: 'key' }, message })
  })

  it('is unknown when it was never published, and the refusal explains folded logs', async () => {
    for (const key of [other.key, foldedKey]) {
      const message = expect.stringMatching(new RegExp(`${key}.*seal`))
      await expect(factAfter([[published]], key)).rejects.toMatchObject({ code: 404, reason: 'unknown_key', message })
    }
  })
})
