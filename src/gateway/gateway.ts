import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { ChainIdentity } from '../chain/rpc/chain-id.ts'
import { parseJson, type RawRequestFn, Rpc } from '../chain/rpc/client.ts'
import type { UpstreamError } from '../chain/rpc/error.ts'
import type { ChainEvent } from '../chain/source/source.ts'
import type { Config } from '../config.ts'
import { ByteBudget } from '../edge/limits/byte-budget.ts'
import type { Hub } from '../edge/live/hub.ts'
import type { View } from '../edge/select/view.ts'
import type { Metrics } from '../metrics.ts'
import { Answers } from './answers.ts'
import { readCall } from './call.ts'
import { ChainState } from './chain-state.ts'
import { RpcHttpHandler } from './http.ts'
import { RateLimiter } from './rate-limit.ts'
import { createRedactor } from './redact.ts'
import { RpcSockets } from './sockets.ts'
import { Subscriptions } from './subscriptions.ts'
import { UnlistedContracts } from './unlisted-contracts.ts'

/** Long answers that were not taken yet, all together and of one address. */
const UNSENT_BOUND_BYTES = 256 * 2 ** 20
const UNSENT_SHARE_BYTES = 64 * 2 ** 20
/** A head that the node does not have yet is asked for again after this. */
const HEAD_RETRY_MS = 50
/** What the filters of one address may weigh: each so much, and as much as it names. */
const FILTER_WEIGHT_BOUND = 50_000
/** Bytes by which the subscriptions of one life of the relay are told from those of the next. */
const ID_PREFIX_BYTES = 12

type GatewayOptions = {
  readonly config: Config
  readonly upstream: { readonly rpcUrls: readonly string[]; readonly wsUrls: readonly string[] }
  readonly view: View
  readonly hub: Hub
  readonly metrics: Metrics
  readonly chain: ChainIdentity
  readonly addressOf: (incoming: IncomingMessage) => string
  readonly now: () => number
  readonly uptime: () => number
  readonly random: () => number
  readonly warn: (kind: string, detail: unknown) => void
}

/** The relay as a node: what it is asked it passes on, once for all, and what the node says it says to all. */
export function openGateway({ config, upstream, view, hub, metrics, addressOf, uptime, ...ports }: GatewayOptions) {
  const { chain } = ports
  // What one client asks must not keep an endpoint from answering the others.
  const isEndpointFault = ({ kind }: UpstreamError) => kind === 'wrong_chain'
  const receiptsUrls = config.RECEIPTS_RPC_URL ?? []
  const chainState = new ChainState()
  const openPass = (urls: readonly string[]): RawRequestFn => {
    const rpc = new Rpc({ urls, ...ports, isEndpointFault })
    return (method, params) => {
      metrics.requestsForwarded.inc({ method })
      return rpc.requestRaw(method, params)
    }
  }
  const answers = new Answers({
    pass: openPass(upstream.rpcUrls),
    receipts: receiptsUrls.length > 0 ? openPass(receiptsUrls) : null,
    chainState,
    chainId: () => chain.id,
    redact: createRedactor([...upstream.rpcUrls, ...upstream.wsUrls, ...receiptsUrls]),
    uptime,
  })
  const unlistedContracts = config.RPC_OPEN ? new UnlistedContracts() : null
  const subscriptions = new Subscriptions({
    isListed: (address) => view.isListed(address),
    hasList: () => view.tokens.length > 0,
    unlistedContracts,
    delay: () => new Promise((resolve) => setTimeout(resolve, HEAD_RETRY_MS)),
    readBlock: async (number) => {
      const call = readCall('eth_getBlockByNumber', [`0x${number.toString(16)}`, false], chainState)
      return parseJson(String(await answers.answerForAll(call)))
    },
  })
  const shared = {
    backend: { answers, chainState },
    rates: new RateLimiter(config.RPC_RATE),
    unsentBudget: new ByteBudget(UNSENT_BOUND_BYTES, UNSENT_SHARE_BYTES),
    uptime,
  }
  const rpcSockets = new RpcSockets({
    ...shared,
    subscriptions,
    filterBudget: new ByteBudget(Number.POSITIVE_INFINITY, FILTER_WEIGHT_BOUND),
    connections: hub.connectionLimits,
    backlogBoundBytes: config.BACKLOG_BOUND_BYTES,
    idPrefix: `0x${randomBytes(ID_PREFIX_BYTES).toString('hex')}`,
    countSlowDisconnect: () => metrics.disconnectedAsSlow.inc(),
    connectionMetrics: {
      opened: () => metrics.listeners.inc({ carrier: 'rpc' }),
      closed: () => metrics.listeners.dec({ carrier: 'rpc' }),
    },
  })
  const receive = (event: ChainEvent): void => {
    chainState.receive(event)
    subscriptions.receive(event)
  }
  return { rpcHttp: new RpcHttpHandler({ ...shared, addressOf }), rpcSockets, unlistedContracts, receive }
}
