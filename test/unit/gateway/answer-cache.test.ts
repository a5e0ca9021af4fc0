import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AnswerCache, type ChainVersion, isStillValid, type Validity } from '../../../src/gateway/answer-cache.ts'

const BOUND_BYTES = 64 * 2 ** 20
const MIB = 2 ** 20
const firstStamp: ChainVersion = { reorgCount: 0, headCount: 0, pendingCount: 0 }
const sealed = { validity: 'sealed', version: firstStamp, requestedAt: 0 } as const
/** One for all answers of a length, since what they hold is of no interest here. */
const lengths = [1, 3, 8, 13, 16]
const answers = new Map(lengths.map((mib) => [mib, Buffer.alloc(mib * MIB)]))
const bytesOf = (mib: number): Buffer => answers.get(mib) ?? Buffer.alloc(0)

describe('what an answer does not outlive', () => {
  const news = { move: { pendingCount: 1 }, head: { headCount: 1 }, reorganisation: { reorgCount: 1 } }

  it.each<[Validity, (keyof typeof news)[]]>([
    ['pending', ['move', 'head', 'reorganisation']],
    ['head', ['head', 'reorganisation']],
    ['sealed', ['reorganisation']],
  ])('is, where it is kept as %s, each of: %s', (validity, ends) => {
    expect(isStillValid(validity, firstStamp, { ...firstStamp })).toBe(true)
    for (const [name, change] of Object.entries(news)) {
      const memory = new AnswerCache()
      memory.set('question', Buffer.from('1'), { validity, version: firstStamp, requestedAt: 0 })
      const now = { ...firstStamp, ...change }
      expect(memory.get('question', now, 0)?.toString() ?? null).toBe(ends.some((end) => end === name) ? null : '1')
    }
  })

  it.each<[Validity, number]>([
    ['pending', 200],
    ['head', 60_000],
    ['sealed', 3_600_000],
  ])('is, where it is kept as %s, %i ms', (validity, ms) => {
    const memory = new AnswerCache()
    memory.set('question', Buffer.from('1'), { validity, version: firstStamp, requestedAt: 5 })
    expect(memory.get('question', firstStamp, 5 + ms - 1)?.toString()).toBe('1')
    expect(memory.get('question', firstStamp, 5 + ms)).toBeNull()
  })

  it('is not put off by asking', () => {
    const memory = new AnswerCache()
    memory.set('question', Buffer.from('1'), { validity: 'pending', version: firstStamp, requestedAt: 0 })
    for (let now = 0; now < 200; now += 50) expect(memory.get('question', firstStamp, now)).not.toBeNull()
    expect(memory.get('question', firstStamp, 200)).toBeNull()
  })
})

describe('the memory', () => {
  it('takes no more than it may: what was asked for longest ago goes first', () => {
    const memory = new AnswerCache()
    for (let n = 0; n < 7; n += 1) memory.set(String(n), bytesOf(8), sealed)
    expect(memory.get('0', firstStamp, 0)).not.toBeNull()
    memory.set('7', bytesOf(8), sealed)
    const known = Array.from({ length: 8 }, (_, n) => memory.get(String(n), firstStamp, 0) !== null)
    expect(known).toEqual([true, false, true, true, true, true, true, true])
    expect(memory.bytes).toBeLessThanOrEqual(BOUND_BYTES)
  })

  it('counts a question that is answered again once', () => {
    const memory = new AnswerCache()
    memory.set('question', bytesOf(8), sealed)
    const before = memory.bytes
    for (let time = 0; time < 20; time += 1) memory.set('question', bytesOf(8), sealed)
    expect(memory.bytes).toBe(before)
    memory.set('question', Buffer.from('1'), sealed)
    expect(memory.bytes).toBeLessThan(2_000)
    expect(memory.get('question', firstStamp, 0)?.toString()).toBe('1')
  })

  it('gives back what is over, as soon as it is asked for', () => {
    const memory = new AnswerCache()
    memory.set('question', bytesOf(8), { validity: 'pending', version: firstStamp, requestedAt: 0 })
    expect(memory.get('question', firstStamp, 200)).toBeNull()
    expect(memory.bytes).toBe(0)
  })

  it('counts what a question and an entry take, however short the answer is', () => {
    const memory = new AnswerCache()
    for (let n = 0; n < 1_000; n += 1) memory.set(`question ${n}`, Buffer.from('1'), sealed)
    expect(memory.bytes).toBeGreaterThan(1_000 * 256)
    const other = new AnswerCache()
    for (let n = 0; n < 40; n += 1) other.set(n + 'x'.repeat(MIB), Buffer.from('1'), sealed)
    expect(other.get(`0${'x'.repeat(MIB)}`, firstStamp, 0)).toBeNull()
    expect(other.get(`39${'x'.repeat(MIB)}`, firstStamp, 0)).not.toBeNull()
  })

  it('keeps no more of a larger block of bytes than the answer itself', () => {
    const memory = new AnswerCache()
    const answer = Buffer.from('of a longer text').subarray(5, 15)
    memory.set('question', answer, sealed)
    const kept = memory.get('question', firstStamp, 0)
    expect(kept).toEqual(answer)
    expect(kept?.buffer.byteLength).toBe(10)
  })

  it('does as a list does that is searched from its end', () => {
    const act = fc.record({ key: fc.nat(11), mib: fc.option(fc.constantFrom(...lengths), { freq: 2 }) })
    fc.assert(
      fc.property(fc.array(act, { minLength: 1, maxLength: 60, size: 'max' }), (acts) => {
        const memory = new AnswerCache()
        // The newest last; an entry is a little more than its answer.
        let model: { key: string; mib: number }[] = []
        for (const { key: n, mib } of acts) {
          const key = String(n)
          const known = model.find((one) => one.key === key)
          model = model.filter((one) => one !== known)
          if (mib === null) {
            if (known) model.push(known)
            expect(memory.get(key, firstStamp, 0)?.length ?? null).toBe(known ? known.mib * MIB : null)
            continue
          }
          model.push({ key, mib })
          while (model.reduce((sum, one) => sum + one.mib, 0) >= 64) model.shift()
          memory.set(key, bytesOf(mib), sealed)
          const bytes = model.reduce((sum, one) => sum + one.mib * MIB, 0)
          expect(memory.bytes).toBeGreaterThanOrEqual(bytes)
          expect(memory.bytes).toBeLessThan(bytes + model.length * 1_024)
        }
      }),
    )
  })
})
