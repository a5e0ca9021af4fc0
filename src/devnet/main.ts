import { parseArgs } from 'node:util'
import { z } from 'zod'
import { type Devnet, startDevnet } from './devnet.ts'
import type { Faults } from './faults/faults.ts'

const HELP = `The chain in the box: tokenized stocks, pre-confirmations and a market, on a loopback port.

  --port <n>       where to listen (9545; 0 for any that is free)
  --seed <text>    another seed is another chain (stocktape)
  --block-ms <n>   a block every so often (2000)
  --flash-ms <n>   a flashblock every so often (200)
  --receipts       answer eth_getBlockReceipts, which public endpoints refuse
  --calls          answer eth_call, which is refused otherwise
  --calendar       splits, dividends, pauses, seizures, listings and rounds, with blocks of under a second too;
                   --no-calendar for nothing but the market
  --help           this

Its weather, fair unless it is said:

  --sealed               nothing is pre-confirmed: pending is latest, pendingLogs is silent
  --lose-every <n>       every so many-th flashblock with logs is not pushed
  --drop-every <n>       every so many-th pre-confirmed transaction is not sealed
  --shuffle              the logs of a flashblock are pushed in another order
  --push-delay <n>       flashblocks are pushed so many blocks late
  --lag <n>              HTTP is answered by a replica that is so many blocks behind
  --lag-every <n>        only every so many-th request is
  --reorg-every <n>      every so many-th seal is followed by a reorganisation
  --reorg-depth <n>      of so many blocks (1)
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

const startupText = ({ chainId, stocksUrl, rpcUrl, wsUrl, chain }: Devnet): string => {
  const subscribe = { jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['pendingLogs', {}] }
  const getBlock = { jsonrpc: '2.0', id: 1, method: 'eth_getBlockByNumber', params: ['pending', false] }
  return `devnet ${chainId}, block ${chain.head.number}
  list  ${stocksUrl}
  rpc   ${rpcUrl}
  ws    ${wsUrl}

curl -s ${stocksUrl}
curl -s ${rpcUrl} -H 'content-type: application/json' -d '${JSON.stringify(getBlock)}'
node -e 'const s = new WebSocket("${wsUrl}"); s.onopen = () => s.send(${JSON.stringify(JSON.stringify(subscribe))}); s.onmessage = (m) => console.log(m.data)'
`
}

const print = (text: string): void => {
  process.stdout.write(text)
}

/** One line that says what to change. */
const errorLine = (error: unknown): string => {
  if (error instanceof z.ZodError)
    return error.issues.map(({ path, message }) => `--${path.join('.')}: ${message}`).join('; ')
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
