import type { Socket } from 'node:net'
import { serveCommands } from '../bench/pinned-processes.ts'
import { formatRequest } from '../integration/http/raw-connection.ts'
import { handshakeRequest } from '../integration/http/raw-websocket-client.ts'
import { CrowdConnection } from './crowd-connection.ts'
import {
  type CrowdTransport,
  connectToRelay,
  FramesReader,
  LineReader,
  type RelayAddress,
  ResponseReader,
} from './crowd-stream-readers.ts'
import { LatencyRecorder, type LatencySummary } from './latency-recorder.ts'
import { ReceivedHistory } from './received-history.ts'

/** Those who read and those who never do, in a process of their own. */

export type NonReaderCommand =
  /** So many readers come, and resolve once all of them are live. */
  | { readonly do: 'listen'; readonly port: number; readonly listeners: number; readonly query: string }
  /** So many come who never read. */
  | { readonly do: 'mute'; readonly port: number; readonly listeners: number; readonly query: string }
  /** How long transfers took to the readers since they were asked last. */
  | { readonly do: 'look' }
  /** Those who never read do it after all, up to what ends their connection. */
  | { readonly do: 'wake' }
  /** What the readers heard that cannot be. */
  | { readonly do: 'leave' }

/** The last word that one of those heard who never read, as far as it was still to be had. */
export type LastMessage = {
  readonly bye: string | null
  /** With which code and reason a WebSocket was closed. */
  readonly reason: string | null
}

export type NonReaderReply =
  | { readonly done: 'listen' | 'mute' }
  | ({ readonly done: 'look' } & LatencySummary)
  | { readonly done: 'wake'; readonly lastMessages: readonly LastMessage[] }
  | { readonly done: 'leave'; readonly faults: readonly string[]; readonly received: number }

const TRANSPORTS = ['ws', 'sse', 'ndjson'] as const
/** Each address of this machine is shared by so many, far fewer than may come from one. */
const LISTENERS_PER_ADDRESS = 50

const relayAddressOf = (port: number, nth: number): RelayAddress => ({
  port,
  localAddress: `127.0.2.${1 + Math.floor(nth / LISTENERS_PER_ADDRESS)}`,
})
const transportOf = (nth: number): CrowdTransport => TRANSPORTS[nth % TRANSPORTS.length] ?? 'ws'

const latency = new LatencyRecorder()
const readers: { readonly history: ReceivedHistory; readonly connection: CrowdConnection }[] = []
let nonReaders: { readonly carrier: CrowdTransport; readonly socket: Socket }[] = []

async function listen({
  port,
  listeners,
  query,
}: Extract<NonReaderCommand, { do: 'listen' }>): Promise<NonReaderReply> {
  for (let nth = 0; nth < listeners; nth += 1) {
    const history = new ReceivedHistory(`reader ${nth}`)
    const transport = transportOf(nth)
    readers.push({
      history,
      connection: new CrowdConnection(relayAddressOf(port, nth), history, {
        transport,
        query,
        recordLatency: latency.record,
      }),
    })
  }
  await Promise.all(readers.map(({ connection }) => connection.live))
  return { done: 'listen' }
}

async function addNonReaders({
  port,
  listeners,
  query,
}: Extract<NonReaderCommand, { do: 'mute' }>): Promise<NonReaderReply> {
  nonReaders = Array.from({ length: listeners }, (_, nth) => {
    const transport = transportOf(nth)
    const socket = connectToRelay(relayAddressOf(port, nth)).pause()
    socket.on('error', () => socket.destroy())
    socket.write(
      transport === 'ws'
        ? handshakeRequest(`/v1/ws?${query}`)
        : formatRequest(`GET /v1/stream?${query}&format=${transport}`),
    )
    return { carrier: transport, socket }
  })
  return { done: 'mute' }
}

/** Reads all that is left on a connection, and keeps the last word of it. */
function readLastMessage({ carrier, socket }: (typeof nonReaders)[number]): Promise<LastMessage> {
  let bye: string | null = null
  let reason: string | null = null
  const takeMessage = (message: Buffer): void => {
    if (message.toString('latin1', 0, BYE.length) === BYE) bye = message.toString()
  }
  const closed = (payload: Buffer): void => {
    reason = `${payload.readUInt16BE(0)} ${payload.toString('utf8', 2)}`
  }
  const body =
    carrier === 'ws'
      ? new FramesReader({ text: takeMessage, ping: () => {}, close: closed })
      : new LineReader(takeMessage, carrier)
  const answer = new ResponseReader(body, () => {})
  socket.on('data', (bytes: Buffer) => answer.read(bytes))
  socket.on('end', () => socket.end())
  return new Promise((resolve) => {
    socket.once('close', () => resolve({ bye, reason }))
    socket.resume()
  })
}

const BYE = '{"type":"bye"'

async function readRemaining(): Promise<NonReaderReply> {
  return { done: 'wake', lastMessages: await Promise.all(nonReaders.map(readLastMessage)) }
}

async function leave(): Promise<NonReaderReply> {
  const ended = readers.filter(({ connection }) => connection.socket.destroyed)
  for (const { history } of ended) history.addFault('was ended')
  await Promise.all(readers.map(({ connection }) => connection.leave('close')))
  return {
    done: 'leave',
    faults: readers.flatMap(({ history }) => history.faults),
    received: readers.reduce((sum, { history }) => sum + history.messageCount, 0),
  }
}

const summarize = async (): Promise<NonReaderReply> => ({ done: 'look', ...latency.takeSummary() })

serveCommands<NonReaderCommand, NonReaderReply>((order) => {
  switch (order.do) {
    case 'listen':
      return listen(order)
    case 'mute':
      return addNonReaders(order)
    case 'look':
      return summarize()
    case 'wake':
      return readRemaining()
    case 'leave':
      return leave()
  }
})
