import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { WebSocket } from 'ws'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { PinnedWorker, residentBytesOf } from '../bench/pinned-processes.ts'
import { ChildProgram, createTempFolder, startFlags } from '../support/child-program.ts'
import { pinToCore } from '../support/cpu-cores.ts'
import type { TestLifecycle } from '../support/test-stack.ts'

/** How often a condition is checked. */
const POLL_MS = 50
/** How often the relay looks at its event loop. */
const LOOP_RESOLUTION_MS = 2
/** Pino's level of errors. */
const errorLevels = ['error', 'fatal']

type Retained = { readonly bytes: number; readonly sockets: number; readonly resources: Readonly<Record<string, number>> }

// biome-ignore lint/suspicious/noExplicitAny: an answer of the inspector, whose form depends on the method.
type InspectorSend = (method: string, params?: object) => Promise<any>

const [imageCommand] = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8').match(/(?<=^ENTRYPOINT ).+/m) ?? ['[]']
/** Those of the image's Node. Its young generation is small: a larger one is collected in longer pauses. */
export const imageFlags: readonly string[] = JSON.parse(imageCommand).filter((part: string) => part.startsWith('--'))
if (imageFlags.length === 0) throw new Error('the Dockerfile starts Node without flags')

/** A script of this folder that takes commands, in a process that ends with the test. */
export function openWorker<Order extends { readonly do: string }, Report extends { readonly done: string }>(
  test: TestLifecycle,
  script: string,
  options: { readonly flags?: readonly string[]; readonly isFree?: boolean } = { isFree: true },
): PinnedWorker<Order, Report> {
  const worker = new PinnedWorker<Order, Report>(new URL(script, import.meta.url), options)
  test.onTestFinished(() => worker.end())
  return worker
}

/** A relay in a process of its own, started as `npm start` does, and what is visible of the process from outside. */
export class MonitoredRelay {
  readonly #program: ChildProgram
  readonly port: number
  readonly url: string
  readonly #pid: number

  static async open(test: TestLifecycle, devnet: Devnet, settings: Record<string, string> = {}): Promise<MonitoredRelay> {
    const upstream = { UPSTREAM_RPC_URL: devnet.rpcUrl, UPSTREAM_WS_URL: devnet.wsUrl, STOCKS_API_URL: devnet.url }
    const env = { PATH: process.env.PATH, PORT: '0', DATA_DIR: await createTempFolder(test), ...upstream, ...settings }
    const program = new ChildProgram([process.execPath, ...startFlags, '--inspect-port=0', 'src/main.ts'], { env })
    test.onTestFinished(() => program.kill())
    return new MonitoredRelay(program, await program.listeningUrl())
  }

  private constructor(program: ChildProgram, url: string) {
    this.#program = program
    this.#pid = program.pid
    this.url = url
    this.port = Number(new URL(url).port)
  }

  /** Leaves the other core to the clients: where both wander between the cores, measured times vary more. */
  pin(): void {
    pinToCore(this.#pid, 'server')
  }

  /** The sum of a metric, of those whose labels include this. */
  async metricSum(name: string, label = ''): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text()
    const found = text.matchAll(new RegExp(`^stocktape_${name}(?:\\{(.*)\\})? (\\d+)$`, 'gm'))
    return [...found].reduce((sum, [, labels = '', value]) => sum + (labels.includes(label) ? Number(value) : 0), 0)
  }

  /** Open files and sockets. */
  get descriptors(): number {
    return readdirSync(`/proc/${this.#pid}/fd`).length
  }

  get residentBytes(): number {
    return residentBytesOf(this.#pid)
  }

  /**
   * Heap and sockets that remain after garbage collection, and what keeps the event loop alive, by its kind. A closed
   * connection that something still references counts as a socket.
   */
  retained(): Promise<Retained> {
    return this.#inspect(async (send) => {
      const expression = 'process.getBuiltinModule("node:net").Socket.prototype'
      const { result: prototype } = await send('Runtime.evaluate', { expression })
      const { objects } = await send('Runtime.queryObjects', { prototypeObjectId: prototype.objectId })
      const functionDeclaration = 'function () { return this.length }'
      const { result: count } = await send('Runtime.callFunctionOn', { objectId: objects.objectId, functionDeclaration })
      await send('Runtime.releaseObject', { objectId: objects.objectId })
      await send('HeapProfiler.collectGarbage')
      const { usedSize } = await send('Runtime.getHeapUsage')
      const { result: kinds } = await send('Runtime.evaluate', {
        expression: 'process.getActiveResourcesInfo()',
        returnByValue: true,
      })
      const resources: Record<string, number> = {}
      for (const kind of kinds.value as string[]) resources[kind] = (resources[kind] ?? 0) + 1
      return { bytes: Number(usedSize), sockets: Number(count.value), resources }
    })
  }

  /** The delay of the event loop that 99 of 100 turns stay below, since the last call; the first call begins. */
  loopDelayMs(): Promise<number> {
    const expression = `{
      const loop = (globalThis.measuredLoop ??=
        process.getBuiltinModule('node:perf_hooks').monitorEventLoopDelay({ resolution: ${LOOP_RESOLUTION_MS} }))
      loop.enable()
      const delayMs = loop.percentile(99) / 1e6
      loop.reset()
      delayMs
    }`
    // A delay counts from one timer to the next, so the interval itself is part of it.
    return this.#inspect(async (send) => (await send('Runtime.evaluate', { expression })).result.value - LOOP_RESOLUTION_MS)
  }

  /** Uses the inspector, which listens from its first use on. */
  async #inspect<Result>(use: (send: InspectorSend) => Promise<Result>): Promise<Result> {
    process.kill(this.#pid, 'SIGUSR1')
    const [, inspector = ''] = await this.#program.waitForOutput('stderr', /Debugger listening on (ws:\S+)/)
    const socket = new WebSocket(inspector)
    await once(socket, 'open')
    const result = await use(async (method, params = {}) => {
      socket.send(JSON.stringify({ id: 1, method, params }))
      for (;;) {
        const answer = JSON.parse(String((await once(socket, 'message'))[0]))
        if (answer.id === 1) return answer.result
      }
    })
    const closed = once(socket, 'close')
    socket.close()
    await closed
    return result
  }

  /** Polls until the condition holds; the test's timeout is the limit. */
  async until(condition: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await condition())) await pause(POLL_MS)
  }

  /** Resolves when the relay counts no listener on any transport. */
  waitForNoListeners(): Promise<void> {
    return this.until(async () => (await this.metricSum('listeners')) === 0)
  }

  signal(name: NodeJS.Signals): void {
    this.#program.signal(name)
  }

  waitForExit(): Promise<number | null> {
    return this.#program.waitForExit()
  }

  /** The log lines that are errors. */
  get errorLines(): readonly string[] {
    const lines = this.printedErrors.split('\n').filter((line) => line.startsWith('{'))
    return lines.filter((line) => errorLevels.includes(JSON.parse(line).level))
  }

  /** All that the process printed as an error, the log included. */
  get printedErrors(): string {
    return this.#program.stderr
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
