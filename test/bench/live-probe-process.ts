import { Agent, get } from 'node:http'
import { WebSocket } from 'ws'
import { FIRST_NUMBER, nowMicros, stampAt, stampNumber, stampTime } from './message-stamp.ts'
import { serveCommands } from './pinned-processes.ts'
import { percentilesOf } from './result-table.ts'

/**
 * A live listener and a client that polls the relay's health, in a process of their own: both notice when the relay's
 * event loop is blocked.
 */

export type ProbeCommand =
  | { readonly do: 'listen'; readonly port: number }
  /** Measurements since the last summary. */
  | { readonly do: 'summarize' }
export type ProbeReply =
  | { readonly done: 'listen' }
  | {
      readonly done: 'summarize'
      readonly liveP99Ms: number
      readonly liveWorstMs: number
      readonly stallP99Ms: number
      readonly maxStallMs: number
    }

const PATH = '/v1/ws?symbols=*&types=transfer&snapshot=false'
/** Transfers made at once. Each but the last is sent as soon as the next is there, so its delay is the relay's. */
export const PAIR_SIZE = 2
const PROBE_PAUSE_MS = 1

const agent = new Agent({ keepAlive: true, maxSockets: 1 })
let deliveryMs: number[] = []
let probesMs: number[] = []

async function listen(port: number): Promise<ProbeReply> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${PATH}`)
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('message', (bytes: Buffer) => {
      const now = nowMicros()
      if (bytes.includes('"type":"live"')) resolve()
      const at = stampAt(bytes, 0, bytes.length, 0)
      if (at < 0 || (stampNumber(bytes, at) - FIRST_NUMBER) % PAIR_SIZE === PAIR_SIZE - 1) return
      deliveryMs.push((now - stampTime(bytes, at)) / 1_000)
    })
  })
  void probe(port)
  return { done: 'listen' }
}

async function probe(port: number): Promise<void> {
  for (;;) {
    const from = performance.now()
    await new Promise<void>((resolve) => {
      get({ host: '127.0.0.1', port, path: '/healthz', agent }, (response) => {
        response.resume().on('end', resolve)
      }).on('error', () => resolve())
    })
    probesMs.push(performance.now() - from)
    await new Promise((resolve) => setTimeout(resolve, PROBE_PAUSE_MS))
  }
}

function summarize(): ProbeReply {
  const [live, stall] = [percentilesOf(deliveryMs), percentilesOf(probesMs)]
  deliveryMs = []
  probesMs = []
  const stalls = { stallP99Ms: stall.p99Ms, maxStallMs: stall.maxMs }
  return { done: 'summarize', liveP99Ms: live.p99Ms, liveWorstMs: live.maxMs, ...stalls }
}

serveCommands<ProbeCommand, ProbeReply>(async (command) => (command.do === 'listen' ? listen(command.port) : summarize()))
