import { describe, expect, it } from 'vitest'
import { MESSAGE_BOUND_BYTES } from '../../../src/protocol/requests.ts'
import { transfer } from '../../support/test-stack.ts'
import { houseOfFile } from './shared-relay.ts'
import { CONTROL_BOUND_BYTES, fragmented, frame, opcodes, type Sent } from './websocket-frames.ts'

const house = houseOfFile()

/** Most fragments that a message may come in. */
const FRAGMENTS_BOUND = 16
/** Most pieces, as the network delivers them, that a frame may come in. */
const PIECES_BOUND = 64

const ping = (req: string | number, more = ''): string => JSON.stringify({ type: 'ping', req, more })
/** A ping of exactly so many bytes. */
const pingOf = (bytes: number): string => ping(1, 'x'.repeat(bytes - ping(1).length))
const invalid = (hex: string): Buffer =>
  Buffer.concat([Buffer.from('{"type":"ping","more":"'), Buffer.from(hex, 'hex'), Buffer.from('"}')])

type Illegal = readonly [what: string, code: number, ...frames: readonly Sent[]]

const illegal: readonly Illegal[] = [
  ['an unmasked message', 1002, { payload: ping(1), masked: false }],
  ['an unmasked ping', 1002, { opcode: opcodes.ping, masked: false }],
  ...[1, 2, 4, 7].map((rsv) => [`a message with the reserved bits ${rsv}`, 1002, { payload: ping(1), rsv }] as const),
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
  ['a continuation of nothing', 1002, { opcode: opcodes.continuation, payload: ping(1) }],
  ['a continuation of nothing that is to go on', 1002, { opcode: opcodes.continuation, payload: '{', fin: false }],
  ['a message within a message', 1002, { payload: '{', fin: false }, { payload: ping(1) }],
  [
    'a binary message within a message',
    1002,
    { payload: '{', fin: false },
    { opcode: opcodes.binary, payload: ping(1) },
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
  ['a message of one byte too many', 1009, { payload: pingOf(MESSAGE_BOUND_BYTES + 1) }],
  [
    'a binary message of one byte too many',
    1009,
    { opcode: opcodes.binary, payload: Buffer.alloc(MESSAGE_BOUND_BYTES + 1) },
  ],
  [
    'two fragments that are one byte too many together',
    1009,
    { payload: pingOf(MESSAGE_BOUND_BYTES), fin: false },
    { opcode: 0, payload: ' ' },
  ],
  ...[65_535n, 65_536n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n].map(
    (announced) => [`a length of ${announced} with nothing behind it`, 1009, { announced }] as const,
  ),
]

describe('a frame that is illegal', () => {
  it.each(illegal.map(([what, code, ...frames]) => ({ what, code, frames })))(
    'for being $what closes with $code, and the connection ends',
    async ({ code, frames }) => {
      const client = await house.upgrade('?symbols=AAPLc')
      await client.ear.hear('live')
      client.say(...frames)
      expect(await client.closed()).toEqual({ code, reason: '' })
    },
  )

  it('has what is sent behind it left unread, and nothing is told behind its closing frame', async () => {
    const [client, other] = await Promise.all(['*', '*'].map((all) => house.upgrade(`?symbols=${all}&types=transfer`)))
    if (!client || !other) throw new Error('unreachable')
    await Promise.all([client, other].map(({ ear }) => ear.hear('live')))
    client.raw.send(Buffer.concat([frame({ rsv: 1 }), frame({ payload: ping('too late') })]))
    await client.frame('close')
    transfer(house.world, 'AAPLc', 20)
    await other.ear.until(() => other.ear.all('transfer').length === 20)
    expect((await client.closed()).code).toBe(1002)
    expect(client.ear.all('pong')).toEqual([])
    expect(await house.listeners()).toBe(1)
  })

  it('keeps no memory for what it only announces', async () => {
    const clients = await Promise.all(Array.from({ length: 50 }, () => house.upgrade()))
    const before = process.memoryUsage().arrayBuffers
    for (const client of clients) client.raw.send(frame({ announced: 2n ** 26n }))
    await Promise.all(clients.map((client) => client.closed()))
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 2 ** 20)
  })
})

describe('a message', () => {
  it('of 4,096 bytes is answered', async () => {
    const client = await house.upgrade()
    client.say({ payload: pingOf(MESSAGE_BOUND_BYTES) })
    await client.ear.hear('pong', ({ req }) => req === 1)
  })

  it('may come in as many fragments as are allowed, also empty ones, with pings and pongs between them', async () => {
    const client = await house.upgrade()
    const text = ping('in pieces')
    const pieces = Array.from({ length: FRAGMENTS_BOUND }, (_, at) =>
      text.slice(at * 4, at === FRAGMENTS_BOUND - 1 ? undefined : at * 4 + 4),
    )
    for (const [at, piece] of fragmented(pieces).entries()) {
      client.raw.send(
        piece,
        frame({ opcode: opcodes.pong, payload: 'unasked' }),
        frame({ opcode: opcodes.ping, payload: `${at}` }),
      )
      await client.frame('pong', ({ payload }) => payload.toString() === `${at}`)
    }
    await client.ear.hear('pong', ({ req }) => req === 'in pieces')
    client.raw.send(...fragmented(['', ping('between empty ones'), '', '']))
    await client.ear.hear('pong', ({ req }) => req === 'between empty ones')
    expect(
      client.frames.filter(({ kind }) => kind === 'pong').map((one) => 'payload' in one && one.payload.toString()),
    ).toEqual(pieces.map((_, at) => `${at}`))
  })

  it.each([
    ['in one fragment more than is allowed', Array<string>(FRAGMENTS_BOUND + 1).fill(' ')],
    ['in fragments of one byte by the thousand', Array<string>(4_000).fill(' ')],
    ['in empty fragments by the thousand', Array<string>(4_000).fill('')],
  ])('%s closes with 1008', async (_, pieces) => {
    const client = await house.upgrade()
    client.raw.send(Buffer.concat(fragmented(pieces)))
    expect(await client.closed()).toEqual({ code: 1008, reason: '' })
  })

  it('may be split within a character', async () => {
    const client = await house.upgrade()
    const bytes = Buffer.from(ping('é€🍏'))
    client.raw.send(
      ...fragmented(
        Array.from({ length: 10 }, (_, at) => bytes.subarray(22 + at, at === 9 ? undefined : 23 + at)).toSpliced(
          0,
          0,
          bytes.subarray(0, 22),
        ),
      ),
    )
    await client.ear.hear('pong', ({ req }) => req === 'é€🍏')
  })

  it('may come one byte at a time', async () => {
    const client = await house.upgrade()
    await client.raw.trickle(Array.from(frame({ payload: ping(7) }), (byte) => Buffer.of(byte)))
    await client.ear.hear('pong', ({ req }) => req === 7)
  })

  it('in more pieces than are kept closes with 1008', async () => {
    const client = await house.upgrade()
    const bytes = frame({ payload: pingOf(4 * PIECES_BOUND) })
    const cut = client.raw.trickle(Array.from(bytes, (byte) => Buffer.of(byte)))
    expect((await client.closed()).code).toBe(1008)
    await cut
  })

  it('may come many in one piece, and each is answered in order', async () => {
    const client = await house.upgrade()
    const reqs = Array.from({ length: 50 }, (_, at) => at)
    client.raw.send(Buffer.concat(reqs.map((req) => frame({ payload: ping(req) }))))
    await client.ear.until(() => client.ear.all('pong').length === reqs.length)
    expect(client.ear.all('pong').map(({ req }) => req)).toEqual(reqs)
  })

  it('that is binary is a mistake, after which the connection lives', async () => {
    const client = await house.upgrade()
    client.say({ opcode: opcodes.binary, payload: ping(1) }, { payload: ping(2) })
    await client.ear.hear('pong', ({ req }) => req === 2)
    expect(client.ear.all('error')).toMatchObject([{ code: 400, reason: 'binary' }])
  })

  it('that is empty is a mistake, after which the connection lives', async () => {
    const client = await house.upgrade()
    client.say({}, { payload: ping(2) })
    await client.ear.hear('pong', ({ req }) => req === 2)
    expect(client.ear.all('error')).toMatchObject([{ code: 400, reason: 'bad_json' }])
  })

  it('may follow the handshake in the same piece', async () => {
    const client = await house.upgrade('', frame({ payload: ping('first') }))
    await client.ear.hear('pong', ({ req }) => req === 'first')
  })
})
