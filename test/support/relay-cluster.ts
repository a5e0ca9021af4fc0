import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { ChildProgram, createTempFolder, freePort, type LogEntry, startCommand, upstreamOf } from './child-program.ts'
import { NatsServer } from './nats-server.ts'
import { TcpProxy } from './tcp-proxy.ts'
import { type TestLifecycle, tapeTextsOf } from './test-stack.ts'

/** A process of the cluster, with a connection to NATS that can be cut. */
export class ClusterMember {
  readonly name: string
  readonly url: string
  readonly proxy: TcpProxy
  readonly #settings: Record<string, string>
  #program: ChildProgram | null = null
  /** What the process printed, over all its runs. */
  output = ''

  constructor(name: string, url: string, proxy: TcpProxy, settings: Record<string, string>) {
    this.name = name
    this.url = url
    this.proxy = proxy
    this.#settings = settings
  }

  /** Starts the process. Resolves when it listens. */
  async start(): Promise<void> {
    this.#program = new ChildProgram(startCommand, { env: { PATH: process.env.PATH, ...this.#settings } })
    await this.#program.listeningUrl()
  }

  async waitForOutput(pattern: RegExp): Promise<void> {
    await this.#program?.waitForOutput('stderr', pattern)
  }

  /** The log of the current run. */
  get log(): readonly LogEntry[] {
    return this.#program?.log ?? []
  }

  signal(name: NodeJS.Signals): void {
    this.#program?.signal(name)
  }

  async kill(): Promise<void> {
    await this.#program?.kill()
    this.output += `${this.#program?.stdout ?? ''}${this.#program?.stderr ?? ''}`
    this.#program = null
  }

  /** Ends the process as an operator does. Resolves with its exit code. */
  async stop(): Promise<number | null> {
    this.signal('SIGTERM')
    return (await this.#program?.waitForExit()) ?? null
  }

  /** Whether it writes the tape. */
  async isLeading(): Promise<boolean> {
    const text = await fetch(`${this.url}/metrics`).then(
      (response) => response.text(),
      () => '',
    )
    return text.includes('stocktape_leads 1')
  }

  /** Why it is unready; nothing if it is ready. */
  async unreadyReasons(): Promise<readonly string[]> {
    const { reasons } = (await (await fetch(`${this.url}/readyz`)).json()) as { reasons: string[] }
    return reasons
  }

  /** The text of every update that it keeps. */
  tape(): Promise<readonly string[]> {
    return tapeTextsOf(this.url)
  }
}

export type RelayCluster = {
  readonly nats: NatsServer
  /** All servers of NATS, the first of which is `nats`. */
  readonly natsServers: readonly NatsServer[]
  readonly ingesters: readonly ClusterMember[]
  readonly edges: readonly ClusterMember[]
  /** Starts another edge, with an empty folder. */
  readonly addEdge: (name: string) => Promise<ClusterMember>
  readonly addIngester: (name: string) => Promise<ClusterMember>
  /** Deletes what the members keep. None of them may run. */
  readonly deleteFolders: () => Promise<void>
}

type ClusterSize = {
  readonly ingesters?: number
  readonly edges?: number
  /** How many servers store the stream. With more than one, no connection to NATS can be cut. */
  readonly natsServers?: number
  readonly settings?: Record<string, string>
  /** Further settings of the n-th ingester. */
  readonly settingsOf?: (nth: number) => Record<string, string>
  readonly isStarted?: boolean
}

/** Two ingesters and two edges over a nats-server, each in a process of its own, all started or none. They end with the test. */
export async function openCluster(
  test: TestLifecycle,
  devnet: Devnet,
  {
    ingesters = 2,
    edges = 2,
    natsServers: replicas = 1,
    settings = {},
    settingsOf = () => ({}),
    isStarted = true,
  }: ClusterSize = {},
): Promise<RelayCluster> {
  const natsServers = replicas === 1 ? [await NatsServer.prepare()] : await NatsServer.prepareCluster(replicas)
  for (const server of natsServers) test.onTestFinished(() => server.remove())
  if (isStarted) await Promise.all(natsServers.map((server) => server.start()))
  const [nats] = natsServers as [NatsServer]
  const folder = await createTempFolder(test)
  const upstream = upstreamOf(devnet)
  const open = async (name: string, roleSettings: Record<string, string>): Promise<ClusterMember> => {
    const proxy = await TcpProxy.open(nats.port)
    const port = await freePort()
    const member = new ClusterMember(name, `http://127.0.0.1:${port}`, proxy, {
      ...{ NATS_URL: replicas === 1 ? `nats://127.0.0.1:${proxy.port}` : natsServers.map(({ url }) => url).join(',') },
      ...{ NATS_REPLICAS: String(replicas), PORT: String(port), DATA_DIR: join(folder, name) },
      ...{ STOCKS_REFRESH: '1s', DRAIN: '1s', HEARTBEAT: '1s', ...roleSettings, ...settings },
    })
    test.onTestFinished(async ({ task }) => {
      await member.kill()
      proxy.close()
      if (task.result?.state === 'fail') process.stderr.write(`${name} printed: ${member.output}\n`)
    })
    if (isStarted) await member.start()
    return member
  }
  const openAll = (count: number, name: string, settingsFor: (nth: number) => Record<string, string>) =>
    Promise.all(Array.from({ length: count }, (_, nth) => open(`${name}-${nth + 1}`, settingsFor(nth))))
  return {
    ...{ nats, natsServers },
    ingesters: await openAll(ingesters, 'ingester', (nth) => ({ ROLE: 'ingest', ...upstream, ...settingsOf(nth) })),
    edges: await openAll(edges, 'edge', () => ({ ROLE: 'edge' })),
    addEdge: (name) => open(name, { ROLE: 'edge' }),
    addIngester: (name) => open(name, { ROLE: 'ingest', ...upstream }),
    deleteFolders: () => rm(folder, { recursive: true, force: true }),
  }
}
