import { WebSocket } from 'ws'
import { FIRST_NUMBER, nowMicros, PAIR_SIZE, stampAt, stampNumber, stampTime } from './message-stamp.ts'
import { percentilesOf } from './percentiles.ts'
import { serveCommands } from './pinned-processes.ts'

/**
 * A live listener and a client that polls the relay's health, in a process of their own: both notice when the relay's
 * event loop is blocked.
 */

export type ProbeCommand =
  | { readonly do: 'listen'; readonly port: number }
  /** Measurements since the last summary. */
  | { readonly do: 'summarize' }
/** Latency of live delivery and of a trivial request, in milliseconds. */
export type LiveFigures = {
  readonly liveP99Ms: number
  readonly liveMaxMs: number
  readonly healthP99Ms: number
  readonly healthMaxMs: number
}
export type ProbeReply = { readonly done: 'listen' } | ({ readonly done: 'summarize' } & { readonly figures: LiveFigures })

const PROBE_PAUSE_MS = 1

let liveMs: number[] = []
let healthMs: number[] = []

async function listen(port: number): Promise<void> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/ws?symbols=*&types=transfer&snapshot=false`)
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('message', (bytes: Buffer) => {
      const now = nowMicros()
      if (bytes.includes('"type":"live"')) resolve()
      const at = stampAt(bytes, 0, bytes.length, 0)
      if (at < 0 || (stampNumber(bytes, at) - FIRST_NUMBER) % PAIR_SIZE === PAIR_SIZE - 1) return
      liveMs.push((now - stampTime(bytes, at)) / 1_000)
    })
  })
  void pollHealth(`http://127.0.0.1:${port}/healthz`)
}

async function pollHealth(url: string): Promise<void> {
  for (;;) {
    const from = performance.now()
    await fetch(url).then((answer) => answer.text())
    healthMs.push(performance.now() - from)
    await new Promise((resolve) => setTimeout(resolve, PROBE_PAUSE_MS))
  }
}

function summarize(): LiveFigures {
  const [live, health] = [percentilesOf(liveMs), percentilesOf(healthMs)]
  liveMs = []
  healthMs = []
  return { liveP99Ms: live.p99Ms, liveMaxMs: live.maxMs, healthP99Ms: health.p99Ms, healthMaxMs: health.maxMs }
}

serveCommands<ProbeCommand, ProbeReply>(async (command) => {
  if (command.do === 'summarize') return { done: 'summarize', figures: summarize() }
  await listen(command.port)
  return { done: 'listen' }
})
