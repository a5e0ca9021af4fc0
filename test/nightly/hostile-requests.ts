import { request } from '../integration/http/raw-connection.ts'
import { handshake } from '../integration/http/raw-websocket-client.ts'
import { closing, frame, opcodes } from '../integration/http/websocket-frames.ts'
import type { Dice } from '../simulation/seeded-random.ts'

/** What somebody says who means no good, and the code that a WebSocket is closed with for it. */
type Prank = { readonly says: (dice: Dice) => readonly Uint8Array[]; readonly code?: number }

const bytes = (text: string): Buffer => Buffer.from(text)
const behindHandshake = (...frames: readonly Uint8Array[]) => [bytes(handshake('/v1/ws?symbols=AAPLc')), ...frames]

export const pranks: readonly [Prank, ...Prank[]] = [
  { says: (dice) => [Uint8Array.from({ length: dice.int(1, 4_000) }, () => dice.int(0, 255))] },
  { says: () => [bytes('GET / HTTP/9.9\r\n\r\n')] },
  { says: () => [bytes('GET /v1/stream?symbols=* HTTP/1.1\r\nhost: rel')] },
  { says: () => [bytes(request('GET /v1/stream?symbols=NOBODY'))] },
  { says: () => [bytes(request('GET /v1/stream?symbols=*&types=none'))] },
  { says: () => [bytes(request('POST /v1/stream?symbols=*', ['content-length: 3'], 'abc'))] },
  { says: () => [bytes(request('GET /v1/stream?symbols=*').repeat(3))] },
  { says: () => [bytes(request('GET /v1/stream?symbols=*')), Buffer.alloc(20_000, 'x')] },
  { says: (dice) => [bytes(handshake()).subarray(0, dice.int(10, 150))] },
  { says: () => behindHandshake() },
  { says: () => behindHandshake(frame({ payload: 'x', masked: false })), code: 1_002 },
  { says: () => behindHandshake(frame({ payload: 'x', rsv: 5 })), code: 1_002 },
  { says: () => behindHandshake(frame({ opcode: opcodes.continuation, payload: 'x' })), code: 1_002 },
  { says: () => behindHandshake(frame({ payload: Buffer.alloc(5_000, 'x') })), code: 1_009 },
  { says: () => behindHandshake(frame({ payload: Buffer.of(0xff, 0xfe) })), code: 1_007 },
  { says: () => behindHandshake(...Array<Buffer>(10).fill(frame({ payload: '{' }))), code: 4_000 },
  { says: () => behindHandshake(frame({ opcode: opcodes.binary, payload: 'x' }), closing(1_000)), code: 1_000 },
]
