import { requestedFaults } from '../../lib/fault-settings.ts'
import {
  address,
  bool,
  duration,
  integer,
  key,
  nonEmptyText,
  oneOf,
  origins,
  ranges,
  readableFile,
  SettingError,
  type SettingReader,
  size,
  url,
  urls,
} from '../../lib/setting-readers.ts'
import { camelCaseOf } from '../../lib/text.ts'
import { anyFilter } from '../../protocol/parameters/value-filters.ts'
import { keyEntries, keysFile, tokenSecret } from './api-key-settings.ts'
import { feeds } from './feed-settings.ts'
import { networkNames } from './networks.ts'
import { pools, quoteTokens } from './pool-settings.ts'

/** A setting and its reader. `default` is a text, as the environment would contain it; null if there is none. */
type SettingDefinition<Read extends AnyReader, Default extends string | null> = {
  readonly default: Default
  readonly description: string
  readonly read: Read
  /** Whether the value may contain a secret, so that `<NAME>_FILE` may name a file that contains the value. */
  readonly mayHoldSecret: boolean
}
type AnyReader = SettingReader<unknown> & { readonly unit?: 'Ms' | 'Bytes'; readonly examples?: string }

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const gibibyte = 2 ** 30

/**
 * Settings by the part of the relay that reads them. `--help` and `docs/configuration.md` show these texts. `PENDING_POLL` of
 * `chain` is also the flag `--pending-poll`, and `config.chain.pendingPollMs` in the code, which appends the unit.
 */
export const settingGroups = {
  process: {
    PORT: setting('8080', 'port to listen on; 0 takes any free port', integer(0, 65_535)),
    HOST: setting('127.0.0.1', 'address to listen on; the container image sets 0.0.0.0', nonEmptyText),
    METRICS_PORT: optional(
      'port of its own for the metrics, at the address of HOST; it needs no access token, and PORT then has no metrics',
      integer(1, 65_535),
    ),
    ROLE: setting(
      'relay',
      'relay does all; ingest only writes the tape, and serves health, metrics and status; edge only serves it, and needs no upstream',
      oneOf('relay', 'ingest', 'edge'),
    ),
    WORKERS: setting(
      '1',
      'number of processes that serve clients on this machine, behind one port; if it is more than 1, one more process writes the tape',
      integer(1, 64),
    ),
    DEMO: setting(
      'true',
      'whether the built-in chain runs if no upstream is set; its tape is in memory, or in DATA_DIR/demo; the container image sets false',
      bool,
    ),
    FAULTS: optional(
      'faults of the built-in chain, such as reorg=2%,drop=5%,late=5%,silent=30s,gap; docs/faults.md explains all of them',
      requestedFaults,
    ),
    PRE_DRAIN: setting(
      '0',
      'how long the relay still serves, unready, after the signal to stop: the time that a load balancer needs to react',
      duration(0, hourMs),
    ),
    DRAIN: setting('10s', 'how long the relay may take to stop', duration(0, hourMs)),
    LOG_LEVEL: setting('info', 'debug, info, warn or error', oneOf('debug', 'info', 'warn', 'error')),
    LOG_FORMAT: optional('json or text; without it text on a terminal, and json elsewhere', oneOf('json', 'text')),
  },
  chain: {
    UPSTREAM_RPC_URL: secret(
      'JSON-RPC over HTTP: URLs separated by commas, tried in order; without it the relay asks UPSTREAM_WS_URL; without any of these two and NETWORK, the built-in chain runs',
      urls('http:', 'https:'),
    ),
    UPSTREAM_WS_URL: secret(
      'JSON-RPC over WebSocket: URLs separated by commas, tried in order; without it the relay polls',
      urls('ws:', 'wss:'),
    ),
    RECEIPTS_RPC_URL: secret(
      'JSON-RPC for eth_getBlockReceipts: URLs separated by commas, tried in order; without it the relay asks UPSTREAM_RPC_URL',
      urls('http:', 'https:'),
    ),
    NETWORK: optional('base or base-sepolia: the public endpoints, no key needed; implies CHAIN_ID', oneOf(...networkNames)),
    CHAIN_ID: optional(
      'the chain id; an upstream with another one is not used; without it the relay asks the upstream at start',
      integer(1, 2 ** 53 - 1),
    ),
    PENDING_POLL: setting('200ms', 'interval of the polls of the pending state when nothing is pushed', duration(10, minuteMs)),
    SILENCE: setting(
      '3s',
      'how long the upstream may answer nothing, or be late, before the status says so',
      duration(100, hourMs),
    ),
    FINALITY_POLL: setting('10s', 'interval of the polls of the safe and the finalized block', duration(100, hourMs)),
    BACKFILL_FIRST: setting(
      '0',
      'how far back in block time a relay with an empty tape begins, at most BACKFILL_LIMIT; 6h with the built-in chain',
      duration(0, 366 * dayMs),
    ),
    BACKFILL_LIMIT: setting('6h', 'how far back in block time missed blocks are read', duration(0, 366 * dayMs)),
  },
  tokens: {
    STOCKS_API_URL: secret('base URL of the Tokenized Stocks Read API', url('http:', 'https:')),
    STOCKS_REFRESH: setting('15s', 'interval at which the token list and the NAVs are read', duration(100, hourMs)),
    NAV_STALE_AFTER: setting('26h', 'a NAV older than this is stale', duration(1, 366 * dayMs)),
    FEEDS: optional(
      'proxy contract of the price feed of each token: AAPLc=0x… or 0x…=0x…, separated by commas; built in for NETWORK=base',
      feeds,
    ),
    ORACLE_REGISTRY: optional('contract that says whether the price feed of a token is frozen; built in for NETWORK=base', address),
    POOLS: optional(
      'pools where the tokens trade, for quotes and trades: AAPLc/USDC=uniswap_v3:0x…, slipstream:0x…, uniswap_v4:0x<pool id>@0x<pool manager> or uniswap_v4:<fee>/<tick spacing>/<hooks or none>@0x<pool manager> with the fee in hundredths of a basis point, separated by commas; without /USDC the first of QUOTE_TOKENS; built in for NETWORK=base',
      pools,
    ),
    QUOTE_TOKENS: optional(
      'what the tokens trade against, each taken as one dollar: USDC:0x…:6 with the decimals, separated by commas; built in for NETWORK',
      quoteTokens,
    ),
    POOL_MIN_DEPTH: setting('1000', 'a pool with less depth, in units of its currency, gives no price', integer(0, 2 ** 53 - 1)),
    CALENDAR: setting('XNYS', 'the calendar of the market of the underlying stocks, or none', oneOf('XNYS', 'none')),
  },
  tape: {
    DATA_DIR: optional('directory of the tape, or :memory:; without it ./data, or memory for the built-in chain', nonEmptyText),
    TAPE_RETENTION: setting('30d', 'how long a message stays on the tape', duration(1, 366 * dayMs)),
    BARS_RETENTION: setting('400d', 'how long bars are kept, whatever the tape keeps', duration(60_000, 3_660 * dayMs)),
    TAPE_MAX_MESSAGES: setting(
      '1000000',
      'limit of messages on the tape, which deletes the oldest beyond it; without it 100000 for the built-in chain in memory',
      integer(1, 100_000_000),
    ),
    NATS_URL: secret(
      'NATS with JetStream: URLs separated by commas, with user:password@ or token@ if needed; the tape is then a stream in NATS, for any number of processes, and DATA_DIR contains a copy',
      urls('nats:', 'tls:'),
    ),
    NATS_CREDENTIALS: optional('file with the credentials for NATS', readableFile),
    NATS_STREAM: setting('STOCKTAPE', 'name of the stream; its subject is the same in lower case', streamName),
    NATS_REPLICAS: setting('1', 'how many servers of the NATS cluster store the stream', integer(1, 5)),
  },
  edge: {
    HEARTBEAT: setting('15s', 'default of the heartbeat parameter', duration(100, minuteMs)),
    COMPRESSION: setting('true', 'whether messages are compressed for WebSocket listeners that offer permessage-deflate', bool),
    MAX_BACKLOG: setting(
      '1MiB',
      'unsent bytes that a client may have; one that has more for longer than BACKLOG_PATIENCE, or 16 times as many, is disconnected as too slow and receives the position to resume from',
      size(1, gibibyte),
    ),
    BACKLOG_PATIENCE: setting('5s', 'how long a client may have more unsent bytes than MAX_BACKLOG', duration(0, hourMs)),
    MAX_REPLAY: setting(
      '100000',
      'limit of messages in one replay; a client that misses more receives a gap',
      integer(1, 100_000_000),
    ),
    MAX_CLIENTS: setting('20000', 'limit of connected clients', integer(1, 1_000_000)),
    MAX_CLIENTS_PER_ADDRESS: setting('200', 'limit for one address; an IPv6 /64 network is one address', integer(1, 1_000_000)),
    MAX_SELECTIONS: setting('2000', `limit of different selections with ${anyFilter} at a time`, integer(1, 1_000_000)),
    TRUSTED_PROXIES: optional(
      'proxies that are trusted to give the client address in X-Forwarded-For: addresses and ranges such as 10.0.0.0/8, separated by commas',
      ranges,
    ),
    ORIGINS: optional(
      'origins whose web pages may connect, such as https://example.com, separated by commas; without it pages of every origin may connect',
      origins,
    ),
    API_KEYS: optional(
      'API keys separated by commas, each in plain text of at least 16 characters, or as sha256: and the hex digits of its hash; a name for the metrics and limits may follow a key, such as name=desk clients=500 rpc_rate=100 replays=4; with this setting, a client must send one of the keys; stocktape key makes one',
      keyEntries,
    ),
    API_KEYS_FILE: optional(
      'file with more API keys, one in each line; the relay reads it again within a second of a change, and disconnects clients whose API key was removed',
      keysFile,
    ),
    TOKEN_SECRET: secret(
      'secret that signs the access tokens of POST /v1/token, at least 32 characters; random at each start without it; relays behind one load balancer need the same one',
      tokenSecret,
    ),
    METRICS_TOKEN: secret('access token for the metrics, for requests from other machines', key),
    EXPLORER_URL: optional(
      'block explorer that the board links to, such as https://explorer.example; it opens the pages /address/… and /tx/… there',
      url('http:', 'https:'),
    ),
  },
  gateway: {
    RPC_RATE: setting(
      '50',
      'JSON-RPC requests per second and address; burst: twice the rate, at least 100; at most a fifth of them may be eth_getLogs',
      integer(1, 1_000_000),
    ),
  },
} as const

export const groupTitles: Readonly<Record<keyof typeof settingGroups, string>> = {
  process: 'The process',
  chain: 'The chain',
  tokens: 'Tokens, reference values and pools',
  tape: 'The tape',
  edge: 'Clients',
  gateway: 'JSON-RPC',
}

export type SettingGroups = typeof settingGroups
export type AnySetting = SettingDefinition<AnyReader, string | null>

export const settings: ReadonlyMap<string, AnySetting> = new Map(
  Object.values(settingGroups).flatMap((group) => Object.entries<AnySetting>(group)),
)

export const fileSettingOf = <Name extends string>(name: Name): `${Name}_FILE` => `${name}_FILE`

/** Names of all settings, including those such as NATS_URL_FILE, which name a file with the value of a setting. */
export const settingNames: readonly string[] = [...settings].flatMap(([name, { mayHoldSecret }]) =>
  mayHoldSecret ? [name, fileSettingOf(name)] : [name],
)

export const flagOf = (name: string): string => name.toLowerCase().replaceAll('_', '-')

/** Name of a setting in the code: the setting `PENDING_POLL`, a time, is `pendingPollMs`. */
export type CodeName<
  Name extends string,
  Setting,
> = `${CamelCase<Name>}${Setting extends { readonly read: { readonly unit: infer Unit extends string } } ? Unit : ''}`
type CamelCase<Name extends string> = Name extends `${infer First}_${infer Others}`
  ? `${Lowercase<First>}${Capitalize<CamelCase<Others>>}`
  : Lowercase<Name>
export const codeNameOf = (name: string, { read }: AnySetting): string => `${camelCaseOf(name)}${read.unit ?? ''}`

function setting<const Read extends AnyReader, Default extends string | null>(
  fallback: Default,
  description: string,
  read: Read,
): SettingDefinition<Read, Default> {
  return { default: fallback, description, read, mayHoldSecret: false }
}

function optional<const Read extends AnyReader>(description: string, read: Read): SettingDefinition<Read, null> {
  return setting(null, description, read)
}

function secret<const Read extends AnyReader>(description: string, read: Read): SettingDefinition<Read, null> {
  return { ...optional(description, read), mayHoldSecret: true }
}

function streamName(text: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(text)) return text
  throw new SettingError('must be up to 64 letters, digits, - and _')
}
