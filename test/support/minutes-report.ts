import { writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'
import { chosenSlice, filesOfSlice, SECONDS_FILE } from '../long-tests.ts'
import { isNightly } from './test-length.ts'

/** Prints what the time of the long tests bought. A run of all of them in the short form records how long each file took. */
export default class MinutesReport implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const slice = chosenSlice()
    const byGroup = Map.groupBy(modules, ({ project }) => project.name)
    const rows = [...byGroup].map(([group, files]) => {
      const tests = files.flatMap((file) => [...file.children.allTests()])
      const failed = tests.filter((test) => test.result().state === 'failed')
      return `${group.padEnd(16)}${String(files.length).padStart(6)} files${String(tests.length).padStart(7)} tests${secondsOf(files).padStart(9)} s${failed.length > 0 ? `  ${failed.length} failed` : ''}`
    })
    process.stdout.write(
      `\nslice ${slice === null ? 'all' : slice + 1}; the time of a group is the sum over its workers\n${rows.join('\n')}\n`,
    )
    const isWhole = slice === null && modules.length === [...filesOfSlice(null).values()].flat().length
    if (!isWhole || isNightly) return
    const measured = modules.map(
      (file) => [`${file.project.name}: ${file.relativeModuleId}`, Math.round(durationOf(file))] as const,
    )
    writeFileSync(
      SECONDS_FILE,
      `${JSON.stringify(Object.fromEntries(measured.toSorted(([a], [b]) => (a < b ? -1 : 1))), null, 1)}\n`,
    )
  }
}

const durationOf = (file: TestModule): number => file.diagnostic().duration / 1_000
const secondsOf = (files: readonly TestModule[]): string =>
  String(Math.round(files.reduce((sum, file) => sum + durationOf(file), 0)))
