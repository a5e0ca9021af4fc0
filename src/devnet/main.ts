import { z } from 'zod'
import { EXIT_OK, runToExitCode, UsageError } from '../lib/exit-codes.ts'
import { type RequestedFaults, requestedFaults } from '../lib/fault-settings.ts'
import { type CommandFlags, commonFlags, readFlags } from '../lib/flags.ts'
import { flagTerms, helpText } from '../lib/help.ts'
import { SettingError } from '../lib/setting-readers.ts'
import { type Devnet, startDevnet } from './devnet.ts'

const flags = {
  port: { type: 'string', description: 'port to listen on (9545; 0 for any free port)' },
  seed: { type: 'string', description: 'another seed is another chain (stocktape)' },
  'block-ms': { type: 'string', description: 'time between blocks, in milliseconds (2000)' },
  'flash-ms': { type: 'string', description: 'time between flashblocks, in milliseconds (200)' },
  receipts: { type: 'boolean', description: 'answer eth_getBlockReceipts, which is refused otherwise, as on public endpoints' },
  calls: { type: 'boolean', description: 'answer eth_call, which is refused otherwise' },
  calendar: {
    type: 'boolean',
    description:
      'splits, dividends, pauses, seizures, listings and rounds, also with blocks of under a second; --no-calendar for only the market',
  },
  faults: {
    type: 'string',
    description: 'what goes wrong, such as reorg=2%,drop=5%,late=5%,silent=30s; docs/faults.md has all of it',
  },
  ...commonFlags,
} as const satisfies CommandFlags

const help = helpText(
  'npm run devnet -- [--port 9545] [--faults FAULTS]',
  'The devnet: a chain with tokenized stocks, pre-confirmations and a market, on a loopback port.',
  flagTerms(flags),
)

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
  faults: z.string().default(''),
})

async function main(): Promise<number> {
  const settings = Settings.parse(readFlags(flags, process.argv.slice(2), { help }).values)
  const devnet = await startDevnet({
    port: settings.port,
    seed: settings.seed,
    blockMs: settings['block-ms'],
    flashblockMs: settings['flash-ms'],
    receipts: settings.receipts,
    calls: settings.calls,
    requestedFaults: chainFaults(settings.faults),
    ...(settings.calendar !== undefined && { calendar: settings.calendar }),
  })
  process.stdout.write(startupText(devnet))
  // The second signal finds no listener and ends the process at once.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void devnet.stop())
  return EXIT_OK
}

/** Reads the faults that the chain can have. */
const chainFaults = (text: string): RequestedFaults => {
  const { gap, ...faults } = text === '' ? {} : requestedFaults(text)
  if (gap) throw new SettingError('must not name gap, which is a fault of the relay: npm start -- --faults gap')
  return faults
}

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

/** Returns a line that says what the user must change; undefined if the failure has another cause. */
function mistakeOf(failure: unknown): string | undefined {
  if (failure instanceof z.ZodError) return failure.issues.map(({ path, message }) => `--${path.join('.')}: ${message}`).join('; ')
  if (failure instanceof SettingError) return `--faults ${failure.message}`
  const isPortTaken = failure instanceof Error && 'code' in failure && failure.code === 'EADDRINUSE'
  return isPortTaken ? 'the port is in use: choose another with --port' : undefined
}

process.exitCode = await runToExitCode('devnet', () =>
  main().catch((failure: unknown) => {
    const mistake = mistakeOf(failure)
    throw mistake === undefined ? failure : new UsageError(mistake)
  }),
)
