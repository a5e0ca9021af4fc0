import { Agent, get } from 'node:http'
import { WebSocket } from 'ws'
import { FIRST, nowMicros, numberOf, stampAt, timeOf } from './message-stamp.ts'
import { obey } from './pinned-processes.ts'

/**
 * One who listens live, and one who keeps asking whether the relay is well, in a process of their own: what holds up its
 * event loop is seen by both.
 */

export type EarOrder =
  | { readonly do: 'listen'; readonly port: number }
  /** What was heard since it was asked last. */
  | { readonly do: 'look' }
export type EarReport =
  | { readonly done: 'listen' }
  | {
      readonly done: 'look'
      readonly heard: number
      readonly liveP99Ms: number
      readonly liveWorstMs: number
      readonly probes: number
      readonly heldUpP99Ms: number
      readonly heldUpMs: number
    }

const PATH = '/v1/ws?symbols=*&types=transfer&snapshot=false'
/** Transfers made at once: each but the last goes out as soon as the next is there, so that its delay is the relay's. */
export const PAIR = 2
const PROBE_PAUSE_MS = 1

const agent = new Agent({ keepAlive: true, maxSockets: 1 })
let tookMs: number[] = []
let probesMs: number[] = []

async function listen(port: number): Promise<EarReport> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${PATH}`)
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('message', (bytes: Buffer) => {
      const now = nowMicros()
      if (bytes.includes('"type":"live"')) resolve()
      const at = stampAt(bytes, 0, bytes.length, 0)
      if (at < 0 || (numberOf(bytes, at) - FIRST) % PAIR === PAIR - 1) return
      tookMs.push((now - timeOf(bytes, at)) / 1_000)
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

function look(): EarReport {
  const report: EarReport = {
    done: 'look',
    heard: tookMs.length,
    liveP99Ms: at(tookMs, 0.99),
    liveWorstMs: at(tookMs, 1),
    probes: probesMs.length,
    heldUpP99Ms: at(probesMs, 0.99),
    heldUpMs: at(probesMs, 1),
  }
  tookMs = []
  probesMs = []
  return report
}

function at(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

obey<EarOrder, EarReport>(async (order) => (order.do === 'listen' ? listen(order.port) : look()))
