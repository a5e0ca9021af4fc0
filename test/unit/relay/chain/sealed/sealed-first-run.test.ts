import { describe, expect, it } from 'vitest'
import { keyOf } from '../node-json.ts'
import { HEAD, openSealedBlocks } from './sealed-chain-fixture.ts'

/** Five blocks a second: in ten minutes there are 3,000. */
const BLOCKS = 3_000
const FIRST = { backfillFirstMs: 600_000 }

describe('settling in a first run', () => {
  it('begins so far back in block time, and reads what is between as after an outage, without a hole', async () => {
    const { chain, settledEvents, announceHead, advance, seal } = openSealedBlocks(FIRST)
    const [before, , deep, newest] = [BLOCKS + 1, BLOCKS, BLOCKS - 1, 3].map((depth) => chain.addLog(HEAD - depth))
    announceHead()
    await advance(60_000)
    await seal(1)
    expect(settledEvents.all[0]).toEqual({
      type: 'cursor',
      cursor: { number: HEAD - BLOCKS, hash: chain.hashOf(HEAD - BLOCKS) },
      timestamp: null,
    })
    expect(settledEvents.logKeys().toSorted()).toEqual([deep, newest].map((log) => keyOf(log ?? { block: 0 })).toSorted())
    expect(settledEvents.logKeys()).not.toContain(keyOf(before ?? { block: 0 }))
    expect(settledEvents.holes()).toEqual([])
    expect(new Set(settledEvents.blocks().map(({ number, via }) => number > HEAD || via))).toEqual(new Set([true, 'backfill']))
    expect(settledEvents.cursors().at(-1)).toBe(HEAD + 1)
  })

  it('waits for what the first block left behind', async () => {
    const asked: number[] = []
    let answer = () => {}
    const readFirstState = ({ number }: { readonly number: number }) => {
      asked.push(number)
      return new Promise<void>((resolve) => {
        answer = resolve
      })
    }
    const { settledEvents, announceHead, advance } = openSealedBlocks({ ...FIRST, readFirstState })
    announceHead()
    await advance(60_000)
    expect(asked).toEqual([HEAD - BLOCKS])
    expect(settledEvents.all).toEqual([])
    answer()
    await advance(60_000)
    expect(settledEvents.cursors().at(-1)).toBe(HEAD)
  })

  it('begins at the head after a previous run, or if nothing is to be read back', async () => {
    for (const settings of [{ ...FIRST, cursor: { number: HEAD - 5, hash: null } }, { backfillFirstMs: 0 }]) {
      const { settledEvents, announceHead, advance, seal } = openSealedBlocks(settings)
      announceHead()
      await advance(1_000)
      await seal(1)
      expect(settledEvents.blockNumbers()[0]).toBe('cursor' in settings ? HEAD - 4 : HEAD + 1)
    }
  })
})
