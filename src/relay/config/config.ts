import { join } from 'node:path'
import { parseFlags } from '../../lib/flags.ts'
import type { Hex } from '../../lib/hex.ts'
import { SettingError } from '../../lib/setting-readers.ts'
import { keysFileMistake } from './api-key-settings.ts'
import type { FeedSetting } from './feed-settings.ts'
import { misspeltVariables, refusedVariables, retiredFlag } from './former-or-unknown-settings.ts'
import { networks } from './networks.ts'
import { type PoolSetting, poolContradictions, type QuoteToken, withCurrencies } from './pool-settings.ts'
import { serveHelp, settingFlags } from './serve-command-line.ts'
import { readEnvFile, readSetting, shownSettings, type Texts, textsOfFlags, withoutEmpty } from './setting-sources.ts'
import { type AnySetting, type CodeName, codeNameOf, type SettingGroups, settingGroups } from './settings.ts'

type GroupName = keyof SettingGroups
type ValueOf<Setting> = Setting extends { readonly read: (text: string) => infer Value; readonly default: infer Default }
  ? Default extends null
    ? Value | undefined
    : Value
  : never

/** Values of all settings by group. A setting without a default may be undefined. */
type GivenSettings = {
  readonly [G in GroupName]: {
    readonly [N in keyof SettingGroups[G] & string as CodeName<N, SettingGroups[G][N]>]: ValueOf<SettingGroups[G][N]>
  }
}

/** Settings of the upstream: those that the user gives, that NETWORK implies, or of the built-in chain. */
export type Upstream = {
  readonly chain: {
    readonly upstreamRpcUrl: readonly string[]
    readonly upstreamWsUrl: readonly string[]
    /** Whether the built-in chain runs, because no upstream is set. */
    readonly isBuiltIn: boolean
  }
  readonly tokens: {
    readonly stocksApiUrl: string
    readonly feeds: readonly FeedSetting[]
    readonly pools: readonly PoolSetting[]
    /** The first of QUOTE_TOKENS. Trades against another currency are in no bar, unless a request names the pool. Null for any. */
    readonly mainCurrency: Hex | null
    readonly oracleRegistry: Hex | null
  }
}

/** Settings that have a value even if the user gives none, because other settings imply one. */
type Implied = Upstream & { readonly tape: { readonly dataDir: string } }

/** All settings, in one group for each part of the relay. */
export type Config = {
  readonly [G in GroupName]: G extends keyof Implied ? Omit<GivenSettings[G], keyof Implied[G]> & Implied[G] : GivenSettings[G]
}

export type ConfigResult =
  | { readonly kind: 'settings'; readonly config: Config; readonly warnings: readonly string[]; readonly shown: Texts }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'version' }
  | { readonly kind: 'mistakes'; readonly lines: readonly string[] }

/**
 * Reads the settings. The first of these that has a setting decides it: the flags, the environment, the file of `--env-file`, the
 * defaults. An empty variable counts as absent. `isListOptional` is for a program that only examines an upstream.
 */
export function readConfig(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  { isListOptional = false }: { readonly isListOptional?: boolean } = {},
): ConfigResult {
  const flags = parseFlags(settingFlags, args, false, retiredFlag)
  if (flags.values.help) return { kind: 'help', text: serveHelp() }
  if (flags.values.version) return { kind: 'version' }
  const lines = [...flags.mistakes]
  const orMistake = <Value>(read: () => Value): Value | undefined => {
    try {
      return read()
    } catch (mistake) {
      if (!(mistake instanceof SettingError)) throw mistake
      lines.push(mistake.message)
      return undefined
    }
  }
  const fileEnv = orMistake(() => readEnvFile(flags.values['env-file'])) ?? {}
  const variables = { ...fileEnv, ...withoutEmpty(env) }
  const layers = [textsOfFlags(flags.values), withoutEmpty(env), fileEnv]
  const given = Object.fromEntries(
    Object.entries(settingGroups).map(([group, inside]) => [
      group,
      Object.fromEntries(
        Object.entries<AnySetting>(inside).map(([name, setting]) => [
          codeNameOf(name, setting),
          orMistake(() => readSetting(name, setting, layers)),
        ]),
      ),
    ]),
  ) as GivenSettings
  lines.push(...refusedVariables(variables))
  if (lines.length === 0) lines.push(...contradictions(given, isListOptional))
  if (lines.length > 0) return { kind: 'mistakes', lines }
  return {
    kind: 'settings',
    config: withImplied(given, new Set(layers.flatMap(Object.keys))),
    warnings: misspeltVariables(variables),
    shown: shownSettings(layers, Object.assign({}, ...Object.values(given))),
  }
}

const quoteTokensOf = ({ tokens: { quoteTokens }, chain: { network } }: GivenSettings): readonly QuoteToken[] =>
  quoteTokens ?? (network ? networks[network].quoteTokens : [])

function withImplied(given: GivenSettings, givenNames: ReadonlySet<string>): Config {
  const { chain, tokens, tape, process: own } = given
  const network = chain.network && networks[chain.network]
  const isBuiltIn = own.role !== 'edge' && upstreamNameOf(given) === undefined
  const dataDir = isBuiltIn ? builtInDataDir(tape.dataDir) : (tape.dataDir ?? './data')
  return {
    ...given,
    chain: {
      ...chain,
      ...(network && { chainId: network.chainId }),
      upstreamRpcUrl: chain.upstreamRpcUrl ?? (network ? [network.rpcUrl] : (chain.upstreamWsUrl ?? [])),
      upstreamWsUrl: chain.upstreamWsUrl ?? [],
      isBuiltIn,
      ...(isBuiltIn &&
        !givenNames.has('BACKFILL_FIRST') && { backfillFirstMs: Math.min(BUILT_IN_FIRST_MS, chain.backfillLimitMs) }),
    },
    tokens: {
      ...tokens,
      stocksApiUrl: tokens.stocksApiUrl ?? network?.stocksApiUrl ?? '',
      feeds: tokens.feeds ?? network?.feeds ?? [],
      pools: withCurrencies(tokens.pools ?? network?.pools ?? [], quoteTokensOf(given)),
      mainCurrency: quoteTokensOf(given)[0]?.address ?? null,
      oracleRegistry: tokens.oracleRegistry ?? network?.oracleRegistry ?? null,
    },
    tape: {
      ...tape,
      dataDir,
      ...(isBuiltIn &&
        dataDir === ':memory:' &&
        !givenNames.has('TAPE_MAX_MESSAGES') && { tapeMaxMessages: BUILT_IN_MAX_MESSAGES }),
      // The tape keeps less than the time of the relay's absence, so that a client that reconnects has a gap.
      ...(own.faults?.gap && { tapeRetentionMs: Math.min(tape.tapeRetentionMs, Math.ceil(own.faults.gap.lengthMs / 2)) }),
    },
  }
}

/** With a past, the first visit of the board has charts and a history. */
const BUILT_IN_FIRST_MS = 6 * 3_600_000
/** Limit of messages on a tape of the built-in chain in memory: about 100 MB. */
const BUILT_IN_MAX_MESSAGES = 100_000

/** Keeps the tape of the built-in chain apart from that of a real chain, and in memory unless DATA_DIR is set. */
const builtInDataDir = (dataDir = ':memory:'): string => (dataDir === ':memory:' ? dataDir : join(dataDir, 'demo'))

export const upstreamOf = ({ chain, tokens }: Config): Upstream => {
  const { upstreamRpcUrl, upstreamWsUrl, isBuiltIn } = chain
  const { stocksApiUrl, feeds, pools, mainCurrency, oracleRegistry } = tokens
  return {
    chain: { upstreamRpcUrl, upstreamWsUrl, isBuiltIn },
    tokens: { stocksApiUrl, feeds, pools, mainCurrency, oracleRegistry },
  }
}

export const withUpstream = (config: Config, { chain, tokens }: Upstream): Config => ({
  ...config,
  chain: { ...config.chain, ...chain },
  tokens: { ...config.tokens, ...tokens },
})

const noUpstream =
  'no upstream is set, and DEMO is false: set UPSTREAM_RPC_URL and STOCKS_API_URL, or NETWORK=base, or DEMO=true for the built-in chain'

/** Returns a line for each contradiction between settings, and for each setting that another one needs and that is missing. */
function contradictions(given: GivenSettings, isListOptional: boolean): string[] {
  const { process: own, chain, tokens, tape, edge } = given
  const lines = [...poolContradictions(tokens.pools ?? [], quoteTokensOf(given))]
  const keysMistake = edge.apiKeysFile && edge.apiKeys && keysFileMistake(edge.apiKeysFile, edge.apiKeys)
  if (keysMistake) lines.push(`API_KEYS_FILE ${keysMistake.message}`)
  if (own.role !== 'relay' && tape.natsUrl === undefined)
    lines.push(`NATS_URL is missing: ROLE ${own.role} shares the tape with other processes through NATS`)
  if (own.metricsPort !== undefined && edge.metricsToken !== undefined)
    lines.push('METRICS_TOKEN has no effect with METRICS_PORT, which needs none: leave one of them out')
  if (own.metricsPort !== undefined && own.metricsPort === own.port)
    lines.push(`METRICS_PORT must differ from PORT ${own.port}, which serves the clients`)
  if (chain.backfillFirstMs > chain.backfillLimitMs)
    lines.push('BACKFILL_FIRST must be at most BACKFILL_LIMIT: raise that one too, or read less')
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
    else if (!own.demo && own.role !== 'edge') lines.push(noUpstream)
    return lines
  }
  if (tokens.stocksApiUrl === undefined && !isListOptional && own.role !== 'edge')
    lines.push('STOCKS_API_URL is missing: the relay learns from the list which tokens to follow')
  return lines
}

function upstreamNameOf({ chain: { network, upstreamRpcUrl, upstreamWsUrl } }: GivenSettings): string | undefined {
  if (network !== undefined) return 'NETWORK'
  if (upstreamRpcUrl !== undefined) return 'UPSTREAM_RPC_URL'
  return upstreamWsUrl === undefined ? undefined : 'UPSTREAM_WS_URL'
}
