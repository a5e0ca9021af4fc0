import { describe, expect, it } from 'vitest'
import type { Ear } from '../../support/test-listener.ts'
import { openDevnet, openWorld, relayOn, seqOf, transfer } from '../../support/test-stack.ts'
import { answered, type Carrier, carriers, listen, liveOn, orderOf, toldTo } from './stream-listeners.ts'

/** Heartbeats that are looked at before a listener leaves. */
const ENOUGH = 2

/** Fails where a heartbeat says more, or less, than is so; gives how many there were. */
function checkHeartbeats(ear: Ear): number {
  let sent = 0
  let last = 0
  let beats = 0
  for (const [at, { message, id, event }] of ear.heard.entries()) {
    if ('prev' in message) {
      sent += 1
      expect(orderOf(message.id)).toBeGreaterThan(last)
      last = orderOf(message.id)
    }
    if (message.type !== 'heartbeat') continue
    beats += 1
    expect(message.sent, `sent of heartbeat ${at}`).toBe(sent)
    // Nothing that was heard is behind it, and nothing that is yet to be heard is before it.
    expect(orderOf(message.id)).toBeGreaterThanOrEqual(last)
    last = orderOf(message.id)
    expect(seqOf(message.end)).toBeGreaterThanOrEqual(seqOf(message.id))
    expect(message.backlog).toBeGreaterThanOrEqual(0)
    if (id !== undefined) expect({ id, event }).toEqual({ id: message.id, event: 'heartbeat' })
  }
  return beats
}

describe('a heartbeat', () => {
  it.each(['preconfirmed', 'sealed'])(
    'counts what was sent, and its id is a place to come back to: in the view %s, on every carrier, while much happens',
    async (stage) => {
      const devnet = await openDevnet({ pace: 'clock', flashMs: 20, blockMs: 200, transactionsPerFlash: 8 })
      const relay = await relayOn(devnet)
      const query = `symbols=AAPLc,TSLAc&types=transfer,seal&snapshot=false&stage=${stage}`
      const ears = await Promise.all(carriers.map((carrier) => listen({ relay }, carrier, `${query}&heartbeat=1`)))
      await Promise.all(ears.map((ear) => ear.until(() => checkHeartbeats(ear) >= ENOUGH, 'heartbeats')))
      await Promise.all(
        ears.map((ear) => ear.hear('seal', ({ id }) => orderOf(id) > orderOf(ear.all('heartbeat').at(-1)?.id ?? ''))),
      )
      for (const [at, ear] of ears.entries()) {
        for (const heartbeat of ear.all('heartbeat').slice(0, ENOUGH)) {
          const back = await liveOn({ relay }, carriers[at] as Carrier, query, heartbeat.id)
          const rest = toldTo({ heard: ear.heard.slice(ear.messages.indexOf(heartbeat)) })
          expect(rest.length).toBeGreaterThan(0)
          expect(toldTo(back).slice(0, rest.length)).toEqual(rest)
          expect(back.all('subscribed')).toMatchObject([{ resume: 'full', id: heartbeat.id }])
          back.close()
        }
      }
    },
  )

  it('is not further than a listener has come while its replay is read, and is counted from its own start', async () => {
    const world = await openWorld({ HEARTBEAT_MS: '100' })
    const first = await liveOn(world, 'ws', 'symbols=AAPLc&types=transfer')
    for (let flash = 0; flash < 10; flash += 1) transfer(world, 'AAPLc', 200)
    await first.until(() => first.all('transfer').length === 2_000)
    const later = await Promise.all(
      carriers.flatMap((carrier) =>
        [0, 1_000, 1_990].map((place) =>
          listen(world, carrier, 'symbols=AAPLc&types=transfer&heartbeat=1', first.all('transfer')[place]?.id),
        ),
      ),
    )
    for (const [at, ear] of later.entries()) {
      // Some come while the replay is still being read.
      await ear.hear('heartbeat', ({ sent }) => sent === [1_999, 999, 9][at % 3])
      expect(checkHeartbeats(ear)).toBeGreaterThan(0)
    }
    expect(checkHeartbeats(first)).toBeGreaterThan(0)
  })

  it('passes over what does not concern a listener, so that who hears nothing falls behind nothing', async () => {
    const world = await openWorld({ HEARTBEAT_MS: '100' })
    const quiet = await liveOn(world, 'ws', 'symbols=TSLAc&types=burn')
    const busy = await liveOn(world, 'ws', 'symbols=AAPLc&types=transfer')
    transfer(world, 'AAPLc', 5)
    await busy.until(() => busy.all('transfer').length === 5)
    const last = busy.all('transfer')[4]?.id ?? ''
    const heartbeat = await quiet.hear('heartbeat', ({ id }) => seqOf(id) >= seqOf(last))
    expect(heartbeat).toMatchObject({ id: heartbeat.end, sent: 0 })
    expect(heartbeat.head).toMatchObject({ sealed: world.devnet.chain.head.number })
    expect(new Date(heartbeat.time).toISOString()).toBe(heartbeat.time)
  })

  it.each([1, 7, 60])('comes as often as hello says: %i seconds are taken on every carrier', async (seconds) => {
    const world = await openWorld()
    for (const carrier of carriers) {
      const ear = await liveOn(world, carrier, `symbols=AAPLc&heartbeat=${seconds}`)
      expect(ear.all('hello')).toMatchObject([{ heartbeat_s: seconds }])
    }
  })

  it('comes on NDJSON only where it is asked for, whatever is the custom of the house', async () => {
    const world = await openWorld({ HEARTBEAT_MS: '100' })
    const plain = await liveOn(world, 'ndjson', 'symbols=AAPLc')
    const asked = await liveOn(world, 'ndjson', 'symbols=AAPLc&heartbeat=1')
    const socket = await liveOn(world, 'ws', 'symbols=AAPLc')
    await asked.hear('heartbeat')
    await socket.hear('heartbeat')
    await answered(socket)
    expect(plain.all('heartbeat')).toEqual([])
  })
})
