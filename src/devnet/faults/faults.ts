import type { Hex } from '../../lib/hex.ts'
import type { EmittedLog } from '../chain/chain-types.ts'

export const subscriptionKinds = ['pendingLogs', 'logs', 'newHeads'] as const
export type DevnetSubscriptionKind = (typeof subscriptionKinds)[number]

/** An HTTP answer other than 200. */
type HttpRefusal = { status: number }

export const noFaults = {
  // Notifications on sockets.
  /** Subscriptions that are accepted and stay silent, as `pendingLogs` does on a node without pre-confirmations. */
  silent: [] as readonly DevnetSubscriptionKind[],
  /** Subscriptions that are refused with -32602. */
  refused: [] as readonly DevnetSubscriptionKind[],
  /** Number of times each notification is sent. */
  repeats: 1,
  /** Number of the next flashblocks with logs that are not pushed. HTTP reads and the sealed block contain them. */
  lostFlashes: 0,
  /** `one`: a message per new log. `all`: the older shape, an array of all pending logs at every flashblock. */
  shape: 'one' as 'one' | 'all',
  /** Whether the logs of a flashblock are pushed in another order than in the block. */
  shuffle: false,
  /** Refusal that each new socket gets; undefined accepts it. */
  sockets: undefined as HttpRefusal | undefined,
  /** Sockets stay open and send nothing, not even a pong. */
  frozen: false,

  // Pre-confirmations and seals.
  /**
   * Answers for the tag `pending`.
   * - `shown`: the block being built.
   * - `numberless`: the block being built, with number and hash null.
   * - `partial`: the block being built, with a hash that changes at every flashblock, also in logs and notifications.
   * - `behind`: a pending block from some blocks ago, which no longer changes, with its logs; nothing is pushed.
   * - `latest`: no pre-confirmations: the latest block, no pending logs, no `pendingLogs`.
   * - `null`: no pre-confirmations, and the pending block reads as null.
   */
  pending: 'shown' as 'shown' | 'numberless' | 'partial' | 'behind' | 'latest' | 'null',
  /** Every n-th pre-confirmed transaction is not in its sealed block; 0 for none. */
  dropEvery: 0,

  // Answers over HTTP and over sockets.
  /** Chain id that is answered instead of the true one. */
  chainId: undefined as number | undefined,
  /** Limit of blocks that one `eth_getLogs` may span. */
  rangeBound: 2_000,
  /** Limit of logs that one `eth_getLogs` may return. */
  resultsBound: 20_000,
  /** Whether a refusal of too many logs suggests a range, as reth does. A single block is then answered in full. */
  suggestRange: false,
  /** Number of the next `eth_getLogs` by block hash that return no logs, as if the block were not indexed yet. */
  emptyLogs: 0,
  /** Number of the next `eth_getLogs` by the hash of a known block that are refused: block not found. */
  missingByHash: 0,
  /** Whether the tags `safe` and `finalized` are answered, or refused with -32602. */
  finality: 'answered' as 'answered' | 'refused',

  // HTTP only.
  /** Refusal that every RPC gets; `list` is that of every request for the list. */
  rpc: undefined as HttpRefusal | undefined,
  list: undefined as HttpRefusal | undefined,
  /** Number of blocks by which the replica that answers RPCs over HTTP is behind. It has no pre-confirmations. */
  lagBlocks: 0,
  /** Every n-th HTTP request reaches the replica that is behind, as with a load balancer; 0 for all requests. */
  lagEvery: 0,
  delayMs: 0,
}

/** Faults of the node and of the list. A test sets fields, or calls the functions. */
export type Faults = typeof noFaults & {
  /** Closes every socket now. The node accepts new sockets, unless the fault `sockets` is set. */
  cutSockets: () => void
  /** Closes every socket now, and refuses new sockets until the faults are cleared. */
  dropSockets: () => void
  /** Omits a pre-confirmed transaction from its sealed block. */
  drop: (hash: Hex) => void
  /** Moves a pre-confirmed transaction to the block after its own. */
  move: (hash: Hex) => void
  /** Gives a pre-confirmed transaction these logs in its sealed block. Its state changes stay. */
  change: (hash: Hex, logs: readonly EmittedLog[]) => void
  clear: () => void
}
