import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ChildProgram, freePort } from './child-program.ts'
import { hasPrograms, pathOf } from './debian-programs.ts'

const natsProgram = pathOf('nats')

export const hasNats = hasPrograms('nats')

/** A nats-server with JetStream, on a port and in a folder of its own. */
export class NatsServer {
  readonly url: string
  readonly port: number
  readonly #folder: string
  readonly #flags: readonly string[]
  #program: ChildProgram | null = null

  private constructor(port: number, folder: string, flags: readonly string[]) {
    this.port = port
    this.#folder = folder
    this.#flags = flags
    this.url = `nats://127.0.0.1:${port}`
  }

  static async start(flags: readonly string[] = []): Promise<NatsServer> {
    const server = await NatsServer.prepare(flags)
    await server.start()
    return server
  }

  /** A server that does not run yet. */
  static async prepare(flags: readonly string[] = []): Promise<NatsServer> {
    return new NatsServer(await freePort(), await mkdtemp(join(tmpdir(), 'stocktape-nats-')), flags)
  }

  /** Servers that form a cluster. None of them runs yet. */
  static async prepareCluster(count: number): Promise<readonly NatsServer[]> {
    const ports = await Promise.all(Array.from({ length: count }, freePort))
    const routes = ports.map((port) => `nats://127.0.0.1:${port}`)
    const flagsOf = (nth: number) => [
      ...['--name', `nats-${nth + 1}`, '--cluster_name', 'stocktape'],
      ...['--cluster', routes[nth] ?? '', '--routes', routes.toSpliced(nth, 1).join(',')],
    ]
    return Promise.all(routes.map((_, nth) => NatsServer.prepare(flagsOf(nth))))
  }

  async start(): Promise<void> {
    const args = ['-a', '127.0.0.1', '-p', String(this.port), '-js', '-sd', this.#store, ...this.#flags]
    this.#program = new ChildProgram([natsProgram, ...args], { env: {} })
    await this.#program.waitForOutput('stderr', /Server is ready/)
  }

  signal(name: NodeJS.Signals): void {
    this.#program?.signal(name)
  }

  /** Kills the server. What it stored stays. */
  async kill(): Promise<void> {
    await this.#program?.kill()
    this.#program = null
  }

  /** Copies what is stored, while the server runs or not. */
  copyStore(): Promise<void> {
    return cp(this.#store, `${this.#store}-copy`, { recursive: true })
  }

  /** Puts the copy in the place of what is stored. The server must not run. */
  async restoreCopy(): Promise<void> {
    await this.wipeStore()
    await cp(`${this.#store}-copy`, this.#store, { recursive: true })
  }

  async wipeStore(): Promise<void> {
    await rm(this.#store, { recursive: true, force: true })
  }

  async remove(): Promise<void> {
    await this.kill()
    await rm(this.#folder, { recursive: true, force: true })
  }

  get #store(): string {
    return join(this.#folder, 'store')
  }
}
