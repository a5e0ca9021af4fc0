import type { Hex } from '../../lib/hex.ts'
import type { EmittedLog } from '../chain/block-types.ts'

/** The supported subscriptions. */
export const subscriptionKinds = ['pendingLogs', 'logs', 'newHeads'] as const
export type DevnetSubscriptionKind = (typeof subscriptionKinds)[number]

/** An HTTP answer other than 200. */
export type HttpRefusal = {
  status: number
  /** Sent as `Retry-After`. */
  retryAfterSeconds?: number
  /** Sent instead of the status's usual error. */
  body?: string
}

/** Faults of what sockets push. */
const pushFaults = {
  /** These subscriptions are accepted and stay silent, as `pendingLogs` does on a node without pre-confirmations. */
  silent: [] as readonly DevnetSubscriptionKind[],
  /** These subscriptions are refused with -32602. */
  refused: [] as readonly DevnetSubscriptionKind[],
  /** How often each notification is sent. */
  repeats: 1,
  /** How many of the next flashblocks with logs are not pushed; HTTP reads and the sealed block still contain them. */
  lostFlashes: 0,
  /** Every n-th flashblock with logs is lost in this way; 0 for none. */
  loseEvery: 0,
  /** `one`: a message per new log. `all`: the older shape, an array of all pending logs at every flashblock. */
  shape: 'one' as 'one' | 'all',
  /** The logs of a flashblock are pushed in another order than that of the block. */
  shuffle: false,
  /** The last log of each flashblock is pushed with the flashblock after it. */
  holdsLastLog: false,
  /** A flashblock is pushed only after this many more seals; heads and sealed logs are on time. */
  pushDelayBlocks: 0,
  /** New sockets get this refusal. */
  sockets: undefined as HttpRefusal | undefined,
  /** Sockets stay open and send nothing any more, not even a pong. */
  frozen: false,
}

/** Faults of pre-confirmations and of sealing. */
const preconfirmationFaults = {
  /**
   * What `pending` answers.
   * - `shown`: the block being built.
   * - `numberless`: the same with number and hash null.
   * - `partial`: the same with a non-zero hash that changes at every flashblock; logs have it too, also when pushed.
   * - `behind`: a pending block that stopped some blocks ago, and so did its logs; nothing is pushed.
   * - `latest`: no pre-confirmations: pending is latest, no pending logs, no `pendingLogs`.
   * - `null`: the same, but the block reads as null.
   */
  pending: 'shown' as 'shown' | 'numberless' | 'partial' | 'behind' | 'latest' | 'null',
  /** Every n-th pre-confirmed transaction is not in its sealed block; 0 for none. */
  dropEvery: 0,
  /** A reorganisation follows every n-th seal, with the same faults for transactions as at a seal; 0 for none. */
  reorgEvery: 0,
  /** How many blocks the reorganisation replaces. */
  reorgDepth: 1,
}

/** Faults of answers, over HTTP and over sockets. */
const answerFaults = {
  /** Answered instead of the true chain id. */
  chainId: undefined as number | undefined,
  /** How many blocks one `eth_getLogs` may span. */
  rangeBound: 2_000,
  /** How many logs one `eth_getLogs` may return. */
  resultsBound: 20_000,
  /** Whether the refusal of too many logs suggests a range, as reth does. Then a single block is answered in full. */
  suggestRange: false,
  /**
   * Whether `blockHash` beside `fromBlock` or `toBlock` is refused, as nodes do. Without the fault the two are ignored,
   * as the interface document specifies.
   */
  strictFilters: false,
  /** How many of the next `eth_getLogs` by block hash wrongly return no logs, as when a block is not indexed yet. */
  emptyLogs: 0,
  /** How many of the next `eth_getLogs` by the hash of a known block are refused: block not found. */
  missingByHash: 0,
  /** Whether the tags `safe` and `finalized` are answered, or refused with -32602. */
  finality: 'answered' as 'answered' | 'refused',
}

/** Faults of HTTP only. */
const httpFaults = {
  /** Every RPC over HTTP gets this refusal. */
  rpc: undefined as HttpRefusal | undefined,
  /** The list gets this refusal. */
  list: undefined as HttpRefusal | undefined,
  /** RPCs over HTTP reach a replica this many blocks behind, which has no pre-confirmations. */
  lagBlocks: 0,
  /** Only every n-th request reaches that replica, as behind a load balancer; 0 for all. */
  lagEvery: 0,
  /** Delay of every answer over HTTP. */
  delayMs: 0,
  /** HTTP requests are received and never answered. */
  hangs: false,
  /** Every answer over HTTP breaks off in the middle of its body. */
  cutBody: false,
}

/** The default of every field. */
export const noFaults = { ...pushFaults, ...preconfirmationFaults, ...answerFaults, ...httpFaults }

/** The faults of an upstream. A test sets fields, or calls the functions. */
export type Faults = typeof noFaults & {
  /** Closes every socket now; new ones are accepted unless `sockets` is set. */
  cutSockets: () => void
  /** Closes every socket now and refuses new ones until the faults are cleared. */
  dropSockets: () => void
  /** A pre-confirmed transaction will not be in its sealed block. */
  drop: (hash: Hex) => void
  /** A pre-confirmed transaction will be in the block after its own. */
  move: (hash: Hex) => void
  /** A pre-confirmed transaction will have these logs in its sealed block; its state changes stay. */
  change: (hash: Hex, logs: readonly EmittedLog[]) => void
  /** Ends all faults. */
  clear: () => void
}
