import { describe, expect, it } from 'vitest'
import { ConnectionLimits } from '../../../../src/edge/limits/connections.ts'

const openConnections = () => new ConnectionLimits({ clientsBound: 5, perAddressBound: 3 })

/** Somebody who comes from an address. */
const clientAt = (address: string) => ({ address })

/** Lets everything go on that waits for nothing but its turn. */
const nextTick = () => new Promise((resolve) => setImmediate(resolve))

describe('who may come in', () => {
  it('is asked of the address first, so that one crowd is not told to wait for others', () => {
    const connectionLimits = openConnections()
    for (const address of ['a', 'a', 'a', 'b', 'c']) connectionLimits.add(clientAt(address))
    expect(['a', 'b', 'd'].map((address) => connectionLimits.exceededLimit(address))).toEqual([
      'too_many_connections',
      'full',
      'full',
    ])
  })

  it('is open again to whoever makes room', () => {
    const connectionLimits = openConnections()
    for (const address of ['a', 'a', 'a', 'b', 'b']) connectionLimits.add(clientAt(address))
    connectionLimits.remove(clientAt('a'))
    expect(['a', 'b'].map((address) => connectionLimits.exceededLimit(address))).toEqual([null, null])
  })
})

describe('replays of one address', () => {
  it('run two at a time, and the others in the order in which they came', async () => {
    const connectionLimits = openConnections()
    connectionLimits.add(clientAt('a'))
    const begun: number[] = []
    const turns = [0, 1, 2, 3].map(async (which) => {
      const through = await connectionLimits.acquireReplaySlot(clientAt('a'))
      begun.push(which)
      return through
    })
    await nextTick()
    expect(begun).toEqual([0, 1])
    ;(await turns[1])?.()
    await nextTick()
    expect(begun).toEqual([0, 1, 2])
    ;(await turns[0])?.()
    await nextTick()
    expect(begun).toEqual([0, 1, 2, 3])
  })

  it('wait for nobody elsewhere', async () => {
    const connectionLimits = openConnections()
    for (const address of ['a', 'b']) connectionLimits.add(clientAt(address))
    await Promise.all([
      connectionLimits.acquireReplaySlot(clientAt('a')),
      connectionLimits.acquireReplaySlot(clientAt('a')),
    ])
    expect(await connectionLimits.acquireReplaySlot(clientAt('b'))).toBeTypeOf('function')
  })

  it('are not waited for by whoever has left, and its place in the row goes to the next', async () => {
    const connectionLimits = openConnections()
    const here = clientAt('a')
    connectionLimits.add(here)
    const [through] = await Promise.all([
      connectionLimits.acquireReplaySlot(clientAt('a')),
      connectionLimits.acquireReplaySlot(clientAt('a')),
    ])
    const begun: string[] = []
    const come = async (guest: { address: string }, name: string) => {
      connectionLimits.add(guest)
      const turn = await connectionLimits.acquireReplaySlot(guest)
      begun.push(name)
      return turn
    }
    const gone = clientAt('a')
    const [left, next, last] = [come(gone, 'left'), come(clientAt('a'), 'next'), come(clientAt('a'), 'last')]
    connectionLimits.remove(gone)
    // It is called as ever when somebody is through, and frees no turn but its own.
    ;(await left)()
    expect(begun).toEqual(['left'])
    through?.()
    await next
    await nextTick()
    expect(begun).toEqual(['left', 'next'])
    ;(await next)()
    await last
    expect(begun).toEqual(['left', 'next', 'last'])
  })

  it('give their place back when all have left', async () => {
    const connectionLimits = openConnections()
    for (let round = 0; round < 3; round += 1) {
      connectionLimits.add(clientAt('a'))
      const through = await Promise.all([
        connectionLimits.acquireReplaySlot(clientAt('a')),
        connectionLimits.acquireReplaySlot(clientAt('a')),
      ])
      connectionLimits.remove(clientAt('a'))
      for (const one of through) one()
    }
    expect(connectionLimits.exceededLimit('a')).toBeNull()
  })
})
