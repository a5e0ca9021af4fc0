import cluster from 'node:cluster'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import { setTimeout as setTimeoutPromise } from 'node:timers/promises'
import { quickStartLines } from '../docs/snippets.ts'
import { type Command, EXIT_FAILED, EXIT_OK, EXIT_USAGE } from '../lib/command.ts'
import { version } from '../lib/version.ts'
import { type Config, readConfig, type UpstreamEndpoints } from './config/config.ts'
import { ListenError } from './edge/http/server.ts'
import { type Logger, openLog } from './log.ts'
import { openMetrics } from './metrics.ts'
import type { Relay } from './relay.ts'
import { startRelay } from './start-relay.ts'
import { TapeError, WrongTapeError } from './tape/tape.ts'
import { isDemo, noUpstream, openDemoChain, upstreamEndpoints } from './upstream.ts'

/** A process group may get one signal twice within milliseconds. Only a later one forces the exit. */
const FORCED_EXIT_AFTER_MS = 1_000
/** The banner waits this long for the first list, so that it names a symbol that exists. */
const FIRST_LIST_TIMEOUT_MS = 5_000

const print = (line: string) => process.stdout.write(`${line}\n`)
const printError = (line: string) => process.stderr.write(`stocktape: ${line}\n`)

/** Runs the relay. Resolves once it listens: from then on, signals and failures end the process. */
export const serve: Command = async (args) => {
  const result = readConfig(args, process.env)
  if (result.kind === 'help') {
    process.stdout.write(result.text)
    return EXIT_OK
  }
  if (result.kind === 'version') {
    print(version)
    return EXIT_OK
  }
  if (result.kind === 'mistakes') {
    for (const line of result.lines) printError(line)
    return EXIT_USAGE
  }
  if (!cluster.isWorker) for (const warning of result.warnings) printError(warning)
  if (isDemo(result.config) && !result.config.DEMO) {
    printError(noUpstream)
    return EXIT_FAILED
  }
  const config = isDemo(result.config) ? withDemoTape(result.config) : result.config
  const log = openLog(config.LOG_LEVEL)
  if (cluster.isWorker) {
    const { runWorker } = await import('./workers/run-worker.ts')
    runWorker(config, log)
    return EXIT_OK
  }
  const metrics = openMetrics()
  metrics.addProcess()
  const devnet = isDemo(config) ? await openDemoChain(config.FAULTS) : null
  const endpoints = upstreamEndpoints(config, devnet)
  let relay: Relay | null = null
  const shutdown = openShutdown(
    log,
    async () => {
      await relay?.stop()
      await devnet?.stop()
    },
    async () => {
      relay?.announceStop()
      await setTimeoutPromise(config.PRE_DRAIN_MS)
    },
  )
  process.on('uncaughtException', (failure) => shutdown.onFailure(failure))
  process.on('unhandledRejection', (failure) => shutdown.onFailure(failure))
  process.on('SIGTERM', shutdown.onSignal)
  process.on('SIGINT', shutdown.onSignal)
  try {
    const start = config.WORKERS > 1 ? (await import('./workers/start-workers.ts')).startWorkers : startRelay
    relay = await start({ config, endpoints, log, metrics, onFailure: shutdown.onFailure })
  } catch (failure) {
    if (!(failure instanceof ListenError || failure instanceof TapeError)) throw failure
    printError(failure.message)
    process.exit(EXIT_USAGE)
  }
  await Promise.race([relay.whenListed, new Promise((resolve) => setTimeout(resolve, FIRST_LIST_TIMEOUT_MS).unref())])
  printBanner(config, relay, endpoints)
  return EXIT_OK
}

/** The tape of the built-in chain has a folder of its own, so that it never stands where the tape of a real chain belongs. */
const withDemoTape = (config: Config): Config =>
  config.DATA_DIR === ':memory:' ? config : { ...config, DATA_DIR: join(config.DATA_DIR, 'demo') }

/** The host as a URL has it: an address of IPv6 stands in brackets. */
const hostInUrl = (host: string): string => (host === '0.0.0.0' || host === '::' ? 'localhost' : isIPv6(host) ? `[${host}]` : host)

function printBanner(config: Config, relay: Relay, { demo }: UpstreamEndpoints): void {
  const host = `${hostInUrl(config.HOST)}:${relay.port}`
  const copy = config.NATS_URL === undefined ? '' : `the stream ${config.NATS_STREAM} of NATS, with a copy in `
  print(`stocktape listens on http://${host}, the tape is in ${copy}${config.DATA_DIR}`)
  if (config.ROLE === 'ingest') {
    print('This process only writes the tape: it serves /healthz, /readyz, /metrics and /v1/status.')
    return
  }
  if (demo) {
    print('No upstream is set, so this is the built-in chain: nothing on it is real. See --help for the settings.')
    print('Its token TESTc retracts, splits and pauses on schedule (docs/test-token.md), and --faults makes more go wrong.')
  }
  print(`Open http://${host} for the board, http://${host}/docs for the reference.`)
  print('')
  for (const line of quickStartLines(host, 'AAPLc')) print(`  ${line}`)
  print('')
}

/** A signal stops the relay, after what `beforeStop` waits for. An unexpected failure stops it with exit code 1, the tape of another chain with 2. */
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
        process.exit(1)
      },
    )
  }
  return {
    onSignal: () => {
      if (startedAt === null) return start(0, beforeStop())
      if (performance.now() - startedAt >= FORCED_EXIT_AFTER_MS) process.exit(1)
    },
    onFailure: (failure: unknown) => {
      logFatal(failure, 'the relay cannot go on')
      if (startedAt === null) start(failure instanceof WrongTapeError ? EXIT_USAGE : 1, Promise.resolve())
    },
  }
}
