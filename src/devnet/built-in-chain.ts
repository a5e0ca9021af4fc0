import type { RequestedFaults } from '../lib/fault-settings.ts'
import { startDevnet } from './devnet.ts'

/** Starts the built-in chain as the upstream of a relay: with what the relay's settings would say of it. */
export async function startBuiltInChain(requestedFaults: RequestedFaults = {}) {
  // The built-in node answers eth_call as a provider's node may. Nothing depends on it.
  const devnet = await startDevnet({ calls: true, requestedFaults })
  const { rpcUrl, wsUrl, url, feeds, pools, oracleRegistry } = devnet
  return {
    upstream: {
      chain: { upstreamRpcUrl: [rpcUrl], upstreamWsUrl: [wsUrl], isBuiltIn: true },
      tokens: {
        stocksApiUrl: url,
        feeds: Object.entries(feeds).map(([token, { proxy }]) => ({ token, proxy })),
        ...{ pools, oracleRegistry },
      },
    },
    stop: () => devnet.stop(),
  }
}
