import { describe, expect, it } from 'vitest'
import { Attendance } from '../../src/edge/attendance.ts'

const open = () => new Attendance({ clientsBound: 5, perAddressBound: 3 })

/** Lets everything go on that waits for nothing but its turn. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('who may come in', () => {
  it('is asked of the address first, so that one crowd is not told to wait for others', () => {
    const attendance = open()
    for (const address of ['a', 'a', 'a', 'b', 'c']) attendance.enter(address)
    expect(['a', 'b', 'd'].map((address) => attendance.objection(address))).toEqual([
      'too_many_connections',
      'full',
      'full',
    ])
  })

  it('is open again to whoever makes room', () => {
    const attendance = open()
    for (const address of ['a', 'a', 'a', 'b', 'b']) attendance.enter(address)
    attendance.leave('a')
    expect(['a', 'b'].map((address) => attendance.objection(address))).toEqual([null, null])
  })
})

describe('replays of one address', () => {
  it('run two at a time, and the others in the order in which they came', async () => {
    const attendance = open()
    attendance.enter('a')
    const begun: number[] = []
    const turns = [0, 1, 2, 3].map(async (which) => {
      const through = await attendance.replayTurn('a')
      begun.push(which)
      return through
    })
    await settle()
    expect(begun).toEqual([0, 1])
    ;(await turns[1])?.()
    await settle()
    expect(begun).toEqual([0, 1, 2])
    ;(await turns[0])?.()
    await settle()
    expect(begun).toEqual([0, 1, 2, 3])
  })

  it('wait for nobody elsewhere', async () => {
    const attendance = open()
    for (const address of ['a', 'b']) attendance.enter(address)
    await Promise.all([attendance.replayTurn('a'), attendance.replayTurn('a')])
    expect(await attendance.replayTurn('b')).toBeTypeOf('function')
  })

  it('give their place back when all have left', async () => {
    const attendance = open()
    for (let round = 0; round < 3; round += 1) {
      attendance.enter('a')
      const through = await Promise.all([attendance.replayTurn('a'), attendance.replayTurn('a')])
      attendance.leave('a')
      for (const one of through) one()
    }
    expect(attendance.objection('a')).toBeNull()
  })
})
