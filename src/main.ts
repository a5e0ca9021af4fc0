import packageJson from '../package.json' with { type: 'json' }
import { type Config, readConfig } from './config.ts'
import type { Devnet } from './devnet/devnet.ts'
import { linesToPaste } from './docs/snippets.ts'
import { ListenError } from './edge/http/server.ts'
import { type Log, openLog } from './log.ts'
import { openMetrics } from './metrics.ts'
import { type Relay, startRelay, type Upstream } from './relay.ts'
import { TapeError } from './tape/tape.ts'
import { publishedFeeds } from './tokens/base-feeds.ts'

/** The start was asked for in a way that cannot work. */
const EXIT_USAGE = 2
/** The process group may get one signal twice, within milliseconds; only a later one means impatience. */
const IMPATIENCE_MS = 1_000
/** The three lines wait this long for the first list, so that they name a symbol that is there. */
const FIRST_LIST_BOUND_MS = 5_000

/** The public endpoints of the networks that need no key. */
const networks = {
  base: { rpcUrls: ['https://mainnet.base.org'], stocksUrl: 'https://api.coinbase.com', feeds: publishedFeeds },
  'base-sepolia': { rpcUrls: ['https://sepolia.base.org'], stocksUrl: 'https://api.coinbase.com', feeds: [] },
} as const

const print = (line: string) => process.stdout.write(`${line}\n`)
const complain = (line: string) => process.stderr.write(`stocktape: ${line}\n`)

async function main(): Promise<void> {
  const reading = readConfig(process.argv.slice(2), process.env)
  if (reading.kind === 'help') return void process.stdout.write(reading.text)
  if (reading.kind === 'version') return void print(packageJson.version)
  if (reading.kind === 'mistakes') {
    for (const line of reading.lines) complain(line)
    process.exitCode = EXIT_USAGE
    return
  }
  const { config } = reading
  const log = openLog(config.LOG_LEVEL)
  const devnet = isDemo(config) ? await openDevnet() : null
  const upstream = upstreamOf(config, devnet)
  let relay: Relay | null = null
  const stop = stopper(log, async () => {
    await relay?.stop()
    await devnet?.stop()
  })
  process.on('uncaughtException', (failure) => stop.because(failure))
  process.on('unhandledRejection', (failure) => stop.because(failure))
  process.on('SIGTERM', stop.signalled)
  process.on('SIGINT', stop.signalled)
  try {
    relay = await startRelay({ config, upstream, log, metrics: openMetrics(), failed: stop.because })
  } catch (failure) {
    if (!(failure instanceof ListenError || failure instanceof TapeError)) throw failure
    complain(failure.message)
    process.exit(EXIT_USAGE)
  }
  await Promise.race([relay.listed, new Promise((resolve) => setTimeout(resolve, FIRST_LIST_BOUND_MS).unref())])
  announce(config, relay, upstream)
}

const isDemo = (config: Config): boolean =>
  config.NETWORK === undefined && config.UPSTREAM_RPC_URL === undefined && config.UPSTREAM_WS_URL === undefined

/** Loaded only where it runs: production does not wait for a chain that it never starts. */
async function openDevnet(): Promise<Devnet> {
  const { startDevnet } = await import('./devnet/devnet.ts')
  // It may be asked what its contracts hold, as a provider's node may; nothing depends on it.
  return startDevnet({ calls: true })
}

function upstreamOf(config: Config, devnet: Devnet | null): Upstream {
  if (devnet)
    return {
      rpcUrls: [devnet.rpcUrl],
      wsUrls: [devnet.wsUrl],
      stocksUrl: devnet.url,
      feeds: feedsOf(devnet),
      demo: true,
    }
  const network = config.NETWORK && networks[config.NETWORK]
  return {
    rpcUrls: config.UPSTREAM_RPC_URL ?? network?.rpcUrls ?? [],
    wsUrls: config.UPSTREAM_WS_URL ?? [],
    stocksUrl: config.STOCKS_API_URL ?? network?.stocksUrl ?? '',
    feeds: config.FEEDS ?? network?.feeds ?? [],
    demo: false,
  }
}

const feedsOf = ({ feeds }: Devnet): Upstream['feeds'] =>
  Object.entries(feeds).map(([token, { proxy }]) => ({ token, proxy }))

function announce(config: Config, relay: Relay, { demo }: Upstream): void {
  const host = `${config.HOST === '0.0.0.0' || config.HOST === '::' ? 'localhost' : config.HOST}:${relay.port}`
  print(`stocktape listens on http://${host}, the tape is in ${config.DATA_DIR}`)
  if (demo)
    print('No upstream is set, so this is the built-in chain: nothing on it is real. See --help for the settings.')
  print('')
  for (const line of linesToPaste(host, 'AAPLc')) print(`  ${line}`)
  print('')
}

/** A signal becomes a stop; a failure that nobody expected becomes a stop with exit code 1. */
function stopper(log: Log, stop: () => Promise<void>) {
  let begunAt: number | null = null
  const begin = (exitCode: number) => {
    begunAt = Date.now()
    stop().then(
      () => process.exit(exitCode),
      (failure: unknown) => {
        log.fatal(failure, 'stopping failed')
        process.exit(1)
      },
    )
  }
  return {
    signalled: () => {
      if (begunAt === null) return begin(0)
      if (Date.now() - begunAt >= IMPATIENCE_MS) process.exit(1)
    },
    because: (failure: unknown) => {
      log.fatal(failure instanceof Error ? failure : { failure }, 'the relay cannot go on')
      if (begunAt === null) begin(1)
    },
  }
}

await main()
