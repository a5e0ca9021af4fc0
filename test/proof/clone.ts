import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const root = new URL('../..', import.meta.url).pathname

/** A clone of what is committed, in a folder of its own. */
export function freshClone(): string {
  const folder = mkdtempSync(join(tmpdir(), 'stocktape-clone-'))
  execFileSync('git', ['clone', '--quiet', root, folder])
  return folder
}

/** A process that was started, the lines that it prints, and its end. */
export type Started = {
  readonly line: (pattern: RegExp) => Promise<RegExpExecArray>
  readonly printed: () => string
  readonly ended: Promise<number | null>
  readonly kill: (signal: NodeJS.Signals) => void
}

/** Starts a command in a group of its own, so that a signal reaches all of it. */
export function start(
  command: readonly [string, ...string[]],
  options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv; readonly uid?: number; readonly gid?: number },
): Started {
  const [file, ...args] = command
  const child = spawn(file, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const lines: string[] = []
  const watchers = new Set<() => void>()
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on('line', (line) => {
      lines.push(line)
      for (const look of watchers) look()
    })
  }
  return {
    line: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = lines.map((line) => pattern.exec(line)).find((match) => match !== null)
          if (!found) return
          watchers.delete(look)
          resolve(found)
        }
        watchers.add(look)
        look()
        void ended.then(() => reject(new Error(`ended without ${pattern}:\n${lines.join('\n')}`)))
      }),
    printed: () => lines.join('\n'),
    ended,
    kill: (signal) => {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
        process.kill(-child.pid, signal)
    },
  }
}
