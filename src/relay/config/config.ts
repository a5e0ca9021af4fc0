import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { camelCaseOf } from '../../lib/camel-case.ts'
import { adviceFor } from '../../lib/flags.ts'
import type { Hex } from '../../lib/hex.ts'
import { nearestName } from '../../lib/nearest-name.ts'
import { redacted, SecretSettingError, SettingError, type SettingReader } from '../../lib/setting-readers.ts'
import type { FeedSetting } from './feeds.ts'
import { networks } from './networks.ts'
import { type PoolSetting, poolContradictions, type QuoteToken, withCurrencies } from './pools.ts'
import { type AnySetting, type SettingGroups, settingGroups, settings } from './settings.ts'

/** `PENDING_POLL_MS` in the code: `pendingPollMs`. */
type CodeName<Name extends string> = Name extends `${infer First}_${infer Others}`
  ? `${Lowercase<First>}${Capitalize<CodeName<Others>>}`
  : Lowercase<Name>
type GroupName = keyof SettingGroups
type ValueOf<Setting> = Setting extends { readonly read: SettingReader<infer Value>; readonly default: infer Default }
  ? Default extends null
    ? Value | undefined
    : Value
  : never

/** The settings as they were given; those with a default are always present. */
type GivenSettings = {
  readonly [G in GroupName]: {
    readonly [N in keyof SettingGroups[G] & string as CodeName<N>]: ValueOf<SettingGroups[G][N]>
  }
}

/** Where the relay connects to the chain and reads the list: as given, as the network implies, or the built-in chain. */
export type Upstream = {
  readonly chain: {
    readonly upstreamRpcUrl: readonly string[]
    readonly upstreamWsUrl: readonly string[]
    /** Whether no upstream is set, so that the built-in chain is meant. */
    readonly isBuiltIn: boolean
  }
  readonly tokens: {
    readonly stocksApiUrl: string
    readonly feeds: readonly FeedSetting[]
    readonly pools: readonly PoolSetting[]
    readonly oracleRegistry: Hex | null
  }
}

/** All settings of a process, a sub-tree for each part. */
export type Config = {
  readonly [G in GroupName]: G extends keyof Upstream ? Omit<GivenSettings[G], keyof Upstream[G]> & Upstream[G] : GivenSettings[G]
}

export type ConfigResult =
  | { readonly kind: 'settings'; readonly config: Config; readonly warnings: readonly string[] }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'version' }
  | { readonly kind: 'mistakes'; readonly lines: readonly string[] }

const flagOf = (name: string): string => name.toLowerCase().replaceAll('_', '-')
const settingNames = [...settings.keys()]

/** The flags of `serve`. */
export const settingFlags = {
  ...Object.fromEntries([...settings].map(([name, definition]) => [flagOf(name), flagDefinition(definition)])),
  help: { type: 'boolean', short: 'h', description: 'explain the settings' },
  version: { type: 'boolean', description: 'print the version' },
} as const

function flagDefinition({ description, read }: AnySetting) {
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
  const { flags, requestedInfo, lines } = readSettingFlags(args)
  if (requestedInfo === 'help') return { kind: 'help', text: `stocktape [serve]: run the relay\n\n${settingsText()}` }
  if (requestedInfo === 'version') return { kind: 'version' }
  const read = (name: string, setting: AnySetting): unknown => {
    const text = flags.get(name) ?? (env[name] || setting.default)
    if (text === null) return undefined
    try {
      return setting.read(text)
    } catch (mistake) {
      if (!(mistake instanceof SettingError)) throw mistake
      lines.push(`${name} ${mistake.message}${mistake instanceof SecretSettingError ? '' : `; it is ${redacted(text)}`}`)
      return undefined
    }
  }
  const given = Object.fromEntries(
    Object.entries(settingGroups).map(([group, inside]) => [
      group,
      Object.fromEntries(Object.entries<AnySetting>(inside).map(([name, setting]) => [camelCaseOf(name), read(name, setting)])),
    ]),
  ) as GivenSettings
  lines.push(...refusedVariables(env))
  if (lines.length === 0) lines.push(...contradictions(given, isListOptional))
  if (lines.length > 0) return { kind: 'mistakes', lines }
  return { kind: 'settings', config: withImplied(given), warnings: misspeltVariables(env) }
}

const quoteTokensOf = ({ tokens: { quoteTokens }, chain: { network } }: GivenSettings): readonly QuoteToken[] =>
  quoteTokens ?? (network ? networks[network].quoteTokens : [])

/** With what the network implies, and the built-in chain and its faults. */
function withImplied(given: GivenSettings): Config {
  const { chain, tokens, tape, process: own } = given
  const network = chain.network && networks[chain.network]
  const isBuiltIn = own.role !== 'edge' && upstreamNameOf(given) === undefined
  return {
    ...given,
    chain: {
      ...chain,
      ...(network && { chainId: network.chainId }),
      upstreamRpcUrl: chain.upstreamRpcUrl ?? (network ? [network.rpcUrl] : (chain.upstreamWsUrl ?? [])),
      upstreamWsUrl: chain.upstreamWsUrl ?? [],
      isBuiltIn,
    },
    tokens: {
      ...tokens,
      stocksApiUrl: tokens.stocksApiUrl ?? network?.stocksApiUrl ?? '',
      feeds: tokens.feeds ?? network?.feeds ?? [],
      pools: withCurrencies(tokens.pools ?? network?.pools ?? [], quoteTokensOf(given)),
      oracleRegistry: tokens.oracleRegistry ?? network?.oracleRegistry ?? null,
    },
    tape: {
      ...tape,
      // The tape of the built-in chain has a folder of its own: it never stands where the tape of a real chain belongs.
      ...(isBuiltIn && tape.dataDir !== ':memory:' && { dataDir: join(tape.dataDir, 'demo') }),
      // Shorter than the absence of the relay, so that a client that returns has missed something.
      ...(own.faults?.gap && { tapeRetentionMs: Math.min(tape.tapeRetentionMs, Math.ceil(own.faults.gap.lengthMs / 2)) }),
    },
  }
}

export const upstreamOf = ({ chain, tokens }: Config): Upstream => {
  const { upstreamRpcUrl, upstreamWsUrl, isBuiltIn } = chain
  const { stocksApiUrl, feeds, pools, oracleRegistry } = tokens
  return { chain: { upstreamRpcUrl, upstreamWsUrl, isBuiltIn }, tokens: { stocksApiUrl, feeds, pools, oracleRegistry } }
}

export const withUpstream = (config: Config, { chain, tokens }: Upstream): Config => ({
  ...config,
  chain: { ...config.chain, ...chain },
  tokens: { ...config.tokens, ...tokens },
})

export const noUpstream =
  'no upstream is set, and DEMO is false: set UPSTREAM_RPC_URL and STOCKS_API_URL, or NETWORK=base, or DEMO=true for the built-in chain'

/** A variable that begins like this is meant for the relay: a misspelt one must not start the built-in chain instead. */
const OWN_PREFIX = /^(UPSTREAM|STOCKS|TAPE|TRUSTED|BACKLOG)_/
/** Container platforms set such variables for each service that they run. */
const SERVICE_LINK = /_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT$|_PORT_\d+_(TCP|UDP)(_\w+)?$/
/** The nearest setting is named up to this many edits. */
const SETTING_BOUND_EDITS = 8
/** Shorter names are likely to be those of other programs. */
const MIN_MISSPELT_CHARS = 6

const unknownVariables = (env: Readonly<Record<string, string | undefined>>): readonly string[] =>
  Object.keys(env).filter((name) => env[name] && !settingNames.some((known) => known === name) && !SERVICE_LINK.test(name))

const refusedVariables = (env: Readonly<Record<string, string | undefined>>): readonly string[] =>
  unknownVariables(env)
    .filter((name) => OWN_PREFIX.test(name))
    .map((name) => `${oneLine(name)} is not a setting. ${adviceFor(name, settingNames, { boundEdits: SETTING_BOUND_EDITS })}`)

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

type Flags = {
  readonly flags: ReadonlyMap<string, string>
  readonly requestedInfo: 'help' | 'version' | null
  readonly lines: string[]
}

function readSettingFlags(args: readonly string[]): Flags {
  const { tokens } = parseArgs({ args: [...args], options: settingFlags, strict: false, allowPositionals: true, tokens: true })
  const flags = new Map<string, string>()
  const lines: string[] = []
  let requestedInfo: Flags['requestedInfo'] = null
  for (const token of tokens) {
    if (token.kind === 'positional') lines.push(`'${oneLine(token.value)}' is not a flag. Try --help.`)
    if (token.kind !== 'option') continue
    const name = settingNames.find((one) => flagOf(one) === token.name)
    if (token.name === 'help' || token.name === 'version') requestedInfo ??= token.name
    else if (!name) lines.push(`'${oneLine(token.rawName)}' is not a setting. ${adviceFor(token.rawName, flagNames)}`)
    else if (token.value === undefined || token.value.startsWith('--')) lines.push(`'${token.rawName}' needs a value. Try --help.`)
    else flags.set(name, token.value)
  }
  return { flags, requestedInfo, lines }
}

const flagNames = settingNames.map((name) => `--${flagOf(name)}`)

const oneLine = (text: string): string => text.replace(/\s+/g, ' ')

/** Settings that are valid alone and contradict each other. */
function contradictions(given: GivenSettings, isListOptional: boolean): string[] {
  const { process: own, chain, tokens, tape } = given
  const lines = [...poolContradictions(tokens.pools ?? [], quoteTokensOf(given))]
  if (own.role !== 'relay' && tape.natsUrl === undefined)
    lines.push(`NATS_URL is missing: ROLE ${own.role} shares the tape with other processes through NATS`)
  const upstream = upstreamNameOf(given)
  if (own.faults !== undefined && upstream !== undefined)
    lines.push(`FAULTS works only with the built-in chain: leave it out, or leave out ${upstream}`)
  if (own.role === 'ingest' && own.workers > 1) lines.push('WORKERS serve clients, and ROLE ingest has none: leave one of them out')
  if (chain.network !== undefined) {
    const { chainId } = networks[chain.network]
    if (chain.chainId !== undefined && chain.chainId !== chainId)
      lines.push(
        `CHAIN_ID ${chain.chainId} contradicts NETWORK ${chain.network}, whose chain id is ${chainId}: leave one of them out`,
      )
    return lines
  }
  if (upstream === undefined) {
    if (tokens.stocksApiUrl !== undefined) lines.push('UPSTREAM_RPC_URL is missing: STOCKS_API_URL needs an upstream beside it')
    return lines
  }
  if (tokens.stocksApiUrl === undefined && !isListOptional && own.role !== 'edge')
    lines.push('STOCKS_API_URL is missing: the relay learns from the list which tokens to follow')
  return lines
}

/** The setting that names the upstream. */
function upstreamNameOf({ chain: { network, upstreamRpcUrl, upstreamWsUrl } }: GivenSettings): string | undefined {
  if (network !== undefined) return 'NETWORK'
  if (upstreamRpcUrl !== undefined) return 'UPSTREAM_RPC_URL'
  return upstreamWsUrl === undefined ? undefined : 'UPSTREAM_WS_URL'
}

/** Every setting with its default and meaning. */
export const settingsText = (): string =>
  [
    'Each setting is an environment variable or a flag. Without any, a built-in chain runs.',
    '',
    ...[...settings].map(
      ([name, { default: fallback, description }]) =>
        `  --${flagOf(name).padEnd(22)} ${name.padEnd(20)} ${description}${fallback === null ? '' : ` (${fallback})`}`,
    ),
    '',
  ].join('\n')
