import { describe, expect, it } from 'vitest'
import { transfer } from '../../support/test-stack.ts'
import { sharedRelayForFile } from './shared-relay.ts'
import { CONTROL_BOUND_BYTES, closeFrame, encodeFrame, opcodes } from './websocket-frames.ts'

const sharedRelay = sharedRelayForFile()

describe('a ping', () => {
  it.each([0, 1, CONTROL_BOUND_BYTES - 1, CONTROL_BOUND_BYTES])('of %i bytes is answered with the same bytes', async (length) => {
    const client = await sharedRelay.openWebSocket()
    const payload = Buffer.from(Array.from({ length }, (_, at) => 255 - at))
    client.sendFrames({ opcode: opcodes.ping, payload })
    expect((await client.waitForFrame('pong')).payload).toEqual(payload)
  })
})

describe('a pong', () => {
  it('without a ping has no effect, with or without payload', async () => {
    const client = await sharedRelay.openWebSocket()
    for (const payload of ['', 'unasked', Buffer.alloc(CONTROL_BOUND_BYTES)]) client.sendFrames({ opcode: opcodes.pong, payload })
    await client.waitForPong()
    expect(client.frames.map(({ kind }) => kind)).toEqual(['text', 'pong'])
  })

  it('keeps a connection open, which may leave only two pings unanswered', async () => {
    const client = await sharedRelay.openWebSocket('?symbols=AAPLc&heartbeat=1')
    for (let pings = 0; pings < 3; pings += 1) {
      const seen = client.frames.length
      await client.connection.until(() => client.frames.slice(seen).some(({ kind }) => kind === 'ping'), 'a ping')
      const ping = client.frames.findLast((frame) => frame.kind === 'ping')
      client.sendFrames({ opcode: opcodes.pong, payload: ping?.payload ?? '' })
    }
    await client.waitForPong()
  })

  it('that never comes ends the connection with 4201', async () => {
    const client = await sharedRelay.openWebSocket('?symbols=AAPLc&heartbeat=1')
    expect(await client.waitForClose()).toEqual({ code: 4201, reason: expect.stringMatching(/^no_pong \w+\.\d+$/) })
    expect(client.frames.filter(({ kind }) => kind === 'ping')).toHaveLength(2)
  })
})

describe.each(['ping', 'pong'] as const)('a flood of %ss', (kind) => {
  it('gets an error and ends with 4101, without effect on other clients', async () => {
    const [flooding, other] = await Promise.all([
      sharedRelay.openWebSocket(),
      sharedRelay.openWebSocket('?symbols=AAPLc&types=transfer'),
    ])
    await other.listener.waitFor('live')
    const flood = encodeFrame({ opcode: opcodes[kind], payload: Buffer.alloc(CONTROL_BOUND_BYTES, 'x') })
    flooding.connection.send(Buffer.concat(Array<Buffer>(10_000).fill(flood)))
    await flooding.waitForFrame('close')
    flooding.connection.send(closeFrame())
    expect(await flooding.waitForClose()).toMatchObject({ code: 4101 })
    expect(flooding.listener.messages.map(({ type }) => type)).toEqual(['hello', 'error', 'bye'])
    transfer(sharedRelay.stack)
    await other.listener.waitFor('transfer')
    expect(await sharedRelay.listenerCount()).toBe(1)
  })
})

describe('a close frame', () => {
  it.each<[number, string]>([
    [1001, 'done'],
    [4999, 'done'],
    [1000, `${'é'.repeat(61)}.`],
  ])('with %i is answered with the same code, and the connection ends', async (code, reason) => {
    const client = await sharedRelay.openLive('?symbols=AAPLc')
    client.connection.send(closeFrame(code, reason))
    expect(await client.waitForClose()).toEqual({ code, reason })
  })

  it('that is empty is answered with an empty one, and the connection ends', async () => {
    const client = await sharedRelay.openLive('?symbols=AAPLc')
    client.connection.send(closeFrame())
    expect(await client.waitForClose()).toEqual({ code: 1005, reason: '' })
  })

  it('is the last frame that the relay sends, under load too', async () => {
    const client = await sharedRelay.openLive('?symbols=*&types=*')
    transfer(sharedRelay.stack, 'AAPLc', 50)
    client.connection.send(closeFrame(1000))
    transfer(sharedRelay.stack, 'AAPLc', 50)
    await client.waitForClose()
    transfer(sharedRelay.stack, 'AAPLc', 50)
    expect(client.frames.findIndex(({ kind }) => kind === 'close')).toBe(client.frames.length - 1)
  })

  it('of the relay follows a bye and ends the connection, answered or not', async () => {
    const clients = await Promise.all(Array.from({ length: 2 }, () => sharedRelay.openWebSocket()))
    for (const client of clients) for (let mistake = 0; mistake < 10; mistake += 1) client.sendFrames({ payload: 'nonsense' })
    const [answering] = clients
    await answering?.waitForFrame('close')
    answering?.connection.send(closeFrame(4000))
    for (const client of clients) {
      expect(await client.waitForClose()).toEqual({ code: 4000, reason: 'protocol' })
      expect(client.listener.messages.at(-1)).toMatchObject({ type: 'bye', reason: 'protocol' })
      expect(client.listener.messagesOf('bye')).toHaveLength(1)
    }
  })
})

describe('a connection that ends without a close frame', () => {
  it('leaves no listener and no descriptor after resets during writes', async () => {
    await sharedRelay.expectNothingLeftAfter(async () => {
      for (let round = 0; round < 10; round += 1) {
        const clients = await Promise.all(
          Array.from({ length: 20 }, () => sharedRelay.openWebSocket('?symbols=*&types=*&snapshot=false')),
        )
        await Promise.all(clients.map(({ listener }) => listener.waitFor('live')))
        for (const { connection } of clients) connection.socket.pause()
        transfer(sharedRelay.stack, 'AAPLc', 100)
        for (const [at, { connection }] of clients.entries()) {
          if (at % 2) connection.socket.resume()
          setImmediate(() => connection.reset())
        }
        transfer(sharedRelay.stack, 'TSLAc', 100)
        await sharedRelay.waitForNoListeners()
      }
    })
  })

  it('leaves nothing behind after a thousand ends', async () => {
    await sharedRelay.expectNothingLeftAfter(async () => {
      for (let round = 0; round < 1_000; round += 1) {
        const { connection } = await sharedRelay.openWebSocket('?symbols=AAPLc&snapshot=false')
        // Some end inside a frame.
        if (round % 4 > 1) connection.send(encodeFrame({ payload: '{"type":"ping"}' }).subarray(0, 9))
        if (round % 2) connection.reset()
        else connection.finish()
        if (round % 2 === 0) await connection.ended()
      }
    })
  })
})
