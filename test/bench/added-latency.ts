import { channel } from 'node:diagnostics_channel'
import { mkdtemp, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openRelay } from '../support/in-process-relay.ts'
import { ListenerLoad } from './listener-load.ts'
import { openTraffic } from './measured-servers.ts'
import { type Percentiles, percentilesOf } from './result-table.ts'

/**
 * The latency that the relay adds: from the moment that the upstream socket delivers a log's bytes until the update is
 * written to a listener's socket. Both are observed on the sockets, not in our own code.
 */

const LISTENERS = 100
const EVERY_MS = 20
const [WARM_UP, ROUNDS] = [200, 500]
/** What to search for in the bytes: the Transfer event on its way in, the update on its way out. */
const INCOMING_MARK = '0xddf252ad'
const OUTGOING_MARK = '"type":"transfer"'

/** What this program prints, as one line of JSON. */
export type AddedLatency = {
  /** From a log's bytes on the upstream's socket to the update's bytes on a listener's. */
  readonly added: Percentiles
  /** The same for the last listener of each transfer. */
  readonly addedToLast: Percentiles
  /** From the flashblock to the message, in the processes of the upstream and the listeners. */
  readonly endToEnd: Percentiles
}

let receivedAt = 0
/** What was added to each transfer, for each listener. */
let added: number[][] = []
channel('net.client.socket').subscribe((message) => {
  const { socket } = message as { socket: Socket }
  socket.on('data', (bytes) => {
    if (!bytes.includes(INCOMING_MARK)) return
    receivedAt = performance.now()
    added.push([])
  })
})
channel('net.server.socket').subscribe((message) => {
  const { socket } = message as { socket: Socket }
  const write = socket.write.bind(socket)
  socket.write = (...given: unknown[]) => {
    const taken = Reflect.apply(write, socket, given)
    if (Buffer.isBuffer(given[0]) && given[0].includes(OUTGOING_MARK)) added.at(-1)?.push(performance.now() - receivedAt)
    return taken
  }
})

const traffic = openTraffic()
const upstream = await traffic.command({ do: 'chain', tokens: 1, isLight: false })
const dir = await mkdtemp(join(tmpdir(), 'stocktape-bench-'))
const settings = { DATA_DIR: dir, STOCKS_REFRESH: '15s', MAX_CLIENTS_PER_ADDRESS: String(LISTENERS) }
const relay = await openRelay(upstream, settings)
await traffic.command({ do: 'waitForSubscription' })
// What this process uses is not measured.
const server = { cpuSeconds: () => 0, writes: () => 0 } as never
const load = new ListenerLoad({
  server,
  traffic,
  port: Number(new URL(relay.url).port),
  symbols: [],
  sendsLive: true,
  end: relay.stop,
})
await load.join({ listeners: LISTENERS })
await load.deliver({ burst: 1, everyMs: EVERY_MS, bursts: WARM_UP })
added = []
const { p50Ms, p99Ms, maxMs } = await load.deliver({ burst: 1, everyMs: EVERY_MS, bursts: ROUNDS })
const result: AddedLatency = {
  added: percentilesOf(added.flat()),
  // A sealed log comes once more, and is not written again.
  addedToLast: percentilesOf(added.filter((each) => each.length > 0).map((each) => Math.max(...each))),
  endToEnd: { p50Ms, p99Ms, maxMs },
}
process.stdout.write(`${JSON.stringify(result)}\n`)
await load.end()
await relay.stop()
await traffic.end()
await rm(dir, { recursive: true })
process.exit()
