import type { Socket } from 'node:net'
import { obey } from '../bench/pinned-processes.ts'
import { request } from '../integration/http/raw-connection.ts'
import { handshake } from '../integration/http/raw-websocket-client.ts'
import { Connection } from './crowd-connection.ts'
import { AnswerReader, type Carrier, call, FramesReader, LineReader, type Way } from './crowd-stream-readers.ts'
import { Latency, type Took } from './latency-recorder.ts'
import { Story } from './received-history.ts'

/** Those who read and those who never do, in a process of their own. */

export type UnreadOrder =
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
export type LastWord = {
  readonly bye: string | null
  /** With which code and reason a WebSocket was closed. */
  readonly reason: string | null
}

export type UnreadReport =
  | { readonly done: 'listen' | 'mute' }
  | ({ readonly done: 'look' } & Took)
  | { readonly done: 'wake'; readonly words: readonly LastWord[] }
  | { readonly done: 'leave'; readonly faults: readonly string[]; readonly heard: number }

const CARRIERS = ['ws', 'sse', 'ndjson'] as const
/** Each address of this machine is shared by so many, far fewer than may come from one. */
const LISTENERS_PER_ADDRESS = 50

const wayOf = (port: number, nth: number): Way => ({
  port,
  localAddress: `127.0.2.${1 + Math.floor(nth / LISTENERS_PER_ADDRESS)}`,
})
const carrierOf = (nth: number): Carrier => CARRIERS[nth % CARRIERS.length] ?? 'ws'

const latency = new Latency()
const readers: { readonly story: Story; readonly connection: Connection }[] = []
let unread: { readonly carrier: Carrier; readonly socket: Socket }[] = []

async function listen({ port, listeners, query }: Extract<UnreadOrder, { do: 'listen' }>): Promise<UnreadReport> {
  for (let nth = 0; nth < listeners; nth += 1) {
    const story = new Story(`reader ${nth}`)
    const carrier = carrierOf(nth)
    readers.push({ story, connection: new Connection(wayOf(port, nth), story, { carrier, query, took: latency.take }) })
  }
  await Promise.all(readers.map(({ connection }) => connection.live))
  return { done: 'listen' }
}

async function mute({ port, listeners, query }: Extract<UnreadOrder, { do: 'mute' }>): Promise<UnreadReport> {
  unread = Array.from({ length: listeners }, (_, nth) => {
    const carrier = carrierOf(nth)
    const socket = call(wayOf(port, nth)).pause()
    socket.on('error', () => socket.destroy())
    socket.write(carrier === 'ws' ? handshake(`/v1/ws?${query}`) : request(`GET /v1/stream?${query}&format=${carrier}`))
    return { carrier, socket }
  })
  return { done: 'mute' }
}

/** Reads all that is left on a connection, and keeps the last word of it. */
function lastWord({ carrier, socket }: (typeof unread)[number]): Promise<LastWord> {
  let bye: string | null = null
  let reason: string | null = null
  const take = (message: Buffer): void => {
    if (message.toString('latin1', 0, BYE.length) === BYE) bye = message.toString()
  }
  const closed = (payload: Buffer): void => {
    reason = `${payload.readUInt16BE(0)} ${payload.toString('utf8', 2)}`
  }
  const body =
    carrier === 'ws' ? new FramesReader({ text: take, ping: () => {}, close: closed }) : new LineReader(take, carrier)
  const answer = new AnswerReader(body, () => {})
  socket.on('data', (bytes: Buffer) => answer.read(bytes))
  socket.on('end', () => socket.end())
  return new Promise((resolve) => {
    socket.once('close', () => resolve({ bye, reason }))
    socket.resume()
  })
}

const BYE = '{"type":"bye"'

async function wake(): Promise<UnreadReport> {
  return { done: 'wake', words: await Promise.all(unread.map(lastWord)) }
}

async function leave(): Promise<UnreadReport> {
  const ended = readers.filter(({ connection }) => connection.socket.destroyed)
  for (const { story } of ended) story.fault('was ended')
  await Promise.all(readers.map(({ connection }) => connection.leave('close')))
  return {
    done: 'leave',
    faults: readers.flatMap(({ story }) => story.faults),
    heard: readers.reduce((sum, { story }) => sum + story.heard, 0),
  }
}

const look = async (): Promise<UnreadReport> => ({ done: 'look', ...latency.look() })

obey<UnreadOrder, UnreadReport>((order) => {
  switch (order.do) {
    case 'listen':
      return listen(order)
    case 'mute':
      return mute(order)
    case 'look':
      return look()
    case 'wake':
      return wake()
    case 'leave':
      return leave()
  }
})
