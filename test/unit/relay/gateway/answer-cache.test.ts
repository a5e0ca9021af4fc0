import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AnswerCache } from '../../../../src/relay/gateway/answer-cache.ts'
import type { ChainVersion } from '../../../../src/relay/gateway/answer-validity.ts'

const MIB = 2 ** 20
const firstStamp: ChainVersion = { reorgCount: 0, headCount: 0, pendingCount: 0 }
const sealed = { validity: 'sealed', version: firstStamp, requestedAt: 0 } as const
/** One buffer per length, since the content does not matter here. */
const lengths = [1, 3, 8, 13, 16]
const answers = new Map(lengths.map((mib) => [mib, Buffer.alloc(mib * MIB)]))
const bytesOf = (mib: number): Buffer => answers.get(mib) ?? Buffer.alloc(0)

describe('the answer cache', () => {
  it('frees an outdated answer when it is read', () => {
    const cache = new AnswerCache()
    cache.set('call', bytesOf(8), { validity: 'pending', version: firstStamp, requestedAt: 0 })
    expect(cache.get('call', firstStamp, 200)).toBeNull()
    expect(cache.bytes).toBe(0)
  })

  it('counts the key and the entry itself, however short the answer is', () => {
    const cache = new AnswerCache()
    for (let n = 0; n < 1_000; n += 1) cache.set(`call ${n}`, Buffer.from('1'), sealed)
    expect(cache.bytes).toBeGreaterThan(1_000 * 256)
    const other = new AnswerCache()
    for (let n = 0; n < 40; n += 1) other.set(n + 'x'.repeat(MIB), Buffer.from('1'), sealed)
    expect(other.get(`0${'x'.repeat(MIB)}`, firstStamp, 0)).toBeNull()
    expect(other.get(`39${'x'.repeat(MIB)}`, firstStamp, 0)).not.toBeNull()
  })

  it('keeps only the answer of a larger block of bytes', () => {
    const cache = new AnswerCache()
    const answer = Buffer.from('of a longer text').subarray(5, 15)
    cache.set('call', answer, sealed)
    const kept = cache.get('call', firstStamp, 0)
    expect(kept).toEqual(answer)
    expect(kept?.buffer.byteLength).toBe(10)
  })

  it('evicts as a plain list does that is searched from its end', () => {
    const act = fc.record({ key: fc.nat(11), mib: fc.option(fc.constantFrom(...lengths), { freq: 2 }) })
    fc.assert(
      fc.property(fc.array(act, { minLength: 1, maxLength: 60, size: 'max' }), (acts) => {
        const cache = new AnswerCache()
        // The newest is last. An entry is a little larger than its answer.
        let model: { key: string; mib: number }[] = []
        for (const { key: n, mib } of acts) {
          const key = String(n)
          const known = model.find((one) => one.key === key)
          model = model.filter((one) => one !== known)
          if (mib === null) {
            if (known) model.push(known)
            expect(cache.get(key, firstStamp, 0)?.length ?? null).toBe(known ? known.mib * MIB : null)
            continue
          }
          model.push({ key, mib })
          while (model.reduce((sum, one) => sum + one.mib, 0) >= 64) model.shift()
          cache.set(key, bytesOf(mib), sealed)
          const bytes = model.reduce((sum, one) => sum + one.mib * MIB, 0)
          expect(cache.bytes).toBeGreaterThanOrEqual(bytes)
          expect(cache.bytes).toBeLessThan(bytes + model.length * 1_024)
        }
      }),
    )
  })
})
