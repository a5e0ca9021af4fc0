import { type Command, EXIT_FAILED, EXIT_OK, UsageError } from '../../lib/exit-codes.ts'
import { type CommandFlags, commonFlags, readFlags, switchFlag, textFlag } from '../../lib/flags.ts'
import { flagTerms, helpText } from '../../lib/help.ts'
import { duration, SettingError } from '../../lib/setting-readers.ts'
import { openSteadyClock, schedulerOn } from '../../lib/steady-clock.ts'
import { readConfig, withUpstream } from '../../relay/config/config.ts'
import { withColours, withoutColours } from '../terminal-colours.ts'
import { examine } from './examination.ts'
import { examinationText, showProgress } from './terminal-report.ts'

export const doctorFlags = {
  rpc: textFlag('JSON-RPC over HTTP, as UPSTREAM_RPC_URL'),
  ws: textFlag('JSON-RPC over WebSocket, as UPSTREAM_WS_URL'),
  stocks: textFlag('base URL of the Tokenized Stocks Read API, as STOCKS_API_URL'),
  network: { ...textFlag('base or base-sepolia, as NETWORK: the public endpoints'), choices: ['base', 'base-sepolia'] },
  receipts: textFlag('JSON-RPC for eth_getBlockReceipts, as RECEIPTS_RPC_URL'),
  timeout: textFlag('limit of the time for the examination: 500ms, 10s (10s)'),
  json: switchFlag('one JSON object: ok, source, reason, checks'),
  'env-file': textFlag('a file of NAME=value lines with settings of the relay'),
  ...commonFlags,
} as const satisfies CommandFlags

const help = helpText(
  'stocktape doctor [--rpc URL[,URL]] [--ws URL[,URL]] [--stocks URL] [--network base|base-sepolia]\n    [--receipts URL] [--env-file PATH] [--timeout 10s] [--json]',
  'Examines the upstreams of a relay: what they answer, which source the relay would use and why, and what to change. Without flags it reads the settings of the relay from the environment. Without any, it examines the built-in chain.',
  flagTerms(doctorFlags),
  '✓ ok, ! works with a restriction, ✗ does not work, - not known. It prints only scheme, host and port of a URL.\nExit codes: 0 the relay can run on these, 1 it cannot, 2 a mistake in the arguments or settings.',
)

const settingsByFlag = [
  ['rpc', 'upstream-rpc-url'],
  ['ws', 'upstream-ws-url'],
  ['stocks', 'stocks-api-url'],
  ['network', 'network'],
  ['receipts', 'receipts-rpc-url'],
  ['env-file', 'env-file'],
] as const

const DEFAULT_TIMEOUT = '10s'
const MIN_TIMEOUT_MS = 100
const MAX_TIMEOUT_MS = 300_000

export const doctor: Command = async (args) => {
  const { values } = readFlags(doctorFlags, args, { help })
  const timeoutMs = readTimeoutMs(values.timeout ?? DEFAULT_TIMEOUT)
  const result = readConfig(settingFlagsOf(values), process.env, { isListOptional: true })
  if (result.kind !== 'settings') throw new UsageError(result.kind === 'mistakes' ? result.lines.join('\n') : result.kind)
  for (const warning of result.warnings) printError(warning)
  const builtInChain = result.config.chain.isBuiltIn ? await (await import('../../devnet/devnet.ts')).startBuiltInChain() : null
  if (builtInChain) printError('no upstream is set, so this examines the built-in chain: nothing on it is real')
  const now = openSteadyClock(Date.now, () => performance.now())
  const stopProgress = showProgress(process.stderr, timeoutMs)
  const config = builtInChain ? withUpstream(result.config, builtInChain.upstream) : result.config
  const ports = { clock: schedulerOn(now), wallTime: Date.now, random: Math.random }
  const examination = await examine({ config, timeoutMs, ...ports }).finally(stopProgress)
  await builtInChain?.stop()
  const { ok, source, reason } = examination.verdict
  const paint = process.stdout.isTTY && !process.env.NO_COLOR ? withColours : withoutColours
  const text = values.json
    ? `${JSON.stringify({ ok, source, reason, checks: examination.findings })}\n`
    : examinationText(examination, paint)
  await new Promise((resolve) => process.stdout.write(text, resolve))
  return ok ? EXIT_OK : EXIT_FAILED
}

const printError = (line: string): void => void process.stderr.write(`stocktape doctor: ${line}\n`)

function readTimeoutMs(text: string): number {
  try {
    return duration(MIN_TIMEOUT_MS, MAX_TIMEOUT_MS)(text)
  } catch (mistake) {
    throw mistake instanceof SettingError ? new UsageError(`--timeout ${mistake.message}; it is ${JSON.stringify(text)}`) : mistake
  }
}

/** Turns each flag of the doctor into the relay's flag for the setting, so that both read the value alike. */
const settingFlagsOf = (values: ReturnType<typeof readFlags<typeof doctorFlags>>['values']): readonly string[] =>
  settingsByFlag.flatMap(([flag, setting]) => {
    const value = values[flag]
    if (value === '') throw new UsageError(`--${flag} is empty. Try --help.`)
    return value === undefined ? [] : [`--${setting}=${value}`]
  })
