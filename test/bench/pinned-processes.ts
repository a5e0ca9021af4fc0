import { type ChildProcess, execFileSync, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Core, pinnedCommand } from '../support/cpu-cores.ts'

/** The processes of a measurement: where they run and what they use. */

/** The folder of the commands. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const pageBytes = Number(execFileSync('getconf', ['PAGESIZE'], { encoding: 'utf8' }))

/** Open files of a process besides its sockets. */
export const RESERVED_FILES = 150

/** How many files a process may open. */
export const filesBound = (): number => {
  const [, soft = '0'] = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

/** A process of the measurement, on its core. */
export class PinnedProcess {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  #output = ''

  /** Without a core it runs on any. */
  constructor(
    core: Core | null,
    command: readonly [string, ...string[]],
    env: NodeJS.ProcessEnv = {},
    { cwd = ROOT, stdio = ['ignore', 'pipe', 'inherit'] }: { readonly cwd?: string; readonly stdio?: StdioOptions } = {},
  ) {
    const [file, ...args] = core ? pinnedCommand(core, command) : command
    this.#child = spawn(file, args, { cwd, env: { PATH: process.env.PATH, ...env }, stdio })
    this.#ended = once(this.#child, 'exit').then(() => running.delete(this.#child))
    running.add(this.#child)
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text
    })
  }

  /** Resolves when the output matches. */
  async waitForOutput(pattern: RegExp): Promise<readonly string[]> {
    for (;;) {
      const found = pattern.exec(this.#output)
      if (found) return found
      if (this.#child.exitCode !== null) throw new Error(`${this.#child.spawnargs.join(' ')} ended early: ${this.#output}`)
      await Promise.race([once(this.#child.stdout ?? this.#child, 'data'), this.#ended])
    }
  }

  /** Processor time that the threads of the process and of its children used so far, in seconds, in user and in kernel mode. */
  cpuSeconds(): number {
    return sumOfThreads(this.#child.pid ?? 0, cpuNanosOf) / 1e9
  }

  /** How many times the process and its children wrote to sockets and files so far. */
  writes(): number {
    return sumOfThreads(this.#child.pid ?? 0, writesOf)
  }

  residentBytes(): number {
    return residentBytesOf(this.#child.pid ?? 0)
  }

  async end(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended
  }

  protected get child(): ChildProcess {
    return this.#child
  }
}

/** A figure of all threads of a process and of its children, by the folder of each. */
function sumOfThreads(pid: number, figureOf: (folder: string) => number): number {
  const tasks = `/proc/${pid}/task`
  return readdirSync(tasks).reduce((sum, task) => {
    const folder = `${tasks}/${task}`
    const children = readFileSync(`${folder}/children`, 'utf8')
      .split(' ')
      .filter((child) => child !== '')
    return sum + figureOf(folder) + children.reduce((total, child) => total + sumOfThreads(Number(child), figureOf), 0)
  }, 0)
}

export const residentBytesOf = (pid: number): number => Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * pageBytes

const cpuNanosOf = (folder: string): number => Number(readFileSync(`${folder}/schedstat`, 'utf8').split(' ')[0])
const writesOf = (folder: string): number => Number(/^syscw: (\d+)$/m.exec(readFileSync(`${folder}/io`, 'utf8'))?.[1])

/** A script that runs one command after the other and reports on each; where `isFree`, on any core. */
export class PinnedWorker<Order extends { readonly do: string }, Report extends { readonly done: string }> extends PinnedProcess {
  constructor(
    script: string | URL,
    { flags = [], isFree = false }: { readonly flags?: readonly string[]; readonly isFree?: boolean } = {},
  ) {
    const command = [process.execPath, ...flags, fileURLToPath(new URL(script, import.meta.url))] as const
    super(isFree ? null : 'world', command, {}, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  }

  async command<Name extends Order['do'] & Report['done']>(
    command: Extract<Order, { do: Name }>,
  ): Promise<Extract<Report, { done: Name }>> {
    const reported = new Promise<Extract<Report, { done: Name }>>((resolve, reject) => {
      const onReply = (report: Report) => {
        if (report.done !== command.do) return
        this.child.off('message', onReply)
        this.child.off('exit', fail)
        resolve(report as Extract<Report, { done: Name }>)
      }
      const fail = () => reject(new Error(`the process that should ${command.do} has ended`))
      this.child.on('message', onReply)
      this.child.once('exit', fail)
    })
    this.child.send(command)
    return reported
  }
}

/** The other side of a worker: runs its parent's commands, and ends with it. */
export function serveCommands<Order, Report>(runCommand: (command: Order) => Promise<Report>): void {
  process.on('message', (command: Order) => {
    void runCommand(command).then((report) => process.send?.(report))
  })
  process.on('disconnect', () => process.exit(0))
}
