import { describe, expect, it } from 'vitest'
import { MESSAGE_BOUND_BYTES } from '../../../src/protocol/requests.ts'
import { transfer } from '../../support/test-stack.ts'
import { sharedRelayForFile } from './shared-relay.ts'
import { type ClientFrame, CONTROL_BOUND_BYTES, encodeFrame, fragmentMessage, opcodes } from './websocket-frames.ts'

const sharedRelay = sharedRelayForFile()

/** Most fragments that a message may come in. */
const FRAGMENTS_BOUND = 16
/** Most pieces, as the network delivers them, that a frame may come in. */
const PIECES_BOUND = 64

const pingMessage = (req: string | number, more = ''): string => JSON.stringify({ type: 'ping', req, more })
/** A ping of exactly so many bytes. */
const pingOfSize = (bytes: number): string => pingMessage(1, 'x'.repeat(bytes - pingMessage(1).length))
const invalid = (hex: string): Buffer =>
  Buffer.concat([Buffer.from('{"type":"ping","more":"'), Buffer.from(hex, 'hex'), Buffer.from('"}')])

type IllegalFrame = readonly [what: string, code: number, ...frames: readonly ClientFrame[]]

const illegalFrames: readonly IllegalFrame[] = [
  ['an unmasked message', 1002, { payload: pingMessage(1), masked: false }],
  ['an unmasked ping', 1002, { opcode: opcodes.ping, masked: false }],
  ...[1, 2, 4, 7].map(
    (rsv) => [`a message with the reserved bits ${rsv}`, 1002, { payload: pingMessage(1), rsv }] as const,
  ),
  ['a ping with a reserved bit', 1002, { opcode: opcodes.ping, rsv: 4 }],
  ['a continuation with a reserved bit', 1002, { payload: '{', fin: false }, { opcode: 0, payload: '}', rsv: 4 }],
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) => [`the reserved opcode ${opcode}`, 1002, { opcode }] as const),
  ...(['ping', 'pong', 'close'] as const).flatMap((name) => {
    const opcode = opcodes[name]
    return [
      [`a ${name} of 126 bytes`, 1002, { opcode, payload: Buffer.alloc(CONTROL_BOUND_BYTES + 1, 'a') }] as const,
      [`a ${name} in fragments`, 1002, { opcode, fin: false }] as const,
    ]
  }),
  ['a continuation of nothing', 1002, { opcode: opcodes.continuation, payload: pingMessage(1) }],
  ['a continuation of nothing that is to go on', 1002, { opcode: opcodes.continuation, payload: '{', fin: false }],
  ['a message within a message', 1002, { payload: '{', fin: false }, { payload: pingMessage(1) }],
  [
    'a binary message within a message',
    1002,
    { payload: '{', fin: false },
    { opcode: opcodes.binary, payload: pingMessage(1) },
  ],
  [
    'a continuation after the message is over',
    1002,
    { payload: '{', fin: false },
    { opcode: 0, payload: '}' },
    { opcode: 0 },
  ],
  ...[
    ['that goes on without a beginning', '80'],
    ['that has two bytes where one would do', 'c0af'],
    ['that has three bytes where two would do', 'e0809f'],
    ['of half a surrogate pair', 'eda080'],
    ['of a character beyond the last', 'f4908080'],
    ['with a byte that is never used', 'ff'],
    ['that breaks off', 'e282'],
  ].map(([what, hex = '']) => [`UTF-8 ${what}`, 1007, { payload: invalid(hex) }] as const),
  [
    'UTF-8 that breaks off in a fragment and goes on wrongly in the next',
    1007,
    { payload: invalid('e2').subarray(0, 24), fin: false },
    { opcode: 0, payload: '"}' },
  ],
  ['a message of one byte too many', 1009, { payload: pingOfSize(MESSAGE_BOUND_BYTES + 1) }],
  [
    'a binary message of one byte too many',
    1009,
    { opcode: opcodes.binary, payload: Buffer.alloc(MESSAGE_BOUND_BYTES + 1) },
  ],
  [
    'two fragments that are one byte too many together',
    1009,
    { payload: pingOfSize(MESSAGE_BOUND_BYTES), fin: false },
    { opcode: 0, payload: ' ' },
  ],
  ...[65_535n, 65_536n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n].map(
    (announced) => [`a length of ${announced} with nothing behind it`, 1009, { announced }] as const,
  ),
]

describe('a frame that is illegal', () => {
  it.each(illegalFrames.map(([what, code, ...frames]) => ({ what, code, frames })))(
    'for being $what closes with $code, and the connection ends',
    async ({ code, frames }) => {
      const client = await sharedRelay.openWebSocket('?symbols=AAPLc')
      await client.listener.waitFor('live')
      client.sendFrames(...frames)
      expect(await client.waitForClose()).toEqual({ code, reason: '' })
    },
  )

  it('has what is sent behind it left unread, and nothing is told behind its closing frame', async () => {
    const [client, other] = await Promise.all(
      ['*', '*'].map((all) => sharedRelay.openWebSocket(`?symbols=${all}&types=transfer`)),
    )
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

  it('keeps no memory for what it only announces', async () => {
    const clients = await Promise.all(Array.from({ length: 50 }, () => sharedRelay.openWebSocket()))
    const before = process.memoryUsage().arrayBuffers
    for (const client of clients) client.connection.send(encodeFrame({ announced: 2n ** 26n }))
    await Promise.all(clients.map((client) => client.waitForClose()))
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 2 ** 20)
  })
})

describe('a message', () => {
  it('of 4,096 bytes is answered', async () => {
    const client = await sharedRelay.openWebSocket()
    client.sendFrames({ payload: pingOfSize(MESSAGE_BOUND_BYTES) })
    await client.listener.waitFor('pong', ({ req }) => req === 1)
  })

  it('may come in as many fragments as are allowed, also empty ones, with pings and pongs between them', async () => {
    const client = await sharedRelay.openWebSocket()
    const text = pingMessage('in pieces')
    const pieces = Array.from({ length: FRAGMENTS_BOUND }, (_, at) =>
      text.slice(at * 4, at === FRAGMENTS_BOUND - 1 ? undefined : at * 4 + 4),
    )
    for (const [at, piece] of fragmentMessage(pieces).entries()) {
      client.connection.send(
        piece,
        encodeFrame({ opcode: opcodes.pong, payload: 'unasked' }),
        encodeFrame({ opcode: opcodes.ping, payload: `${at}` }),
      )
      await client.waitForFrame('pong', ({ payload }) => payload.toString() === `${at}`)
    }
    await client.listener.waitFor('pong', ({ req }) => req === 'in pieces')
    client.connection.send(...fragmentMessage(['', pingMessage('between empty ones'), '', '']))
    await client.listener.waitFor('pong', ({ req }) => req === 'between empty ones')
    expect(
      client.frames.filter(({ kind }) => kind === 'pong').map((one) => 'payload' in one && one.payload.toString()),
    ).toEqual(pieces.map((_, at) => `${at}`))
  })

  it.each([
    ['in one fragment more than is allowed', Array<string>(FRAGMENTS_BOUND + 1).fill(' ')],
    ['in fragments of one byte by the thousand', Array<string>(4_000).fill(' ')],
    ['in empty fragments by the thousand', Array<string>(4_000).fill('')],
  ])('%s closes with 1008', async (_, pieces) => {
    const client = await sharedRelay.openWebSocket()
    client.connection.send(Buffer.concat(fragmentMessage(pieces)))
    expect(await client.waitForClose()).toEqual({ code: 1008, reason: '' })
  })

  it('may be split within a character', async () => {
    const client = await sharedRelay.openWebSocket()
    const bytes = Buffer.from(pingMessage('é€🍏'))
    client.connection.send(
      ...fragmentMessage(
        Array.from({ length: 10 }, (_, at) => bytes.subarray(22 + at, at === 9 ? undefined : 23 + at)).toSpliced(
          0,
          0,
          bytes.subarray(0, 22),
        ),
      ),
    )
    await client.listener.waitFor('pong', ({ req }) => req === 'é€🍏')
  })

  it('may come one byte at a time', async () => {
    const client = await sharedRelay.openWebSocket()
    await client.connection.sendSlowly(Array.from(encodeFrame({ payload: pingMessage(7) }), (byte) => Buffer.of(byte)))
    await client.listener.waitFor('pong', ({ req }) => req === 7)
  })

  it('in more pieces than are kept closes with 1008', async () => {
    const client = await sharedRelay.openWebSocket()
    const bytes = encodeFrame({ payload: pingOfSize(4 * PIECES_BOUND) })
    const cut = client.connection.sendSlowly(Array.from(bytes, (byte) => Buffer.of(byte)))
    expect((await client.waitForClose()).code).toBe(1008)
    await cut
  })

  it('may come many in one piece, and each is answered in order', async () => {
    const client = await sharedRelay.openWebSocket()
    const reqs = Array.from({ length: 50 }, (_, at) => at)
    client.connection.send(Buffer.concat(reqs.map((req) => encodeFrame({ payload: pingMessage(req) }))))
    await client.listener.until(() => client.listener.messagesOf('pong').length === reqs.length)
    expect(client.listener.messagesOf('pong').map(({ req }) => req)).toEqual(reqs)
  })

  it('that is binary is a mistake, after which the connection lives', async () => {
    const client = await sharedRelay.openWebSocket()
    client.sendFrames({ opcode: opcodes.binary, payload: pingMessage(1) }, { payload: pingMessage(2) })
    await client.listener.waitFor('pong', ({ req }) => req === 2)
    expect(client.listener.messagesOf('error')).toMatchObject([{ code: 400, reason: 'binary' }])
  })

  it('that is empty is a mistake, after which the connection lives', async () => {
    const client = await sharedRelay.openWebSocket()
    client.sendFrames({}, { payload: pingMessage(2) })
    await client.listener.waitFor('pong', ({ req }) => req === 2)
    expect(client.listener.messagesOf('error')).toMatchObject([{ code: 400, reason: 'bad_json' }])
  })

  it('may follow the handshake in the same piece', async () => {
    const client = await sharedRelay.openWebSocket('', encodeFrame({ payload: pingMessage('first') }))
    await client.listener.waitFor('pong', ({ req }) => req === 'first')
  })
})
