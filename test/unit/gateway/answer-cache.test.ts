import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { holds, type Keeping, Memory, type Stamp } from '../../../src/gateway/answer-cache.ts'

const BOUND_BYTES = 64 * 2 ** 20
const MIB = 2 ** 20
const begin: Stamp = { era: 0, heads: 0, moves: 0 }
const sealed = { keeping: 'sealed', stamp: begin, askedAt: 0 } as const
/** One for all answers of a length, since what they hold is of no interest here. */
const lengths = [1, 3, 8, 13, 16]
const answers = new Map(lengths.map((mib) => [mib, Buffer.alloc(mib * MIB)]))
const long = (mib: number): Buffer => answers.get(mib) ?? Buffer.alloc(0)

describe('what an answer does not outlive', () => {
  const news = { move: { moves: 1 }, head: { heads: 1 }, reorganisation: { era: 1 } }

  it.each<[Keeping, (keyof typeof news)[]]>([
    ['pending', ['move', 'head', 'reorganisation']],
    ['head', ['head', 'reorganisation']],
    ['sealed', ['reorganisation']],
  ])('is, where it is kept as %s, each of: %s', (keeping, ends) => {
    expect(holds(keeping, begin, { ...begin })).toBe(true)
    for (const [name, change] of Object.entries(news)) {
      const memory = new Memory()
      memory.keep('question', Buffer.from('1'), { keeping, stamp: begin, askedAt: 0 })
      const now = { ...begin, ...change }
      expect(memory.recall('question', now, 0)?.toString() ?? null).toBe(ends.some((end) => end === name) ? null : '1')
    }
  })

  it.each<[Keeping, number]>([
    ['pending', 200],
    ['head', 60_000],
    ['sealed', 3_600_000],
  ])('is, where it is kept as %s, %i ms', (keeping, ms) => {
    const memory = new Memory()
    memory.keep('question', Buffer.from('1'), { keeping, stamp: begin, askedAt: 5 })
    expect(memory.recall('question', begin, 5 + ms - 1)?.toString()).toBe('1')
    expect(memory.recall('question', begin, 5 + ms)).toBeNull()
  })

  it('is not put off by asking', () => {
    const memory = new Memory()
    memory.keep('question', Buffer.from('1'), { keeping: 'pending', stamp: begin, askedAt: 0 })
    for (let now = 0; now < 200; now += 50) expect(memory.recall('question', begin, now)).not.toBeNull()
    expect(memory.recall('question', begin, 200)).toBeNull()
  })
})

describe('the memory', () => {
  it('takes no more than it may: what was asked for longest ago goes first', () => {
    const memory = new Memory()
    for (let n = 0; n < 7; n += 1) memory.keep(String(n), long(8), sealed)
    expect(memory.recall('0', begin, 0)).not.toBeNull()
    memory.keep('7', long(8), sealed)
    const known = Array.from({ length: 8 }, (_, n) => memory.recall(String(n), begin, 0) !== null)
    expect(known).toEqual([true, false, true, true, true, true, true, true])
    expect(memory.bytes).toBeLessThanOrEqual(BOUND_BYTES)
  })

  it('counts a question that is answered again once', () => {
    const memory = new Memory()
    memory.keep('question', long(8), sealed)
    const before = memory.bytes
    for (let time = 0; time < 20; time += 1) memory.keep('question', long(8), sealed)
    expect(memory.bytes).toBe(before)
    memory.keep('question', Buffer.from('1'), sealed)
    expect(memory.bytes).toBeLessThan(2_000)
    expect(memory.recall('question', begin, 0)?.toString()).toBe('1')
  })

  it('gives back what is over, as soon as it is asked for', () => {
    const memory = new Memory()
    memory.keep('question', long(8), { keeping: 'pending', stamp: begin, askedAt: 0 })
    expect(memory.recall('question', begin, 200)).toBeNull()
    expect(memory.bytes).toBe(0)
  })

  it('counts what a question and an entry take, however short the answer is', () => {
    const memory = new Memory()
    for (let n = 0; n < 1_000; n += 1) memory.keep(`question ${n}`, Buffer.from('1'), sealed)
    expect(memory.bytes).toBeGreaterThan(1_000 * 256)
    const other = new Memory()
    for (let n = 0; n < 40; n += 1) other.keep(n + 'x'.repeat(MIB), Buffer.from('1'), sealed)
    expect(other.recall(`0${'x'.repeat(MIB)}`, begin, 0)).toBeNull()
    expect(other.recall(`39${'x'.repeat(MIB)}`, begin, 0)).not.toBeNull()
  })

  it('keeps no more of a larger block of bytes than the answer itself', () => {
    const memory = new Memory()
    const answer = Buffer.from('of a longer text').subarray(5, 15)
    memory.keep('question', answer, sealed)
    const kept = memory.recall('question', begin, 0)
    expect(kept).toEqual(answer)
    expect(kept?.buffer.byteLength).toBe(10)
  })

  it('does as a list does that is searched from its end', () => {
    const act = fc.record({ key: fc.nat(11), mib: fc.option(fc.constantFrom(...lengths), { freq: 2 }) })
    fc.assert(
      fc.property(fc.array(act, { minLength: 1, maxLength: 60, size: 'max' }), (acts) => {
        const memory = new Memory()
        // The newest last; an entry is a little more than its answer.
        let model: { key: string; mib: number }[] = []
        for (const { key: n, mib } of acts) {
          const key = String(n)
          const known = model.find((one) => one.key === key)
          model = model.filter((one) => one !== known)
          if (mib === null) {
            if (known) model.push(known)
            expect(memory.recall(key, begin, 0)?.length ?? null).toBe(known ? known.mib * MIB : null)
            continue
          }
          model.push({ key, mib })
          while (model.reduce((sum, one) => sum + one.mib, 0) >= 64) model.shift()
          memory.keep(key, long(mib), sealed)
          const bytes = model.reduce((sum, one) => sum + one.mib * MIB, 0)
          expect(memory.bytes).toBeGreaterThanOrEqual(bytes)
          expect(memory.bytes).toBeLessThan(bytes + model.length * 1_024)
        }
      }),
    )
  })
})
