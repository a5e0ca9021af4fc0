import { execFileSync } from 'node:child_process'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createTempFolder } from './child-program.ts'
import { hasPrograms, pathOf } from './debian-programs.ts'
import type { TestLifecycle } from './test-stack.ts'

export const hasFaketime = hasPrograms('faketime', 'cc')

const diskSource = fileURLToPath(new URL('../e2e/slow/failing-disk.c', import.meta.url))

/** The disk and the wall clock as programs see them that are started with `env`. Both change while the programs run. */
export class FaultyMachine {
  readonly env: Readonly<Record<string, string>>
  readonly #folder: string

  static async open(test: TestLifecycle): Promise<FaultyMachine> {
    const folder = await createTempFolder(test)
    const machine = new FaultyMachine(folder)
    execFileSync('cc', ['-shared', '-fPIC', '-o', join(folder, 'disk.so'), diskSource])
    machine.setClock(0)
    return machine
  }

  private constructor(folder: string) {
    this.#folder = folder
    this.env = {
      LD_PRELOAD: `${join(folder, 'disk.so')}:${pathOf('faketime')}`,
      DISK_FAILS_WITH: join(folder, 'broken'),
      // Only the wall clock steps. Programs read the file again after a second.
      FAKETIME_TIMESTAMP_FILE: join(folder, 'clock'),
      ...{ DONT_FAKE_MONOTONIC: '1', NO_FAKE_STAT: '1', FAKETIME_DISABLE_SHM: '1', FAKETIME_CACHE_DURATION: '1' },
    }
  }

  /** How far the wall clock is off from now on. */
  setClock(offsetSeconds: number): void {
    const file = join(this.#folder, 'clock')
    writeFileSync(`${file}-next`, `${offsetSeconds < 0 ? '' : '+'}${offsetSeconds}\n`)
    renameSync(`${file}-next`, file)
  }

  /** Every flush or write fails, or every write for want of room, until `mendDisk`. */
  breakDisk(what: 'flush' | 'write' | 'room'): void {
    writeFileSync(join(this.#folder, 'broken'), what)
  }

  mendDisk(): void {
    rmSync(join(this.#folder, 'broken'), { force: true })
  }
}
