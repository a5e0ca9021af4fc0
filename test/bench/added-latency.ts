import { fork } from 'node:child_process'
import { channel } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { readConfig } from '../../src/relay/config/config.ts'
import { openLog } from '../../src/relay/logger.ts'
import { openMetrics } from '../../src/relay/metrics.ts'
import { startRelay } from '../../src/relay/relay.ts'
import type { LatencyCommand, LatencyReply } from './latency-process.ts'
import { type Percentiles, percentilesOf } from './result-table.ts'

/**
 * The latency that the relay adds: from the moment that the upstream socket delivers a log's bytes until the update is
 * written to a listener's socket. Both are observed on the sockets, not in our own code.
 */

const LISTENERS = 100
const WARM_UP = 200
const ROUNDS = 500
const PAUSE_MS = 10
/** What to search for in the bytes: the Transfer event on its way in, the update on its way out. */
const INCOMING_MARK = '0xddf252ad'
const OUTGOING_MARK = '"type":"transfer"'

/** What this program prints, as one line of JSON. */
export type AddedLatency = {
  readonly transfers: number
  readonly listeners: number
  /** From a log's bytes on the upstream's socket to the update's bytes on a listener's. */
  readonly added: Percentiles
  /** The same for the last listener of each transfer. */
  readonly addedToLast: Percentiles
  /** From the flashblock to the message, in the process of the upstream and the listeners. */
  readonly endToEnd: Percentiles
}

let receivedAt = 0
let added: number[] = []
channel('net.client.socket').subscribe((message) => {
  const { socket } = message as { socket: Socket }
  socket.on('data', (bytes) => {
    if (bytes.includes(INCOMING_MARK)) receivedAt = performance.now()
  })
})
channel('net.server.socket').subscribe((message) => {
  const { socket } = message as { socket: Socket }
  const write = socket.write.bind(socket)
  socket.write = (...given: unknown[]) => {
    const taken = Reflect.apply(write, socket, given)
    if (Buffer.isBuffer(given[0]) && given[0].includes(OUTGOING_MARK)) added.push(performance.now() - receivedAt)
    return taken
  }
})

const environmentProcess = fork(new URL('latency-process.ts', import.meta.url), { stdio: 'inherit' })

async function command<Done extends LatencyReply['done']>(
  message: Extract<LatencyCommand, { do: Done }>,
): Promise<Extract<LatencyReply, { done: Done }>> {
  environmentProcess.send(message)
  const [report] = await once(environmentProcess, 'message')
  return report
}

const dir = await mkdtemp(join(tmpdir(), 'stocktape-bench-'))
const upstream = await command({ do: 'upstream' })
const settings = {
  PORT: '0',
  DATA_DIR: dir,
  UPSTREAM_RPC_URL: upstream.rpcUrl,
  UPSTREAM_WS_URL: upstream.wsUrl,
  STOCKS_API_URL: upstream.url,
}
const parsed = readConfig([], settings)
if (parsed.kind !== 'settings') throw new Error('the settings of the benchmark are invalid')
const relay = await startRelay({
  config: parsed.config,
  log: openLog('warn'),
  metrics: openMetrics(),
  loadDocuments: async () => new Map(),
  onFailure: (failure) => {
    throw failure
  },
})
await relay.whenListed
const url = `ws://127.0.0.1:${relay.port}/v1/ws?symbols=AAPLc&types=transfer&snapshot=false`
await command({ do: 'listen', url, listeners: LISTENERS })

const all: number[] = []
const last: number[] = []
const received: number[] = []
for (let round = -WARM_UP; round < ROUNDS; round += 1) {
  added = []
  const { receivedMs } = await command({ do: 'transfer', raw: 1_000_000 + round })
  if (round >= 0) {
    all.push(...added)
    last.push(Math.max(...added))
    received.push(...receivedMs)
  }
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
}

const result: AddedLatency = {
  ...{ transfers: ROUNDS, listeners: LISTENERS },
  ...{ added: percentilesOf(all), addedToLast: percentilesOf(last), endToEnd: percentilesOf(received) },
}
process.stdout.write(`${JSON.stringify(result)}\n`)
await relay.stop()
environmentProcess.disconnect()
await rm(dir, { recursive: true })
