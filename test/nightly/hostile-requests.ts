import { closeCodes } from '../../src/protocol/close-codes.ts'
import { formatRequest } from '../integration/http/raw-connection.ts'
import { handshakeRequest } from '../integration/http/raw-websocket-client.ts'
import { closeFrame, encodeFrame, opcodes } from '../integration/http/websocket-frames.ts'
import type { SeededRandom } from '../simulation/seeded-random.ts'

/** A hostile request, and the code that the relay closes a WebSocket with because of it. */
type HostileRequest = { readonly bytesFor: (random: SeededRandom) => readonly Uint8Array[]; readonly code?: number }

const bytes = (text: string): Buffer => Buffer.from(text)
const afterHandshake = (...frames: readonly Uint8Array[]) => [bytes(handshakeRequest('/v1/ws?symbols=AAPLc')), ...frames]

export const hostileRequests: readonly [HostileRequest, ...HostileRequest[]] = [
  { bytesFor: (random) => [Uint8Array.from({ length: random.int(1, 4_000) }, () => random.int(0, 255))] },
  { bytesFor: () => [bytes('GET / HTTP/9.9\r\n\r\n')] },
  { bytesFor: () => [bytes('GET /v1/stream?symbols=* HTTP/1.1\r\nhost: rel')] },
  { bytesFor: () => [bytes(formatRequest('GET /v1/stream?symbols=NOBODY'))] },
  { bytesFor: () => [bytes(formatRequest('GET /v1/stream?symbols=*&types=none'))] },
  { bytesFor: () => [bytes(formatRequest('POST /v1/stream?symbols=*', ['content-length: 3'], 'abc'))] },
  { bytesFor: () => [bytes(formatRequest('GET /v1/stream?symbols=*').repeat(3))] },
  { bytesFor: () => [bytes(formatRequest('GET /v1/stream?symbols=*')), Buffer.alloc(20_000, 'x')] },
  { bytesFor: (random) => [bytes(handshakeRequest()).subarray(0, random.int(10, 150))] },
  { bytesFor: () => afterHandshake() },
  { bytesFor: () => afterHandshake(encodeFrame({ payload: 'x', masked: false })), code: 1_002 },
  { bytesFor: () => afterHandshake(encodeFrame({ payload: 'x', rsv: 5 })), code: 1_002 },
  { bytesFor: () => afterHandshake(encodeFrame({ opcode: opcodes.continuation, payload: 'x' })), code: 1_002 },
  { bytesFor: () => afterHandshake(encodeFrame({ payload: Buffer.alloc(5_000, 'x') })), code: 1_009 },
  { bytesFor: () => afterHandshake(encodeFrame({ payload: Buffer.of(0xff, 0xfe) })), code: 1_007 },
  { bytesFor: () => afterHandshake(...Array<Buffer>(10).fill(encodeFrame({ payload: '{' }))), code: 4_000 },
  {
    bytesFor: () => afterHandshake(...Array<Buffer>(120).fill(encodeFrame({ payload: '{"type":"ping"}' }))),
    code: closeCodes.too_many_messages,
  },
  { bytesFor: () => afterHandshake(encodeFrame({ opcode: opcodes.binary, payload: 'x' }), closeFrame(1_000)), code: 1_000 },
]
