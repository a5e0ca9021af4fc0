// The messages of stocktape.v1, made from the schemas of the relay that serves this file.

/** An address: 40 hex digits, lower case. */
export type Address = string

/** 32 bytes, a hash or a topic: 64 hex digits, lower case. */
export type Word = string

/** An exact number that must not be rounded: no exponent, no plus sign, no trailing zeros, 0 for zero. */
export type Decimal = string

/** An amount in the token's smallest unit. */
export type Raw = string

/** Money, always with two decimals. */
export type Money = string

/** RFC 3339, UTC, with milliseconds. */
export type Time = string

/** A place on the tape, <epoch>.<seq>, or <epoch>.<seq>.<n> in the sealed view. Opaque text for since, after and before. */
export type Position = string

/** The permanent name of an on-chain fact: <block number>-<transaction hash>-<log index>. */
export type Key = string

/** The first 16 bytes, in hex, of SHA-256 over texts that are joined by line feeds. */
export type Digest = string

/** A block. */
export type Block = {
  readonly number: number
  /** Null while the block is pre-confirmed, even if the upstream sends one. */
  readonly hash: Word | null
  /** The block's own time. */
  readonly timestamp: Time | null
}

/** The transaction, and the index of the log. */
export type Tx = {
  readonly hash: Word
  /** The transaction's index in its block. */
  readonly index: number
  /** The log's index in its block. */
  readonly log_index: number
}

/** preconfirmed: published before the block is sealed; sealed: in a block with a hash. */
export type Stage = "preconfirmed" | "sealed"

/** How the relay receives events now. sealed: nothing is pre-confirmed; down: nothing arrives. */
export type Source = "pendingLogs" | "poll" | "sealed" | "down"

/** Why this is the source, and not a better one. */
export type SourceReason = "ok" | "silent" | "refused" | "behind" | "no_pending" | "unreachable" | "stale_head"

/** How the log reached the relay. */
export type Ingest = {
  /** pendingLogs: pushed; poll: polled; sealed: read with its sealed block; backfill: read after an interruption. */
  readonly source: "pendingLogs" | "poll" | "sealed" | "backfill"
  /** When the relay received the log. */
  readonly received_at: Time
  /** When it was written to the tape. */
  readonly published_at: Time
}

/** The reference value of a token (NAV) with its age. Never a price to trade at. It already includes the multiplier. */
export type ReferenceValue = {
  /** In USD; null when missing or invalid. */
  readonly price: Decimal | null
  /** When it was last published. */
  readonly updated_at: Time | null
  /** Whole seconds from updated_at to the message's own time, rounded down. */
  readonly age_s: number | null
  /** stale: older than stale_after_s, still with a price; missing: no price; invalid: the price or its time is unusable. */
  readonly state: "fresh" | "stale" | "missing" | "invalid"
  /** The age above which the value is stale. */
  readonly stale_after_s: number
  /** Whether the registry of the oracle reports that the feed is frozen for a corporate action; null if that is unknown. */
  readonly frozen: boolean | null
}

/** A pool on the chain where the token trades. */
export type Venue = {
  readonly kind: "uniswap_v3" | "uniswap_v4" | "slipstream"
  /** The address of the pool; in Uniswap v4 its id. */
  readonly pool: Address | Word
  /** The fee of a swap in basis points; null if the upstream does not give it. */
  readonly fee_bps: Decimal | null
  /** The other token of the pool, taken as one dollar. */
  readonly currency: {
    readonly symbol: string
    readonly address: Address
  }
  /** The contract that may change a Uniswap v4 swap after its event; null if only the id of the pool is known. With a contract the amounts of a trade are those of the pool, not of the trader. */
  readonly hooks: Address | "none" | null
}

/** The newest known block numbers. */
export type Head = {
  /** The block being built. */
  readonly pending: number | null
  /** The newest sealed block. */
  readonly sealed: number | null
  /** The safe block: a reorg below it is unlikely. */
  readonly safe: number | null
  /** The finalized block: nothing below it changes. */
  readonly finalized: number | null
}

/** A token's record exactly as the Read API sends it: its own JSON types, unknown fields kept. */
export type TokenRecord = {
  readonly contract_address?: string
  readonly symbol?: string
  readonly name?: string
  readonly decimals?: number
  readonly icon_url?: string
  readonly total_supply?: number
  readonly isin?: string
  readonly multiplier?: number
  readonly paused_features?: readonly number[]
  readonly nav_price?: number
  readonly nav_price_updated_at?: string
  readonly [field: string]: unknown
}

/** Why a request is refused: the error record of the Read API. */
export type ErrorRecord = {
  /** The HTTP status. */
  readonly code: number
  /** A word for programs. */
  readonly reason: string
  /** A sentence that names what is wrong and what to do. */
  readonly message: string
  readonly details: readonly ({
    /** stocktape/ and the reason. */
    readonly "@type": string
    readonly [name: string]: unknown
  })[]
}

/** The last line of an export with receipt=true: what the export contains. */
export type Receipt = {
  readonly type: "receipt"
  /** The export begins after this position. */
  readonly after: Position
  /** The export ends with this position. */
  readonly through: Position
  /** The number of messages. */
  readonly messages: number
  /** The first 16 bytes, in hex, of SHA-256 over the ids of the messages, joined by line feeds. */
  readonly digest: Digest
}

/** A page of history. A short or empty page is not necessarily the last. */
export type EventsPage = {
  readonly events: readonly Update[]
  /** Give it as after, or with order=desc as before, for the next page; null if there is none. */
  readonly next: Position | null
}

/** Every stored message about one on-chain fact. */
export type OneFact = {
  readonly key: Key
  /** Oldest first, including the seals that list the key. */
  readonly events: readonly Update[]
  /** The current stage of the fact. */
  readonly stage: "preconfirmed" | "sealed" | "safe" | "finalized" | "retracted"
}

/** One hour of pre-confirmations and their outcome. */
export type HourScore = {
  /** When this UTC hour begins. A message counts in the hour of its own time. */
  readonly hour: Time
  /** Messages that published a key as preconfirmed. */
  readonly published: number
  /** Open keys that a seal listed, each counted once. */
  readonly sealed: number
  /** Messages with late: true whose block is at most a minute older than their time. */
  readonly late: number
  /** The other messages with late: true: read later, for example after an interruption. */
  readonly backfilled: number
  /** retract messages. */
  readonly retracted: number
  /** amend messages. */
  readonly amended: number
  /** Milliseconds from the publication of a sealed key to its seal; null if none was sealed. */
  readonly lead_ms: {
    /** Half of them had at most this lead. */
    readonly p50: number | null
    /** 95 of 100 had at most this lead. */
    readonly p95: number | null
  }
  /** Seconds of the hour in each source. Time during which the service did not run is not counted. */
  readonly seconds: {
    /** Pre-confirmed logs were pushed. */
    readonly pendingLogs: number
    /** Pre-confirmed logs were polled. */
    readonly poll: number
    /** Nothing was pre-confirmed. */
    readonly sealed: number
    /** The chain could not be read. */
    readonly down: number
  }
}

/** The state of the service: the answer of /v1/status. */
export type ServiceStatus = {
  /** The id of the chain; null until it is known. */
  readonly chain_id: number | null
  /** Whether the upstream is the built-in chain: nothing on it is real. */
  readonly demo: boolean
  /** How the relay receives events now. */
  readonly source: Source
  /** Why this is the source. no_list: no list has been read. wrong_chain: every upstream URL is of another chain than the one set or on the tape. */
  readonly reason: "ok" | "silent" | "refused" | "behind" | "no_pending" | "unreachable" | "stale_head" | "no_list" | "wrong_chain"
  /** When this source began, for this reason; null before the first status message. */
  readonly started_at: Time | null
  readonly head: Head
  /** Age of the newest block whose logs were read, in milliseconds; null before the first. */
  readonly lag_ms: number | null
  /** The list of tokenized stocks. */
  readonly stocks: {
    /** When the list was last read; null before the first read. */
    readonly read_at: Time | null
    /** Whole seconds since read_at. */
    readonly age_s: number | null
    /** The number of tokens in the list. */
    readonly count: number | null
  }
  /** The tape: its ends and its size. */
  readonly tape: {
    /** The name of this tape: the part of a position before the dot. */
    readonly epoch: string
    /** The position after which no message has been deleted. */
    readonly oldest: Position
    /** The time of the first message after oldest; null if there is none. */
    readonly oldest_time: Time | null
    /** The end of the tape. */
    readonly end: Position
    /** The number of messages. */
    readonly messages: number
    /** The size of the tape: of its file, or in memory. */
    readonly bytes: number
    /** Whether positions survive a restart: false while the disk or NATS does not store the tape. */
    readonly durable: boolean
  }
  /** Clients connected now, by transport. */
  readonly clients: {
    /** WebSockets at /v1/ws. */
    readonly ws: number
    /** Server-sent events. */
    readonly sse: number
    /** NDJSON. */
    readonly ndjson: number
    /** Plain text. */
    readonly text: number
    /** WebSockets at /rpc. */
    readonly rpc: number
  }
  /** The hours on the tape, oldest first, the current one last; null while they are being counted. */
  readonly score: readonly HourScore[] | null
}

/** The answer of /healthz. */
export type Health = {
  /** The process answers. */
  readonly status: "ok"
}

/** The answer of /readyz: 200 when ready, else 503. */
export type Readiness = {
  /** Whether the service can serve clients now. */
  readonly status: "ready" | "unready"
  /** Why it is not ready; empty when it is. */
  readonly reasons: readonly string[]
  /** Whether the upstream is the built-in chain: nothing on it is real. */
  readonly demo: boolean
}

/** An access token, valid for about a minute in place of an API key. */
export type AccessToken = {
  /** The access token, for key=… in a URL or for the Authorization header. */
  readonly token: string
  /** After this time it opens no further connection. Open connections stay. */
  readonly expires_at: Time
}

/** Why the symbol or the name of a token may mislead a reader. mixed_scripts: letters of several scripts, such as Latin and Cyrillic; hidden_characters: characters that nobody sees; direction_override: characters that change the order in which a text is shown; looks_like_another: the symbol or the name looks like that of another listed token, or the symbol is the same. */
export type TokenWarning = "mixed_scripts" | "hidden_characters" | "direction_override" | "looks_like_another"

/** A bar of one token. */
export type Bar = {
  readonly symbol: string
  /** The first moment of the bar, in chain time. */
  readonly start: Time
  /** The first moment after the bar. */
  readonly end: Time
  /** 1 when a minute is first published, then one more each time. Of a longer bar: the sum over its minutes. */
  readonly revision: number
  /** The price of the first trade, in units of the currency; null if no trade has a price. */
  readonly open: Decimal | null
  readonly high: Decimal | null
  readonly low: Decimal | null
  /** The price of the last trade. */
  readonly close: Decimal | null
  /** currency_volume / volume, rounded half even to eight decimals. */
  readonly vwap: Decimal | null
  /** The number of trades; 0 if all of them are gone. */
  readonly trades: number
  /** Tokens that were traded. */
  readonly volume: Decimal
  /** The shares that they stood for; null if a multiplier is unknown. */
  readonly shares: Decimal | null
  /** Units of the currency that were traded. */
  readonly currency_volume: Decimal
  /** Tokens that left the pools. */
  readonly buy_volume: Decimal
  /** Units of the currency that were paid for them. */
  readonly buy_currency_volume: Decimal
  /** (price / nav.price − 1) × 10,000, rounded half even to two decimals; the currency is taken as one dollar. */
  readonly basis_bps: Decimal | null
  /** premium: against a fresh NAV; drift: against a stale or frozen NAV, from which the market may have moved. */
  readonly basis: "premium" | "drift" | null
  readonly nav: ReferenceValue
  /** The pools with trades in the bar: their addresses, or ids of Uniswap v4. */
  readonly venues: readonly (Address | Word)[]
  /** The first and the last block with a trade; null if there is none. */
  readonly blocks: {
    readonly first: number
    readonly last: number
  } | null
  /** Null, or why trades may be missing: the reason of a hole, or of a pool that was dropped inside. */
  readonly partial: string | null
  /** open: not over yet; closed: over, a reorg or a late trade may still change it; final: it does not change. */
  readonly state: "open" | "closed" | "final"
}

/** A page of bars, in the order of their start, then of their symbol. */
export type BarsPage = {
  /** The end of the tape when the bars were read. */
  readonly as_of: Position
  readonly interval: "1m" | "5m" | "15m" | "1h" | "4h" | "1d"
  readonly bars: readonly Bar[]
  /** Give it as since, or with order=desc as until, for the next page; null if there is none. */
  readonly next: Time | null
}

/** The fields of every message about one token. */
export type TokenUpdate<Type extends string> = {
  readonly type: Type
  /** The position of this message. Reconnect with it to receive what follows. */
  readonly id: Position
  /** The position of the previous message with this address and type; null if there is none, and in the sealed view. */
  readonly prev: Position | null
  /** The token's symbol; * concerns all tokens. */
  readonly symbol: string
  /** The token's contract. Unlike the symbol it never changes. */
  readonly address: Address
  /** The time at which it was written to the tape. */
  readonly time: Time
}

/** The fields of every message that concerns all tokens. */
export type GlobalUpdate<Type extends string> = {
  readonly type: Type
  /** The position of this message. Reconnect with it to receive what follows. */
  readonly id: Position
  /** The position of the previous message with this address and type; null if there is none, and in the sealed view. */
  readonly prev: Position | null
  readonly symbol: "*"
  readonly address: null
  /** The time at which it was written to the tape. */
  readonly time: Time
}

/** A fact on the chain: its name, how certain it is, and its place. */
export type OnChain = {
  readonly key: Key
  readonly stage: Stage
  /** First published when its block was already sealed; not new. */
  readonly late: boolean
  readonly block: Block
  readonly tx: Tx
}

/** The price of a token in a pool. */
export type QuoteReading = {
  readonly venue: Venue
  /** Units of the currency for one token; only in the state ok. Not a price to trade at. */
  readonly price: Decimal | null
  /** thin: less depth than POOL_MIN_DEPTH; empty: no liquidity in range; unreadable: no usable answer. */
  readonly state: "ok" | "thin" | "empty" | "unreadable"
  /** Units of the currency that buy the token up to one percent above the price. */
  readonly depth: Decimal | null
  /** (price / nav.price − 1) × 10,000, rounded half even to two decimals; the currency is taken as one dollar. */
  readonly basis_bps: Decimal | null
  /** premium: against a fresh NAV; drift: against a stale or frozen NAV, from which the market may have moved. */
  readonly basis: "premium" | "drift" | null
  readonly nav: ReferenceValue
  /** The block whose state was read; pre-confirmed if the hash is null. */
  readonly block: Block
}

/** The state of the market of the underlying stocks. */
export type MarketHours = {
  /** The market of the underlying stocks, such as XNYS. */
  readonly market: string
  /** unknown: the date is outside the calendar. */
  readonly state: "pre" | "open" | "post" | "overnight" | "closed" | "unknown"
  /** When this state began. */
  readonly started_at: Time | null
  /** When the next state begins. */
  readonly ends_at: Time | null
  /** The end of the last open state before this one; null if the calendar does not contain it. */
  readonly closed_at: Time | null
  /** The name of the holiday or early close; null otherwise. */
  readonly reason: string | null
  /** The time at which the calendar ends. */
  readonly valid_to: Time
}

/** A change that a log tells, or another source. */
export type FromLog<Other extends string> = { readonly source: "log" } & OnChain | { readonly source: Other } & { readonly [Field in keyof OnChain]?: never }

/** Tokens moved, were issued or destroyed. */
export type Movement<Type extends string> = TokenUpdate<Type> & OnChain & {
  /** The sender; the zero address for a mint. */
  readonly from: Address
  /** The recipient; the zero address for a burn. */
  readonly to: Address
  readonly raw: Raw
  /** raw / 10^decimals; null if the decimals are unknown. */
  readonly amount: Decimal | null
  /** The multiplier at the log's position in the chain; 1 if there is none, null if unknown. */
  readonly multiplier: Decimal | null
  /** floor(raw × multiplier) / 10^decimals, rounded down as the token contract does. */
  readonly shares: Decimal | null
  /** amount × nav.price, rounded half up. The NAV is the value of one token and already includes the multiplier. Not a price to trade at. */
  readonly reference_value: Money | null
  readonly nav: ReferenceValue
  /** The memo of the movement; null if there is none. */
  readonly memo: Word | null
  readonly ingest: Ingest
}

/** A message as an amend contains it: without the fields that the tape adds. */
export type Amended<Fact> = Fact extends unknown ? Omit<Fact, 'id' | 'prev' | 'time'> : never

/** Tokens moved from one holder to another. */
export type TransferMessage = Movement<"transfer">

/** Tokens were issued. */
export type MintMessage = Movement<"mint">

/** Tokens were destroyed. */
export type BurnMessage = Movement<"burn">

/** The issuer seized tokens from a holder. */
export type SeizeMessage = Movement<"seize">

/** A pool that the relay follows swapped the token. Not its transfers: tx.hash joins them. */
export type TradeMessage = TokenUpdate<"trade"> & OnChain & {
  readonly venue: Venue
  /** buy: the token left the pool; sell: it went in; null if nothing moved. */
  readonly side: "buy" | "sell" | null
  readonly raw: Raw
  /** raw / 10^decimals; null if the decimals are unknown. */
  readonly amount: Decimal | null
  /** The multiplier at the log's position in the chain; 1 if there is none, null if unknown. */
  readonly multiplier: Decimal | null
  /** floor(raw × multiplier) / 10^decimals, rounded down as the token contract does. */
  readonly shares: Decimal | null
  /** Units of the currency that went the other way, with the fee of the pool. */
  readonly currency_amount: Decimal
  /** currency_amount / amount, rounded half even to eight decimals; null if either is 0. */
  readonly price: Decimal | null
  /** The price of the pool after the swap, as in a quote; null at a bound. */
  readonly pool_price: Decimal | null
  /** amount × nav.price, rounded half up. The NAV is the value of one token and already includes the multiplier. Not a price to trade at. */
  readonly reference_value: Money | null
  /** (price / nav.price − 1) × 10,000, rounded half even to two decimals; the currency is taken as one dollar. */
  readonly basis_bps: Decimal | null
  /** premium: against a fresh NAV; drift: against a stale or frozen NAV, from which the market may have moved. */
  readonly basis: "premium" | "drift" | null
  readonly nav: ReferenceValue
  /** As in the event. It need not be the trader. */
  readonly sender: Address
  /** As in the event; null in Uniswap v4. */
  readonly recipient: Address | null
  readonly ingest: Ingest
}

/** An allowance was set. Sent only if types names it. */
export type ApprovalMessage = TokenUpdate<"approval"> & OnChain & {
  /** The holder of the tokens. */
  readonly owner: Address
  /** The address that may move them. */
  readonly spender: Address
  readonly raw: Raw
  /** raw / 10^decimals; null if the decimals are unknown. */
  readonly amount: Decimal | null
  readonly ingest: Ingest
}

/** A corporate action on the multiplier. A scheduled one takes effect when chain time reaches effective_at; its effective message precedes the first movement that uses it. */
export type MultiplierMessage = TokenUpdate<"multiplier"> & {
  readonly phase: "scheduled" | "effective" | "cancelled"
  /** The former multiplier. */
  readonly previous: Decimal | null
  /** The multiplier from effective_at on. */
  readonly multiplier: Decimal | null
  /** The block time from which the new multiplier is used. */
  readonly effective_at: Time | null
} & FromLog<"clock" | "list">

/** Features of a token were paused or unpaused. */
export type PauseMessage = TokenUpdate<"pause"> & {
  readonly change: "paused" | "unpaused"
  /** The features that changed, by name: TRANSFER, MINT, BURN, SEIZE, or UNKNOWN_<n>. */
  readonly features: readonly string[]
  /** Their numbers in the contract. */
  readonly feature_ids: readonly number[]
  /** The names of all features that are paused after this change. */
  readonly paused: readonly string[]
} & FromLog<"list">

/** The issuer announced a corporate action. */
export type ActionMessage = TokenUpdate<"action"> & OnChain & {
  readonly action_id: string
  /** The issuer's own text; show it as plain text. */
  readonly description: string
  /** The issuer's own text; show it as plain text. */
  readonly uri: string
  /** The facts between the start log and the end log; each has its own message. */
  readonly keys: readonly Key[]
}

/** A token was listed or delisted, or its record changed. */
export type TokenMessage = TokenUpdate<"token"> & {
  readonly change: "listed" | "delisted" | "changed"
  /** The names of the changed fields, without those that have their own message type. */
  readonly changed: readonly string[]
  readonly token: TokenRecord
  /** The former values of the changed fields. */
  readonly before: TokenRecord | null
} & FromLog<"list">

/** The reference value of a token, its time or its state changed. */
export type NavMessage = TokenUpdate<"nav"> & {
  readonly nav: ReferenceValue
  /** The former NAV; null if there was none. */
  readonly before: ReferenceValue | null
  /** The source of the change. */
  readonly source: "list" | "log"
}

/** A log of a listed token that has no message type of its own. Sent only if types names it. */
export type LogMessage = TokenUpdate<"log"> & OnChain & {
  readonly topics: readonly Word[]
  readonly data: string
}

/** A published fact did not happen. */
export type RetractMessage = TokenUpdate<"retract"> & {
  readonly key: Key
  /** The type under which it was published or last amended. */
  readonly fact_type: "transfer" | "mint" | "burn" | "seize" | "trade" | "approval" | "multiplier" | "pause" | "action" | "token" | "log"
  /** The position of the last message that published or amended it. */
  readonly fact_id: Position
  /** replaced: its content is sealed under replaced_by; reorg: the fact had been sealed; not_sealed: neither. */
  readonly reason: "reorg" | "replaced" | "not_sealed"
  readonly replaced_by: Key | null
  /** The value that is valid again, for multiplier, pause and token; else null. */
  readonly restored: {
    readonly multiplier: Decimal | null
  } | {
    readonly paused: readonly string[]
  } | {
    readonly token: TokenRecord
  } | null
  /** The sealed block that proves the retract. */
  readonly block: Block
}

/** The content of a published fact changed. Its type may change too. */
export type AmendMessage = TokenUpdate<"amend"> & {
  readonly key: Key
  /** The type under which it was published or last amended. */
  readonly fact_type: "transfer" | "mint" | "burn" | "seize" | "trade" | "approval" | "multiplier" | "pause" | "action" | "token" | "log"
  /** The position of the last message that published or amended it. */
  readonly fact_id: Position
  /** The names of the changed fields. */
  readonly changed: readonly string[]
  /** The whole new message, without id, prev and time. */
  readonly update: Amended<FactMessage>
}

/** A block with logs of this token was sealed. Lists all of them, and replaces an earlier seal of the same block number. */
export type SealMessage = TokenUpdate<"seal"> & {
  readonly block: Block
  /** The keys of all logs of the token in this block, in log order. */
  readonly keys: readonly Key[]
  /** For each key the type under which it was published or last amended, or part if the message of another key contains the log. */
  readonly types: readonly ("transfer" | "mint" | "burn" | "seize" | "trade" | "approval" | "multiplier" | "pause" | "action" | "token" | "log" | "part")[]
  /** The keys that are first published now with late: true. */
  readonly late_keys: readonly Key[]
  /** The number of keys. */
  readonly count: number
  /** The first 16 bytes, in hex, of SHA-256 over the keys joined by line feeds. */
  readonly digest: Digest
}

/** Sealed blocks could not be read; their logs are not on the tape. */
export type HoleMessage = GlobalUpdate<"hole"> & {
  /** The blocks that could not be read, both ends included. */
  readonly blocks: {
    readonly first: number
    readonly last: number
  }
  /** For example pruned, backfill_bound, or reorg: replaced deeper than the relay can roll back. */
  readonly reason: string
}

/** The safe or the finalized block moved. */
export type FinalityMessage = GlobalUpdate<"finality"> & {
  readonly stage: "safe" | "finalized"
  /** The newest block at that stage. */
  readonly block: Block
}

/** The source of events or its reason changed. */
export type StatusMessage = GlobalUpdate<"status"> & {
  readonly source: Source
  /** When this source began, for this reason. */
  readonly started_at: Time
  readonly reason: SourceReason
  readonly head: Head
}

/** The token's price in a pool on the chain changed: a reading, never sealed or retracted. The next one replaces it. */
export type QuoteMessage = TokenUpdate<"quote"> & QuoteReading

/** A pool is followed from a block on, or no longer. */
export type VenueMessage = TokenUpdate<"venue"> & {
  readonly change: "followed" | "dropped"
  readonly venue: Venue
  /** The first block for which the change holds. */
  readonly from_block: number
  /** Why it was dropped. refused: the upstream does not answer for its logs; wrong_tokens: it trades other tokens. */
  readonly reason: "settings" | "delisted" | "refused" | "wrong_tokens" | null
}

/** A minute with trades is over, or its trades changed. Sent only if types names it. */
export type BarMessage = TokenUpdate<"bar"> & {
  /** The first moment of the bar, in chain time. */
  readonly start: Time
  /** The first moment after the bar. */
  readonly end: Time
  /** 1 when a minute is first published, then one more each time. Of a longer bar: the sum over its minutes. */
  readonly revision: number
  /** The price of the first trade, in units of the currency; null if no trade has a price. */
  readonly open: Decimal | null
  readonly high: Decimal | null
  readonly low: Decimal | null
  /** The price of the last trade. */
  readonly close: Decimal | null
  /** currency_volume / volume, rounded half even to eight decimals. */
  readonly vwap: Decimal | null
  /** The number of trades; 0 if all of them are gone. */
  readonly trades: number
  /** Tokens that were traded. */
  readonly volume: Decimal
  /** The shares that they stood for; null if a multiplier is unknown. */
  readonly shares: Decimal | null
  /** Units of the currency that were traded. */
  readonly currency_volume: Decimal
  /** Tokens that left the pools. */
  readonly buy_volume: Decimal
  /** Units of the currency that were paid for them. */
  readonly buy_currency_volume: Decimal
  /** (price / nav.price − 1) × 10,000, rounded half even to two decimals; the currency is taken as one dollar. */
  readonly basis_bps: Decimal | null
  /** premium: against a fresh NAV; drift: against a stale or frozen NAV, from which the market may have moved. */
  readonly basis: "premium" | "drift" | null
  readonly nav: ReferenceValue
  /** The pools with trades in the bar: their addresses, or ids of Uniswap v4. */
  readonly venues: readonly (Address | Word)[]
  /** The first and the last block with a trade; null if there is none. */
  readonly blocks: {
    readonly first: number
    readonly last: number
  } | null
  /** Null, or why trades may be missing: the reason of a hole, or of a pool that was dropped inside. */
  readonly partial: string | null
}

/** The market of the underlying stocks opened or closed. */
export type SessionMessage = GlobalUpdate<"session"> & MarketHours

/** The state of a token at as_of. */
export type SnapshotMessage = {
  readonly type: "snapshot"
  readonly id: Position | null
  readonly symbol: string
  readonly address: Address
  /** The state includes every message up to this position. */
  readonly as_of: Position
  readonly token: TokenRecord
  /** Why the symbol or the name may mislead a reader; empty if nothing may. */
  readonly token_warnings: readonly TokenWarning[]
  /** The multiplier from tokens to shares; 1 if there is none, null if unknown. */
  readonly multiplier: Decimal | null
  /** The source of the multiplier; call is a read of the token contract. */
  readonly multiplier_source: "log" | "call" | "list" | null
  /** The next multiplier, which takes effect when chain time reaches effective_at; null is a time after the year 9999. */
  readonly scheduled: {
    readonly multiplier: Decimal
    readonly effective_at: Time | null
  } | null
  /** The names of the paused features. */
  readonly paused: readonly string[]
  readonly supply: {
    readonly tokens: Decimal | null
    readonly shares: Decimal | null
  }
  readonly nav: ReferenceValue
  /** The latest quote of the deepest pool in the state ok, or of the first pool; null before any pool was read. */
  readonly quote: QuoteReading | null
  /** The newest trade in chain order that is not retracted; null if none is known. */
  readonly last_trade: OnChain & {
    readonly venue: Venue
    /** buy: the token left the pool; sell: it went in; null if nothing moved. */
    readonly side: "buy" | "sell" | null
    readonly raw: Raw
    /** raw / 10^decimals; null if the decimals are unknown. */
    readonly amount: Decimal | null
    /** The multiplier at the log's position in the chain; 1 if there is none, null if unknown. */
    readonly multiplier: Decimal | null
    /** floor(raw × multiplier) / 10^decimals, rounded down as the token contract does. */
    readonly shares: Decimal | null
    /** Units of the currency that went the other way, with the fee of the pool. */
    readonly currency_amount: Decimal
    /** currency_amount / amount, rounded half even to eight decimals; null if either is 0. */
    readonly price: Decimal | null
    /** The price of the pool after the swap, as in a quote; null at a bound. */
    readonly pool_price: Decimal | null
    /** amount × nav.price, rounded half up. The NAV is the value of one token and already includes the multiplier. Not a price to trade at. */
    readonly reference_value: Money | null
    /** (price / nav.price − 1) × 10,000, rounded half even to two decimals; the currency is taken as one dollar. */
    readonly basis_bps: Decimal | null
    /** premium: against a fresh NAV; drift: against a stale or frozen NAV, from which the market may have moved. */
    readonly basis: "premium" | "drift" | null
    readonly nav: ReferenceValue
    /** As in the event. It need not be the trader. */
    readonly sender: Address
    /** As in the event; null in Uniswap v4. */
    readonly recipient: Address | null
    readonly ingest: Ingest
  } | null
  /** The pools that are followed, each from its first block. */
  readonly venues: readonly ({
    readonly venue: Venue
    /** The first block for which the change holds. */
    readonly from_block: number
  })[]
  /** The session of the market; null without a calendar. */
  readonly session: MarketHours | null
}

/** The first message of every connection: server, ends of the tape, and limits. */
export type HelloMessage = {
  readonly type: "hello"
  /** The start of this stream; null when a gap follows or nothing is selected yet. */
  readonly id: Position | null
  /** The end of the tape. */
  readonly end: Position
  /** The position after which no message has been deleted. */
  readonly oldest: Position
  /** The time of the first message after oldest; null if there is none. */
  readonly oldest_time: Time | null
  readonly protocol: "stocktape.v1"
  readonly server: string
  /** The name of this connection, for bug reports. */
  readonly connection: string
  readonly chain_id: number | null
  /** Seconds between two heartbeats; null if heartbeat=0 turns them off. */
  readonly heartbeat_s: number | null
  /** The limits of a connection. */
  readonly limits: {
    /** Symbols in one connection. */
    readonly symbols_max: number
    /** Different selections with value filters, of all clients. */
    readonly selections_max: number
    /** Messages in one replay; if there are more, the relay sends a gap instead. */
    readonly replay_max: number
    /** Limit of unsent bytes; a client that stays above it is disconnected. */
    readonly backlog_bytes: number
    /** Bytes in one client message. */
    readonly message_bytes: number
    /** How long a message stays on the tape. */
    readonly retention_ms: number
  }
  readonly source: Source
  readonly head: Head
  /** True when the upstream is the built-in chain: its data is not real. */
  readonly demo: boolean
  /** Sent while the disk or NATS does not store the tape: a restart then causes a gap. */
  readonly durable?: false
}

/** The selection. Answers subscribe and list, and is the second message of a stream. */
export type SubscribedMessage = {
  readonly type: "subscribed"
  /** The client's own identifier for its request, returned with the answer. */
  readonly req?: number | string
  /** The position at which the stream starts; null when a gap follows. */
  readonly id: Position | null
  /** The full set of symbols now. */
  readonly symbols: readonly string[]
  /** The message types, in the order of this contract; * for all. */
  readonly types: readonly string[]
  readonly stage: Stage
  readonly min_value: Decimal | null
  readonly min_shares: Decimal | null
  readonly account: readonly Address[] | null
  readonly pools: readonly (Address | Word)[] | null
  readonly rejected: readonly ({
    /** The symbol as requested. */
    readonly symbol: string
    readonly reason: "unknown_symbol" | "ambiguous_symbol"
    /** Close known symbols. */
    readonly suggest: readonly string[]
  })[]
  /** none: no position given; full: continues from it; gap: a gap follows. */
  readonly resume: "none" | "full" | "gap"
}

/** The symbols that were removed from the selection. */
export type UnsubscribedMessage = {
  readonly type: "unsubscribed"
  /** The client's own identifier for its request, returned with the answer. */
  readonly req?: number | string
  readonly symbols: readonly string[]
}

/** The replay has ended; live messages follow. It is a receipt of the replay. */
export type LiveMessage = {
  readonly type: "live"
  /** The position to resume from. */
  readonly id: Position
  /** The position of subscribed, or of the last gap of this stream. */
  readonly after: Position
  /** The end of the replay, equal to id. */
  readonly through: Position
  /** The number of replayed messages. */
  readonly replayed: number
  /** The first 16 bytes, in hex, of SHA-256 over the ids, joined by line feeds, of the replayed messages since after. */
  readonly digest: Digest
}

/** Sent at a steady interval: the connection is alive, and the client is complete up to id. */
export type HeartbeatMessage = {
  readonly type: "heartbeat"
  /** The last position that was sent to this listener or did not match its selection. */
  readonly id: Position
  /** The end of the tape. */
  readonly end: Position
  readonly time: Time
  readonly head: Head
  readonly source: Source
  /** Tape messages sent before this one. */
  readonly sent: number
  /** Bytes queued for this listener and not yet sent. */
  readonly backlog: number
}

/** Messages are missing from this stream. */
export type GapMessage = {
  readonly type: "gap"
  /** The position at which the stream continues. */
  readonly id: Position
  /** expired: the position is before oldest, or its number was lost; epoch: it belongs to another tape; ahead: it is after the end; long: too many messages for one replay. */
  readonly reason: "expired" | "epoch" | "ahead" | "long"
  /** The position that the client gave: the missing messages begin after it. */
  readonly after: string | null
  /** The position of the last missing message, at which the stream continues. */
  readonly through: Position
  /** A path on this server whose pages contain exactly the missing messages. */
  readonly backfill: string | null
}

/** A request was wrong. Says why, and what to do. */
export type ErrorMessage = {
  readonly type: "error"
  /** The client's own identifier for its request, returned with the answer. */
  readonly req?: number | string
  /** The matching HTTP status. */
  readonly code: number
  /** A word for programs. */
  readonly reason: string
  /** A sentence for people. */
  readonly message: string
  readonly details?: readonly ({ readonly [name: string]: unknown })[]
}

/** The relay is about to close this connection. */
export type ByeMessage = {
  readonly type: "bye"
  readonly id: Position | null
  /** The word for the close code. */
  readonly reason: string
  /** How long to wait before reconnecting. */
  readonly retry_ms: number
}

/** The answer to ping. */
export type PongMessage = {
  readonly type: "pong"
  /** The client's own identifier for its request, returned with the answer. */
  readonly req?: number | string
  readonly time: Time
}

/** Adds symbols to the selection. An option replaces the current value; null sets the default. */
export type SubscribeRequest = {
  readonly type: "subscribe"
  readonly req?: number | string | null
  /** Symbols in upper or lower case, with or without the trailing c, former symbols, addresses, isin:…, or * for all. */
  readonly symbols?: readonly string[]
  /** Message types, or * for all. Default: all except approval and log and bar. */
  readonly types?: readonly ("transfer" | "mint" | "burn" | "seize" | "trade" | "approval" | "multiplier" | "pause" | "action" | "token" | "log" | "nav" | "retract" | "amend" | "seal" | "hole" | "finality" | "status" | "quote" | "venue" | "bar" | "session" | "*")[] | null
  /** sealed: each fact is sent only when its block is sealed. Default: preconfirmed. */
  readonly stage?: Stage | null
  /** Where to begin: now, start, a position (exclusive), a duration back (90s, 5m, 2h), or an RFC 3339 time. Default: now. */
  readonly since?: string | null
  /** true: a snapshot of each token is sent first, but not after a position from which the relay can continue; always: after such a position too; false: never. Default: true. */
  readonly snapshot?: boolean | "always" | null
  /** The position at which the stream continues after a gap expired or epoch. replay: the oldest message; skip: the end, and backfill links to the skipped messages. Default: replay. */
  readonly on_gap?: "replay" | "skip" | null
  /** Only movements whose reference_value, and trades whose currency_amount, is at least this; a null value does not pass. */
  readonly min_value?: string | null
  /** Only movements and trades whose shares are at least this; a null value does not pass. */
  readonly min_shares?: string | null
  /** Only movements from or to one of these addresses, 1 to 20, and trades of which one is the sender or recipient. */
  readonly account?: readonly string[] | null
  /** Only trades and quotes of these pools, 1 to 20: addresses, or ids of Uniswap v4. */
  readonly pools?: readonly string[] | null
}

/** Removes symbols from the selection. */
export type UnsubscribeRequest = {
  readonly type: "unsubscribe"
  readonly req?: number | string | null
  /** Symbols in upper or lower case, with or without the trailing c, former symbols, addresses, isin:…, or * for all. */
  readonly symbols: readonly string[]
}

/** Asks for the current selection. */
export type ListRequest = {
  readonly type: "list"
  readonly req?: number | string | null
}

/** Gives the API key as the first message, if neither a header nor the URL has one. */
export type AuthRequest = {
  readonly type: "auth"
  readonly req?: number | string | null
  /** An API key, or an access token in place of it. */
  readonly key: string
}

/** Asks for a pong. */
export type PingRequest = {
  readonly type: "ping"
  readonly req?: number | string | null
}

/** A message about one fact on the chain, which a retract or an amend can follow. */
export type FactMessage = TransferMessage | MintMessage | BurnMessage | SeizeMessage | TradeMessage | ApprovalMessage | MultiplierMessage | PauseMessage | ActionMessage | TokenMessage | LogMessage

/** A message of the tape. */
export type Update = TransferMessage | MintMessage | BurnMessage | SeizeMessage | TradeMessage | ApprovalMessage | MultiplierMessage | PauseMessage | ActionMessage | TokenMessage | LogMessage | NavMessage | RetractMessage | AmendMessage | SealMessage | HoleMessage | FinalityMessage | StatusMessage | QuoteMessage | VenueMessage | BarMessage | SessionMessage

/** A message of a connection. */
export type Notice = HelloMessage | SubscribedMessage | UnsubscribedMessage | SnapshotMessage | LiveMessage | HeartbeatMessage | GapMessage | ErrorMessage | ByeMessage | PongMessage

/** Anything that a listener can receive. Newer relays may send more types: ignore those. */
export type Message = Update | Notice

/** A message from a client on a WebSocket. */
export type Request = SubscribeRequest | UnsubscribeRequest | ListRequest | AuthRequest | PingRequest
