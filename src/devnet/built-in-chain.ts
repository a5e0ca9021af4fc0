import type { RequestedFaults } from '../lib/fault-settings.ts'
import { startDevnet } from './devnet.ts'

/** Starts the built-in chain as the upstream of a relay, with the settings that the relay needs for it. */
export async function startBuiltInChain(requestedFaults: RequestedFaults = {}) {
  // Answers `eth_call`, as the node of a provider may. The relay also works without these answers.
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
