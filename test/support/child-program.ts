import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { onTestFinished } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import type { Level, LogKind } from '../../src/relay/log-lines.ts'

/** The part of a test context that runs cleanups. */
type TestLifecycle = { readonly onTestFinished: typeof onTestFinished }

/** Longer than any wait for a process. Reaching it is a failure. */
const WAIT_TIMEOUT_MS = 40_000

/** A relay without a list is used after this time. */
const FIRST_LIST_TIMEOUT_MS = 5_000
/** The line of a relay's log with its address. */
export const listeningLine = /"kind":"listening","detail":{"url":"(http:[^"]+)"/

/** A line of a relay's log in JSON. */
export type LogEntry = {
  readonly level: Level
  readonly kind: LogKind
  readonly msg: string
  readonly detail?: Readonly<Record<string, unknown>>
}

/** How a program starts: folder, environment and user. */
type SpawnSettings = { readonly cwd?: string; readonly env: NodeJS.ProcessEnv; readonly uid?: number; readonly gid?: number }

/** A program in its own process group, so that a signal reaches every process it started. */
export class ChildProgram {
  readonly #child: ChildProcess
  readonly #watchers = new Set<() => void>()
  readonly #ended: Promise<number | null>
  stdout = ''
  stderr = ''

  constructor([file, ...args]: readonly [string, ...string[]], spawnSettings: SpawnSettings) {
    this.#child = spawn(file, args, { ...spawnSettings, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text
      this.#notifyWatchers()
    })
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text
      this.#notifyWatchers()
    })
    this.#ended = once(this.#child, 'close').then(([code]: (number | null)[]) => {
      this.#notifyWatchers()
      return code ?? null
    })
  }

  /** The id of the process; 0 where it could not be started. */
  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** The lines of the log, without one that is not complete. */
  get log(): readonly LogEntry[] {
    const lines = this.stderr.split('\n').slice(0, -1)
    return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
  }

  /** Resolves with the address of a relay once it serves, or listens and learns of no token for some seconds. */
  async listeningUrl(): Promise<string> {
    const [, url = ''] = await this.waitForOutput('stderr', listeningLine)
    const timeout = new Promise((resolve) => setTimeout(resolve, FIRST_LIST_TIMEOUT_MS).unref())
    await Promise.race([this.waitForOutput('stderr', /"kind":"serving"/), timeout])
    return url
  }

  /** Resolves when the output matches. */
  waitForOutput(stream: 'stdout' | 'stderr', pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const check = () => {
        const found = pattern.exec(this[stream])
        const hasExited = this.#child.exitCode !== null
        if (!found && !hasExited) return
        clearTimeout(timeout)
        this.#watchers.delete(check)
        if (found) resolve(found)
        else reject(new Error(`ended before it printed ${pattern}: ${this.stdout}${this.stderr}`))
      }
      const timeout = setTimeout(() => {
        this.#watchers.delete(check)
        reject(new Error(`did not print ${pattern}: ${this.stdout}${this.stderr}`))
      }, WAIT_TIMEOUT_MS)
      this.#watchers.add(check)
      check()
    })
  }

  signal(name: NodeJS.Signals): void {
    const { pid, exitCode, signalCode } = this.#child
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, name)
  }

  /** The exit code, or null where a signal ended the program. */
  waitForExit(): Promise<number | null> {
    return this.#ended
  }

  /** Kills the whole process group. */
  async kill(): Promise<void> {
    this.signal('SIGKILL')
    await this.#ended
  }

  #notifyWatchers(): void {
    for (const watcher of this.#watchers) watcher()
  }
}

/** The processes that a process started. */
export const childrenOf = (pid: number): readonly number[] =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' '))
    .filter((child) => child !== '')
    .map(Number)

/** Node's flags as in `npm start`, and the entry point: with STOCKTAPE_FORM=built the one that `npm run bundle` makes. */
const [nodeFlags, unbuiltProgram] = parseStartScript(packageJson.scripts.start)
const program = process.env.STOCKTAPE_FORM === 'built' ? 'dist/main.js' : unbuiltProgram
export const startFlags: readonly string[] = nodeFlags
export const startCommand = [process.execPath, ...nodeFlags, program] as const

/** The command of `npm start` in another folder with the project's source. */
export function startCommandOf(dir: string): readonly [string, ...string[]] {
  const { scripts } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as typeof packageJson
  const [flags, entry] = parseStartScript(scripts.start)
  return [process.execPath, ...flags, entry]
}

function parseStartScript(script: string): readonly [flags: readonly string[], program: string] {
  const words = script.split(' ')
  return [words.filter((word) => /^--./.test(word)), words.at(-1) ?? '']
}

/** Starts a relay with only these settings in its environment. It ends with the test. */
export function spawnRelay(
  test: TestLifecycle,
  settings: Record<string, string> = {},
  flags: readonly string[] = [],
): ChildProgram {
  const env = { PATH: process.env.PATH, ...settings }
  const relay = new ChildProgram([...startCommand, ...flags], { env })
  test.onTestFinished(async ({ task }) => {
    await relay.kill()
    if (task.result?.state === 'fail') process.stderr.write(`The relay printed: ${relay.stdout}${relay.stderr}\n`)
  })
  return relay
}

/** The settings of a relay on a chain. */
export const upstreamOf = ({ rpcUrl, wsUrl, url }: { readonly rpcUrl: string; readonly wsUrl: string; readonly url: string }) => ({
  ...{ UPSTREAM_RPC_URL: rpcUrl, UPSTREAM_WS_URL: wsUrl, STOCKS_API_URL: url },
})

/** An empty folder that is removed after the test. */
export async function createTempFolder(test: TestLifecycle): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'stocktape-'))
  test.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Below the ports that the kernel gives to outgoing connections: one of those may be taken before a program listens on it. */
const [PORTS_FROM, PORTS_TO, PORT_ATTEMPTS] = [12_000, 32_000, 100]

/** A free port. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < PORT_ATTEMPTS; attempt += 1) {
    const port = randomInt(PORTS_FROM, PORTS_TO)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    server.close()
    if (isFree) return port
  }
  throw new Error(`no port from ${PORTS_FROM} to ${PORTS_TO} is free`)
}
