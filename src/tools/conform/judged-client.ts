import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { ConditionWatchers } from '../../lib/condition-watchers.ts'
import { parseJson } from '../../lib/safe-json.ts'

/** Limit of the standard error that is kept; LINE_BOUND_CHARS is the limit of a line of standard output. */
const STDERR_BOUND_CHARS = 10_000
const LINE_BOUND_CHARS = 16_777_216
/** Time that a client has to end before it is killed. */
const END_BOUND_MS = 2_000

export type PrintedLine = { readonly type: string; readonly id?: string | null } & Readonly<Record<string, unknown>>

/** The client under test: a command that prints the messages that it receives as NDJSON. */
export class JudgedClient {
  readonly #child: ChildProcess
  readonly #watchers = new ConditionWatchers()
  readonly lines: PrintedLine[] = []
  #rest = ''
  stderr = ''
  /** The first line that is no message; null if each line is one. */
  unreadable: string | null = null
  /** Exit code, signal, or why the client could not start; null while it runs. */
  ended: number | string | null = null

  constructor([file = '', ...args]: readonly string[], env: NodeJS.ProcessEnv) {
    this.#child = spawn(file, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    this.#child.on('error', (failure) => this.#end(failure.message))
    this.#child.on('close', (code, signal) => this.#end(code ?? signal ?? 0))
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr = (this.stderr + text).slice(-STDERR_BOUND_CHARS)
    })
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#read(text))
  }

  /** Resolves to false if the condition is still false after `withinMs`, or when the client ends. */
  async until(condition: () => boolean, withinMs: number): Promise<boolean> {
    await this.#watchers.until(() => condition() || this.ended !== null, withinMs)
    return condition()
  }

  /** Stops reading what the client prints, as a slow reader of a pipe does. */
  pauseReading(): void {
    this.#child.stdout?.pause()
  }

  resumeReading(): void {
    this.#child.stdout?.resume()
  }

  /** Ends the client, and the processes that it started. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.ended !== null) return
    this.resumeReading()
    this.#signal(signal)
    const killer = setTimeout(() => this.#signal('SIGKILL'), END_BOUND_MS)
    await once(this.#child, 'close')
    clearTimeout(killer)
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    try {
      if (pid !== undefined) process.kill(-pid, signal)
    } catch {
      // The client has already ended.
    }
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = (lines.pop() ?? '').slice(-LINE_BOUND_CHARS)
    for (const line of lines) this.#readLine(line)
    this.#watchers.notify()
  }

  #readLine(line: string): void {
    if (line.trim() === '') return
    const message = parseJson(line)
    if (typeof message === 'object' && message !== null && 'type' in message) return void this.lines.push(message as PrintedLine)
    this.unreadable ??= line.slice(0, 80)
  }

  #end(how: number | string): void {
    this.ended ??= how
    this.#watchers.notify()
  }
}
