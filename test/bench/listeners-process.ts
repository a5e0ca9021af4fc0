import { connect, type Socket } from 'node:net'
import { LatencyTally } from './latency-tally.ts'
import { FIRST_NUMBER, nowMicros, stampAt, stampNumber, stampTime } from './message-stamp.ts'
import { serveCommands } from './pinned-processes.ts'
import { type AuditResult, PublicationAudit } from './publication-audit.ts'
import type { Percentiles } from './result-table.ts'
import {
  type ByteReader,
  DATA_PREFIX,
  FrameReader,
  inflating,
  LineReader,
  type OnMessage,
  ResponseReader,
} from './stream-readers.ts'

/**
 * Many listeners in one process: bare sockets that read into one buffer, so that receiving costs less than sending.
 * Each message is counted and timed, and the numbers that a listener receives must grow.
 */

export type StreamKind = 'ws' | 'sse'
/** A listener's path, and which of `every` numbers in turn it receives; all of them where `receives` is absent. */
export type Selection = { readonly path: string; readonly receives?: readonly number[] }

export type Joining = {
  readonly do: 'join'
  readonly port: number
  readonly kind: StreamKind
  readonly listeners: number
  /** Listeners take them in turn. */
  readonly selections: readonly Selection[]
  readonly every: number
  /** Concurrent joins. */
  readonly atOnce: number
  /** Whether the server sends `live`; otherwise a listener is live after the handshake. */
  readonly sendsLive: boolean
  /** Whether they offer permessage-deflate. */
  readonly offersDeflate?: boolean
  /** One in this many reads its messages and counts for all; the others take bytes. All must select the same. */
  readonly readersEvery?: number
  /** Whether the first of them also follows what becomes of every log. It must select everything. */
  readonly isAudited?: boolean
}

export type ListenersCommand =
  | Joining
  /** Counting starts anew from this number on. */
  | { readonly do: 'countFrom'; readonly from: number }
  /** Waits until all listeners have received everything up to this number, or nothing arrives any more. */
  | { readonly do: 'waitForNumber'; readonly to: number }
  /** Waits until every log up to this number is sealed, or nothing arrives any more. */
  | { readonly do: 'waitForSeals'; readonly to: number }

export type DeliveryResult = Percentiles & {
  readonly done: 'waitForNumber'
  readonly received: number
  readonly missing: number
  /** Messages that came twice, out of order or to the wrong listener. */
  readonly wrong: number
  /** Listeners whose connection has ended. */
  readonly lost: number
  readonly seconds: number
  readonly bytes: number
  /** The share of its core that this process used. */
  readonly load: number
}

export type ListenersReply =
  /** `deflated`: the connections on which compression was agreed. */
  | { readonly done: 'join'; readonly live: number; readonly seconds: number; readonly deflated: number }
  | { readonly done: 'countFrom' }
  | DeliveryResult
  | { readonly done: 'waitForSeals'; readonly audit: AuditResult | null }

const BUFFER_BYTES = 256 * 1_024
/** After this long without a message, the missing ones count as lost. */
const SILENCE_MS = 20_000
/** A server that is behind for so long has failed. */
const WAIT_BOUND_MS = 60_000
const POLL_MS = 10
const LIVE = '"type":"live"'
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
let deflated = 0
let readersEvery = 1
let lost = 0
/** How many listeners receive each of the numbers in turn. */
let listenersByNumber: number[] = [0]
/** The offset of the stamp in the last message. Mostly it is the same in the next. */
let lastOffset = 0
let audit: PublicationAudit | null = null

function addListeners(command: Joining): Promise<ListenersReply> {
  const { listeners, selections, atOnce, every } = command
  const from = performance.now()
  let startedCount = 0
  let settled = 0
  listenersByNumber = Array.from({ length: every }, () => 0)
  readersEvery = command.readersEvery ?? 1
  audit = command.isAudited ? new PublicationAudit() : null
  return new Promise((resolve) => {
    const connectMore = () => {
      while (startedCount < listeners && startedCount - settled < atOnce) {
        const selection = selections[startedCount % selections.length] ?? { path: '/' }
        openListener(command, selection, startedCount, done)
        startedCount += 1
      }
    }
    const done = () => {
      settled += 1
      if (settled < listeners) return connectMore()
      resolve({ done: 'join', live, deflated, seconds: (performance.now() - from) / 1_000 })
    }
    connectMore()
  })
}

/** One listener. `settled` is called once: when it is live, or when it never can be. */
function openListener(
  { port, kind, every, sendsLive, offersDeflate = false }: Joining,
  selection: Selection,
  index: number,
  settled: () => void,
) {
  const isReading = index % readersEvery === 0
  const auditor = index === 0 ? audit : null
  const wanted = Array.from({ length: every }, (_, turn) => selection.receives?.includes(turn) ?? true)
  let last = 0
  let isLive = false
  const goLive = () => {
    isLive = true
    live += 1
    for (const [number, isWanted] of wanted.entries())
      if (isWanted && isReading) listenersByNumber[number] = (listenersByNumber[number] ?? 0) + 1
    settled()
  }
  const onMessage: OnMessage = (bytes, from, to) => {
    if (isLive && !isReading) return
    const at = stampAt(bytes, from, to, from + lastOffset)
    auditor?.read(bytes, from, to, at)
    if (at < 0) {
      if (!isLive && bytes.toString('latin1', from, to).includes(LIVE)) goLive()
      return
    }
    lastOffset = at - from
    const number = stampNumber(bytes, at)
    if (number <= last || !wanted[(number - FIRST_NUMBER) % every]) wrong += 1
    else if (number >= countedFrom) tally.add(now - stampTime(bytes, at))
    last = number
  }
  const inflate = inflating(onMessage)
  const onDeflated: OnMessage = (bytes, from, to) => {
    if (!isLive || isReading) inflate(bytes, from, to)
  }
  const reader = new ResponseReader((head): ByteReader => {
    if (!head.startsWith(kind === 'ws' ? 'HTTP/1.1 101' : 'HTTP/1.1 200')) throw new Error(`refused: ${head}`)
    const isDeflated = /^sec-websocket-extensions: *permessage-deflate/im.test(head)
    if (isDeflated) deflated += 1
    if (!sendsLive) goLive()
    if (kind === 'sse') return new LineReader(onMessage, DATA_PREFIX)
    return new FrameReader({ text: onMessage, deflated: isDeflated ? onDeflated : null, ping: () => socket.write(PONG) })
  })
  const takeBytes = (count: number, bytes: Buffer): boolean => {
    now = nowMicros()
    receivedAt = now
    bytesReceived += count
    reader.read(bytes, 0, count)
    return true
  }
  const socket: Socket = connect({
    port,
    host: '127.0.0.1',
    onread: { buffer, callback: (count, bytes) => takeBytes(count, bytes as Buffer) },
  })
  socket.setNoDelay(true)
  socket.write(request(kind, selection.path, offersDeflate))
  socket.on('error', () => {})
  socket.on('close', () => {
    lost += 1
    if (!isLive) settled()
  })
}

/** Offered as browsers do. */
const DEFLATE_OFFER = 'sec-websocket-extensions: permessage-deflate; client_max_window_bits'
const upgradeLines = [
  ...['upgrade: websocket', 'connection: upgrade', 'sec-websocket-version: 13', 'sec-websocket-key: c3RvY2t0YXBlIGJlbmNoLg=='],
]

const request = (kind: StreamKind, path: string, offersDeflate: boolean): string => {
  const lines = kind === 'sse' ? ['accept: text/event-stream'] : [...upgradeLines, ...(offersDeflate ? [DEFLATE_OFFER] : [])]
  return `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${lines.join('\r\n')}\r\n\r\n`
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

/** How many messages with a number up to this one all listeners together receive. */
function expectedCount(to: number): number {
  let sum = 0
  for (let number = countedFrom; number <= to; number += 1)
    sum += listenersByNumber[(number - FIRST_NUMBER) % listenersByNumber.length] ?? 0
  return sum
}

async function waitForDelivery(to: number): Promise<ListenersReply> {
  const expected = expectedCount(to)
  await waitUntil(() => tally.count >= expected)
  return report(expected)
}

async function waitForSeals(to: number): Promise<ListenersReply> {
  await waitUntil(() => !audit || audit.sealedCount > to - FIRST_NUMBER)
  return { done: 'waitForSeals', audit: audit?.report(countedFrom, to) ?? null }
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

function report(expected: number): DeliveryResult {
  const { user, system } = process.cpuUsage(cpuAtReset)
  const ended = Math.max(receivedAt, countedSince + 1)
  return {
    done: 'waitForNumber',
    received: tally.count * readersEvery,
    missing: (expected - tally.count) * readersEvery,
    wrong,
    lost,
    ...tally.percentiles(),
    seconds: (ended - countedSince) / 1e6,
    bytes: bytesReceived,
    load: (user + system) / (nowMicros() - countedSince),
  }
}

serveCommands<ListenersCommand, ListenersReply>(async (command) => {
  switch (command.do) {
    case 'join':
      return addListeners(command)
    case 'countFrom':
      return resetCounts(command.from)
    case 'waitForNumber':
      return waitForDelivery(command.to)
    case 'waitForSeals':
      return waitForSeals(command.to)
  }
})
