import type { EmittedLog } from '../chain/block.ts'
import type { HexString } from '../chain/hex.ts'

/** What can be subscribed to. */
export const subscriptionKinds = ['pendingLogs', 'logs', 'newHeads'] as const
export type DevnetSubscriptionKind = (typeof subscriptionKinds)[number]

/** An HTTP answer other than 200. */
export type HttpRefusal = {
  status: number
  /** Sent as `Retry-After`. */
  retryAfterSeconds?: number
  /** Sent instead of the error that belongs to the status. */
  body?: string
}

/** What sockets are pushed. */
const pushFaults = {
  /** These subscriptions are accepted and then say nothing, as `pendingLogs` does where nothing is pre-confirmed any more. */
  silent: [] as readonly DevnetSubscriptionKind[],
  /** These subscriptions are refused with -32602. */
  refused: [] as readonly DevnetSubscriptionKind[],
  /** How often each notification is sent. */
  repeats: 1,
  /** So many of the next flashblocks with logs never reach a subscriber; reads over HTTP know them, and so will the sealed block. */
  lostFlashes: 0,
  /** Every so many-th flashblock with logs is lost like that; 0 for none. */
  loseEvery: 0,
  /** `one`: a log per message, only what is new. `all`: the older shape, an array of all pending logs at every flashblock. */
  shape: 'one' as 'one' | 'all',
  /** The logs of one flashblock are pushed in another order than they stand in. */
  shuffle: false,
  /** A flashblock is pushed only once so many more blocks are sealed than when it was made; heads and sealed logs are on time. */
  pushDelayBlocks: 0,
  /** New sockets are refused like this. */
  sockets: undefined as HttpRefusal | undefined,
  /** Sockets stay open and nothing is said any more, not even a pong. */
  frozen: false,
}

/** What is pre-confirmed, and what becomes of it. */
const preconfirmationFaults = {
  /**
   * What `pending` answers. `shown`: the block being built. `numberless`: the same with number and hash null.
   * `partial`: the same with a hash that is not zero and another at every flashblock; its logs name it, also those that are pushed.
   * `behind`: it got stuck some blocks ago, and so did its logs; nothing is pushed.
   * `latest`: nothing is pre-confirmed here, pending is latest, no pending logs, no `pendingLogs`. `null`: the same, but the block reads as null.
   */
  pending: 'shown' as 'shown' | 'numberless' | 'partial' | 'behind' | 'latest' | 'null',
  /** Every so many-th pre-confirmed transaction is not in its sealed block; 0 for none. */
  dropEvery: 0,
  /** Every so many-th seal is followed by a reorganisation, in which transactions fare as at a seal; 0 for none. */
  reorgEvery: 0,
  /** How many blocks it replaces. */
  reorgDepth: 1,
}

/** How calls are answered, over HTTP and over sockets. */
const answerFaults = {
  /** The chain id that is answered instead of the true one. */
  chainId: undefined as number | undefined,
  /** How many blocks one `eth_getLogs` may span. */
  rangeBound: 2_000,
  /** How many logs one `eth_getLogs` may answer. */
  resultsBound: 20_000,
  /** Whether the refusal of too many logs says which range to try, as reth does, which tells a single block whole in any case. */
  suggestRange: false,
  /**
   * Whether `blockHash` beside `fromBlock` or `toBlock` is refused, as nodes do; in fair weather the two are ignored,
   * as the interface document says.
   */
  strictFilters: false,
  /** So many of the next `eth_getLogs` by a block's hash that would find logs find none, as where a block is not indexed yet. */
  emptyLogs: 0,
  /** So many of the next `eth_getLogs` by the hash of a known block are refused: block not found. */
  missingByHash: 0,
  /** Whether the tags `safe` and `finalized` are known, or refused with -32602. */
  finality: 'told' as 'told' | 'refused',
}

/** What happens to HTTP alone. */
const httpFaults = {
  /** Every RPC over HTTP is refused like this. */
  rpc: undefined as HttpRefusal | undefined,
  /** The list is refused like this. */
  list: undefined as HttpRefusal | undefined,
  /** RPCs over HTTP are answered by a replica that is so many blocks behind and pre-confirms nothing. */
  lagBlocks: 0,
  /** Only every so many-th request comes to that replica, as behind a load balancer; 0 for all. */
  lagEvery: 0,
  /** Every answer over HTTP waits so long. */
  delayMs: 0,
  /** What is asked over HTTP now is heard, and not answered, ever. */
  hangs: false,
  /** Every answer over HTTP breaks off in the middle of its body. */
  cutBody: false,
}

/** Fair weather: what every field is until a test sets it. */
export const noFaults = { ...pushFaults, ...preconfirmationFaults, ...answerFaults, ...httpFaults }

/** The faults that an upstream can be told to have, and what makes them pass. */
export type Faults = typeof noFaults & {
  /** Closes every socket now; new ones are welcome unless `sockets` says otherwise. */
  cutSockets: () => void
  /** Closes every socket now and lets no new one in until fair weather. */
  dropSockets: () => void
  /** A pre-confirmed transaction will not be in its sealed block. */
  drop: (hash: HexString) => void
  /** A pre-confirmed transaction will be in the block after its own. */
  move: (hash: HexString) => void
  /** A pre-confirmed transaction will have these logs in its sealed block; what it moved stays moved. */
  change: (hash: HexString, logs: readonly EmittedLog[]) => void
  /** No faults any more. */
  clear: () => void
}
