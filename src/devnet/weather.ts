import type { Fate } from './chain.ts'
import type { Hex } from './hex.ts'

/** What can be subscribed to. */
export const kinds = ['pendingLogs', 'logs', 'newHeads'] as const
export type Kind = (typeof kinds)[number]

/** An HTTP answer other than 200. */
export type HttpRefusal = {
  status: number
  /** Sent as `Retry-After`. */
  retryAfterSeconds?: number
  /** Sent instead of the error that belongs to the status. */
  body?: string
}

/** Fair weather: what every field is until a test sets it. */
const fair = {
  /** These subscriptions are accepted and then say nothing, as `pendingLogs` does where nothing is pre-confirmed any more. */
  silent: [] as readonly Kind[],
  /** These subscriptions are refused with -32602. */
  refused: [] as readonly Kind[],
  /** How often each notification is sent. */
  repeats: 1,
  /** So many of the next flashblocks with logs never reach a subscriber; reads over HTTP know them, and so will the sealed block. */
  lostFlashes: 0,
  /** Every so many-th flashblock with logs is lost like that; 0 for none. */
  loseEvery: 0,
  /** Every so many-th pre-confirmed transaction is not in its sealed block; 0 for none. */
  dropEvery: 0,
  /** `one`: a log per message, only what is new. `all`: the older shape, an array of all pending logs at every flashblock. */
  shape: 'one' as 'one' | 'all',
  /**
   * What `pending` answers. `shown`: the block being built. `numberless`: the same with number and hash null.
   * `latest`: nothing is pre-confirmed here, pending is latest, no pending logs, no `pendingLogs`. `null`: the same, but the block reads as null.
   */
  pending: 'shown' as 'shown' | 'numberless' | 'latest' | 'null',
  /** Every RPC over HTTP is refused like this. */
  rpc: undefined as HttpRefusal | undefined,
  /** The list is refused like this. */
  list: undefined as HttpRefusal | undefined,
  /** New sockets are refused like this. */
  sockets: undefined as HttpRefusal | undefined,
  /** Sockets stay open and nothing is said any more, not even a pong. */
  frozen: false,
  /** The chain id that is answered instead of the true one. */
  chainId: undefined as number | undefined,
  /** How many blocks one `eth_getLogs` may span. */
  rangeBound: 2_000,
  /**
   * Whether `blockHash` beside `fromBlock` or `toBlock` is refused, as nodes do; in fair weather the two are ignored,
   * as the interface document says.
   */
  strictFilters: false,
  /** How many logs one `eth_getLogs` may answer. */
  resultsBound: 20_000,
  /** Every answer over HTTP waits so long. */
  delayMs: 0,
}

/** The faults that an upstream can be told to have, and what makes them pass. */
export type Weather = typeof fair & {
  /** Closes every socket now; new ones are welcome unless `sockets` says otherwise. */
  cut: () => void
  /** Closes every socket now and lets no new one in until fair weather. */
  dropSockets: () => void
  /** A pre-confirmed transaction will not be in its sealed block. */
  drop: (hash: Hex) => void
  /** A pre-confirmed transaction will be in the block after its own. */
  move: (hash: Hex) => void
  /** No faults any more. */
  clear: () => void
}

/** How many transactions may be named to be dropped or moved. */
const NAMED_BOUND = 10_000

/** The weather, and what the rest of the devnet asks of it. */
export const createWeather = (cut: () => void) => {
  const named = new Map<Hex, Fate>()
  let flashes = 0
  let transactions = 0
  const name = (hash: Hex, fate: Fate) => {
    if (named.size >= NAMED_BOUND) throw new Error(`no more than ${NAMED_BOUND} transactions can be named`)
    named.set(hash, fate)
  }
  const weather: Weather = {
    ...fair,
    cut,
    dropSockets: () => {
      weather.sockets = { status: 503 }
      cut()
    },
    drop: (hash) => name(hash, 'dropped'),
    move: (hash) => name(hash, 'moved'),
    clear: () => {
      named.clear()
      Object.assign(weather, fair)
    },
  }
  return {
    weather,
    /** What becomes of a pre-confirmed transaction. */
    fateOf: ({ hash }: { hash: Hex }): Fate => {
      const fate = named.get(hash)
      named.delete(hash)
      transactions += 1
      return fate ?? (isNth(transactions, weather.dropEvery) ? 'dropped' : 'kept')
    },
    /** Whether a flashblock is lost on its way to the subscribers. */
    losesFlash: (): boolean => {
      flashes += 1
      if (weather.lostFlashes === 0) return isNth(flashes, weather.loseEvery)
      weather.lostFlashes -= 1
      return true
    },
    /** Whether anything is pre-confirmed at all. */
    preconfirms: () => weather.pending === 'shown' || weather.pending === 'numberless',
  }
}
export type Skies = ReturnType<typeof createWeather>

const isNth = (count: number, every: number) => every > 0 && count % every === 0
