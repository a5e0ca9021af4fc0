import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { WebSocket } from 'ws'
import type { Devnet } from '../../src/devnet/devnet.ts'
import type { TestLifecycle } from '../e2e/slow/deployed-relay.ts'
import { ChildProgram, createTempFolder } from '../support/child-program.ts'

const TICKS_PER_SECOND = 100
/** How often something is asked that is waited for. */
const POLL_MS = 50
/** Errors are from here on, as pino counts. */
const ERROR_LEVEL = 50

/** A relay in a process of its own, as `npm start` runs it, and what can be seen of that process from outside. */
export class MonitoredRelay {
  readonly #program: ChildProgram
  readonly port: number
  readonly url: string
  readonly #pid: number

  static async open(
    test: TestLifecycle,
    devnet: Devnet,
    settings: Record<string, string> = {},
  ): Promise<MonitoredRelay> {
    const env = {
      PATH: process.env.PATH,
      PORT: '0',
      DATA_DIR: await createTempFolder(test),
      UPSTREAM_RPC_URL: devnet.rpcUrl,
      UPSTREAM_WS_URL: devnet.wsUrl,
      STOCKS_API_URL: devnet.url,
      ...settings,
    }
    const node = [process.execPath, '--max-semi-space-size=8', '--inspect-port=0', 'src/main.ts'] as const
    const program = new ChildProgram(['sh', '-c', 'echo "process $$"; exec "$@"', 'sh', ...node], { env })
    test.onTestFinished(() => program.kill())
    const [, pid] = await program.waitForOutput('stdout', /process (\d+)/)
    return new MonitoredRelay(program, Number(pid), await program.listeningUrl())
  }

  private constructor(program: ChildProgram, pid: number, url: string) {
    this.#program = program
    this.#pid = pid
    this.url = url
    this.port = Number(new URL(url).port)
  }

  /** Its own settings where they are not named, and what is asked of its metrics. */
  async metric(name: string): Promise<ReadonlyMap<string, number>> {
    const text = await (await fetch(`${this.url}/metrics`)).text()
    const found = text.matchAll(new RegExp(`^stocktape_${name}(?:\\{(.*)\\})? (\\d+)$`, 'gm'))
    return new Map([...found].map(([, labels = '', value]) => [labels, Number(value)]))
  }

  /** Files and sockets that it has open. */
  get descriptors(): number {
    return readdirSync(`/proc/${this.#pid}/fd`).length
  }

  get residentBytes(): number {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${this.#pid}/status`, 'utf8')) ?? []
    return Number(kilobytes) * 1_024
  }

  /** Seconds of processor time that it has used. */
  get cpuSeconds(): number {
    const stat = readFileSync(`/proc/${this.#pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  }

  /**
   * What it holds once its garbage is collected, in bytes and in sockets: whoever is still known holds one, though it be
   * closed. Asked over the inspector, which is listened to for that alone.
   */
  async retained(): Promise<{ readonly bytes: number; readonly sockets: number }> {
    process.kill(this.#pid, 'SIGUSR1')
    const [, inspector = ''] = await this.#program.waitForOutput('stderr', /Debugger listening on (ws:\S+)/)
    const socket = new WebSocket(inspector)
    await once(socket, 'open')
    const ask = async (method: string, params = {}) => {
      socket.send(JSON.stringify({ id: 1, method, params }))
      for (;;) {
        const answer = JSON.parse(String((await once(socket, 'message'))[0]))
        if (answer.id === 1) return answer.result
      }
    }
    const expression = 'process.getBuiltinModule("node:net").Socket.prototype'
    const { result: prototype } = await ask('Runtime.evaluate', { expression })
    const { objects } = await ask('Runtime.queryObjects', { prototypeObjectId: prototype.objectId })
    const functionDeclaration = 'function () { return this.length }'
    const { result: count } = await ask('Runtime.callFunctionOn', { objectId: objects.objectId, functionDeclaration })
    await ask('Runtime.releaseObject', { objectId: objects.objectId })
    await ask('HeapProfiler.collectGarbage')
    const { usedSize } = await ask('Runtime.getHeapUsage')
    const closed = once(socket, 'close')
    socket.close()
    await closed
    return { bytes: Number(usedSize), sockets: Number(count.value) }
  }

  /** Asks until it is so; how long that may take is the test's own patience. */
  async until(condition: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await condition())) await pause(POLL_MS)
  }

  /** Resolves once it counts no listener, on any carrier. */
  waitForNoListeners(): Promise<void> {
    return this.until(async () => [...(await this.metric('listeners')).values()].every((count) => count === 0))
  }

  signal(name: NodeJS.Signals): void {
    this.#program.signal(name)
  }

  waitForExit(): Promise<number | null> {
    return this.#program.waitForExit()
  }

  /** What it complained of, as far as that was an error. */
  get errorLines(): readonly string[] {
    return this.logLines.filter((line) => JSON.parse(line).level >= ERROR_LEVEL)
  }

  /** What it logged, line by line. */
  get logLines(): readonly string[] {
    return this.#program.stderr.split('\n').filter((line) => line.startsWith('{'))
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
