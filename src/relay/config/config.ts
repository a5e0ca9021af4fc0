import { parseArgs } from 'node:util'
import { requestedFaults } from '../../lib/fault-settings.ts'
import { nearestName } from '../../lib/nearest-name.ts'
import {
  address,
  bool,
  type FeedPair,
  feeds,
  integer,
  key,
  nonEmptyText,
  oneOf,
  origins,
  ranges,
  redacted,
  SecretSettingError,
  SettingError,
  type SettingReader,
  streamName,
  url,
  urls,
} from '../../lib/setting-readers.ts'
import { keyEntries, keysFile, tokenSecret } from './key-settings.ts'
import {
  type NamedPool,
  type PoolSetting,
  poolContradictions,
  pools,
  type QuoteToken,
  quoteTokens,
  withCurrencies,
} from './pool-settings.ts'

/** A setting: its default as one would type it, its help text, and the parser of its text. */
type SettingDefinition<Value, Default extends string | null> = {
  readonly default: Default
  readonly description: string
  readonly read: SettingReader<Value>
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const gibibyte = 2 ** 30

/** Every setting: an environment variable, or the same as a flag. `--help` and the README's table show these texts. */
export const settings = {
  PORT: setting('8080', 'port to listen on; 0 takes any free port', integer(0, 65_535)),
  HOST: setting('127.0.0.1', 'address to listen on; the container image sets 0.0.0.0', nonEmptyText),
  UPSTREAM_RPC_URL: setting(
    null,
    'JSON-RPC over HTTP: URLs separated by commas, tried in order; without it the relay asks UPSTREAM_WS_URL; without both and NETWORK the built-in chain runs',
    urls('http:', 'https:'),
  ),
  UPSTREAM_WS_URL: setting(
    null,
    'JSON-RPC over WebSocket: URLs separated by commas, tried in order; without it the relay polls',
    urls('ws:', 'wss:'),
  ),
  RECEIPTS_RPC_URL: setting(
    null,
    'JSON-RPC for eth_getBlockReceipts: URLs separated by commas, tried in order; without it the relay asks UPSTREAM_RPC_URL',
    urls('http:', 'https:'),
  ),
  STOCKS_API_URL: setting(null, 'base URL of the Tokenized Stocks Read API', url('http:', 'https:')),
  NETWORK: setting(
    null,
    'base or base-sepolia: the public endpoints, no key needed; implies CHAIN_ID',
    oneOf('base', 'base-sepolia'),
  ),
  DEMO: setting(
    'true',
    'whether the built-in chain runs if no upstream is set; its tape is in DATA_DIR/demo; the container image sets false',
    bool,
  ),
  CHAIN_ID: setting(
    null,
    'the chain id; an upstream with another one is not used; without it the relay asks the upstream at start',
    integer(1, 2 ** 53 - 1),
  ),
  FEEDS: setting(
    null,
    'proxy contract of the price feed of each token: AAPLc=0x… or 0x…=0x…, separated by commas; built in for NETWORK=base',
    feeds,
  ),
  CALENDAR: setting('XNYS', 'the calendar of the market of the underlying stocks, or none', oneOf('XNYS', 'none')),
  POOLS: setting(
    null,
    'pools where the tokens trade: AAPLc/USDC=uniswap_v3:0x…, slipstream:0x… or uniswap_v4:0x<pool id>@0x<pool manager>, separated by commas; without /… the first of QUOTE_TOKENS; built in for NETWORK=base',
    pools,
  ),
  QUOTE_TOKENS: setting(
    null,
    'what the tokens trade against, each taken as one dollar: USDC:0x…:6 with the decimals, separated by commas; built in for NETWORK',
    quoteTokens,
  ),
  POOL_MIN_DEPTH: setting('1000', 'a pool with less depth, in units of its currency, gives no price', integer(0, 2 ** 53 - 1)),
  ORACLE_REGISTRY: setting(
    null,
    'contract that says whether the price feed of a token is frozen; built in for NETWORK=base',
    address,
  ),
  DATA_DIR: setting('./data', 'directory of the tape; :memory: keeps nothing', nonEmptyText),
  TAPE_RETENTION_MS: setting('86400000', 'how long a message stays on the tape', integer(1, 366 * dayMs)),
  TAPE_BOUND: setting('1000000', 'how many messages the tape holds before it deletes old ones', integer(1, 100_000_000)),
  NATS_URL: setting(
    null,
    'NATS with JetStream: URLs separated by commas, with user:password@ or token@ where needed; then the tape is a stream there, for any number of processes, and DATA_DIR has a copy',
    urls('nats:', 'tls:'),
  ),
  NATS_CREDENTIALS: setting(null, 'file with the credentials for NATS', nonEmptyText),
  NATS_STREAM: setting('STOCKTAPE', 'name of the stream; its subject is the same in lower case', streamName),
  NATS_REPLICAS: setting('1', 'how many servers of the NATS cluster store the stream', integer(1, 5)),
  ROLE: setting(
    'relay',
    'relay does all; ingest only writes the tape, and serves health, metrics and status; edge only serves it, and needs no upstream',
    oneOf('relay', 'ingest', 'edge'),
  ),
  WORKERS: setting(
    '1',
    'how many processes serve clients on this machine, behind one port; one more writes the tape if it is more than 1',
    integer(1, 64),
  ),
  STOCKS_REFRESH_MS: setting('15000', 'how often the token list and the NAVs are read', integer(100, hourMs)),
  NAV_STALE_MS: setting('93600000', 'a NAV older than this is stale', integer(1, 366 * dayMs)),
  PENDING_POLL_MS: setting('200', 'how often the pending state is polled when nothing is pushed', integer(10, 60_000)),
  SILENCE_MS: setting('3000', 'how long an upstream may fail before the source is down', integer(100, hourMs)),
  FINALITY_POLL_MS: setting('10000', 'how often the safe and the finalized block are polled', integer(100, hourMs)),
  BACKFILL_BOUND_MS: setting(
    '21600000',
    'how far back the relay reads missed blocks after a restart, in milliseconds of block time',
    integer(0, 366 * dayMs),
  ),
  HEARTBEAT_MS: setting('15000', 'default of the heartbeat parameter', integer(100, 60_000)),
  BACKLOG_BOUND_BYTES: setting(
    '1048576',
    'unsent bytes that a client may have; one that has more for longer than BACKLOG_PATIENCE_MS, or 16 times as many, is disconnected as too slow and receives the position to resume from',
    integer(1, gibibyte),
  ),
  BACKLOG_PATIENCE_MS: setting('5000', 'how long a client may have more unsent bytes than BACKLOG_BOUND_BYTES', integer(0, hourMs)),
  CLIENTS_BOUND: setting('20000', 'how many clients may connect', integer(1, 1_000_000)),
  CLIENTS_PER_ADDRESS_BOUND: setting(
    '200',
    'how many clients may connect from one address; for IPv6, a /64 network counts as one address',
    integer(1, 1_000_000),
  ),
  TRUSTED_PROXIES: setting(
    null,
    'proxies that are trusted to give the client address in X-Forwarded-For: addresses and ranges such as 10.0.0.0/8, separated by commas',
    ranges,
  ),
  COMPRESSION: setting('true', 'whether messages are compressed for WebSocket listeners that offer permessage-deflate', bool),
  RPC_RATE: setting(
    '50',
    'JSON-RPC requests per second and address; burst: twice the rate, at least 100; at most a fifth of them may be eth_getLogs',
    integer(1, 1_000_000),
  ),
  RPC_OPEN: setting('false', 'whether eth_subscribe serves contracts that are not listed', bool),
  SELECTIONS_BOUND: setting(
    '2000',
    'how many different selections with min_value, min_shares or party may be in use at the same time',
    integer(1, 1_000_000),
  ),
  REPLAY_BOUND: setting('100000', 'messages in one replay; if there are more, a gap comes instead', integer(1, 100_000_000)),
  API_KEYS: setting(
    null,
    'API keys separated by commas, each as it is or as sha256: and the hex digits of its hash; limits may follow a key, such as clients=500 rpc_rate=100 replays=4; a client must send one of them; without it no key is needed',
    keyEntries,
  ),
  API_KEYS_FILE: setting(
    null,
    'file with more API keys, one in each line; it is read again within a second of a change, and clients of a key that is gone are disconnected',
    keysFile,
  ),
  TOKEN_SECRET: setting(
    null,
    'what the tokens of POST /v1/token are signed with, at least 32 characters; random at each start without it; edges behind one balancer need the same',
    tokenSecret,
  ),
  ORIGINS: setting(
    null,
    'origins whose web pages may connect, such as https://example.com, separated by commas; without it pages of every origin may connect',
    origins,
  ),
  METRICS_TOKEN: setting(null, 'token that gives access to the metrics from other machines', key),
  EXPLORER_URL: setting(
    null,
    'block explorer that the board links to, such as https://explorer.example; it opens /address/… and /tx/… there',
    url('http:', 'https:'),
  ),
  FAULTS: setting(
    null,
    'only with the built-in chain: what goes wrong, such as reorg=2%,drop=5%,late=5%,silent=30s,gap; docs/faults.md has all of it',
    requestedFaults,
  ),
  PRE_DRAIN_MS: setting(
    '0',
    'how long the relay goes on after the signal to stop, unready, so that a balancer takes it out first',
    integer(0, hourMs),
  ),
  DRAIN_MS: setting('10000', 'how long the relay may take to stop', integer(0, hourMs)),
  LOG_LEVEL: setting(
    'info',
    'trace, debug, info, warn, error, fatal or silent',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  ),
} as const

type Settings = typeof settings
type SettingName = keyof Settings
type SettingValue<N extends SettingName> = ReturnType<Settings[N]['read']>

/** The parsed settings; those with a default are always present. */
export type Config = {
  readonly [N in SettingName]: Settings[N]['default'] extends null ? SettingValue<N> | undefined : SettingValue<N>
}

/** Where the relay connects to the chain and reads the list. */
export type UpstreamEndpoints = {
  readonly rpcUrls: readonly string[]
  readonly wsUrls: readonly string[]
  readonly stocksUrl: string
  readonly feeds: readonly FeedPair[]
  readonly pools: readonly PoolSetting[]
  readonly oracleRegistry: `0x${string}` | null
  /** Whether the chain is the built-in one. */
  readonly demo: boolean
}

export type ConfigResult =
  | { readonly kind: 'settings'; readonly config: Config; readonly warnings: readonly string[] }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'version' }
  | { readonly kind: 'mistakes'; readonly lines: readonly string[] }

const flagOf = (name: string): string => name.toLowerCase().replaceAll('_', '-')
const settingNames = Object.keys(settings) as SettingName[]

/** The flags of `serve`. */
export const settingFlags = {
  ...Object.fromEntries(settingNames.map((name) => [flagOf(name), flagDefinition(settings[name])])),
  help: { type: 'boolean', short: 'h', description: 'explain the settings' },
  version: { type: 'boolean', description: 'print the version' },
} as const

function flagDefinition({ description, read }: SettingDefinition<unknown, string | null>) {
  return { type: 'string', description, ...(read.choices && { choices: read.choices }) } as const
}

/**
 * Flags win over the environment, which wins over the defaults. An empty variable counts as absent. `isListOptional` is
 * for a program that examines an upstream alone.
 */
export function readConfig(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  { isListOptional = false }: { readonly isListOptional?: boolean } = {},
): ConfigResult {
  const { flags, requestedInfo, lines } = readFlags(args)
  if (requestedInfo === 'help') return { kind: 'help', text: `stocktape [serve]: run the relay\n\n${settingsText()}` }
  if (requestedInfo === 'version') return { kind: 'version' }
  const values: Record<string, unknown> = {}
  for (const name of settingNames) {
    const given = flags.get(name) ?? (env[name] || settings[name].default)
    if (given === null) continue
    try {
      values[name] = settings[name].read(given)
    } catch (mistake) {
      if (!(mistake instanceof SettingError)) throw mistake
      lines.push(`${name} ${mistake.message}${mistake instanceof SecretSettingError ? '' : `; it is ${redacted(given)}`}`)
    }
  }
  lines.push(...refusedVariables(env))
  const config = values as Config
  if (lines.length === 0) lines.push(...contradictions(config, isListOptional))
  if (lines.length > 0) return { kind: 'mistakes', lines }
  return { kind: 'settings', config: withShortTape(withChainOfNetwork(config)), warnings: misspeltVariables(env) }
}

/** The chain ids of the networks. */
const networkChainIds = { base: 8_453, 'base-sepolia': 84_532 } as const

/** USDC of the networks. */
const networkQuoteTokens: Readonly<Record<keyof typeof networkChainIds, readonly QuoteToken[]>> = {
  base: [{ symbol: 'USDC', address: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', decimals: 6 }],
  'base-sepolia': [{ symbol: 'USDC', address: '0x036cbd53842c5426634e7929541ec2318f3dcf7e', decimals: 6 }],
}

const quoteTokensOf = ({ QUOTE_TOKENS, NETWORK }: Config): readonly QuoteToken[] =>
  QUOTE_TOKENS ?? (NETWORK ? networkQuoteTokens[NETWORK] : [])

/** The pools of the settings, or else those that are built in. */
export const configuredPools = (config: Config, builtIn: readonly NamedPool[]): readonly PoolSetting[] =>
  withCurrencies(config.POOLS ?? builtIn, quoteTokensOf(config))

const withChainOfNetwork = (config: Config): Config =>
  config.NETWORK === undefined ? config : { ...config, CHAIN_ID: networkChainIds[config.NETWORK] }

/** With the fault `gap` the tape is shorter than the absence of the relay, so that a client that returns has missed something. */
const withShortTape = (config: Config): Config =>
  config.FAULTS?.gap === undefined
    ? config
    : { ...config, TAPE_RETENTION_MS: Math.min(config.TAPE_RETENTION_MS, Math.ceil(config.FAULTS.gap.lengthMs / 2)) }

/** A variable that begins like this is meant for the relay: a misspelt one must not start the built-in chain instead. */
const OWN_PREFIX = /^(UPSTREAM|STOCKS|TAPE|TRUSTED|BACKLOG)_/
/** Container platforms set such variables for each service that they run. */
const SERVICE_LINK = /_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT$|_PORT_\d+_(TCP|UDP)(_\w+)?$/
/** The nearest setting is named up to this many edits. */
const SUGGESTION_BOUND_EDITS = 8
const FLAG_SUGGESTION_BOUND_EDITS = 2
/** Shorter names are likely to be those of other programs. */
const MIN_MISSPELT_CHARS = 6

const unknownVariables = (env: Readonly<Record<string, string | undefined>>): readonly string[] =>
  Object.keys(env).filter((name) => env[name] && !settingNames.some((known) => known === name) && !SERVICE_LINK.test(name))

const refusedVariables = (env: Readonly<Record<string, string | undefined>>): readonly string[] =>
  unknownVariables(env)
    .filter((name) => OWN_PREFIX.test(name))
    .map((name) => `${oneLine(name)} is not a setting.${suggestionFor(name, settingNames, SUGGESTION_BOUND_EDITS)} Try --help.`)

/** Variables of other programs pass. One that is a single edit away from a setting is worth a warning. */
const misspeltVariables = (env: Readonly<Record<string, string | undefined>>): readonly string[] =>
  unknownVariables(env).flatMap((name) => {
    const nearest = nearestName(
      name,
      settingNames.filter((known) => known.length >= MIN_MISSPELT_CHARS),
      1,
    )
    return nearest === undefined ? [] : [`${oneLine(name)} is set, and is not a setting. Did you mean ${nearest}?`]
  })

const suggestionFor = (name: string, known: readonly string[], bound: number): string => {
  const nearest = nearestName(name, known, bound)
  return nearest === undefined ? '' : ` Did you mean ${nearest}?`
}

type Flags = {
  readonly flags: ReadonlyMap<string, string>
  readonly requestedInfo: 'help' | 'version' | null
  readonly lines: string[]
}

function readFlags(args: readonly string[]): Flags {
  const { tokens } = parseArgs({ args: [...args], options: settingFlags, strict: false, allowPositionals: true, tokens: true })
  const flags = new Map<string, string>()
  const lines: string[] = []
  let requestedInfo: Flags['requestedInfo'] = null
  for (const token of tokens) {
    if (token.kind === 'positional') lines.push(`'${oneLine(token.value)}' is not a flag. Try --help.`)
    if (token.kind !== 'option') continue
    const name = settingNames.find((one) => flagOf(one) === token.name)
    if (token.name === 'help' || token.name === 'version') requestedInfo ??= token.name
    else if (!name) lines.push(`'${oneLine(token.rawName)}' is not a setting.${flagSuggestionFor(token.rawName)} Try --help.`)
    else if (token.value === undefined || token.value.startsWith('--')) lines.push(`'${token.rawName}' needs a value. Try --help.`)
    else flags.set(name, token.value)
  }
  return { flags, requestedInfo, lines }
}

const flagSuggestionFor = (rawName: string): string =>
  suggestionFor(
    rawName,
    settingNames.map((name) => `--${flagOf(name)}`),
    FLAG_SUGGESTION_BOUND_EDITS,
  )

const oneLine = (text: string): string => text.replace(/\s+/g, ' ')

/** Settings that are valid alone and contradict each other. */
function contradictions(config: Config, isListOptional: boolean): string[] {
  const { NETWORK: network, CHAIN_ID: chainId } = config
  const lines = [...poolContradictions(config.POOLS ?? [], quoteTokensOf(config))]
  if (config.ROLE !== 'relay' && config.NATS_URL === undefined)
    lines.push(`NATS_URL is missing: ROLE ${config.ROLE} shares the tape with other processes through NATS`)
  const upstream = (['NETWORK', 'UPSTREAM_RPC_URL', 'UPSTREAM_WS_URL'] as const).find((name) => config[name] !== undefined)
  if (config.FAULTS !== undefined && upstream !== undefined)
    lines.push(`FAULTS works only with the built-in chain: leave it out, or leave out ${upstream}`)
  if (config.ROLE === 'ingest' && config.WORKERS > 1)
    lines.push('WORKERS serve clients, and ROLE ingest has none: leave one of them out')
  if (network !== undefined) {
    const implied = networkChainIds[network]
    if (chainId !== undefined && chainId !== implied)
      lines.push(`CHAIN_ID ${chainId} contradicts NETWORK ${network}, whose chain id is ${implied}: leave one of them out`)
    return lines
  }
  if (config.UPSTREAM_RPC_URL === undefined && config.UPSTREAM_WS_URL === undefined) {
    if (config.STOCKS_API_URL !== undefined) lines.push('UPSTREAM_RPC_URL is missing: STOCKS_API_URL needs an upstream beside it')
    return lines
  }
  if (config.STOCKS_API_URL === undefined && !isListOptional && config.ROLE !== 'edge')
    lines.push('STOCKS_API_URL is missing: the relay learns from the list which tokens to follow')
  return lines
}

/** Every setting with its default and meaning. */
export const settingsText = (): string =>
  [
    'Each setting is an environment variable or a flag. Without any, a built-in chain runs.',
    '',
    ...settingNames.map((name) => {
      const { default: fallback, description } = settings[name]
      return `  --${flagOf(name).padEnd(22)} ${name.padEnd(20)} ${description}${fallback === null ? '' : ` (${fallback})`}`
    }),
    '',
  ].join('\n')

function setting<Value, Default extends string | null>(
  fallback: Default,
  description: string,
  read: SettingReader<Value>,
): SettingDefinition<Value, Default> {
  return { default: fallback, description, read }
}
