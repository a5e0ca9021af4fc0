import { BlockList, isIP } from 'node:net'
import { parseArgs } from 'node:util'

/** What one setting is: its default as it would be typed, what it means, and how its text is read. */
type Setting<Value, Default extends string | null> = {
  readonly default: Default
  readonly about: string
  readonly read: (text: string) => Value
}

/** The text of a setting cannot be read; the message says what it must be. */
class BadSetting extends Error {}
/** One whose text must not be printed. */
class BadSecret extends BadSetting {}

const whole =
  (least: number, most: number) =>
  (text: string): number => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new BadSetting(`must be a whole number from ${least.toLocaleString('en')} to ${most.toLocaleString('en')}`)
  }

const url =
  (...schemes: readonly string[]) =>
  (text: string): string => {
    const parsed = URL.canParse(text) ? new URL(text) : null
    if (parsed && schemes.includes(parsed.protocol)) return text.replace(/\/+$/, '')
    throw new BadSetting(`must be a URL that begins with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}`)
  }

/** What a comma list names. Empty items are forgiven, an empty list is not: its one item is then found wanting. */
const itemsOf = (text: string): readonly string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item, _, all) => item !== '' || all.every((other) => other === ''))

const urls =
  (...schemes: readonly string[]) =>
  (text: string): readonly string[] =>
    itemsOf(text).map(url(...schemes))

const oneOf =
  <const Names extends readonly string[]>(...names: Names) =>
  (text: string): Names[number] => {
    const name = names.find((known) => known === text)
    if (name !== undefined) return name
    throw new BadSetting(`must be one of ${names.join(', ')}`)
  }

function truth(text: string): boolean {
  if (text === 'true' || text === 'false') return text === 'true'
  throw new BadSetting('must be true or false')
}

/** A token by its symbol or its address, and the contract that publishes what it is worth. */
type FeedSetting = { readonly token: string; readonly proxy: `0x${string}` }

function feeds(text: string): readonly FeedSetting[] {
  const named = itemsOf(text).map(feed)
  const twice = named.find(({ token }, index) => named.findIndex((other) => sameName(other.token, token)) < index)
  if (twice) throw new BadSetting(`must name each token once, and ${shown(twice.token)} comes twice`)
  return named
}

function feed(item: string): FeedSetting {
  const [token = '', proxy = '', ...others] = item.split('=').map((part) => part.trim())
  if (token === '' || proxy === '' || others.length > 0)
    throw new BadSetting(`must be pairs such as AAPLc=0x…, and ${shown(item)} is none`)
  const address = addressOf(proxy)
  if (address === null) throw new BadSetting(`must name the address of a feed, and ${shown(item)} does not`)
  if (/^0x/i.test(token) && addressOf(token) === null)
    throw new BadSetting(`must name a token by its symbol or its address, and ${shown(item)} does not`)
  return { token: addressOf(token) ?? token, proxy: address }
}

const sameName = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

const addressOf = (text: string): `0x${string}` | null =>
  /^0x[0-9a-f]{40}$/i.test(text) && /[1-9a-f]/i.test(text) ? `0x${text.slice(2).toLowerCase()}` : null

/** Origins as a browser says them: scheme, host and port, nothing behind. */
const origins = (text: string): readonly string[] =>
  itemsOf(text).map((item) => {
    const { origin, href } = URL.canParse(item) ? new URL(item) : { origin: 'null', href: '' }
    if (origin !== 'null' && href === `${origin}/`) return origin
    throw new BadSetting(`must be origins such as https://example.com, and ${shown(item)} is none`)
  })

const keys = (given: string): readonly string[] => itemsOf(given).map(key)

/** Never shown, not even where it is wrong. */
function key(given: string): string {
  if (/^[!-~]+$/.test(given)) return given
  throw new BadSecret('must be letters, digits and signs without spaces')
}

/** Addresses and ranges of them, in one list that can be asked whether it holds an address. */
function ranges(text: string): BlockList {
  const list = new BlockList()
  for (const item of itemsOf(text)) {
    const [address = '', bits, ...others] = item.split('/')
    const version = isIP(address)
    const most = version === 6 ? 128 : 32
    const counted = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN
    if (version === 0 || others.length > 0 || !(counted <= most))
      throw new BadSetting(`must be addresses or ranges such as 10.0.0.0/8, and ${shown(item)} is neither`)
    list.addSubnet(address, counted, version === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

const text = (value: string): string => {
  if (value.trim() === '') throw new BadSetting('must not be empty')
  return value
}

const hour = 3_600_000
const day = 24 * hour
const bytes = 2 ** 30

const setting = <Value, Default extends string | null>(
  fallback: Default,
  about: string,
  read: (text: string) => Value,
): Setting<Value, Default> => ({ default: fallback, about, read })

/** Every setting: an environment variable, or the same as a flag. The help text and the README's table are this table. */
export const settings = {
  PORT: setting('8080', 'port to listen on; 0 takes any free one', whole(0, 65_535)),
  HOST: setting('127.0.0.1', 'address to listen on; the container image sets 0.0.0.0', text),
  UPSTREAM_RPC_URL: setting(
    null,
    'JSON-RPC over HTTP, a comma list tried in order; without it and without NETWORK the built-in chain runs',
    urls('http:', 'https:'),
  ),
  UPSTREAM_WS_URL: setting(
    null,
    'JSON-RPC over WebSocket, a comma list tried in order; without it the relay polls',
    urls('ws:', 'wss:'),
  ),
  RECEIPTS_RPC_URL: setting(
    null,
    'who answers eth_getBlockReceipts, a comma list tried in order; without it the upstream does, or refuses',
    urls('http:', 'https:'),
  ),
  STOCKS_API_URL: setting(null, 'base URL of the Tokenized Stocks Read API', url('http:', 'https:')),
  NETWORK: setting(null, 'base or base-sepolia: the public endpoints, no key needed', oneOf('base', 'base-sepolia')),
  CHAIN_ID: setting(null, 'refuse an upstream of another chain; asked at start if not given', whole(1, 2 ** 53 - 1)),
  FEEDS: setting(
    null,
    'price feed proxies, AAPLc=0x… or 0x…=0x… for each token, a comma list; built in for the network base',
    feeds,
  ),
  DATA_DIR: setting('./data', 'folder of the tape; :memory: keeps nothing', text),
  TAPE_RETENTION_MS: setting('86400000', 'how long the tape is kept', whole(1, 366 * day)),
  TAPE_BOUND: setting('1000000', 'how many updates the tape keeps', whole(1, 100_000_000)),
  STOCKS_REFRESH_MS: setting('15000', 'how often the list and the NAVs are read', whole(100, hour)),
  NAV_STALE_MS: setting('93600000', 'a NAV older than this is stale', whole(1, 366 * day)),
  PENDING_POLL_MS: setting(
    '200',
    'how often the pending state is asked for where nothing is pushed',
    whole(10, 60_000),
  ),
  SILENCE_MS: setting('3000', 'how long an upstream may fail before the source is called down', whole(100, hour)),
  FINALITY_POLL_MS: setting('10000', 'how often the safe and the finalized block are asked for', whole(100, hour)),
  BACKFILL_BOUND_MS: setting('21600000', 'how far back a restart catches up, in chain time', whole(0, 366 * day)),
  HEARTBEAT_MS: setting('15000', 'default of the heartbeat parameter', whole(100, 60_000)),
  BACKLOG_BOUND_BYTES: setting(
    '262144',
    'a listener with more bytes unsent is shown out with its position',
    whole(1, bytes),
  ),
  CLIENTS_BOUND: setting('20000', 'how many listeners may be connected', whole(1, 1_000_000)),
  CLIENTS_PER_ADDRESS_BOUND: setting(
    '200',
    'how many of them from one address; IPv6 counts per /64',
    whole(1, 1_000_000),
  ),
  TRUSTED_PROXIES: setting(
    null,
    'whose X-Forwarded-For says where a client comes from: addresses and ranges, 10.0.0.0/8, a comma list',
    ranges,
  ),
  RPC_RATE: setting(
    '50',
    'how many JSON-RPC requests an address may make in a second; of them a fifth eth_getLogs',
    whole(1, 1_000_000),
  ),
  RPC_OPEN: setting('false', 'whether eth_subscribe serves contracts that are not listed', truth),
  SELECTIONS_BOUND: setting('2000', 'how many distinct selections with value filters are served', whole(1, 1_000_000)),
  REPLAY_BOUND: setting('100000', 'messages in one replay; a longer one is a gap', whole(1, 100_000_000)),
  API_KEYS: setting(null, 'whoever listens must bear one of these, a comma list; without it nobody needs a key', keys),
  ORIGINS: setting(
    null,
    'of which origins web pages may listen, https://example.com, a comma list; without it of all',
    origins,
  ),
  METRICS_TOKEN: setting(null, 'whoever bears it is given the metrics on other machines too', key),
  DRAIN_MS: setting('10000', 'how long stopping may take', whole(0, hour)),
  LOG_LEVEL: setting(
    'info',
    'trace, debug, info, warn, error, fatal or silent',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  ),
} as const

type Settings = typeof settings
type Name = keyof Settings
type Value<N extends Name> = ReturnType<Settings[N]['read']>

/** The settings as read: those that have a default are always there. */
export type Config = {
  readonly [N in Name]: Settings[N]['default'] extends null ? Value<N> | undefined : Value<N>
}

/** What the command line and the environment ask for: a start with settings, the help text, or one line per mistake. */
export type Reading =
  | { readonly kind: 'settings'; readonly config: Config }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'version' }
  | { readonly kind: 'mistakes'; readonly lines: readonly string[] }

const flagOf = (name: string): string => name.toLowerCase().replaceAll('_', '-')
const names = Object.keys(settings) as Name[]

/** Reads flags first, then the environment, then the defaults. An empty variable counts as not given. */
export function readConfig(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Reading {
  const { flags, asked, lines } = readFlags(args)
  if (asked === 'help') return { kind: 'help', text: helpText() }
  if (asked === 'version') return { kind: 'version' }
  const values: Record<string, unknown> = {}
  for (const name of names) {
    const given = flags.get(name) ?? (env[name] || settings[name].default)
    if (given === null) continue
    try {
      values[name] = settings[name].read(given)
    } catch (mistake) {
      if (!(mistake instanceof BadSetting)) throw mistake
      lines.push(`${name} ${mistake.message}${mistake instanceof BadSecret ? '' : `; it is ${shown(given)}`}`)
    }
  }
  const config = values as Config
  if (lines.length === 0) lines.push(...contradictions(config))
  return lines.length > 0 ? { kind: 'mistakes', lines } : { kind: 'settings', config }
}

/** A value as it may be printed: of a URL neither the user nor the path, which may hold a key. */
const shown = (given: string): string =>
  JSON.stringify(
    given.replace(/:\/\/(?:[^/@,\s]*@)?([^/?#,\s]*)([^,\s]*)/g, (_, host, rest) => `://${host}${rest && '/…'}`),
  )

type Flags = {
  readonly flags: ReadonlyMap<string, string>
  /** What is wanted instead of a start. */
  readonly asked: 'help' | 'version' | null
  readonly lines: string[]
}

function readFlags(args: readonly string[]): Flags {
  const options = Object.fromEntries(names.map((name) => [flagOf(name), { type: 'string' as const }]))
  const known = { ...options, help: { type: 'boolean' as const, short: 'h' }, version: { type: 'boolean' as const } }
  const { tokens } = parseArgs({ args: [...args], options: known, strict: false, allowPositionals: true, tokens: true })
  const flags = new Map<string, string>()
  const lines: string[] = []
  let asked: Flags['asked'] = null
  for (const token of tokens) {
    if (token.kind === 'positional') lines.push(`'${oneLine(token.value)}' is not a flag. Try --help.`)
    if (token.kind !== 'option') continue
    const name = names.find((one) => flagOf(one) === token.name)
    if (token.name === 'help' || token.name === 'version') asked ??= token.name
    else if (!name) lines.push(`'${oneLine(token.rawName)}' is not a setting. Try --help.`)
    else if (token.value === undefined || token.value.startsWith('--'))
      lines.push(`'${token.rawName}' needs a value. Try --help.`)
    else flags.set(name, token.value)
  }
  return { flags, asked, lines }
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ')

/** Settings that are each well formed and make no sense together. */
function contradictions(config: Config): string[] {
  if (config.NETWORK !== undefined) return []
  const lines: string[] = []
  if (config.UPSTREAM_RPC_URL === undefined && config.UPSTREAM_WS_URL === undefined) {
    if (config.STOCKS_API_URL !== undefined)
      lines.push('UPSTREAM_RPC_URL is missing: STOCKS_API_URL alone has no chain to go with it')
    return lines
  }
  if (config.UPSTREAM_RPC_URL === undefined)
    lines.push('UPSTREAM_RPC_URL is missing: UPSTREAM_WS_URL alone cannot be polled')
  if (config.STOCKS_API_URL === undefined)
    lines.push('STOCKS_API_URL is missing: without the list nobody knows which tokens to hear')
  return lines
}

const helpText = (): string =>
  [
    'stocktape: the tape of tokenized stocks, over WebSocket and SSE',
    '',
    'Each setting is an environment variable or a flag. Without any, a built-in chain runs. --version says which this is.',
    '',
    ...names.map((name) => {
      const { default: fallback, about } = settings[name]
      return `  --${flagOf(name).padEnd(22)} ${name.padEnd(20)} ${about}${fallback === null ? '' : ` (${fallback})`}`
    }),
    '',
  ].join('\n')
