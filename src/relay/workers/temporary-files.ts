import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { transports } from '../../protocol/transports.ts'
import { countName } from '../edge/clients/clients.ts'
import { SharedUsage } from '../edge/limits/shared-usage.ts'

/** Files of the database in which workers count. If one is missing, a new worker does not share the counts of the others. */
const FILES = ['usage.sqlite', 'usage.sqlite-wal', 'usage.sqlite-shm']
/** Matches the name of a folder that `makeFolder` made, and captures the id of the process. */
const OURS = /^stocktape-(?:usage|workers)-([0-9]+)-[A-Za-z0-9]{6}$/

/** Makes a folder among the temporary files. Its name has the process id, so that a later start can remove it. */
export const makeFolder = (what: 'usage' | 'workers'): string => mkdtempSync(join(tmpdir(), `stocktape-${what}-${process.pid}-`))

/** Removes temporary folders of processes that were killed. Call it before this process makes a folder. */
export function removeLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = OURS.exec(name) ?? []
    if (pid === undefined || isRunning(Number(pid))) continue
    try {
      const folder = join(tmpdir(), name)
      if (statSync(folder).uid === process.getuid?.()) rmSync(folder, { recursive: true, force: true })
    } catch {
      // Another process has removed the folder, or it cannot be removed.
    }
  }
}

/** A folder with the id of this process is from an earlier run: in a container, the process has the same id after each start. */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (failure) {
    return !(failure instanceof Error && 'code' in failure && failure.code === 'ESRCH')
  }
}

/** The file in which all workers count connections and requests. It is not in DATA_DIR, whose disk may fail. */
export class UsageFile {
  #folder = makeFolder('usage')
  #usage = new SharedUsage(this.path, 0)

  get path(): string {
    return join(this.#folder, 'usage.sqlite')
  }

  /** Makes a new file if a clean-up of temporary files has deleted the old one. Returns true if the file is new. */
  renew(): boolean {
    if (FILES.every((name) => existsSync(join(this.#folder, name)))) return false
    this.close()
    this.#folder = makeFolder('usage')
    this.#usage = new SharedUsage(this.path, 0)
    return true
  }

  get clientCount(): number {
    return transports.reduce((sum, transport) => sum + this.#usage.count(countName(transport)), 0)
  }

  forget(worker: number): void {
    this.#usage.forget(worker)
  }

  close(): void {
    this.#usage.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
