import cluster from 'node:cluster'
import { isIPv6 } from 'node:net'
import { setTimeout as setTimeoutPromise } from 'node:timers/promises'
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from '../lib/exit-codes.ts'
import { versionText } from '../lib/version.ts'
import { quickStartLines } from '../protocol/routes.ts'
import { readCommit } from './commit.ts'
import { type Config, type ConfigResult, readConfig, type Upstream, withUpstream } from './config/config.ts'
import type { LoadDocuments } from './edge/http/document-handlers.ts'
import { ListenError } from './edge/http/http-server.ts'
import { openMetricsPort } from './edge/http/metrics-port.ts'
import { type Logger, openLog } from './logger.ts'
import { openMetrics } from './metrics.ts'
import { type Relay, type RelayOptions, startRelay } from './relay.ts'
import { TapeError, WrongTapeError } from './tape/tape.ts'

/** A second signal forces the exit only after this time, because a process group may receive one signal twice. */
const FORCED_EXIT_AFTER_MS = 1_000
/** Limit of the wait for the first token list. The banner is printed after it, so that the commands in it work. */
const FIRST_LIST_TIMEOUT_MS = 5_000

const print = (line: string) => process.stdout.write(`${line}\n`)
const printError = (line: string) => process.stderr.write(`stocktape: ${line}\n`)

/** The built-in chain and the documents. The relay must not import them. Each is loaded when it is first needed. */
type Companions = {
  readonly startBuiltInChain: (faults: Config['process']['faults']) => Promise<BuiltInChain>
  readonly loadDocuments: LoadDocuments
}
type BuiltInChain = { readonly upstream: Upstream; stop(): Promise<void> }

/** Starts the relay, and resolves after the start. Later, a signal or a failure ends the process. */
export async function serve(args: readonly string[], { startBuiltInChain, loadDocuments }: Companions): Promise<number> {
  const result = readConfig(args, process.env)
  if (result.kind !== 'settings') return printResult(result)
  if (!cluster.isWorker) for (const warning of result.warnings) printError(warning)
  const metrics = openMetrics()
  metrics.addProcess(readCommit())
  const log = openLog(result.config.process.logLevel, { onLine: (level) => metrics.logLines.inc({ level }) })
  if (cluster.isWorker) {
    const { runWorker } = await import('./workers/run-worker.ts')
    runWorker(result.config, { log, metrics, loadDocuments })
    return EXIT_OK
  }
  const builtInChain = result.config.chain.isBuiltIn ? await startBuiltInChain(result.config.process.faults) : null
  const config = builtInChain ? withUpstream(result.config, builtInChain.upstream) : result.config
  const relay = await start(config, { log, metrics, loadDocuments }, builtInChain)
  await Promise.race([relay.whenListed, new Promise((resolve) => setTimeout(resolve, FIRST_LIST_TIMEOUT_MS).unref())])
  printBanner(config, relay)
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
      await relay?.stop()
      await builtInChain?.stop()
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
    printError(failure.message)
    process.exit(EXIT_USAGE)
  }
}

/** Returns a host as a URL contains it: an IPv6 address is in brackets, and `localhost` stands for all addresses. */
const hostInUrl = (host: string): string => (host === '0.0.0.0' || host === '::' ? 'localhost' : isIPv6(host) ? `[${host}]` : host)

function printBanner({ process: own, chain, tape }: Config, relay: Relay): void {
  const host = `${hostInUrl(own.host)}:${relay.port}`
  const copy = tape.natsUrl === undefined ? '' : `the stream ${tape.natsStream} of NATS, with a copy in `
  print(`stocktape listens on http://${host}, the tape is in ${copy}${tape.dataDir === ':memory:' ? 'memory' : tape.dataDir}`)
  if (own.role === 'ingest') {
    print('This process only writes the tape: it serves /healthz, /readyz, /metrics and /v1/status.')
    return
  }
  if (chain.isBuiltIn) {
    print('No upstream is set, so this is the built-in chain: nothing on it is real. stocktape serve --help has the settings.')
    if (tape.dataDir === ':memory:') print('Its tape ends with this process: with DATA_DIR the next start continues it.')
    print('Its token TESTc retracts, splits and pauses on schedule (docs/test-token.md), and --faults makes more go wrong.')
  }
  print(`Open http://${host} for the board, http://${host}/docs for the reference.`)
  print('')
  for (const line of quickStartLines(host, 'AAPLc')) print(`  ${line}`)
  print('')
}

/** Ends the process: after a signal with exit code 0, after a failure with 1, and with 2 if the tape is of another chain. */
function openShutdown(log: Logger, stop: () => Promise<void>, beforeStop: () => Promise<void>) {
  let startedAt: number | null = null
  const logFatal = (failure: unknown, what: string) => {
    if (failure instanceof TapeError) log.fatal(`${what}: ${failure.message}`)
    else log.fatal(failure instanceof Error ? failure : { failure }, what)
  }
  const start = (exitCode: number, stopping: Promise<void>) => {
    startedAt = performance.now()
    stopping.then(stop).then(
      () => process.exit(exitCode),
      (failure: unknown) => {
        logFatal(failure, 'stopping failed')
        process.exit(EXIT_FAILED)
      },
    )
  }
  return {
    onSignal: () => {
      if (startedAt === null) return start(EXIT_OK, beforeStop())
      if (performance.now() - startedAt >= FORCED_EXIT_AFTER_MS) process.exit(EXIT_FAILED)
    },
    onFailure: (failure: unknown) => {
      logFatal(failure, 'the relay cannot continue')
      if (startedAt === null) start(failure instanceof WrongTapeError ? EXIT_USAGE : EXIT_FAILED, Promise.resolve())
    },
  }
}
