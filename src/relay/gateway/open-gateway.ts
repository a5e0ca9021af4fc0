import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { quantity } from '../../lib/hex.ts'
import { createRedactor } from '../../lib/redact.ts'
import { parseShallowJson } from '../../lib/safe-json.ts'
import type { Refusal } from '../../protocol/refusal.ts'
import { routes } from '../../protocol/routes.ts'
import type { ChainIdentity } from '../chain/rpc/chain-identity.ts'
import { EndpointPool, type RawRequestFn } from '../chain/rpc/endpoint-pool.ts'
import type { UpstreamError } from '../chain/rpc/upstream-error.ts'
import type { ChainEvent } from '../chain/source/source.ts'
import type { Config } from '../config/config.ts'
import { Budget } from '../edge/limits/budget.ts'
import { RateLimiter } from '../edge/limits/rate-limiter.ts'
import { noUpstream } from '../edge/limits/refusals.ts'
import type { SharedUsage } from '../edge/limits/shared-usage.ts'
import type { EdgeContext } from '../edge/live/edge-context.ts'
import { type ServerWebSocket, WebSocketOutlet } from '../edge/transport/websocket-outlet.ts'
import type { Metrics } from '../metrics.ts'
import { ChainState } from './chain-state.ts'
import { errorCodes, RpcError } from './rpc-error.ts'
import { createRpcHttpHandler } from './rpc-http-handler.ts'
import { BATCH_BOUND } from './rpc-request-parser.ts'
import { openRpcSession, type RpcContext } from './rpc-session.ts'
import { SharedAnswers } from './shared-answers.ts'
import { Subscriptions } from './subscriptions/subscriptions.ts'
import { readCall } from './validated-call.ts'

/** Limit of the bytes of all long answers that clients have not received yet. */
const UNSENT_BOUND_BYTES = 256 * 2 ** 20
/** Limit of the bytes of long answers that the clients of one address have not received yet. */
const UNSENT_SHARE_BYTES = 64 * 2 ** 20
/** Delay before a repeated request for a head that the node does not have yet. */
const HEAD_RETRY_MS = 50
/** Limit of the weight of all filters of one address: a fixed weight per filter, plus one for each address and topic. */
const FILTER_WEIGHT_BOUND = 50_000
/** Number of random bytes in a subscription id, so that it differs from the ids of earlier processes. */
const ID_PREFIX_BYTES = 12
const NO_UPSTREAM = 'this process has no upstream (ROLE=edge): set UPSTREAM_RPC_URL, or ask another one'
const RPC_MESSAGE_BOUND_BYTES = 131_072
/** Limit of the pieces in which the bytes of one message may arrive. */
const RPC_CHUNKS_BOUND = 1_024

type GatewayInputs = {
  readonly config: Config
  readonly chain: ChainIdentity
  readonly context: EdgeContext
  readonly sharedUsage?: SharedUsage | null
  readonly metrics: Metrics
}

/** The relay as a JSON-RPC node: forwards equal calls once, and sends logs and heads to subscribers. */
export function openGateway(inputs: GatewayInputs) {
  const { config, context, sharedUsage } = inputs
  const { clients, keys, uptime, clientAddressOf: addressOf } = context
  const limitsOf = (client: string) => keys?.limitsOf(client)
  const chainState = new ChainState()
  const answers = openAnswers(inputs, chainState)
  const subscriptions = openSubscriptions(inputs, answers, chainState)
  const rpc: RpcContext = {
    backend: { answers, chainState },
    rates: new RateLimiter({ perSecond: config.gateway.rpcRate, atOnce: BATCH_BOUND, shared: sharedUsage, limitsOf }),
    unsentBudget: new Budget(UNSENT_BOUND_BYTES, UNSENT_SHARE_BYTES),
    uptime,
    addressOf,
    clients,
    subscriptions,
    filterBudget: new Budget(Number.POSITIVE_INFINITY, FILTER_WEIGHT_BOUND),
    maxBacklogBytes: config.edge.maxBacklogBytes,
    heartbeatMs: config.edge.heartbeatMs,
    idPrefix: `0x${randomBytes(ID_PREFIX_BYTES).toString('hex')}`,
  }
  return {
    routes: [{ id: 'rpc', handle: createRpcHttpHandler(rpc) }],
    webSocketRoutes: [
      {
        path: routes.rpc.path,
        messageBoundBytes: RPC_MESSAGE_BOUND_BYTES,
        chunksBound: RPC_CHUNKS_BOUND,
        compresses: false,
        refusalFor: (address: string, forbidden: Refusal | null) =>
          forbidden ?? (config.chain.upstreamRpcUrl.length === 0 ? noUpstream(NO_UPSTREAM) : clients.refusal(address)),
        accept: (webSocket: ServerWebSocket, socket: Socket, { address }: { readonly address: string }) =>
          openRpcSession(webSocket, new WebSocketOutlet(webSocket, socket), address, rpc),
      },
    ],
    onChainEvent: (event: ChainEvent): void => {
      chainState.receive(event)
      subscriptions.receive(event)
    },
  } as const
}

/** A client's call must not stop the use of an endpoint that answers other calls. */
const isEndpointFault = ({ kind }: UpstreamError): boolean => kind === 'wrong_chain'

function openAnswers({ config, context, metrics, chain }: GatewayInputs, chainState: ChainState): SharedAnswers {
  const { now, uptime, random, log } = context
  const { upstreamRpcUrl, upstreamWsUrl, receiptsRpcUrl = [] } = config.chain
  const openForwarder = (urls: readonly string[]): RawRequestFn => {
    if (urls.length === 0) return () => Promise.reject(new RpcError(errorCodes.serverError, NO_UPSTREAM))
    const rpc = new EndpointPool({ urls, chain, now, random, log, isEndpointFault, onAnswer: metrics.countUpstreamRequest })
    return (method, params) => {
      metrics.requestsForwarded.inc({ method })
      return rpc.requestRaw(method, params)
    }
  }
  return new SharedAnswers({
    forward: openForwarder(upstreamRpcUrl),
    forwardReceipts: receiptsRpcUrl.length > 0 ? openForwarder(receiptsRpcUrl) : null,
    chainState,
    chainId: () => chain.id,
    redact: createRedactor([...upstreamRpcUrl, ...upstreamWsUrl, ...receiptsRpcUrl]),
    uptime,
  })
}

function openSubscriptions({ context }: GatewayInputs, answers: SharedAnswers, chainState: ChainState): Subscriptions {
  return new Subscriptions({
    isListed: (address) => context.current.isListed(address),
    hasList: () => context.current.hasTokens,
    delay: () => new Promise((resolve) => setTimeout(resolve, HEAD_RETRY_MS)),
    readBlock: async (number) => {
      const call = readCall('eth_getBlockByNumber', [quantity(number), false], chainState)
      return parseShallowJson(await answers.answerForAll(call))
    },
  })
}
