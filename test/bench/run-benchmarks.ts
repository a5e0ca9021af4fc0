import { cpus, loadavg } from 'node:os'
import { EXIT_OK, EXIT_USAGE, runToExitCode } from '../../src/lib/exit-codes.ts'
import { canPin } from '../support/cpu-cores.ts'
import { hasNats } from '../support/nats-server.ts'
import { type Part, readBenchFlags } from './bench-flags.ts'
import { checkOutCommit } from './compared-commit.ts'
import { measureListeners } from './listener-benchmarks.ts'
import { buildMinimalFanOut, removeMinimalFanOut, takeSample } from './measured-servers.ts'
import { measureHistory, measureIngest, measureReads } from './other-benchmarks.ts'
import { filesBound, RESERVED_FILES, ROOT } from './pinned-processes.ts'
import { print, type Report, Results } from './results.ts'

let request: ReturnType<typeof readBenchFlags> | null = null
const exitCode = await runToExitCode('bench', async () => {
  request = readBenchFlags(process.argv.slice(2))
  return EXIT_OK
})
if (!request) process.exit(exitCode)
const { selected, against, rounds, listeners, updates } = request as ReturnType<typeof readBenchFlags>

print(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}`)
print(
  canPin
    ? 'The server has one core, its upstream and its listeners the other.'
    : 'Processes are not pinned to cores: taskset or a second core is missing.',
)
print(`Load of the machine before: ${(loadavg()[0] ?? 0).toFixed(1)}. Other programs that run now affect the results.`)
if (listeners + RESERVED_FILES > filesBound()) {
  print(`Only ${filesBound()} files may be open: raise the limit (ulimit -n), or use fewer --listeners.`)
  process.exit(EXIT_USAGE)
}
const other = against === null ? null : checkOutCommit(against)
if (against !== null && !other) {
  print(`--against ${against}: this repository has no such commit.`)
  process.exit(EXIT_USAGE)
}
const hasFloor = await buildMinimalFanOut()
if (!hasFloor) print('There is no C compiler (cc), so the minimal server in C is not measured.')

/** The measured relays: the folder of each, and what distinguishes the names of its figures. */
const relays = [{ dir: ROOT, suffix: '' }, ...(other ? [{ dir: other.dir, suffix: ` at ${other.name}` }] : [])]
const results = new Results()
const began = performance.now()
try {
  const sample = await takeSample(20, 10)
  /** Measures a relay by its folder, or the peers of a part. */
  const measure = async (part: Part, dir: string | null, report: Report): Promise<void> => {
    if (part === 'rpc') return measureReads(dir, report)
    if (part !== 'ingest' && part !== 'nats' && part !== 'history')
      return measureListeners(part, { dir, sample, listeners, hasFloor }, report)
    if (dir === null || (part === 'nats' && !hasNats)) return
    return part === 'history' ? measureHistory(updates, dir, report) : measureIngest(part, dir, report)
  }
  for (let round = 1; round <= rounds; round += 1) {
    print(`\nround ${round} of ${rounds}`)
    for (const part of selected) {
      // The relay that was measured first in one round comes last in the next, so that neither always follows the peers.
      for (const { dir, suffix } of round % 2 === 1 ? relays : relays.toReversed())
        await measure(part, dir, (table, row, figures) => results.add(table, row + suffix, figures))
      await measure(part, null, results.add)
    }
  }
} finally {
  await removeMinimalFanOut()
}
print(`\nMedians of ${rounds} rounds, ${listeners} listeners`)
results.printMedians()
print(
  '\nwrites: calls that write to sockets and files, per message; clients: the share of its core that the listeners’ process used',
)
print('wrong: repeated or out of order; lost: listeners whose connection ended')
print('in time: below 100 the server was behind; waiting messages are sent together, so they cost less than the same work in time')
if (other) results.printComparison(` at ${other.name}`)
print(`\n${((performance.now() - began) / 60_000).toFixed(1)} minutes`)
process.exit()
