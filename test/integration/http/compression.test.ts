import { once } from 'node:events'
import { constants, createInflateRaw, deflateRawSync, inflateRawSync, type ZlibOptions } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { openLargeAudience } from '../../support/large-audience.ts'
import { openTestStack, transfer } from '../../support/test-stack.ts'
import { handshakeRequest, RawWebSocketClient } from './raw-websocket-client.ts'
import { sharedRelayForFile } from './shared-relay.ts'
import { type ClientFrame, opcodes } from './websocket-frames.ts'

/** permessage-deflate (RFC 7692), over real sockets. */

const sharedRelay = sharedRelayForFile()

const EXTENSION = 'permessage-deflate'
const ALONE = 'server_no_context_takeover'
const SELECTION = 'symbols=AAPLc&types=transfer&snapshot=false'
const QUERY = `?${SELECTION}`
const MESSAGE_BOUND_BYTES = 4_096
const RSV1 = 4
const FLUSH_END = Buffer.of(0, 0, 0xff, 0xff)

const openClient = async (offer = EXTENSION, query = ''): Promise<RawWebSocketClient> =>
  RawWebSocketClient.upgradeWithExtensions(await sharedRelay.connect(), `/v1/ws${query}`, offer)

/** A message as a client compresses it. */
const deflate = (text: string | Buffer, options: ZlibOptions = {}): Buffer =>
  deflateRawSync(text, { ...options, finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -FLUSH_END.length)

const deflatedFrame = (payload: Uint8Array, more: ClientFrame = {}): ClientFrame => ({ payload, rsv: RSV1, ...more })

/** JSON may end with spaces. */
const pingOfLength = (length: number): string => '{"type":"ping","req":1}'.padEnd(length)

describe('the handshake', () => {
  it.each([
    [EXTENSION, `${EXTENSION}; client_no_context_takeover`],
    [`${EXTENSION}; ${ALONE}`, `${EXTENSION}; ${ALONE}; client_no_context_takeover`],
    [`${EXTENSION}; server_max_window_bits=11`, undefined],
  ])('answers the offer %s with %s', async (offer, answer) => {
    const raw = await sharedRelay.connect()
    raw.send(handshakeRequest('/v1/ws', { 'sec-websocket-extensions': offer }))
    const { status, headers } = await raw.responseHead()
    expect([status, headers.get('sec-websocket-extensions')]).toEqual([101, answer])
  })

  it('answers nothing at /rpc and with COMPRESSION=false', async () => {
    const { relay } = await openTestStack({ COMPRESSION: 'false' })
    for (const url of [relay.wsUrl, sharedRelay.stack.relay.wsUrl.replace('/v1/ws', '/rpc')]) {
      const socket = new WebSocket(url)
      await once(socket, 'open')
      expect(socket.extensions).toBe('')
      socket.terminate()
    }
  })
})

describe('a compressed client message', () => {
  const text = JSON.stringify({ type: 'ping', req: 'deflated' })
  const whole = deflate(text)
  const pieces = Array.from(whole, (byte) => Buffer.of(byte)).slice(0, 8)
  const fragments = [...pieces, whole.subarray(pieces.length)].map(
    (payload, at): ClientFrame => ({
      payload,
      rsv: at === 0 ? RSV1 : 0,
      opcode: at === 0 ? opcodes.text : opcodes.continuation,
      fin: at === pieces.length,
    }),
  )

  it.each<[string, readonly ClientFrame[]]>([
    ['in one frame', [deflatedFrame(whole)]],
    ['in fragments, some of one byte', fragments],
    ['with a final block', [deflatedFrame(Buffer.concat([deflateRawSync(text), Buffer.of(0)]))]],
    ['that is not compressed after all', [{ payload: text }]],
    ['after one that was', [deflatedFrame(deflate('{"type":"ping","req":"first"}')), deflatedFrame(whole)]],
    ['after an empty one', [deflatedFrame(Buffer.of(0)), deflatedFrame(Buffer.alloc(0)), deflatedFrame(whole)]],
  ])('%s is read', async (_, frames) => {
    const client = await openClient()
    client.sendFrames(...frames)
    await client.listener.waitFor('pong', ({ req }) => req === 'deflated')
  })

  it('may have 4 KiB and closes the connection with 1009 when it has more', async () => {
    const client = await openClient()
    client.sendFrames(deflatedFrame(deflate(pingOfLength(MESSAGE_BOUND_BYTES))))
    await client.listener.waitFor('pong')
    client.sendFrames(deflatedFrame(deflate(pingOfLength(MESSAGE_BOUND_BYTES + 1))))
    expect(await client.waitForClose()).toMatchObject({ code: 1009 })
  })

  it.each<[string, number, readonly ClientFrame[]]>([
    ['of a thousand times its size', 1009, [deflatedFrame(deflate(Buffer.alloc(4_000_000)))]],
    ['that is no deflate stream', 1007, [deflatedFrame(Buffer.from([0xff, 0xff, 0xff]))]],
    ['that is not UTF-8', 1007, [deflatedFrame(deflate(Buffer.of(0xc3, 0x28)))]],
    ['that refers to the one before it', 1007, [deflatedFrame(deflate(text, { dictionary: Buffer.from(text) }))]],
  ])('%s closes the connection with %i', async (_, code, frames) => {
    const client = await openClient()
    client.sendFrames(...frames)
    expect(await client.waitForClose()).toMatchObject({ code })
  })

  it('without an offer closes the connection with 1002', async () => {
    const client = await sharedRelay.openWebSocket()
    client.sendFrames(deflatedFrame(whole))
    expect(await client.waitForClose()).toMatchObject({ code: 1002 })
  })
})

describe('compressed updates', () => {
  const BURST = 20

  /** A live client, its compressed payloads so far, and all bytes that it receives from now on. */
  async function openLive(offer: string) {
    const client = await openClient(offer, QUERY)
    await client.listener.waitFor('live')
    const readBefore = client.connection.socket.bytesRead
    return {
      payloads: () => client.frames.flatMap((frame) => (frame.kind === 'deflated' ? [frame.payload] : [])),
      waitForCount: (count: number) =>
        client.connection.until(() => client.frames.filter(({ kind }) => kind === 'deflated').length === count, `${count} updates`),
      receivedBytes: () => client.connection.socket.bytesRead - readBefore,
    }
  }

  const openAudience = () => openLargeAudience(sharedRelay.stack.relay.wsUrl, SELECTION)

  /** The same updates as a client without compression receives them. */
  async function openPlain() {
    const client = await sharedRelay.openLive(QUERY)
    const skipped = client.listener.received.length
    const texts = () => client.listener.received.slice(skipped).map(({ text }) => text)
    return { texts, waitForCount: (count: number) => client.listener.until(() => texts().length === count) }
  }

  it('arrive whole in a client that keeps its window over batches, in at most 0.3 of the bytes', async () => {
    const closeAudience = await openAudience()
    const [deflated, plain] = [await openLive(`${EXTENSION}; server_max_window_bits=12`), await openPlain()]
    for (const count of [1, 2, 3].map((batch) => batch * BURST)) {
      transfer(sharedRelay.stack, 'AAPLc', BURST)
      await Promise.all([deflated.waitForCount(count), plain.waitForCount(count)])
    }
    const inflater = createInflateRaw({ windowBits: 12 })
    const chunks: Buffer[] = []
    inflater.on('data', (chunk: Buffer) => chunks.push(chunk))
    inflater.write(Buffer.concat(deflated.payloads().flatMap((payload) => [payload, FLUSH_END])))
    await new Promise<void>((resolve) => inflater.flush(() => resolve()))
    const plainText = plain.texts().join('')
    expect(Buffer.concat(chunks).toString()).toBe(plainText)
    expect(deflated.receivedBytes() / Buffer.byteLength(plainText)).toBeLessThan(0.3)
    closeAudience()
  })

  it('are compressed alone for a client that keeps no window, in at most 0.6 of the bytes', async () => {
    const [deflated, plain] = [await openLive(`${EXTENSION}; ${ALONE}`), await openPlain()]
    transfer(sharedRelay.stack, 'AAPLc', BURST)
    await Promise.all([deflated.waitForCount(BURST), plain.waitForCount(BURST)])
    const inflateAlone = (payload: Buffer): string =>
      inflateRawSync(Buffer.concat([payload, FLUSH_END]), { finishFlush: constants.Z_SYNC_FLUSH }).toString()
    expect(deflated.payloads().map(inflateAlone)).toEqual(plain.texts())
    expect(deflated.receivedBytes() / Buffer.byteLength(plain.texts().join(''))).toBeLessThan(0.6)
  })
})
