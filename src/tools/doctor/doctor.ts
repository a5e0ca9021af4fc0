import {
  type Command,
  type CommandFlags,
  EXIT_FAILED,
  EXIT_OK,
  EXIT_USAGE,
  flagLines,
  helpFlag,
  readFlags,
  UsageError,
} from '../../lib/flags.ts'
import { openSteadyClock, schedulerOn } from '../../lib/steady-clock.ts'
import { type ConfigResult, noUpstream, readConfig, withUpstream } from '../../relay/config/config.ts'
import { examine } from './examination.ts'
import { examinationText } from './examination-text.ts'
import { showProgress } from './progress-line.ts'

export const doctorFlags = {
  rpc: { type: 'string', description: 'JSON-RPC over HTTP, as UPSTREAM_RPC_URL' },
  ws: { type: 'string', description: 'JSON-RPC over WebSocket, as UPSTREAM_WS_URL' },
  stocks: { type: 'string', description: 'base URL of the Tokenized Stocks Read API, as STOCKS_API_URL' },
  network: {
    type: 'string',
    description: 'base or base-sepolia, as NETWORK: the public endpoints',
    choices: ['base', 'base-sepolia'],
  },
  receipts: { type: 'string', description: 'JSON-RPC for eth_getBlockReceipts, as RECEIPTS_RPC_URL' },
  timeout: { type: 'string', description: 'how long the examination may take: 500ms, 10s (10s)' },
  json: { type: 'boolean', description: 'one JSON object: ok, source, reason, checks' },
  ...helpFlag,
} as const satisfies CommandFlags

const usage = `stocktape doctor [--rpc URL[,URL]] [--ws URL[,URL]] [--stocks URL] [--network base|base-sepolia] [--receipts URL] [--timeout 10s] [--json]

Examines the upstreams of a relay: what they answer, which source the relay would use and why, and what to change.
Without flags it reads the settings of the relay from the environment. Without any, it examines the built-in chain.

${flagLines(doctorFlags)}

✓ ok, ! works with a restriction, ✗ does not work, - not known. Of a URL only scheme, host and port are printed.
Exit codes: 0 the relay can run on these, 1 it cannot, 2 a mistake in the arguments or settings.
`

/** The settings that flags stand for. */
const settingsByFlag = [
  ['rpc', 'UPSTREAM_RPC_URL'],
  ['ws', 'UPSTREAM_WS_URL'],
  ['stocks', 'STOCKS_API_URL'],
  ['network', 'NETWORK'],
  ['receipts', 'RECEIPTS_RPC_URL'],
] as const

const DEFAULT_TIMEOUT = '10s'
const TIMEOUT_BOUNDS_MS = { min: 100, max: 300_000 }

export const doctor: Command = async (args) => {
  const { values } = readFlags(doctorFlags, args)
  if (values.help) {
    process.stdout.write(usage)
    return EXIT_OK
  }
  const timeoutMs = readTimeoutMs(values.timeout ?? DEFAULT_TIMEOUT)
  const result = readSettings(values)
  if (result.kind !== 'settings') {
    if (result.kind === 'mistakes') for (const line of result.lines) printError(line)
    return EXIT_USAGE
  }
  for (const warning of result.warnings) printError(warning)
  const { isBuiltIn } = result.config.chain
  if (isBuiltIn && !result.config.process.demo) {
    printError(noUpstream)
    return EXIT_FAILED
  }
  const builtInChain = isBuiltIn ? await (await import('../../devnet/built-in-chain.ts')).startBuiltInChain() : null
  if (builtInChain) printError('no upstream is set, so this examines the built-in chain: nothing on it is real')
  const now = openSteadyClock(Date.now, () => performance.now())
  const stopProgress = showProgress(process.stderr, timeoutMs)
  const config = builtInChain ? withUpstream(result.config, builtInChain.upstream) : result.config
  const ports = { clock: schedulerOn(now), wallTime: Date.now, random: Math.random }
  const examination = await examine({ config, timeoutMs, ...ports }).finally(stopProgress)
  await builtInChain?.stop()
  const { ok, source, reason } = examination.verdict
  const isColoured = process.stdout.isTTY === true && !process.env.NO_COLOR
  const text = values.json
    ? `${JSON.stringify({ ok, source, reason, checks: examination.findings })}\n`
    : examinationText(examination, { isColoured })
  await new Promise((resolve) => process.stdout.write(text, resolve))
  return ok ? EXIT_OK : EXIT_FAILED
}

const printError = (line: string): void => void process.stderr.write(`stocktape doctor: ${line}\n`)

type DoctorFlags = ReturnType<typeof readFlags<typeof doctorFlags>>['values']

function readTimeoutMs(text: string): number {
  const [, digits, unit] = /^(\d{1,6})(ms|s)$/.exec(text) ?? []
  const ms = Number(digits) * (unit === 's' ? 1_000 : 1)
  const { min, max } = TIMEOUT_BOUNDS_MS
  if (ms >= min && ms <= max) return ms
  throw new UsageError(`--timeout must be a time from ${min}ms to ${max / 1_000}s, such as 10s; it is ${JSON.stringify(text)}`)
}

/** The flags take the place of the variables, so that the doctor and the relay read them alike. */
function readSettings(values: DoctorFlags): ConfigResult {
  const given = settingsByFlag.flatMap(([flag, name]) => {
    const value = values[flag]
    // An empty variable counts as absent, and would start the built-in chain here.
    if (value === '') throw new UsageError(`--${flag} is empty. Try --help.`)
    return value === undefined ? [] : [[name, value]]
  })
  return readConfig([], { ...process.env, ...Object.fromEntries(given) }, { isListOptional: true })
}
