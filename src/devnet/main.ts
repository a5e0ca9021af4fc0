import { parseArgs } from 'node:util'
import { z } from 'zod'
import { type Devnet, startDevnet } from './devnet.ts'
import type { Faults } from './faults/faults.ts'

const HELP = `The devnet: a chain with tokenized stocks, pre-confirmations and a market, on a loopback port.

  --port <n>       port to listen on (9545; 0 for any free port)
  --seed <text>    another seed is another chain (stocktape)
  --block-ms <n>   time between blocks, in milliseconds (2000)
  --flash-ms <n>   time between flashblocks, in milliseconds (200)
  --receipts       answer eth_getBlockReceipts, which is refused otherwise, as on public endpoints
  --calls          answer eth_call, which is refused otherwise
  --calendar       splits, dividends, pauses, seizures, listings and rounds, also with blocks of under a second;
                   --no-calendar for only the market
  --help           show this text

Faults, all off by default:

  --sealed               no pre-confirmations: pending is latest, pendingLogs is silent
  --lose-every <n>       every n-th flashblock with logs is not pushed
  --drop-every <n>       every n-th pre-confirmed transaction is not sealed
  --shuffle              the logs of a flashblock are pushed in another order
  --push-delay <n>       flashblocks are pushed n blocks late
  --lag <n>              HTTP is answered by a replica that is n blocks behind
  --lag-every <n>        only every n-th HTTP request reaches that replica
  --reorg-every <n>      a reorganisation follows every n-th seal
  --reorg-depth <n>      the reorganisation replaces n blocks (1)
`

const flags = {
  port: { type: 'string' },
  seed: { type: 'string' },
  'block-ms': { type: 'string' },
  'flash-ms': { type: 'string' },
  receipts: { type: 'boolean' },
  calls: { type: 'boolean' },
  calendar: { type: 'boolean' },
  sealed: { type: 'boolean' },
  'lose-every': { type: 'string' },
  'drop-every': { type: 'string' },
  shuffle: { type: 'boolean' },
  'push-delay': { type: 'string' },
  lag: { type: 'string' },
  'lag-every': { type: 'string' },
  'reorg-every': { type: 'string' },
  'reorg-depth': { type: 'string' },
  help: { type: 'boolean' },
} as const

const wholeNumber = (min: number, max: number) => {
  const error = `a whole number from ${min} to ${max}`
  return z
    .stringFormat('whole', /^\d{1,9}$/, { error })
    .transform(Number)
    .pipe(z.int({ error }).min(min, error).max(max, error))
}

const Settings = z.object({
  port: wholeNumber(0, 65_535).default(9_545),
  seed: z.string().default('stocktape'),
  'block-ms': wholeNumber(20, 60_000).default(2_000),
  'flash-ms': wholeNumber(5, 60_000).default(200),
  receipts: z.boolean().default(false),
  calls: z.boolean().default(false),
  calendar: z.boolean().optional(),
  sealed: z.boolean().default(false),
  'lose-every': wholeNumber(0, 1_000_000).default(0),
  'drop-every': wholeNumber(0, 1_000_000).default(0),
  shuffle: z.boolean().default(false),
  'push-delay': wholeNumber(0, 1_000).default(0),
  lag: wholeNumber(0, 1_000).default(0),
  'lag-every': wholeNumber(0, 1_000_000).default(0),
  'reorg-every': wholeNumber(0, 1_000_000).default(0),
  'reorg-depth': wholeNumber(1, 1_000).default(1),
  help: z.boolean().default(false),
})

const main = async (): Promise<void> => {
  const settings = Settings.parse(parseArgs({ options: flags, allowNegative: true }).values)
  if (settings.help) return print(HELP)
  const devnet = await startDevnet({
    port: settings.port,
    seed: settings.seed,
    blockMs: settings['block-ms'],
    flashblockMs: settings['flash-ms'],
    receipts: settings.receipts,
    calls: settings.calls,
    ...(settings.calendar !== undefined && { calendar: settings.calendar }),
  })
  Object.assign(devnet.faults, faultsOf(settings))
  print(startupText(devnet))
  // The second signal finds no listener and ends the process at once.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void devnet.stop())
}

const faultsOf = (settings: z.infer<typeof Settings>): Partial<Faults> => ({
  ...(settings.sealed && { pending: 'latest', silent: ['pendingLogs'] }),
  loseEvery: settings['lose-every'],
  dropEvery: settings['drop-every'],
  shuffle: settings.shuffle,
  pushDelayBlocks: settings['push-delay'],
  lagBlocks: settings.lag,
  lagEvery: settings['lag-every'],
  reorgEvery: settings['reorg-every'],
  reorgDepth: settings['reorg-depth'],
})

const startupText = ({ chainId, stocksUrl, rpcUrl, wsUrl, chain, poolsText, quoteTokens, oracleRegistry }: Devnet): string => {
  const subscribe = { jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['pendingLogs', {}] }
  const getBlock = { jsonrpc: '2.0', id: 1, method: 'eth_getBlockByNumber', params: ['pending', false] }
  return `devnet ${chainId}, block ${chain.head.number}
  list  ${stocksUrl}
  rpc   ${rpcUrl}
  ws    ${wsUrl}

POOLS=${poolsText}
QUOTE_TOKENS=${quoteTokens}
ORACLE_REGISTRY=${oracleRegistry}

curl -s ${stocksUrl}
curl -s ${rpcUrl} -H 'content-type: application/json' -d '${JSON.stringify(getBlock)}'
node -e 'const s = new WebSocket("${wsUrl}"); s.onopen = () => s.send(${JSON.stringify(JSON.stringify(subscribe))}); s.onmessage = (m) => console.log(m.data)'
`
}

const print = (text: string): void => {
  process.stdout.write(text)
}

/** One line that explains what to change. */
const errorLine = (error: unknown): string => {
  if (error instanceof z.ZodError) return error.issues.map(({ path, message }) => `--${path.join('.')}: ${message}`).join('; ')
  if (!(error instanceof Error)) return String(error)
  if ('code' in error && error.code === 'EADDRINUSE') return 'the port is in use: choose another with --port'
  return error.message.split('\n')[0] ?? error.message
}

try {
  await main()
} catch (error) {
  process.stderr.write(`devnet: ${errorLine(error)}\n`)
  process.exitCode = 2
}
