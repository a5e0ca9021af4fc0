import cluster from 'node:cluster'
import { isIPv6 } from 'node:net'
import { setTimeout as setTimeoutPromise } from 'node:timers/promises'
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from '../lib/exit-codes.ts'
import { messageOf } from '../lib/http-fetch.ts'
import { version, versionText } from '../lib/version.ts'
import { quickStartLines } from '../protocol/routes.ts'
import { readCommit } from './commit.ts'
import { type Config, type ConfigResult, readConfig, type Upstream, withUpstream } from './config/config.ts'
import type { LoadDocuments } from './edge/http/document-handlers.ts'
import { ListenError } from './edge/http/http-server.ts'
import { openMetricsPort } from './edge/http/metrics-port.ts'
import type { WriteLine } from './log-lines.ts'
import { openLog } from './logger.ts'
import { openMetrics } from './metrics.ts'
import { type Relay, type RelayOptions, startRelay } from './relay.ts'
import { TapeError, WrongTapeError } from './tape/tape.ts'

/** A second signal forces the exit only after this time, because a process group may receive one signal twice. */
const FORCED_EXIT_AFTER_MS = 1_000
/** Limit of the wait for the first token list. A terminal shows the banner after it, so that the commands in it work. */
const FIRST_LIST_TIMEOUT_MS = 5_000

const print = (line: string) => process.stdout.write(`${line}\n`)
const printError = (line: string) => process.stderr.write(`stocktape: ${line}\n`)

/** The built-in chain and the documents. The relay must not import them. Each is loaded when it is first needed. */
type Companions = {
  readonly startBuiltInChain: (faults: Config['process']['faults'], pastMs: number) => Promise<BuiltInChain>
  readonly loadDocuments: LoadDocuments
}
type BuiltInChain = { readonly upstream: Upstream; stop(): Promise<void> }

/** Starts the relay, and resolves after the start. Later, a signal or a failure ends the process. */
export async function serve(args: readonly string[], { startBuiltInChain, loadDocuments }: Companions): Promise<number> {
  const result = readConfig(args, process.env)
  if (result.kind !== 'settings') return printResult(result)
  const { logLevel: level, logFormat: format } = result.config.process
  const commit = readCommit()
  const metrics = openMetrics()
  metrics.addProcess(commit)
  const onLine = (level: string) => metrics.logLines.inc({ level })
  const log = openLog({ level, format, now: () => performance.now(), onLine })
  if (cluster.isWorker) {
    const { runWorker } = await import('./workers/run-worker.ts')
    runWorker(result.config, { log, metrics, loadDocuments })
    return EXIT_OK
  }
  for (const reason of result.warnings) log('setting_unknown', { reason })
  const { role } = result.config.process
  log('started', { version, commit, role, node: process.versions.node, pid: process.pid, settings: result.shown })
  const { chain: upstream, process: own } = result.config
  const builtInChain = upstream.isBuiltIn ? await startBuiltInChain(own.faults, upstream.backfillFirstMs) : null
  const config = builtInChain ? withUpstream(result.config, builtInChain.upstream) : result.config
  const relay = await start(config, { log, metrics, loadDocuments }, builtInChain)
  const url = `http://${hostInUrl(config.process.host)}:${relay.port}`
  log('listening', { url, tape: placeOfTape(config) })
  const whenListed = relay.whenListed.then(() => {
    if (config.process.role !== 'ingest') log('serving')
  })
  if (!process.stdout.isTTY) return EXIT_OK
  await Promise.race([whenListed, new Promise((resolve) => setTimeout(resolve, FIRST_LIST_TIMEOUT_MS).unref())])
  printBanner(config, url)
  return EXIT_OK
}

function printResult(result: Exclude<ConfigResult, { kind: 'settings' }>): number {
  if (result.kind === 'help') process.stdout.write(result.text)
  if (result.kind === 'version') print(versionText)
  if (result.kind !== 'mistakes') return EXIT_OK
  for (const line of result.lines) printError(line)
  return EXIT_USAGE
}

async function start(
  config: Config,
  given: Pick<RelayOptions, 'log' | 'metrics' | 'loadDocuments'>,
  builtInChain: BuiltInChain | null,
): Promise<Relay> {
  let relay: Relay | null = null
  const shutdown = openShutdown(
    given.log,
    async () => {
      const clients = relay?.clientCount() ?? 0
      await relay?.stop()
      await builtInChain?.stop()
      return clients
    },
    async () => {
      relay?.announceStop()
      await setTimeoutPromise(config.process.preDrainMs)
    },
  )
  process.on('uncaughtException', (failure) => shutdown.onFailure(failure))
  process.on('unhandledRejection', (failure) => shutdown.onFailure(failure))
  process.on('SIGTERM', shutdown.onSignal)
  process.on('SIGINT', shutdown.onSignal)
  try {
    const open = config.process.workers > 1 ? (await import('./workers/worker-supervisor.ts')).startWorkers : startRelay
    const { host, metricsPort } = config.process
    const text = () => relay?.metricsText() ?? given.metrics.text()
    if (metricsPort !== undefined) await openMetricsPort({ host, port: metricsPort, text })
    relay = await open({ config, ...given, onFailure: shutdown.onFailure })
    return relay
  } catch (failure) {
    if (!(failure instanceof ListenError || failure instanceof TapeError)) throw failure
    given.log('cannot_start', { reason: failure.message })
    process.exit(EXIT_USAGE)
  }
}

/** Returns a host as a URL contains it: an IPv6 address is in brackets, and `localhost` stands for all addresses. */
const hostInUrl = (host: string): string => (host === '0.0.0.0' || host === '::' ? 'localhost' : isIPv6(host) ? `[${host}]` : host)

function placeOfTape({ tape }: Config): string {
  const copy = tape.natsUrl === undefined ? '' : `the stream ${tape.natsStream} of NATS, with a copy in `
  return `${copy}${tape.dataDir === ':memory:' ? 'memory' : tape.dataDir}`
}

/** Prints what a person may do first. */
function printBanner(config: Config, url: string): void {
  const { process: own, chain, tape } = config
  print(`stocktape listens on ${url}, the tape is in ${placeOfTape(config)}`)
  if (own.role === 'ingest') {
    print('This process only writes the tape: it serves /healthz, /readyz, /v1/status and the metrics.')
    return
  }
  if (chain.isBuiltIn) {
    print('No upstream is set, so this is the built-in chain: nothing on it is real. stocktape serve --help has the settings.')
    if (tape.dataDir === ':memory:') print('Its tape ends with this process: with DATA_DIR the next start continues it.')
    print('Its token TESTc retracts, splits and pauses on schedule (docs/test-token.md), and --faults makes more go wrong.')
  }
  print(`Open ${url} for the board, ${url}/docs for the reference.`)
  print('')
  for (const line of quickStartLines(new URL(url).host, 'AAPLc')) print(`  ${line}`)
  print('')
}

/** Ends the process: after a signal with exit code 0, after a failure with 1, and with 2 if the tape is of another chain. */
function openShutdown(log: WriteLine, stop: () => Promise<number>, beforeStop: () => Promise<void>) {
  let startedAt: number | null = null
  const start = (exitCode: number, stopping: Promise<void>) => {
    const from = performance.now()
    startedAt = from
    stopping.then(stop).then(
      (clients) => {
        log('stopped', { took_ms: Math.round(performance.now() - from), clients_disconnected: clients })
        process.exit(exitCode)
      },
      (failure: unknown) => {
        log('stop_failed', detailOf(failure))
        process.exit(EXIT_FAILED)
      },
    )
  }
  return {
    onSignal: (signal: string) => {
      if (startedAt === null) {
        log('stopping', { signal })
        return start(EXIT_OK, beforeStop())
      }
      if (performance.now() - startedAt >= FORCED_EXIT_AFTER_MS) process.exit(EXIT_FAILED)
    },
    onFailure: (failure: unknown) => {
      log('failed', detailOf(failure))
      if (startedAt === null) start(failure instanceof WrongTapeError ? EXIT_USAGE : EXIT_FAILED, Promise.resolve())
    },
  }
}

/** Returns what the log says of a failure: of a bug its stack too. */
const detailOf = (failure: unknown): unknown =>
  failure instanceof Error && !(failure instanceof TapeError) ? failure : { reason: messageOf(failure) }
