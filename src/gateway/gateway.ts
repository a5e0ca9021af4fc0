import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { ChainIdentity } from '../chain/rpc/chain-id.ts'
import { type Pass, parseJson, Rpc } from '../chain/rpc/client.ts'
import type { UpstreamError } from '../chain/rpc/error.ts'
import type { Heard } from '../chain/source/source.ts'
import type { Config } from '../config.ts'
import { Budget } from '../edge/limits/byte-budget.ts'
import type { Hub } from '../edge/live/hub.ts'
import type { View } from '../edge/select/view.ts'
import type { Metrics } from '../metrics.ts'
import { Answers } from './answers.ts'
import { readQuestion } from './call.ts'
import { Moment } from './chain-state.ts'
import { RpcPosts } from './http.ts'
import { Rates } from './rate-limit.ts'
import { hiding } from './redact.ts'
import { RpcLines } from './sockets.ts'
import { Exchange } from './subscriptions.ts'
import { Foreign } from './unlisted-contracts.ts'

/** Long answers that were not taken yet, all together and of one address. */
const UNSENT_BOUND_BYTES = 256 * 2 ** 20
const UNSENT_SHARE_BYTES = 64 * 2 ** 20
/** A head that the node does not have yet is asked for again after this. */
const REST_MS = 50
/** What the filters of one address may weigh: each so much, and as much as it names. */
const FILTERS_SHARE = 50_000
/** Bytes by which the subscriptions of one life of the relay are told from those of the next. */
const ID_PREFIX_BYTES = 12

type Asked = {
  readonly config: Config
  readonly upstream: { readonly rpcUrls: readonly string[]; readonly wsUrls: readonly string[] }
  readonly view: View
  readonly hub: Hub
  readonly metrics: Metrics
  readonly chain: ChainIdentity
  readonly addressOf: (incoming: IncomingMessage) => string
  readonly now: () => number
  readonly uptime: () => number
  readonly dice: () => number
  readonly say: (kind: string, detail: unknown) => void
}

/** The relay as a node: what it is asked it passes on, once for all, and what the node says it says to all. */
export function openAsking({ config, upstream, view, hub, metrics, addressOf, uptime, ...ports }: Asked) {
  const { chain } = ports
  // What one client asks must not keep an endpoint from answering the others.
  const blames = ({ kind }: UpstreamError) => kind === 'wrong_chain'
  const receiptUrls = config.RECEIPTS_RPC_URL ?? []
  const moment = new Moment()
  const passTo = (urls: readonly string[]): Pass => {
    const rpc = new Rpc({ urls, ...ports, blames })
    return (method, params) => {
      metrics.questionsPassed.inc({ method })
      return rpc.pass(method, params)
    }
  }
  const answers = new Answers({
    pass: passTo(upstream.rpcUrls),
    receipts: receiptUrls.length > 0 ? passTo(receiptUrls) : null,
    moment,
    chainId: () => chain.id,
    hide: hiding([...upstream.rpcUrls, ...upstream.wsUrls, ...receiptUrls]),
    uptime,
  })
  const foreign = config.RPC_OPEN ? new Foreign() : null
  const exchange = new Exchange({
    lists: (address) => view.lists(address),
    hasList: () => view.tokens.length > 0,
    foreign,
    rest: () => new Promise((resolve) => setTimeout(resolve, REST_MS)),
    block: async (number) => {
      const question = readQuestion('eth_getBlockByNumber', [`0x${number.toString(16)}`, false], moment)
      return parseJson(String(await answers.answerAll(question)))
    },
  })
  const shared = {
    service: { answers, moment },
    rates: new Rates(config.RPC_RATE),
    unsent: new Budget(UNSENT_BOUND_BYTES, UNSENT_SHARE_BYTES),
    uptime,
  }
  const lines = new RpcLines({
    ...shared,
    exchange,
    filters: new Budget(Number.POSITIVE_INFINITY, FILTERS_SHARE),
    attendance: hub.attendance,
    backlogBoundBytes: config.BACKLOG_BOUND_BYTES,
    idPrefix: `0x${randomBytes(ID_PREFIX_BYTES).toString('hex')}`,
    shownOut: () => metrics.shownOut.inc(),
    count: {
      came: () => metrics.listeners.inc({ carrier: 'rpc' }),
      went: () => metrics.listeners.dec({ carrier: 'rpc' }),
    },
  })
  const hear = (heard: Heard): void => {
    moment.hear(heard)
    exchange.hear(heard)
  }
  return { posts: new RpcPosts({ ...shared, addressOf }), lines, foreign, hear }
}
