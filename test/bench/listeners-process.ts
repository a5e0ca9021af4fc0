import { connect, type Socket } from 'node:net'
import { LatencyTally } from './latency-tally.ts'
import { FIRST_NUMBER, nowMicros, stampAt, stampNumber, stampTime } from './message-stamp.ts'
import type { Percentiles } from './percentiles.ts'
import { serveCommands } from './pinned-processes.ts'
import { DATA_PREFIX, FrameReader, LineReader, type OnMessage, ResponseReader } from './stream-readers.ts'

/**
 * Many listeners in one process: bare sockets that read into one buffer, so that receiving costs less than sending.
 * Each message is counted and timed, and the numbers that a listener receives must grow.
 */

export type StreamKind = 'ws' | 'sse'

type Joining = {
  readonly do: 'join'
  readonly port: number
  readonly kind: StreamKind
  readonly listeners: number
  readonly path: string
  /** Whether the server sends `live`; otherwise a listener is live after the handshake. */
  readonly sendsLive: boolean
}

export type ListenersCommand =
  | Joining
  /** Counting starts anew from this number on. */
  | { readonly do: 'countFrom'; readonly from: number }
  /** Waits until all listeners have received everything up to this number, or nothing arrives any more. */
  | { readonly do: 'waitForNumber'; readonly to: number }
  /** Waits until every log up to this number is sealed, or nothing arrives any more. */
  | { readonly do: 'waitForSeals'; readonly to: number }

type DeliveryResult = Percentiles & {
  readonly done: 'waitForNumber'
  readonly received: number
  readonly missing: number
  /** Messages that came twice or out of order. */
  readonly wrong: number
  /** Listeners whose connection has ended. */
  readonly lost: number
  readonly seconds: number
  readonly bytes: number
  /** The share of its core that this process used. */
  readonly load: number
}

export type ListenersReply =
  | { readonly done: 'join'; readonly live: number }
  | { readonly done: 'countFrom' }
  | DeliveryResult
  | { readonly done: 'waitForSeals'; readonly unsealed: number }

const BUFFER_BYTES = 256 * 1_024
const CONCURRENT_JOINS = 200
/** After this long without a message, the missing ones count as lost. */
const SILENCE_MS = 20_000
/** A server that is behind for so long has failed. */
const WAIT_BOUND_MS = 60_000
const POLL_MS = 10
const LIVE = '"type":"live"'
/** The first listener reads how many logs each seal lists. */
const SEALED_COUNT = /^\{"type":"seal".*"count":(\d+)/
/** An empty masked pong (RFC 6455 §5.5.3). */
const PONG = Buffer.from([0x8a, 0x80, 0, 0, 0, 0])

const buffer = Buffer.allocUnsafe(BUFFER_BYTES)
let tally = new LatencyTally()
let wrong = 0
let bytesReceived = 0
let now = 0
let countedSince = 0
let cpuAtReset = process.cpuUsage()
let countedFrom = 0
let receivedAt = 0
let live = 0
let lost = 0
let sealed = 0
/** The offset of the stamp in the last message. Mostly it is the same in the next. */
let lastOffset = 0

function addListeners(command: Joining): Promise<ListenersReply> {
  const { listeners } = command
  let startedCount = 0
  let settled = 0
  return new Promise((resolve) => {
    const connectMore = () => {
      for (; startedCount < listeners && startedCount - settled < CONCURRENT_JOINS; startedCount += 1)
        openListener(command, startedCount === 0, done)
    }
    const done = () => {
      settled += 1
      if (settled < listeners) connectMore()
      else resolve({ done: 'join', live })
    }
    connectMore()
  })
}

/** One listener. `settled` is called once: when it is live, or when it never can be. */
function openListener({ port, kind, path, sendsLive }: Joining, isFirst: boolean, settled: () => void) {
  let last = 0
  let isLive = false
  const goLive = () => {
    isLive = true
    live += 1
    settled()
  }
  const takeOther = (text: string) => {
    if (!isLive && text.includes(LIVE)) goLive()
    sealed += Number(SEALED_COUNT.exec(text)?.[1] ?? 0)
  }
  const onMessage: OnMessage = (bytes, from, to) => {
    const at = stampAt(bytes, from, to, from + lastOffset)
    if (at < 0) {
      if (isFirst || !isLive) takeOther(bytes.toString('latin1', from, to))
      return
    }
    lastOffset = at - from
    const number = stampNumber(bytes, at)
    if (number <= last) wrong += 1
    else if (number >= countedFrom) tally.add(now - stampTime(bytes, at))
    last = number
  }
  const reader = new ResponseReader((head) => {
    if (!head.startsWith(kind === 'ws' ? 'HTTP/1.1 101' : 'HTTP/1.1 200')) throw new Error(`refused: ${head}`)
    if (!sendsLive) goLive()
    if (kind === 'sse') return new LineReader(onMessage, DATA_PREFIX)
    return new FrameReader({ text: onMessage, ping: () => socket.write(PONG) })
  })
  const takeBytes = (count: number, bytes: Buffer): boolean => {
    now = nowMicros()
    receivedAt = now
    bytesReceived += count
    reader.read(bytes, 0, count)
    return true
  }
  const onread = { buffer, callback: (count: number, bytes: Uint8Array) => takeBytes(count, bytes as Buffer) }
  const socket: Socket = connect({ port, host: '127.0.0.1', onread })
  socket.setNoDelay(true)
  socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${headersOf[kind].join('\r\n')}\r\n\r\n`)
  socket.on('error', () => {})
  socket.on('close', () => {
    lost += 1
    if (!isLive) settled()
  })
}

const headersOf: Readonly<Record<StreamKind, readonly string[]>> = {
  ws: ['upgrade: websocket', 'connection: upgrade', 'sec-websocket-version: 13', 'sec-websocket-key: c3RvY2t0YXBlIGJlbmNoLg=='],
  sse: ['accept: text/event-stream'],
}

function resetCounts(from: number): ListenersReply {
  tally = new LatencyTally()
  wrong = 0
  bytesReceived = 0
  countedFrom = from
  countedSince = nowMicros()
  receivedAt = countedSince
  cpuAtReset = process.cpuUsage()
  return { done: 'countFrom' }
}

async function waitForDelivery(to: number): Promise<DeliveryResult> {
  const expected = live * (to - countedFrom + 1)
  await waitUntil(() => tally.count >= expected)
  const { user, system } = process.cpuUsage(cpuAtReset)
  return {
    ...{ done: 'waitForNumber', received: tally.count, missing: expected - tally.count, wrong, lost, bytes: bytesReceived },
    ...tally.percentiles(),
    seconds: (Math.max(receivedAt, countedSince + 1) - countedSince) / 1e6,
    load: (user + system) / (nowMicros() - countedSince),
  }
}

async function waitForSeals(to: number): Promise<ListenersReply> {
  const made = to - FIRST_NUMBER + 1
  await waitUntil(() => sealed >= made)
  return { done: 'waitForSeals', unsealed: made - sealed }
}

/** Resolves when it is so, or when nothing has arrived for a while, or when it takes too long. */
function waitUntil(isReached: () => boolean): Promise<void> {
  const from = nowMicros()
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const isWorking = nowMicros() - receivedAt < SILENCE_MS * 1_000 && nowMicros() - from < WAIT_BOUND_MS * 1_000
      if (!isReached() && isWorking) return
      clearInterval(timer)
      resolve()
    }, POLL_MS)
  })
}

serveCommands<ListenersCommand, ListenersReply>(async (command) => {
  if (command.do === 'join') return addListeners(command)
  if (command.do === 'countFrom') return resetCounts(command.from)
  return command.do === 'waitForNumber' ? waitForDelivery(command.to) : waitForSeals(command.to)
})
