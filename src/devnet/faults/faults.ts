import type { Hex } from '../../lib/hex.ts'
import type { EmittedLog } from '../chain/chain-types.ts'

export const subscriptionKinds = ['pendingLogs', 'logs', 'newHeads'] as const
export type DevnetSubscriptionKind = (typeof subscriptionKinds)[number]

/** An HTTP answer other than 200. */
export type HttpRefusal = {
  status: number
  /** Sent as `Retry-After`. */
  retryAfterSeconds?: number
  /** Sent in place of the status's usual error. */
  body?: string
}

export const noFaults = {
  // Notifications on sockets.
  /** These subscriptions are accepted and stay silent, as `pendingLogs` does on a node without pre-confirmations. */
  silent: [] as readonly DevnetSubscriptionKind[],
  /** These subscriptions are refused with -32602. */
  refused: [] as readonly DevnetSubscriptionKind[],
  /** Number of times each notification is sent. */
  repeats: 1,
  /** Number of the next flashblocks with logs that are not pushed. HTTP reads and the sealed block contain them. */
  lostFlashes: 0,
  /** Every n-th flashblock with logs is not pushed; 0 for none. */
  loseEvery: 0,
  /** `one`: a message per new log. `all`: the older shape, an array of all pending logs at every flashblock. */
  shape: 'one' as 'one' | 'all',
  /** The logs of a flashblock are not pushed in block order. */
  shuffle: false,
  /** The last log of each flashblock is pushed with the flashblock after it. */
  holdsLastLog: false,
  /** A flashblock is pushed only after this many more seals; heads and sealed logs are on time. */
  pushDelayBlocks: 0,
  /** New sockets get this refusal. */
  sockets: undefined as HttpRefusal | undefined,
  /** Sockets stay open and send nothing, not even a pong. */
  frozen: false,

  // Pre-confirmations and seals.
  /**
   * The answer for `pending`.
   * - `shown`: the block being built.
   * - `numberless`: the block being built, with number and hash null.
   * - `partial`: the block being built, with a hash that changes at every flashblock, also in logs and notifications.
   * - `behind`: a pending block that stopped some blocks ago, with its logs; nothing is pushed.
   * - `latest`: no pre-confirmations: pending is latest, no pending logs, no `pendingLogs`.
   * - `null`: as `latest`, but the pending block reads as null.
   */
  pending: 'shown' as 'shown' | 'numberless' | 'partial' | 'behind' | 'latest' | 'null',
  /** Every n-th pre-confirmed transaction is not in its sealed block; 0 for none. */
  dropEvery: 0,
  /** A reorganisation follows every n-th seal, with the transaction faults of a seal; 0 for none. */
  reorgEvery: 0,
  reorgDepth: 1,

  // Answers over HTTP and over sockets.
  /** Answered instead of the true chain id. */
  chainId: undefined as number | undefined,
  /** Blocks that one `eth_getLogs` may span. */
  rangeBound: 2_000,
  /** Logs that one `eth_getLogs` may return. */
  resultsBound: 20_000,
  /** The refusal of too many logs suggests a range, as reth does. A single block is then answered in full. */
  suggestRange: false,
  /** `blockHash` beside `fromBlock` or `toBlock` is refused, as nodes do. The interface document ignores the two. */
  strictFilters: false,
  /** Number of the next `eth_getLogs` by block hash that return no logs, as if the block were not indexed yet. */
  emptyLogs: 0,
  /** Number of the next `eth_getLogs` by the hash of a known block that are refused: block not found. */
  missingByHash: 0,
  /** The tags `safe` and `finalized` are answered, or refused with -32602. */
  finality: 'answered' as 'answered' | 'refused',

  // HTTP only.
  /** Every RPC, or the list, gets this refusal. */
  rpc: undefined as HttpRefusal | undefined,
  list: undefined as HttpRefusal | undefined,
  /** RPCs over HTTP reach a replica this many blocks behind, which has no pre-confirmations. */
  lagBlocks: 0,
  /** Only every n-th request reaches that replica, as behind a load balancer; 0 for all. */
  lagEvery: 0,
  delayMs: 0,
  /** HTTP requests are received and never answered. */
  hangs: false,
  /** Every answer over HTTP breaks off in the middle of its body. */
  cutBody: false,
}

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
  clear: () => void
}
