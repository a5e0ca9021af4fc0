import { describe, expect, it } from 'vitest'
import { flowOf, netOf } from '../../../../src/board/chart/flow.ts'
import type { TapeLine } from '../../../../src/board/tape/tape-lines.ts'

const nowMs = Date.parse('2026-11-20T12:00:00.000Z')
const [pool, holder, other] = ['0xp', '0xh', '0xo']
const movement = (type: string, from: string, to: string, value: string | null, minutesAgo = 0.5, more: object = {}) =>
  ({
    retraction: null,
    content: {
      type,
      address: '0xa',
      from,
      to,
      shares: '1',
      reference_value: value,
      time: new Date(nowMs - minutesAgo * 60_000).toISOString(),
    },
    ...more,
  }) as unknown as TapeLine

const lines = [
  movement('transfer', pool, holder, '1000.00', 61),
  movement('transfer', holder, pool, '1.00', 59.5),
  movement('transfer', pool, holder, '10.00', 10.5),
  movement('mint', '0x0', holder, '100.00'),
  movement('burn', holder, '0x0', '20.00'),
  movement('transfer', holder, other, '7.00'),
  movement('transfer', holder, other, null),
  movement('transfer', pool, holder, '5000.00', 0.2, { retraction: { reason: 'not_sealed' } }),
]
const total = (account: readonly string[] = [], poolOf: (address: string) => string | null = () => pool) =>
  flowOf(lines, nowMs, poolOf, account).get('0xa')

describe('the flow of a token', () => {
  it('adds up the last hour, without what was retracted', () => {
    expect(total()).toMatchObject({ in: 10, out: 1, minted: 100, burnt: 20, moved: 7, unvalued: 1 })
    expect(netOf(total() ?? expect.fail())).toBe(89)
  })

  it('is by minute, oldest first', () => {
    const minutes = total()?.minutes ?? []
    expect(minutes).toHaveLength(60)
    expect([minutes[0]?.out, minutes[49]?.in, minutes[59]?.minted]).toEqual([1, 10, 100])
  })

  it('takes the side of the address that is filtered by', () => {
    expect(total([other])).toMatchObject({ in: 7, out: 0, moved: 11 })
    expect(total([holder])).toMatchObject({ in: 10, out: 8, moved: 0 })
    expect(total([holder.toUpperCase(), other])).toMatchObject({ moved: 7 })
  })

  it('knows no buyers where there is no pool', () => {
    expect(total([], () => null)).toMatchObject({ in: 0, out: 0, moved: 18 })
  })
})
