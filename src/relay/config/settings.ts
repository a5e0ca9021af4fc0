import { camelCaseOf } from '../../lib/camel-case.ts'
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
import { anyFilter } from '../../protocol/value-filters.ts'
import { feeds } from './feeds.ts'
import { keyEntries, keysFile, tokenSecret } from './key-settings.ts'
import { networkNames } from './networks.ts'
import { pools, quoteTokens } from './pools.ts'

/** A setting: its default as one would type it, its help text, and the parser of its text. */
type SettingDefinition<Read extends AnyReader, Default extends string | null> = {
  readonly default: Default
  readonly description: string
  readonly read: Read
  /** A secret, or a URL with a key in it: `<NAME>_FILE` may name a file that holds it. */
  readonly mayHoldSecret: boolean
}
type AnyReader = SettingReader<unknown> & { readonly unit?: 'Ms' | 'Bytes'; readonly examples?: string }

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const gibibyte = 2 ** 30

/**
 * Every setting, by the part of the relay that it is for: an environment variable, or the same as a flag. `--help` and
 * `docs/configuration.md` show these texts. `PENDING_POLL` of `chain` is `--pending-poll`, and `config.chain.pendingPollMs`:
 * the code appends the unit.
 */
export const settingGroups = {
  process: {
    PORT: setting('8080', 'port to listen on; 0 takes any free port', integer(0, 65_535)),
    HOST: setting('127.0.0.1', 'address to listen on; the container image sets 0.0.0.0', nonEmptyText),
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
    DEMO: setting(
      'true',
      'whether the built-in chain runs if no upstream is set; its tape is in memory, or in DATA_DIR/demo; the container image sets false',
      bool,
    ),
    FAULTS: setting(
      null,
      'only with the built-in chain: what goes wrong, such as reorg=2%,drop=5%,late=5%,silent=30s,gap; docs/faults.md has all of it',
      requestedFaults,
    ),
    PRE_DRAIN: setting(
      '0',
      'how long the relay still serves after the signal to stop, unready, so that a balancer takes it out first',
      duration(0, hourMs),
    ),
    DRAIN: setting('10s', 'how long the relay may take to stop', duration(0, hourMs)),
    LOG_LEVEL: setting('info', 'debug, info, warn or error', oneOf('debug', 'info', 'warn', 'error')),
  },
  chain: {
    UPSTREAM_RPC_URL: setting(
      null,
      'JSON-RPC over HTTP: URLs separated by commas, tried in order; without it the relay asks UPSTREAM_WS_URL; without both and NETWORK the built-in chain runs',
      urls('http:', 'https:'),
      { mayHoldSecret: true },
    ),
    UPSTREAM_WS_URL: setting(
      null,
      'JSON-RPC over WebSocket: URLs separated by commas, tried in order; without it the relay polls',
      urls('ws:', 'wss:'),
      { mayHoldSecret: true },
    ),
    RECEIPTS_RPC_URL: setting(
      null,
      'JSON-RPC for eth_getBlockReceipts: URLs separated by commas, tried in order; without it the relay asks UPSTREAM_RPC_URL',
      urls('http:', 'https:'),
      { mayHoldSecret: true },
    ),
    NETWORK: setting(null, 'base or base-sepolia: the public endpoints, no key needed; implies CHAIN_ID', oneOf(...networkNames)),
    CHAIN_ID: setting(
      null,
      'the chain id; an upstream with another one is not used; without it the relay asks the upstream at start',
      integer(1, 2 ** 53 - 1),
    ),
    PENDING_POLL: setting('200ms', 'interval of the polls of the pending state when nothing is pushed', duration(10, minuteMs)),
    SILENCE: setting('3s', 'how long an upstream may fail before the source is down', duration(100, hourMs)),
    FINALITY_POLL: setting('10s', 'interval of the polls of the safe and the finalized block', duration(100, hourMs)),
    BACKFILL_LIMIT: setting(
      '6h',
      'how far back the relay reads missed blocks after a restart, in block time',
      duration(0, 366 * dayMs),
    ),
  },
  tokens: {
    STOCKS_API_URL: setting(null, 'base URL of the Tokenized Stocks Read API', url('http:', 'https:'), { mayHoldSecret: true }),
    STOCKS_REFRESH: setting('15s', 'interval at which the token list and the NAVs are read', duration(100, hourMs)),
    NAV_STALE_AFTER: setting('26h', 'a NAV older than this is stale', duration(1, 366 * dayMs)),
    FEEDS: setting(
      null,
      'proxy contract of the price feed of each token: AAPLc=0x… or 0x…=0x…, separated by commas; built in for NETWORK=base',
      feeds,
    ),
    ORACLE_REGISTRY: setting(
      null,
      'contract that says whether the price feed of a token is frozen; built in for NETWORK=base',
      address,
    ),
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
    CALENDAR: setting('XNYS', 'the calendar of the market of the underlying stocks, or none', oneOf('XNYS', 'none')),
  },
  tape: {
    DATA_DIR: setting(
      null,
      'directory of the tape; :memory: keeps nothing; without it ./data, or memory for the built-in chain',
      nonEmptyText,
    ),
    TAPE_RETENTION: setting('24h', 'how long a message stays on the tape', duration(1, 366 * dayMs)),
    TAPE_MAX_MESSAGES: setting('1000000', 'how many messages the tape holds before it deletes old ones', integer(1, 100_000_000)),
    NATS_URL: setting(
      null,
      'NATS with JetStream: URLs separated by commas, with user:password@ or token@ where needed; then the tape is a stream there, for any number of processes, and DATA_DIR has a copy',
      urls('nats:', 'tls:'),
      { mayHoldSecret: true },
    ),
    NATS_CREDENTIALS: setting(null, 'file with the credentials for NATS', readableFile),
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
    MAX_REPLAY: setting('100000', 'messages in one replay; if there are more, a gap comes instead', integer(1, 100_000_000)),
    MAX_CLIENTS: setting('20000', 'how many clients may connect', integer(1, 1_000_000)),
    MAX_CLIENTS_PER_ADDRESS: setting(
      '200',
      'how many clients may connect from one address; for IPv6, a /64 network counts as one address',
      integer(1, 1_000_000),
    ),
    MAX_SELECTIONS: setting(
      '2000',
      `how many different selections with ${anyFilter} may be in use at the same time`,
      integer(1, 1_000_000),
    ),
    TRUSTED_PROXIES: setting(
      null,
      'proxies that are trusted to give the client address in X-Forwarded-For: addresses and ranges such as 10.0.0.0/8, separated by commas',
      ranges,
    ),
    ORIGINS: setting(
      null,
      'origins whose web pages may connect, such as https://example.com, separated by commas; without it pages of every origin may connect',
      origins,
    ),
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
      { mayHoldSecret: true },
    ),
    METRICS_TOKEN: setting(null, 'token that gives access to the metrics from other machines', key, { mayHoldSecret: true }),
    EXPLORER_URL: setting(
      null,
      'block explorer that the board links to, such as https://explorer.example; it opens /address/… and /tx/… there',
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

/** The headings of the groups, for people. */
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

/** All settings by name. */
export const settings: ReadonlyMap<string, AnySetting> = new Map(
  Object.values(settingGroups).flatMap((group) => Object.entries<AnySetting>(group)),
)

/** The setting that names a file with the value of another. */
export const fileSettingOf = <Name extends string>(name: Name): `${Name}_FILE` => `${name}_FILE`

/** All names, and those of the files that may hold a value. */
export const settingNames: readonly string[] = [...settings].flatMap(([name, { mayHoldSecret }]) =>
  mayHoldSecret ? [name, fileSettingOf(name)] : [name],
)

export const flagOf = (name: string): string => name.toLowerCase().replaceAll('_', '-')

/** `PENDING_POLL`, which is a time, in the code: `pendingPollMs`. */
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
  { mayHoldSecret = false } = {},
): SettingDefinition<Read, Default> {
  return { default: fallback, description, read, mayHoldSecret }
}

function streamName(text: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(text)) return text
  throw new SettingError('must be up to 64 letters, digits, - and _')
}
