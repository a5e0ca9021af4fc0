import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../../../../src/lib/turns.ts'
import { clientAt, ManualOutlet, openClients } from './test-clients.ts'

it('clients are limited by address before the total', () => {
  const clients = openClients()
  for (const address of ['a', 'a', 'a', 'b', 'c']) expect(clients.add(clientAt(address))).toBeNull()
  expect(['a', 'b', 'd'].map((address) => clients.refusal(address)?.reason)).toEqual(['too_many_connections', 'full', 'full'])
  expect(['a', 'd'].map((address) => clients.add(clientAt(address)))).toEqual(['too_many_connections', 'full'])
})

describe('a client', () => {
  // A step is a time, what the client takes (-) and is written then (+), and whether it is too slow for that.
  it.each([
    ['at the bound keeps up for ever', '0 +1000, 60000 +0'],
    ['over the bound keeps up until its patience is over', '0 +1001, 4999 +1, 5000 +1 slow'],
    ['that was below the bound in between begins anew', '0 +5000, 4000 -4000 +4000, 8999 +1, 9000 +1 slow'],
    ['that took everything in between begins anew', '0 +5000, 4000 -5000 +5000, 8999 +1, 9000 +1 slow'],
    ['that takes much and stays over the bound is too slow', '0 +5000, 3000 -3000 +3000, 6000 -3000 +1 slow'],
    ['may have 16 times the bound at once', '0 +16000, 1 +1'],
    ['with more than that is too slow at once', '0 +16001, 1 +1 slow'],
  ])('%s', (_, steps) => {
    let now = 0
    const outlet = new ManualOutlet()
    const client = clientAt('a', outlet)
    for (const step of steps.split(', ')) {
      const [, at, taken, written, slow] = /^(\d+)(?: -(\d+))? \+(\d+)( slow)?$/.exec(step) ?? []
      now = Number(at)
      outlet.take(Number(taken ?? 0))
      expect(
        client.keepsUp(() => now),
        step,
      ).toBe(slow === undefined)
      outlet.write({ length: Number(written) })
      client.keepsUp(() => now)
    }
  })

  it('may read slowly what it was excused for', () => {
    const outlet = new ManualOutlet()
    const client = clientAt('a', outlet)
    outlet.write({ length: 100_000 })
    client.excuseBacklog()
    for (let now = 0; now < 60_000; now += 1_000) {
      outlet.write({ length: 10 })
      expect(client.keepsUp(() => now)).toBe(true)
    }
  })
})

describe('replays of one address', () => {
  // That they run two at a time, and do not wait for other addresses, is in session-start.test.ts.
  /** Runs a replay of a new client until the test calls `end`. */
  function openReplay({ replaySlots }: ReturnType<typeof openClients>) {
    const client = clientAt('a')
    const { promise, resolve: end } = Promise.withResolvers<void>()
    const replay = { client, hasStarted: false, end }
    const ended = replaySlots.run(client, () => {
      replay.hasStarted = true
      return promise
    })
    return Object.assign(replay, { ended })
  }

  it('end their wait at a disconnect, and the next one moves up', async () => {
    const clients = openClients()
    const [running, other, left, next, last] = Array.from({ length: 5 }, () => openReplay(clients))
    if (left) clients.replaySlots.leave(left.client)
    await left?.ended
    running?.end()
    await nextTurn()
    expect([other, left, next, last].map((replay) => replay?.hasStarted)).toEqual([true, false, true, false])
    next?.end()
    await nextTurn()
    expect(last?.hasStarted).toBe(true)
  })

  it('leave each of two processes one at a time', async () => {
    const clients = openClients({ maxClients: 5, maxClientsPerAddress: 3, workers: 2 })
    const [first, second] = [openReplay(clients), openReplay(clients)]
    expect([first.hasStarted, second.hasStarted]).toEqual([true, false])
    first.end()
    await nextTurn()
    expect(second.hasStarted).toBe(true)
  })
})
