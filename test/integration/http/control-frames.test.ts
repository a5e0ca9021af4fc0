import { describe, expect, it } from 'vitest'
import { transfer } from '../../support/test-stack.ts'
import type { FrameClient } from './raw-websocket-client.ts'
import { houseOfFile, openDescriptors } from './shared-relay.ts'
import { CONTROL_BOUND_BYTES, closing, frame, opcodes } from './websocket-frames.ts'

const house = houseOfFile()

/** Things that a client may say at once, pings among them. */
const SAID_AT_ONCE = 50

const pongsOf = ({ frames }: FrameClient): readonly string[] =>
  frames.flatMap((one) => (one.kind === 'pong' ? [one.payload.toString()] : []))

describe('a ping', () => {
  it.each([0, 1, CONTROL_BOUND_BYTES - 1, CONTROL_BOUND_BYTES])(
    'of %i bytes is answered with the same bytes',
    async (length) => {
      const client = await house.upgrade()
      const payload = Buffer.from(Array.from({ length }, (_, at) => 255 - at))
      client.say({ opcode: opcodes.ping, payload })
      expect((await client.frame('pong')).payload).toEqual(payload)
    },
  )

  it('is answered before anything is subscribed, while it is, and after', async () => {
    const client = await house.upgrade()
    const ping = (payload: string) => client.say({ opcode: opcodes.ping, payload })
    ping('before')
    client.say({ payload: JSON.stringify({ type: 'subscribe', symbols: ['*'] }) })
    ping('while')
    await client.ear.hear('live')
    ping('after')
    await client.frame('pong', ({ payload }) => payload.toString() === 'after')
    expect(pongsOf(client)).toEqual(['before', 'while', 'after'])
  })

  it('is answered with as many others as may be said at once, one by one or in one piece', async () => {
    const payloads = Array.from({ length: SAID_AT_ONCE }, (_, at) => `${at}`)
    const [patient, hasty] = await Promise.all([house.upgrade(), house.upgrade()])
    hasty.raw.send(Buffer.concat(payloads.map((payload) => frame({ opcode: opcodes.ping, payload }))))
    for (const payload of payloads) {
      patient.say({ opcode: opcodes.ping, payload })
      await patient.frame('pong', (pong) => pong.payload.toString() === payload)
    }
    await hasty.frame('pong', ({ payload }) => payload.toString() === payloads.at(-1))
    for (const client of [patient, hasty]) expect(pongsOf(client)).toEqual(payloads)
  })
})

describe('a pong', () => {
  it('that nobody asked for says nothing, with or without bytes', async () => {
    const client = await house.upgrade()
    for (const payload of ['', 'unasked', Buffer.alloc(CONTROL_BOUND_BYTES)])
      client.say({ opcode: opcodes.pong, payload })
    await client.answered()
    expect(client.frames.map(({ kind }) => kind)).toEqual(['text', 'pong'])
  })

  it('keeps a connection that is asked by pings, of which only two may stay unanswered', async () => {
    const client = await house.upgrade('?symbols=AAPLc&heartbeat=1')
    for (let pings = 0; pings < 3; pings += 1) {
      const seen = client.frames.length
      await client.raw.until(() => client.frames.slice(seen).some(({ kind }) => kind === 'ping'), 'a ping')
      const asked = client.frames.findLast((one) => one.kind === 'ping')
      client.say({ opcode: opcodes.pong, payload: asked?.payload ?? '' })
    }
    await client.answered()
  })
})

describe.each(['ping', 'pong'] as const)('a flood of %ss', (kind) => {
  it('is told that it is too much and ends with 4101, and nobody else notices', async () => {
    const [flooding, other] = await Promise.all([house.upgrade(), house.upgrade('?symbols=AAPLc&types=transfer')])
    await other.ear.hear('live')
    const flood = frame({ opcode: opcodes[kind], payload: Buffer.alloc(CONTROL_BOUND_BYTES, 'x') })
    flooding.raw.send(Buffer.concat(Array<Buffer>(10_000).fill(flood)))
    await flooding.frame('close')
    flooding.raw.send(closing())
    expect(await flooding.closed()).toMatchObject({ code: 4101 })
    expect(flooding.ear.messages.map(({ type }) => type)).toEqual(['hello', 'error', 'bye'])
    transfer(house.world)
    await other.ear.hear('transfer')
    expect(await house.listeners()).toBe(1)
  })
})

describe('a closing frame', () => {
  it.each([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999])(
    'with %i is answered with the same, and the connection ends',
    async (code) => {
      const client = await house.upgrade('?symbols=AAPLc')
      await client.ear.hear('live')
      client.raw.send(closing(code, 'that was all'))
      expect(await client.closed()).toEqual({ code, reason: 'that was all' })
    },
  )

  it('that is empty is answered by an empty one, and the connection ends', async () => {
    const client = await house.upgrade('?symbols=AAPLc')
    await client.ear.hear('live')
    client.raw.send(closing())
    expect(await client.closed()).toEqual({ code: 1005, reason: '' })
  })

  it('may have a reason of 123 bytes', async () => {
    const client = await house.upgrade()
    client.raw.send(closing(1000, 'é'.repeat(61).concat('.')))
    expect((await client.closed()).code).toBe(1000)
  })

  it.each([0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535])(
    'with the code %i, which is none, closes with 1002',
    async (code) => {
      const client = await house.upgrade()
      client.raw.send(closing(code))
      expect(await client.closed()).toEqual({ code: 1002, reason: '' })
    },
  )

  it('of one byte closes with 1002', async () => {
    const client = await house.upgrade()
    client.say({ opcode: opcodes.close, payload: 'x' })
    expect((await client.closed()).code).toBe(1002)
  })

  it('whose reason is not UTF-8 closes with 1007', async () => {
    const client = await house.upgrade()
    client.raw.send(closing(1000, Buffer.of(0xff, 0xfe)))
    expect((await client.closed()).code).toBe(1007)
  })

  it('is the last that is listened to', async () => {
    const client = await house.upgrade()
    const late = frame({ payload: JSON.stringify({ type: 'ping', req: 'late' }) })
    client.raw.send(Buffer.concat([closing(1000), late, closing(1001), frame({ rsv: 7 })]))
    expect((await client.closed()).code).toBe(1000)
    expect(client.ear.all('pong')).toEqual([])
  })

  it('is the last that is said, however much is being told', async () => {
    const client = await house.upgrade('?symbols=*&types=*')
    await client.ear.hear('live')
    transfer(house.world, 'AAPLc', 50)
    client.raw.send(closing(1000))
    transfer(house.world, 'AAPLc', 50)
    await client.closed()
    transfer(house.world, 'AAPLc', 50)
    expect(client.frames.findIndex(({ kind }) => kind === 'close')).toBe(client.frames.length - 1)
  })

  it('in the middle of a message in fragments is answered', async () => {
    const client = await house.upgrade()
    client.say({ payload: '{', fin: false })
    client.raw.send(closing(1000))
    expect((await client.closed()).code).toBe(1000)
  })

  it('of the relay is a bye, its code and reason, and the end, whether or not it is answered', async () => {
    const clients = await Promise.all(Array.from({ length: 2 }, () => house.upgrade()))
    for (const client of clients) for (let mistake = 0; mistake < 10; mistake += 1) client.say({ payload: 'nonsense' })
    const [answering] = clients
    await answering?.frame('close')
    answering?.raw.send(closing(4000))
    for (const client of clients) {
      expect(await client.closed()).toEqual({ code: 4000, reason: 'protocol' })
      expect(client.ear.messages.at(-1)).toMatchObject({ type: 'bye', reason: 'protocol' })
      expect(client.ear.all('bye')).toHaveLength(1)
    }
  })
})

describe('a connection that ends without a closing frame', () => {
  it('at its half is ended at the other', async () => {
    const client = await house.upgrade('?symbols=AAPLc')
    await client.ear.hear('live')
    client.raw.finish()
    await client.raw.ended()
    await house.deserted()
  })

  it('within a frame is forgotten', async () => {
    const client = await house.upgrade('?symbols=AAPLc')
    await client.ear.hear('live')
    client.raw.send(frame({ payload: '{"type":"ping"}' }).subarray(0, 9))
    client.raw.finish()
    await client.raw.ended()
    await house.deserted()
  })

  it('by a reset is forgotten', async () => {
    const client = await house.upgrade('?symbols=AAPLc')
    await client.ear.hear('live')
    client.raw.reset()
    await house.deserted()
  })

  it('by a reset while it is being written to is forgotten, as often as that happens', async () => {
    const before = openDescriptors()
    for (let round = 0; round < 10; round += 1) {
      const clients = await Promise.all(
        Array.from({ length: 20 }, () => house.upgrade('?symbols=*&types=*&snapshot=false')),
      )
      await Promise.all(clients.map(({ ear }) => ear.hear('live')))
      for (const { raw } of clients) raw.socket.pause()
      transfer(house.world, 'AAPLc', 100)
      for (const [at, { raw }] of clients.entries()) {
        if (at % 2) raw.socket.resume()
        setImmediate(() => raw.reset())
      }
      transfer(house.world, 'TSLAc', 100)
      await house.deserted()
    }
    await house.until(() => openDescriptors() <= before, 'as many descriptors as before')
  })

  it('leaves nothing behind, a thousand times', async () => {
    const before = openDescriptors()
    for (let round = 0; round < 1_000; round += 1) {
      const { raw } = await house.upgrade('?symbols=AAPLc&snapshot=false')
      if (round % 2) raw.reset()
      else raw.finish()
      if (round % 2 === 0) await raw.ended()
    }
    await house.deserted()
    await house.until(() => openDescriptors() <= before, 'as many descriptors as before')
  })
})
