import { describe, expect, it } from 'vitest'
import { Attendance } from '../../../../src/edge/limits/connections.ts'

const open = () => new Attendance({ clientsBound: 5, perAddressBound: 3 })

/** Somebody who comes from an address. */
const from = (address: string) => ({ address })

/** Lets everything go on that waits for nothing but its turn. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('who may come in', () => {
  it('is asked of the address first, so that one crowd is not told to wait for others', () => {
    const attendance = open()
    for (const address of ['a', 'a', 'a', 'b', 'c']) attendance.enter(from(address))
    expect(['a', 'b', 'd'].map((address) => attendance.objection(address))).toEqual([
      'too_many_connections',
      'full',
      'full',
    ])
  })

  it('is open again to whoever makes room', () => {
    const attendance = open()
    for (const address of ['a', 'a', 'a', 'b', 'b']) attendance.enter(from(address))
    attendance.leave(from('a'))
    expect(['a', 'b'].map((address) => attendance.objection(address))).toEqual([null, null])
  })
})

describe('replays of one address', () => {
  it('run two at a time, and the others in the order in which they came', async () => {
    const attendance = open()
    attendance.enter(from('a'))
    const begun: number[] = []
    const turns = [0, 1, 2, 3].map(async (which) => {
      const through = await attendance.replayTurn(from('a'))
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
    for (const address of ['a', 'b']) attendance.enter(from(address))
    await Promise.all([attendance.replayTurn(from('a')), attendance.replayTurn(from('a'))])
    expect(await attendance.replayTurn(from('b'))).toBeTypeOf('function')
  })

  it('are not waited for by whoever has left, and its place in the row goes to the next', async () => {
    const attendance = open()
    const here = from('a')
    attendance.enter(here)
    const [through] = await Promise.all([attendance.replayTurn(from('a')), attendance.replayTurn(from('a'))])
    const begun: string[] = []
    const come = async (guest: { address: string }, name: string) => {
      attendance.enter(guest)
      const turn = await attendance.replayTurn(guest)
      begun.push(name)
      return turn
    }
    const gone = from('a')
    const [left, next, last] = [come(gone, 'left'), come(from('a'), 'next'), come(from('a'), 'last')]
    attendance.leave(gone)
    // It is called as ever when somebody is through, and frees no turn but its own.
    ;(await left)()
    expect(begun).toEqual(['left'])
    through?.()
    await next
    await settle()
    expect(begun).toEqual(['left', 'next'])
    ;(await next)()
    await last
    expect(begun).toEqual(['left', 'next', 'last'])
  })

  it('give their place back when all have left', async () => {
    const attendance = open()
    for (let round = 0; round < 3; round += 1) {
      attendance.enter(from('a'))
      const through = await Promise.all([attendance.replayTurn(from('a')), attendance.replayTurn(from('a'))])
      attendance.leave(from('a'))
      for (const one of through) one()
    }
    expect(attendance.objection('a')).toBeNull()
  })
})
