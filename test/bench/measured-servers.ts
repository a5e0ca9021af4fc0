import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Hex } from '../../src/lib/hex.ts'
import { startCommandOf, startFlags } from '../support/child-program.ts'
import type { Core } from '../support/cpu-cores.ts'
import { settingsFor } from './earlier-settings.ts'
import type { TokenName } from './full-tape-generator.ts'
import type { StreamKind } from './listeners-process.ts'
import { PinnedProcess, PinnedWorker, ROOT } from './pinned-processes.ts'
import type { Sample } from './sample-messages.ts'
import type { TrafficCommand, TrafficReply } from './traffic-process.ts'

/** The measured servers: the relay as in production, and peers with the same work. */

export type ServerName = 'relay' | 'naive ws' | 'hono streamSSE' | 'C floor'

/** A server, and the process that gives it work. */
export type MeasuredServer = {
  readonly server: PinnedProcess
  readonly traffic: PinnedWorker<TrafficCommand, TrafficReply>
  readonly port: number
  /** The symbols of the tokens in the work, if any. */
  readonly symbols: readonly string[]
  readonly sendsLive: boolean
  end(): Promise<void>
}

const MAX_CLIENTS = 100_000
const LIVE = '"type":"live"'
const responseHeads: Readonly<Record<StreamKind, string>> = {
  ws: 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n',
  sse: 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n',
}

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
export const openTraffic = () => new PinnedWorker<TrafficCommand, TrafficReply>('traffic-process.ts')

/** Puts a tape into the relay's data folder before it starts. */
export type FillTape = (dir: string, upstream: { readonly tokens: readonly TokenName[]; readonly head: number }) => Promise<void>

export type RelayOptions = {
  /** The transfers of the chain behind the relay are spread over this many. */
  readonly tokens?: number
  readonly settings?: NodeJS.ProcessEnv
  /** The folder of its source. */
  readonly dir?: string
  readonly isLight?: boolean
  readonly fill?: FillTape
}

/** The relay as in production, with a chain behind it. */
export async function openRelay(options: RelayOptions = {}): Promise<MeasuredServer> {
  const { tokens = 1, settings = {}, dir: cwd = ROOT, isLight = false, fill } = options
  const traffic = openTraffic()
  const { rpcUrl, wsUrl, url, symbols } = await traffic.command({ do: 'chain', tokens, isLight })
  const dir = await mkdtemp(join(tmpdir(), 'stocktape-bench-'))
  if (fill) await fill(dir, { tokens: await fetchTokenNames(url), head: await fetchHead(rpcUrl) })
  const upstream = { UPSTREAM_RPC_URL: rpcUrl, UPSTREAM_WS_URL: wsUrl, STOCKS_API_URL: url }
  const { server, port } = await startRelay('server', { ...upstream, DATA_DIR: dir, ...settings }, cwd)
  await traffic.command({ do: 'waitForSubscription' })
  const end = async () => {
    await Promise.all([server.end(), traffic.end()])
    await rm(dir, { recursive: true })
  }
  return { server, traffic, port, symbols, sendsLive: true, end }
}

/** Starts the program of a source folder. Resolves when it listens. */
export async function startRelay(core: Core | null, settings: NodeJS.ProcessEnv, cwd = ROOT) {
  const bounds = { MAX_CLIENTS: String(MAX_CLIENTS), MAX_CLIENTS_PER_ADDRESS: String(MAX_CLIENTS) }
  const env = settingsFor(cwd, { PORT: '0', ...bounds, LOG_LEVEL: 'error', ...settings })
  const server = new PinnedProcess(core, startCommandOf(cwd), env, { cwd })
  const [, port] = await server.waitForOutput(/listens on http:\/\/[^:]+:(\d+),/)
  return { server, port: Number(port) }
}

/** The tokens of a list. */
export async function fetchTokenNames(url: string): Promise<readonly TokenName[]> {
  const { tokens } = (await (await fetch(`${url}/v1/tokenized-stocks`)).json()) as {
    tokens: { symbol: string; contract_address: string }[]
  }
  return tokens.map(({ symbol, contract_address }) => ({ symbol, address: contract_address.toLowerCase() as Hex }))
}

/** The newest block of a chain. */
async function fetchHead(rpcUrl: string): Promise<number> {
  const request = { jsonrpc: '2.0', id: 1, method: 'eth_getBlockByNumber', params: ['latest', false] }
  const requestOptions = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(request) }
  const { result } = (await (await fetch(rpcUrl, requestOptions)).json()) as { result: { number: string } }
  return Number(result.number)
}

/** A peer that sends messages recorded from the relay. */
export async function openPeer(name: Exclude<ServerName, 'relay'>, kind: StreamKind, sample: Sample): Promise<MeasuredServer> {
  const traffic = openTraffic()
  const server = name === 'C floor' ? startFloor(kind, sample) : startPeer(name)
  const [, port, fed] = await server.waitForOutput(/listens on (\d+), is fed on (\d+)/)
  await traffic.command({ do: 'feed', port: Number(fed), format: name === 'C floor' ? kind : 'lines', sample })
  const end = async () => {
    await Promise.all([server.end(), traffic.end()])
  }
  return { server, traffic, port: Number(port), symbols: [], sendsLive: false, end }
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
      if (!text.includes(LIVE) && (text + part).includes(LIVE))
        work = server.traffic.command({ do: 'work', burst, bursts, everyMs: 2_000 / bursts })
      text += part
      if (text.indexOf('\n\n', text.indexOf('"type":"seal"')) > 0 && text.includes('"type":"seal"')) break
    }
    await work
    const events = text.split('\n\n')
    // The last one: the first names no previous message and is the first log of its block, so it is shorter than most.
    const dataOf = (type: string) => /^data: (.*)$/m.exec(events.findLast((event) => event.includes(type)) ?? '')?.[1] ?? ''
    const id = /^id: (.*)$/m.exec(events.findLast((event) => event.includes('"type":"transfer"')) ?? '')?.[1] ?? ''
    return { transfer: dataOf('"type":"transfer"'), seal: dataOf('"type":"seal"'), id, isChunked }
  } finally {
    await server.end()
  }
}
