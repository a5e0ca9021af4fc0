import type { Devnet } from '../devnet/devnet.ts'
import { type Config, configuredPools, type UpstreamEndpoints } from './config/config.ts'
import { baseFeeds } from './tokens/base-feeds.ts'
import { baseOracleRegistry, basePools } from './tokens/base-pools.ts'

/** The public endpoints of the networks that need no key. */
const networks = {
  base: {
    rpcUrls: ['https://mainnet.base.org'],
    stocksUrl: 'https://api.coinbase.com',
    feeds: baseFeeds,
    pools: basePools,
    oracleRegistry: baseOracleRegistry,
  },
  'base-sepolia': {
    rpcUrls: ['https://sepolia.base.org'],
    stocksUrl: 'https://api.coinbase.com',
    feeds: [],
    pools: [],
    oracleRegistry: null,
  },
} as const

/** Whether no upstream is set, so that the built-in chain is meant. An edge needs none. */
export const isDemo = (config: Config): boolean =>
  config.ROLE !== 'edge' &&
  config.NETWORK === undefined &&
  config.UPSTREAM_RPC_URL === undefined &&
  config.UPSTREAM_WS_URL === undefined

export const noUpstream =
  'no upstream is set, and DEMO is false: set UPSTREAM_RPC_URL and STOCKS_API_URL, or NETWORK=base, or DEMO=true for the built-in chain'

/** Loaded only where it runs, so that production starts faster. */
export async function openDemoChain(requestedFaults: Config['FAULTS'] = {}): Promise<Devnet> {
  const { startDevnet } = await import('../devnet/devnet.ts')
  // The built-in node answers eth_call as a provider's node may. Nothing depends on it.
  return startDevnet({ calls: true, requestedFaults })
}

/** The endpoints of the built-in chain where it runs; otherwise those of the settings, and of the network behind them. */
export function upstreamEndpoints(config: Config, devnet: Devnet | null): UpstreamEndpoints {
  if (devnet)
    return {
      rpcUrls: [devnet.rpcUrl],
      wsUrls: [devnet.wsUrl],
      stocksUrl: devnet.url,
      feeds: devnetFeeds(devnet),
      pools: devnet.pools,
      oracleRegistry: devnet.oracleRegistry,
      demo: true,
    }
  const network = config.NETWORK && networks[config.NETWORK]
  return {
    rpcUrls: config.UPSTREAM_RPC_URL ?? network?.rpcUrls ?? config.UPSTREAM_WS_URL ?? [],
    wsUrls: config.UPSTREAM_WS_URL ?? [],
    stocksUrl: config.STOCKS_API_URL ?? network?.stocksUrl ?? '',
    feeds: config.FEEDS ?? network?.feeds ?? [],
    pools: configuredPools(config, network?.pools ?? []),
    oracleRegistry: config.ORACLE_REGISTRY ?? network?.oracleRegistry ?? null,
    demo: false,
  }
}

const devnetFeeds = ({ feeds }: Devnet): UpstreamEndpoints['feeds'] =>
  Object.entries(feeds).map(([token, { proxy }]) => ({ token, proxy }))
