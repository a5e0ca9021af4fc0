import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Hex } from '../../src/lib/hex.ts'
import { startCommandOf, startFlags } from '../support/child-program.ts'
import { NatsServer } from '../support/nats-server.ts'
import type { TokenName } from './full-tape-generator.ts'
import type { StreamKind } from './listeners-process.ts'
import { PinnedProcess, PinnedWorker, ROOT } from './pinned-processes.ts'
import type { Sample } from './sample-messages.ts'
import type { TrafficCommand, TrafficReply } from './traffic-process.ts'

/** The measured servers: the relay as in production, and peers with the same work. */

export type PeerName = 'naive ws' | 'bare Node' | 'C floor'

/** A server, and the process that gives it work. */
export type MeasuredServer = {
  readonly server: PinnedProcess
  readonly traffic: PinnedWorker<TrafficCommand, TrafficReply>
  readonly port: number
  readonly sendsLive: boolean
  end(): Promise<void>
}

const MAX_CLIENTS = '100000'
const LIVE = '"type":"live"'
const responseHeads: Readonly<Record<StreamKind, string>> = {
  ws: 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n',
  sse: 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n',
}

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const openTraffic = () => new PinnedWorker<TrafficCommand, TrafficReply>('traffic-process.ts')

type RelayOptions = {
  /** The transfers of the chain behind the relay are spread over this many. */
  readonly tokens?: number
  readonly settings?: NodeJS.ProcessEnv
  /** The folder of its source. */
  readonly dir?: string
  /** True: an ingester over NATS is measured, and its listeners are on an edge. */
  readonly isOverNats?: boolean
  /** Puts a tape into its data folder before it starts. */
  readonly fill?: (dir: string, upstream: { readonly tokens: readonly TokenName[]; readonly head: number }) => Promise<void>
}

/** The relay as in production, with a chain behind it. */
export async function openRelay(options: RelayOptions = {}): Promise<MeasuredServer> {
  const { tokens = 1, settings = {}, dir: cwd = ROOT, isOverNats = false, fill } = options
  const traffic = openTraffic()
  const { url, wsUrl } = await traffic.command({ do: 'chain', tokens })
  const dir = await mkdtemp(join(tmpdir(), 'stocktape-bench-'))
  if (fill) await fill(dir, { tokens: await fetchTokenNames(url), head: await fetchHead(url) })
  const nats = isOverNats ? await NatsServer.start() : null
  const upstream = { UPSTREAM_RPC_URL: url, UPSTREAM_WS_URL: wsUrl, STOCKS_API_URL: url }
  const role = (name: string) => (nats ? { ROLE: name, NATS_URL: nats.url, DATA_DIR: join(dir, name) } : { DATA_DIR: dir })
  const relay = await startRelay({ ...upstream, ...role('ingest'), ...settings }, cwd)
  await traffic.command({ do: 'waitForSubscription' })
  const edge = nats ? await startRelay({ ...role('edge'), ...settings }, cwd) : relay
  const end = async () => {
    await Promise.all([relay, edge, { server: traffic }].map(({ server }) => server.end()))
    await nats?.remove()
    await rm(dir, { recursive: true })
  }
  return { server: relay.server, traffic, port: edge.port, sendsLive: true, end }
}

/** Starts the program of a source folder. Resolves when it listens. */
async function startRelay(settings: NodeJS.ProcessEnv, cwd: string) {
  const bounds = { MAX_CLIENTS, MAX_CLIENTS_PER_ADDRESS: MAX_CLIENTS }
  const env = { PORT: '0', ...bounds, ...settings }
  const server = new PinnedProcess('server', ['sh', '-c', 'exec "$@" 2>&1', 'sh', ...startCommandOf(cwd)], env, { cwd })
  const [, port] = await server.waitForOutput(listensOn)
  return { server, port: Number(port) }
}

/** The lines of a relay that serves. An earlier commit prints one line, on standard output. */
const listensOn = /(?:listens on |"url":")http:\/\/[^:]+:(\d+)(?:,|[\s\S]+"kind":"serving")/

/** The tokens of a list. */
export async function fetchTokenNames(url: string): Promise<readonly TokenName[]> {
  const { tokens } = (await (await fetch(`${url}/v1/tokenized-stocks`)).json()) as {
    tokens: { symbol: string; contract_address: string }[]
  }
  return tokens.map(({ symbol, contract_address }) => ({ symbol, address: contract_address.toLowerCase() as Hex }))
}

/** The newest block of a chain. */
async function fetchHead(url: string): Promise<number> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getBlockByNumber', params: ['latest', false] })
  const { result } = (await (await fetch(url, { method: 'POST', body })).json()) as { result: { number: string } }
  return Number(result.number)
}

/** A peer that sends messages recorded from the relay. */
export async function openPeer(name: PeerName, kind: StreamKind, sample: Sample): Promise<MeasuredServer> {
  const traffic = openTraffic()
  const isFloor = name === 'C floor'
  const server = isFloor ? startFloor(kind, sample) : startPeer(name)
  const [, port, fed] = await server.waitForOutput(/listens on (\d+), is fed on (\d+)/)
  await traffic.command({ do: 'feed', port: Number(fed), format: isFloor ? kind : 'lines', sample })
  const end = async () => {
    await Promise.all([server.end(), traffic.end()])
  }
  return { server, traffic, port: Number(port), sendsLive: false, end }
}

/** A peer of Node in a process of its own, by its name in `peer-server.ts`. */
export const startPeer = (name: string) =>
  new PinnedProcess('server', [process.execPath, ...startFlags, pathOf('peer-server.ts'), name])

function startFloor(kind: StreamKind, { isChunked }: Sample): PinnedProcess {
  const chunked = isChunked ? 'transfer-encoding: chunked\r\n\r\n' : '\r\n'
  return new PinnedProcess('server', [fanOutPath(), kind === 'ws' ? responseHeads.ws : responseHeads.sse + chunked])
}

let fanOutDir: string | null = null
const fanOutPath = (): string => join(fanOutDir ?? '', 'floor')

/** Compiles the C floor. Returns whether that succeeded. */
export async function buildMinimalFanOut(): Promise<boolean> {
  fanOutDir = await mkdtemp(join(tmpdir(), 'stocktape-floor-'))
  const stdio = ['ignore', 'ignore', 'inherit'] as const
  return spawnSync('cc', ['-O2', '-o', fanOutPath(), pathOf('minimal-fan-out.c')], { stdio: [...stdio] }).status === 0
}

export async function removeMinimalFanOut(): Promise<void> {
  if (fanOutDir !== null) await rm(fanOutDir, { recursive: true })
}

/** Records one block of transfers from the relay, so that the peers can send the same. */
export async function takeSample(burst: number, bursts: number): Promise<Sample> {
  const server = await openRelay()
  try {
    const url = `http://127.0.0.1:${server.port}/v1/stream?symbols=*&types=transfer&snapshot=false`
    const { headers, body } = await fetch(url, { headers: { accept: 'text/event-stream' } })
    const isChunked = headers.get('transfer-encoding') === 'chunked'
    let text = ''
    let work: Promise<unknown> | undefined
    for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part
      if (!work && text.includes(LIVE)) work = server.traffic.command({ do: 'work', burst, bursts, everyMs: 2_000 / bursts })
      const sealAt = text.indexOf('"type":"seal"')
      if (sealAt > 0 && text.indexOf('\n\n', sealAt) > 0) break
    }
    await work
    const events = text.split('\n\n')
    // The last one: the first names no previous message and is the first log of its block, so it is shorter than most.
    const fieldOf = (type: string, field: string) =>
      new RegExp(`^${field}: (.*)$`, 'm').exec(events.findLast((event) => event.includes(`"type":"${type}"`)) ?? '')?.[1] ?? ''
    return { transfer: fieldOf('transfer', 'data'), seal: fieldOf('seal', 'data'), id: fieldOf('transfer', 'id'), isChunked }
  } finally {
    await server.end()
  }
}
