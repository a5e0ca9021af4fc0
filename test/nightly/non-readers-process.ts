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

/** Clients that read and clients that never do, in a process of their own. */

export type NonReaderCommand =
  /** Connects readers, and resolves when all of them are live. */
  | { readonly do: 'listen'; readonly port: number; readonly listeners: number; readonly query: string }
  /** Connects clients that never read. */
  | { readonly do: 'addNonReaders'; readonly port: number; readonly listeners: number; readonly query: string }
  /** How long transfers took to the readers since the last summary. */
  | { readonly do: 'summarize' }
  /** The clients that never read now do, up to the end of their connections. */
  | { readonly do: 'readRemaining' }
  /** Disconnects the readers and returns what was wrong in what they received. */
  | { readonly do: 'leave' }

/** The last message to a client that did not read, as far as the kernel still had it. */
export type LastMessage = {
  readonly bye: string | null
  /** The WebSocket's close code and reason. */
  readonly reason: string | null
}

export type NonReaderReply =
  | { readonly done: 'listen' | 'addNonReaders' }
  | ({ readonly done: 'summarize' } & LatencySummary)
  | { readonly done: 'readRemaining'; readonly lastMessages: readonly LastMessage[] }
  | { readonly done: 'leave'; readonly faults: readonly string[]; readonly received: number }

const TRANSPORTS = ['ws', 'sse', 'ndjson'] as const
/** Clients per local address, far below the relay's bound for one address. */
const LISTENERS_PER_ADDRESS = 50

const relayAddressOf = (port: number, nth: number): RelayAddress => ({
  port,
  localAddress: `127.0.2.${1 + Math.floor(nth / LISTENERS_PER_ADDRESS)}`,
})
const transportOf = (nth: number): CrowdTransport => TRANSPORTS[nth % TRANSPORTS.length] ?? 'ws'

const latency = new LatencyRecorder()
const readers: { readonly history: ReceivedHistory; readonly connection: CrowdConnection }[] = []
let nonReaders: { readonly transport: CrowdTransport; readonly socket: Socket }[] = []

async function listen({ port, listeners, query }: Extract<NonReaderCommand, { do: 'listen' }>): Promise<NonReaderReply> {
  for (let nth = 0; nth < listeners; nth += 1) {
    const history = new ReceivedHistory(`reader ${nth}`)
    const transport = transportOf(nth)
    readers.push({
      history,
      connection: new CrowdConnection(relayAddressOf(port, nth), history, { transport, query, recordLatency: latency.record }),
    })
  }
  await Promise.all(readers.map(({ connection }) => connection.live))
  return { done: 'listen' }
}

async function addNonReaders({
  port,
  listeners,
  query,
}: Extract<NonReaderCommand, { do: 'addNonReaders' }>): Promise<NonReaderReply> {
  nonReaders = Array.from({ length: listeners }, (_, nth) => {
    const transport = transportOf(nth)
    const socket = connectToRelay(relayAddressOf(port, nth)).pause()
    socket.on('error', () => socket.destroy())
    socket.write(
      transport === 'ws' ? handshakeRequest(`/v1/ws?${query}`) : formatRequest(`GET /v1/stream?${query}&format=${transport}`),
    )
    return { transport, socket }
  })
  return { done: 'addNonReaders' }
}

/** Reads everything left on a connection, and keeps its last message. */
function readLastMessage({ transport, socket }: (typeof nonReaders)[number]): Promise<LastMessage> {
  let bye: string | null = null
  let reason: string | null = null
  const takeMessage = (message: Buffer): void => {
    if (message.toString('latin1', 0, BYE.length) === BYE) bye = message.toString()
  }
  const takeClose = (payload: Buffer): void => {
    reason = `${payload.readUInt16BE(0)} ${payload.toString('utf8', 2)}`
  }
  const body =
    transport === 'ws'
      ? new FramesReader({ text: takeMessage, ping: () => {}, close: takeClose })
      : new LineReader(takeMessage, transport)
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
  return { done: 'readRemaining', lastMessages: await Promise.all(nonReaders.map(readLastMessage)) }
}

async function leave(): Promise<NonReaderReply> {
  const endedReaders = readers.filter(({ connection }) => connection.socket.destroyed)
  for (const { history } of endedReaders) history.addFault('the relay ended the connection')
  await Promise.all(readers.map(({ connection }) => connection.leave('close')))
  return {
    done: 'leave',
    faults: readers.flatMap(({ history }) => history.faults),
    received: readers.reduce((sum, { history }) => sum + history.messageCount, 0),
  }
}

const summarize = async (): Promise<NonReaderReply> => ({ done: 'summarize', ...latency.takeSummary() })

serveCommands<NonReaderCommand, NonReaderReply>((command) => {
  switch (command.do) {
    case 'listen':
      return listen(command)
    case 'addNonReaders':
      return addNonReaders(command)
    case 'summarize':
      return summarize()
    case 'readRemaining':
      return readRemaining()
    case 'leave':
      return leave()
  }
})
