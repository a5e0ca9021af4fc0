import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatKey, Key, PositionText } from '../../../src/protocol/fields.ts'
import { formatPosition, parsePosition, resumeAfter } from '../../../src/protocol/position.ts'

const characters = [...'0123456789abcdefghijklmnopqrstuvwxyz']
const epochs = fc.array(fc.constantFrom(...characters), { minLength: 1, maxLength: 32 }).map((letters) => letters.join(''))
const numbers = fc.maxSafeNat()

describe('a position', () => {
  it('parses to what was formatted', () => {
    fc.assert(
      fc.property(epochs, numbers, (epoch, seq) => {
        const text = formatPosition(epoch, seq)
        expect(text).toMatch(/^[0-9a-z.]+$/)
        expect(PositionText.safeParse(text).success).toBe(true)
        expect(parsePosition(text)).toEqual({ epoch, seq, n: null })
      }),
    )
  })

  it('of the sealed view parses with its index in the seal', () => {
    fc.assert(
      fc.property(epochs, numbers, fc.integer({ min: 1, max: 999_999_999 }), (epoch, seq, n) => {
        expect(parsePosition(`${formatPosition(epoch, seq)}.${n}`)).toEqual({ epoch, seq, n })
      }),
    )
  })

  it('has a single form: a parsed text formats to itself', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[0-9a-z]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?$/), (text) => {
        const position = parsePosition(text)
        if (!position) return
        const { epoch, seq, n } = position
        expect(n === null ? formatPosition(epoch, seq) : `${formatPosition(epoch, seq)}.${n}`).toBe(text)
      }),
    )
  })

  it.each([
    ...['', '.', '-', 'null', '12345', 'k3f9a1', 'k3f9a1.', '.18422', 'k3f9a1.-1', 'k3f9a1.+1', 'k3f9a1.01', 'k3f9a1.1.0'],
    ...['k3f9a1.1.01', 'k3f9a1.1.', 'k3f9a1.1.2.3', 'K3F9A1.1', 'k3f9a1.1 ', ' k3f9a1.1', 'k3f9a1.1\n', 'k3f9a1,1'],
    ...['k3f9a1.1e3', `${'k'.repeat(33)}.1`, 'k3f9a1.١'],
  ])('does not parse from %j', (text) => {
    expect(parsePosition(text)).toBeNull()
  })
})

describe('a resume', () => {
  const after = (text: string) => {
    const position = parsePosition(text)
    return position && resumeAfter(position)
  }

  it('continues after a position', () => {
    expect(after('k3f9a1.18422')).toBe(18_422)
    expect(after('k3f9a1.0')).toBe(0)
  })

  it('after <p>.<n> continues just before <p>, and never before the start', () => {
    expect(after('k3f9a1.18422.3')).toBe(18_421)
    expect(after('k3f9a1.0.1')).toBe(0)
  })
})

describe('a key', () => {
  it('is block number, transaction and log index, in decimal, hex, decimal', () => {
    const tx = `0x${'ab'.repeat(32)}` as const
    expect(formatKey(52_380_564, tx, 17)).toBe(`52380564-${tx}-17`)
    expect(Key.safeParse(formatKey(52_380_564, tx, 17)).success).toBe(true)
  })

  it.each([
    `1-0x${'AB'.repeat(32)}-0`,
    `01-0x${'ab'.repeat(32)}-0`,
    `0x1-0x${'ab'.repeat(32)}-0`,
    `1-0x${'ab'.repeat(31)}-0`,
    `1-0x${'ab'.repeat(32)}`,
    `-1-0x${'ab'.repeat(32)}-0`,
  ])('is refused as %s', (text) => {
    expect(Key.safeParse(text).success).toBe(false)
  })
})

describe('a sequence number beyond 2^53', () => {
  it.each(['9007199254740992', '99999999999999999999999999'])('counts as the largest safe integer: %s', (digits) => {
    expect(parsePosition(`k3f9a1.${digits}`)?.seq).toBe(Number.MAX_SAFE_INTEGER)
  })
})
