import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SharedUsage } from '../edge/limits/shared-usage.ts'

/** The database and what SQLite keeps beside it. Without one of them a worker that starts would count for itself. */
const FILES = ['usage.sqlite', 'usage.sqlite-wal', 'usage.sqlite-shm']
/** A folder of ours: for what, and the process that made it. */
const OURS = /^stocktape-(?:usage|workers)-([0-9]+)-[A-Za-z0-9]{6}$/

/** A new folder among the temporary files. Its name says whose it is, so that a later start can remove it. */
export const makeFolder = (what: 'usage' | 'workers'): string => mkdtempSync(join(tmpdir(), `stocktape-${what}-${process.pid}-`))

/** Removes what processes left that were killed. Call it before this one has a folder. */
export function removeLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = OURS.exec(name) ?? []
    if (pid === undefined || isRunning(Number(pid))) continue
    try {
      const folder = join(tmpdir(), name)
      if (statSync(folder).uid === process.getuid?.()) rmSync(folder, { recursive: true, force: true })
    } catch {
      // Another start was faster.
    }
  }
}

/** A folder with the number of this process is of one before it: in a container all have the same number. */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (failure) {
    return !(failure instanceof Error && 'code' in failure && failure.code === 'ESRCH')
  }
}

/** The file in which the workers count. It is not in DATA_DIR, whose disk may fail. */
export class UsageFile {
  #folder: string
  #usage: SharedUsage

  constructor() {
    this.#folder = makeFolder('usage')
    this.#usage = new SharedUsage(this.path, 0)
  }

  get path(): string {
    return join(this.#folder, 'usage.sqlite')
  }

  /** Makes the file anew where it was removed, as programs do that clean up temporary files; true then. */
  renew(): boolean {
    if (FILES.every((name) => existsSync(join(this.#folder, name)))) return false
    this.close()
    this.#folder = makeFolder('usage')
    this.#usage = new SharedUsage(this.path, 0)
    return true
  }

  /** Forgets a worker that is gone. */
  forget(worker: number): void {
    this.#usage.forget(worker)
  }

  close(): void {
    this.#usage.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
