import type { Socket } from 'node:net'
import { serveCommands } from '../bench/pinned-processes.ts'
import { formatRequest } from '../integration/http/raw-connection.ts'
import { handshakeRequest } from '../integration/http/raw-websocket-client.ts'
import { CrowdConnection, openStream, type RelayAddress } from './crowd-connection.ts'
import { LatencyRecorder, type LatencySummary } from './latency-recorder.ts'
import { ReceivedHistory } from './received-history.ts'

/** Clients that read and clients that never do, in a process of their own. */

type Clients = { readonly port: number; readonly listeners: number; readonly query: string }

export type NonReaderCommand =
  /** Connects readers, and resolves when all of them are live. */
  | ({ readonly do: 'listen' } & Clients)
  /** Connects clients that never read. */
  | ({ readonly do: 'addNonReaders' } & Clients)
  /** How long transfers took to the readers since the last summary. */
  | { readonly do: 'summarize' }
  /** The clients that never read now do, up to the end of their connections. */
  | { readonly do: 'readRemaining' }
  /** Disconnects the readers and returns what was wrong in what they received. */
  | { readonly do: 'leave' }

/** The last message to a client that did not read, as far as the kernel still had it, and the WebSocket's close code and reason. */
type LastMessage = { bye: string | null; reason: string | null }

export type NonReaderReply =
  | { readonly done: 'listen' | 'addNonReaders' }
  | ({ readonly done: 'summarize' } & LatencySummary)
  | { readonly done: 'readRemaining'; readonly lastMessages: readonly LastMessage[] }
  | { readonly done: 'leave'; readonly faults: readonly string[] }

const TRANSPORTS = ['ws', 'sse', 'ndjson'] as const
/** Clients per local address, far below the relay's bound for one address. */
const LISTENERS_PER_ADDRESS = 50
const BYE = '{"type":"bye"'

const relayAddressOf = (port: number, nth: number): RelayAddress => ({
  port,
  localAddress: `127.0.2.${1 + Math.floor(nth / LISTENERS_PER_ADDRESS)}`,
})
const transportOf = (nth: number) => TRANSPORTS[nth % TRANSPORTS.length] ?? 'ws'

const latency = new LatencyRecorder()
const readers: { readonly history: ReceivedHistory; readonly connection: CrowdConnection }[] = []
let nonReaders: { readonly last: LastMessage; readonly socket: Socket }[] = []

async function listen({ port, listeners, query }: Clients): Promise<NonReaderReply> {
  for (let nth = 0; nth < listeners; nth += 1) {
    const history = new ReceivedHistory(`reader ${nth}`)
    const options = { transport: transportOf(nth), query, recordLatency: latency.record }
    readers.push({ history, connection: new CrowdConnection(relayAddressOf(port, nth), history, options) })
  }
  await Promise.all(readers.map(({ connection }) => connection.live))
  return { done: 'listen' }
}

function openNonReader(transport: (typeof TRANSPORTS)[number], address: RelayAddress, query: string) {
  const last: LastMessage = { bye: null, reason: null }
  const path = transport === 'ws' ? `/v1/ws?${query}` : `/v1/stream?${query}&format=${transport}`
  const socket = openStream(address, transport, [transport === 'ws' ? handshakeRequest(path) : formatRequest(`GET ${path}`)], {
    message: (message) => {
      if (message.toString('latin1', 0, BYE.length) === BYE) last.bye = message.toString()
    },
    close: (payload) => {
      last.reason = `${payload.readUInt16BE(0)} ${payload.toString('utf8', 2)}`
    },
  })
  return { last, socket: socket.pause() }
}

async function addNonReaders({ port, listeners, query }: Clients): Promise<NonReaderReply> {
  nonReaders = Array.from({ length: listeners }, (_, nth) => openNonReader(transportOf(nth), relayAddressOf(port, nth), query))
  return { done: 'addNonReaders' }
}

async function readRemaining(): Promise<NonReaderReply> {
  const ends = nonReaders.map(({ socket, last }) => {
    const ended = new Promise<LastMessage>((resolve) => socket.once('close', () => resolve(last)))
    socket.resume()
    return ended
  })
  return { done: 'readRemaining', lastMessages: await Promise.all(ends) }
}

async function leave(): Promise<NonReaderReply> {
  for (const { history, connection } of readers) if (connection.socket.destroyed) history.addFault('the relay ended the connection')
  await Promise.all(readers.map(({ connection }) => connection.leave('close')))
  return { done: 'leave', faults: readers.flatMap(({ history }) => history.faults) }
}

serveCommands<NonReaderCommand, NonReaderReply>(async (command) => {
  if (command.do === 'listen') return listen(command)
  if (command.do === 'addNonReaders') return addNonReaders(command)
  if (command.do === 'summarize') return { done: 'summarize', ...latency.takeSummary() }
  return command.do === 'leave' ? leave() : readRemaining()
})
