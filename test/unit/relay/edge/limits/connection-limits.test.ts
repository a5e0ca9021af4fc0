import { describe, expect, it } from 'vitest'
import { ConnectionLimits } from '../../../../../src/relay/edge/limits/connection-limits.ts'

const openConnections = () => new ConnectionLimits({ maxClients: 5, maxClientsPerAddress: 3 })

const clientAt = (address: string) => ({ address })

const nextTick = () => new Promise((resolve) => setImmediate(resolve))

describe('the connection limits', () => {
  it('name the limit of the address before the total', () => {
    const connectionLimits = openConnections()
    for (const address of ['a', 'a', 'a', 'b', 'c']) connectionLimits.add(clientAt(address))
    expect(['a', 'b', 'd'].map((address) => connectionLimits.exceededLimit(address))).toEqual([
      'too_many_connections',
      'full',
      'full',
    ])
  })

  it('allow a new connection after a disconnect', () => {
    const connectionLimits = openConnections()
    for (const address of ['a', 'a', 'a', 'b', 'b']) connectionLimits.add(clientAt(address))
    connectionLimits.remove(clientAt('a'))
    expect(['a', 'b'].map((address) => connectionLimits.exceededLimit(address))).toEqual([null, null])
  })
})

describe('replays of one address', () => {
  // That they run two at a time, and do not wait for other addresses, is in session-start.test.ts.
  it('end their wait at a disconnect, and the next one moves up', async () => {
    const connectionLimits = openConnections()
    const here = clientAt('a')
    connectionLimits.add(here)
    const [release] = await Promise.all([
      connectionLimits.acquireReplaySlot(clientAt('a')),
      connectionLimits.acquireReplaySlot(clientAt('a')),
    ])
    const started: string[] = []
    const connect = async (client: { address: string }, name: string) => {
      connectionLimits.add(client)
      const releaseSlot = await connectionLimits.acquireReplaySlot(client)
      started.push(name)
      return releaseSlot
    }
    const gone = clientAt('a')
    const [left, next, last] = [connect(gone, 'left'), connect(clientAt('a'), 'next'), connect(clientAt('a'), 'last')]
    connectionLimits.remove(gone)
    // A disconnected client releases as well; that frees no slot.
    ;(await left)()
    expect(started).toEqual(['left'])
    release?.()
    await next
    await nextTick()
    expect(started).toEqual(['left', 'next'])
    ;(await next)()
    await last
    expect(started).toEqual(['left', 'next', 'last'])
  })

  it('free their slots when all clients have disconnected', async () => {
    const connectionLimits = openConnections()
    for (let round = 0; round < 3; round += 1) {
      connectionLimits.add(clientAt('a'))
      const releases = await Promise.all([
        connectionLimits.acquireReplaySlot(clientAt('a')),
        connectionLimits.acquireReplaySlot(clientAt('a')),
      ])
      connectionLimits.remove(clientAt('a'))
      for (const release of releases) release()
    }
    expect(connectionLimits.exceededLimit('a')).toBeNull()
  })
})
