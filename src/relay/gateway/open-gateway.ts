import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Hex, quantity } from '../../lib/hex.ts'
import { createRedactor } from '../../lib/redact.ts'
import { parseShallowJson } from '../../lib/safe-json.ts'
import { closeCodeOf } from '../../protocol/close-codes.ts'
import { Refusal } from '../../protocol/refusal.ts'
import { routes } from '../../protocol/routes.ts'
import type { ChainIdentity } from '../chain/rpc/chain-identity.ts'
import { EndpointPool, type RawRequestFn } from '../chain/rpc/endpoint-pool.ts'
import type { UpstreamError } from '../chain/rpc/upstream-error.ts'
import type { ChainEvent } from '../chain/source/source.ts'
import type { KeyLimits } from '../config/api-key-settings.ts'
import type { Config } from '../config/config.ts'
import { ByteBudget } from '../edge/limits/byte-budget.ts'
import type { ConnectionLimits } from '../edge/limits/connection-limits.ts'
import type { SentTotals } from '../edge/limits/sent-totals.ts'
import type { SharedUsage } from '../edge/limits/shared-usage.ts'
import type { ServerWebSocket } from '../edge/transport/websocket-outlet.ts'
import type { WriteLine } from '../log-lines.ts'
import type { Metrics } from '../metrics.ts'
import { ChainState } from './chain-state.ts'
import { RateLimiter } from './rate-limiter.ts'
import { errorCodes, RpcError } from './rpc-error.ts'
import { RpcHttpHandler } from './rpc-http-handler.ts'
import { RPC_CHUNKS_BOUND, RPC_MESSAGE_BOUND_BYTES, RpcSockets } from './rpc-sockets.ts'
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
const COUNT_NAME = 'rpc'
const NO_UPSTREAM = 'this process has no upstream (ROLE=edge): set UPSTREAM_RPC_URL, or ask another one'
const noUpstream = new Refusal(404, 'no_upstream', `There is no JSON-RPC here: ${NO_UPSTREAM}.`)

type GatewayInputs = {
  readonly config: Config
  readonly chain: ChainIdentity
  readonly current: { isListed(address: Hex): boolean; readonly hasTokens: boolean }
  readonly connections: ConnectionLimits
  readonly sharedUsage?: SharedUsage | null
  readonly metrics: Metrics
  readonly sentTotals: SentTotals
  readonly addressOf: (incoming: IncomingMessage) => string
  readonly limitsOf: (client: string) => KeyLimits | undefined
  readonly now: () => number
  readonly uptime: () => number
  readonly random: () => number
  readonly warn: WriteLine
}

/** The relay as a JSON-RPC node: forwards equal calls once, and sends logs and heads to subscribers. */
export function openGateway(inputs: GatewayInputs) {
  const { config, metrics, connections, addressOf, uptime, sharedUsage = null } = inputs
  const chainState = new ChainState()
  const answers = openAnswers(inputs, chainState)
  const subscriptions = openSubscriptions(inputs, answers, chainState)
  const shared = {
    backend: { answers, chainState },
    rates: new RateLimiter(config.gateway.rpcRate, sharedUsage, inputs.limitsOf),
    unsentBudget: new ByteBudget(UNSENT_BOUND_BYTES, UNSENT_SHARE_BYTES),
    uptime,
  }
  const http = new RpcHttpHandler({ ...shared, addressOf })
  const sockets = new RpcSockets({
    ...shared,
    subscriptions,
    filterBudget: new ByteBudget(Number.POSITIVE_INFINITY, FILTER_WEIGHT_BOUND),
    connections,
    maxBacklogBytes: config.edge.maxBacklogBytes,
    idPrefix: `0x${randomBytes(ID_PREFIX_BYTES).toString('hex')}`,
    connectionMetrics: {
      opened: () => {
        metrics.listeners.inc({ transport: 'rpc' })
        sharedUsage?.change(COUNT_NAME, 1)
      },
      closed: (session, reason) => {
        metrics.countDisconnect(session.transport, reason, closeCodeOf(reason))
        inputs.sentTotals.end(session)
        sharedUsage?.change(COUNT_NAME, -1)
      },
    },
  })
  const pingTimer = setInterval(() => void sockets.heartbeat(), config.edge.heartbeatMs)
  return {
    routes: [{ id: 'rpc', handle: (incoming: IncomingMessage, outgoing: ServerResponse) => http.handle(incoming, outgoing) }],
    webSocketRoutes: [
      {
        path: routes.rpc.path,
        messageBoundBytes: RPC_MESSAGE_BOUND_BYTES,
        chunksBound: RPC_CHUNKS_BOUND,
        compresses: false,
        refusalFor: (address: string, forbidden: Refusal | null) =>
          forbidden ?? (config.chain.upstreamRpcUrl.length === 0 ? noUpstream : sockets.refusalFor(address)),
        accept: (webSocket: ServerWebSocket, socket: Socket, { address }: { readonly address: string }) =>
          sockets.accept(webSocket, socket, address),
      },
    ],
    clientCount: () => sharedUsage?.count(COUNT_NAME) ?? sockets.connected.size,
    connected: sockets.connected,
    onChainEvent: (event: ChainEvent): void => {
      chainState.receive(event)
      subscriptions.receive(event)
    },
    disconnect: (clients: ReadonlySet<string>) => sockets.disconnect(clients),
    drain: () => sockets.drain(),
    close: () => clearInterval(pingTimer),
  } as const
}

/** A client's call must not stop the use of an endpoint that answers other calls. */
const isEndpointFault = ({ kind }: UpstreamError): boolean => kind === 'wrong_chain'

function openAnswers({ config, metrics, uptime, ...ports }: GatewayInputs, chainState: ChainState): SharedAnswers {
  const { upstreamRpcUrl, upstreamWsUrl, receiptsRpcUrl = [] } = config.chain
  const openForwarder = (urls: readonly string[]): RawRequestFn => {
    if (urls.length === 0) return () => Promise.reject(new RpcError(errorCodes.serverError, NO_UPSTREAM))
    const rpc = new EndpointPool({ urls, ...ports, isEndpointFault, onAnswer: metrics.countUpstreamRequest })
    return (method, params) => {
      metrics.requestsForwarded.inc({ method })
      return rpc.requestRaw(method, params)
    }
  }
  return new SharedAnswers({
    forward: openForwarder(upstreamRpcUrl),
    forwardReceipts: receiptsRpcUrl.length > 0 ? openForwarder(receiptsRpcUrl) : null,
    chainState,
    chainId: () => ports.chain.id,
    redact: createRedactor([...upstreamRpcUrl, ...upstreamWsUrl, ...receiptsRpcUrl]),
    uptime,
  })
}

function openSubscriptions({ current }: GatewayInputs, answers: SharedAnswers, chainState: ChainState): Subscriptions {
  return new Subscriptions({
    isListed: (address) => current.isListed(address),
    hasList: () => current.hasTokens,
    delay: () => new Promise((resolve) => setTimeout(resolve, HEAD_RETRY_MS)),
    readBlock: async (number) => {
      const call = readCall('eth_getBlockByNumber', [quantity(number), false], chainState)
      return parseShallowJson(await answers.answerForAll(call))
    },
  })
}
