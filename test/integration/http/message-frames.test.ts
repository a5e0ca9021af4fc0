import { describe, expect, it } from 'vitest'
import { MESSAGE_BOUND_BYTES } from '../../../src/protocol/requests.ts'
import { transfer } from '../../support/test-stack.ts'
import { sharedRelayForFile } from './shared-relay.ts'
import { type ClientFrame, CONTROL_BOUND_BYTES, encodeFrame, fragmentMessage, opcodes } from './websocket-frames.ts'

const sharedRelay = sharedRelayForFile()

/** Largest number of fragments of a message. */
const FRAGMENTS_BOUND = 16
/** Largest number of network reads per frame. */
const PIECES_BOUND = 64

const pingMessage = (req: string | number): string => JSON.stringify({ type: 'ping', req })
/** A ping message of exactly this size. */
const pingOfSize = (bytes: number): string => pingMessage(1).padEnd(bytes)
const invalid = (hex: string): Buffer =>
  Buffer.concat([Buffer.from('{"type":"ping","more":"'), Buffer.from(hex, 'hex'), Buffer.from('"}')])

type IllegalFrame = readonly [what: string, code: number, ...frames: readonly ClientFrame[]]

// `ws` reads the frames: a row for each of its checks that an option of ours, or a frame before, could switch off.
const illegalFrames: readonly IllegalFrame[] = [
  ['an unmasked message', 1002, { payload: pingMessage(1), masked: false }],
  ['a message with the reserved bit of a compression that was not negotiated', 1002, { payload: pingMessage(1), rsv: 4 }],
  ['a reserved opcode', 1002, { opcode: 3 }],
  ['a ping of 126 bytes', 1002, { opcode: opcodes.ping, payload: Buffer.alloc(CONTROL_BOUND_BYTES + 1, 'a') }],
  ['a close code that no client may send', 1002, { opcode: opcodes.close, payload: Buffer.of(1006 >> 8, 1006 & 0xff) }],
  ['a close whose reason is not UTF-8', 1007, { opcode: opcodes.close, payload: Buffer.of(3, 0xe8, 0xff, 0xfe) }],
  ['a message within a message', 1002, { payload: '{', fin: false }, { payload: pingMessage(1) }],
  ['a continuation after the message is over', 1002, { payload: '{', fin: false }, { opcode: 0, payload: '}' }, { opcode: 0 }],
  ['UTF-8 with a lone surrogate', 1007, { payload: invalid('eda080') }],
  ['UTF-8 that continues wrongly', 1007, { payload: invalid('e2').subarray(0, 24), fin: false }, { opcode: 0, payload: '"}' }],
  ['a message of fewer characters than bytes', 1009, { payload: pingMessage('ä'.repeat(2_040)) }],
  ['a binary message of one byte too many', 1009, { opcode: opcodes.binary, payload: Buffer.alloc(MESSAGE_BOUND_BYTES + 1) }],
  [
    'two fragments that are one byte too many together',
    1009,
    { payload: pingOfSize(MESSAGE_BOUND_BYTES), fin: false },
    { opcode: 0, payload: ' ' },
  ],
  ['a length of 2^64 - 1 without a payload', 1009, { announced: 2n ** 64n - 1n }],
]

describe('an illegal frame', () => {
  it.each(illegalFrames.map(([what, code, ...frames]) => ({ what, code, frames })))(
    'such as $what closes with $code, and the connection ends',
    async ({ code, frames }) => {
      const client = await sharedRelay.openLive('?symbols=AAPLc')
      client.sendFrames(...frames)
      expect(await client.waitForClose()).toEqual({ code, reason: '' })
    },
  )

  it('leaves the frames behind it unread, and nothing follows its close frame', async () => {
    const [client, other] = await Promise.all(['*', '*'].map((all) => sharedRelay.openWebSocket(`?symbols=${all}&types=transfer`)))
    if (!client || !other) throw new Error('unreachable')
    await Promise.all([client, other].map(({ listener }) => listener.waitFor('live')))
    client.connection.send(Buffer.concat([encodeFrame({ rsv: 1 }), encodeFrame({ payload: pingMessage('too late') })]))
    await client.waitForFrame('close')
    transfer(sharedRelay.stack, 'AAPLc', 20)
    await other.listener.until(() => other.listener.messagesOf('transfer').length === 20)
    expect((await client.waitForClose()).code).toBe(1002)
    expect(client.listener.messagesOf('pong')).toEqual([])
    expect(await sharedRelay.listenerCount()).toBe(1)
  })

  it('allocates no memory for an announced length', async () => {
    const clients = await Promise.all(Array.from({ length: 50 }, () => sharedRelay.openWebSocket()))
    const before = process.memoryUsage().arrayBuffers
    for (const client of clients) client.connection.send(encodeFrame({ announced: 2n ** 26n }))
    await Promise.all(clients.map((client) => client.waitForClose()))
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 2 ** 20)
  })
})

describe('a message', () => {
  it('may come in the maximum number of fragments, empty ones too, with pings and pongs between them', async () => {
    const client = await sharedRelay.openWebSocket()
    const text = pingMessage('in pieces')
    const pieces = Array.from({ length: FRAGMENTS_BOUND }, (_, at) =>
      text.slice(at * 4, at === FRAGMENTS_BOUND - 1 ? undefined : at * 4 + 4),
    )
    for (const [at, piece] of fragmentMessage(pieces).entries()) {
      client.connection.send(
        piece,
        encodeFrame({ opcode: opcodes.pong, payload: 'unsolicited' }),
        encodeFrame({ opcode: opcodes.ping, payload: `${at}` }),
      )
      await client.waitForFrame('pong', ({ payload }) => payload.toString() === `${at}`)
    }
    await client.listener.waitFor('pong', ({ req }) => req === 'in pieces')
    client.connection.send(...fragmentMessage(['', pingMessage('between empty ones'), '', '']))
    await client.listener.waitFor('pong', ({ req }) => req === 'between empty ones')
    expect(client.frames.filter(({ kind }) => kind === 'pong').map((one) => 'payload' in one && one.payload.toString())).toEqual(
      pieces.map((_, at) => `${at}`),
    )
  })

  it.each([
    ['in one fragment above the maximum', Array<string>(FRAGMENTS_BOUND + 1).fill(' ')],
    ['in fragments of one byte by the thousand', Array<string>(4_000).fill(' ')],
    ['in empty fragments by the thousand', Array<string>(4_000).fill('')],
  ])('%s closes with 1008', async (_, pieces) => {
    const client = await sharedRelay.openWebSocket()
    client.connection.send(Buffer.concat(fragmentMessage(pieces)))
    expect(await client.waitForClose()).toEqual({ code: 1008, reason: '' })
  })

  it('may come one byte at a time', async () => {
    const client = await sharedRelay.openWebSocket()
    await client.connection.sendSlowly(Array.from(encodeFrame({ payload: pingMessage(7) }), (byte) => Buffer.of(byte)))
    await client.listener.waitFor('pong', ({ req }) => req === 7)
  })

  it('in too many network reads closes with 1008', async () => {
    const client = await sharedRelay.openWebSocket()
    const bytes = encodeFrame({ payload: pingOfSize(4 * PIECES_BOUND) })
    const cut = client.connection.sendSlowly(Array.from(bytes, (byte) => Buffer.of(byte)))
    expect((await client.waitForClose()).code).toBe(1008)
    await cut
  })

  it('may come with many others in one write, and each is answered in order', async () => {
    const client = await sharedRelay.openWebSocket()
    const reqs = Array.from({ length: 50 }, (_, at) => at)
    client.connection.send(Buffer.concat(reqs.map((req) => encodeFrame({ payload: pingMessage(req) }))))
    await client.listener.until(() => client.listener.messagesOf('pong').length === reqs.length)
    expect(client.listener.messagesOf('pong').map(({ req }) => req)).toEqual(reqs)
  })

  it.each([
    ['binary', 'binary', { opcode: opcodes.binary, payload: pingMessage(1) }],
    ['empty', 'bad_json', {}],
  ])('that is %s gets an error, and the connection stays', async (_, reason, frame) => {
    const client = await sharedRelay.openWebSocket()
    client.sendFrames(frame, { payload: pingMessage(2) })
    await client.listener.waitFor('pong', ({ req }) => req === 2)
    expect(client.listener.messagesOf('error')).toMatchObject([{ code: 400, reason }])
  })

  it('may follow the handshake in the same write', async () => {
    const client = await sharedRelay.openWebSocket('', encodeFrame({ payload: pingMessage('first') }))
    await client.listener.waitFor('pong', ({ req }) => req === 'first')
  })
})
