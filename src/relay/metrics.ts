import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from '@prometheus-io/client'
import { version } from '../lib/version.ts'
import { followedKeys } from '../protocol/key-life.ts'
import { keyEventOf } from '../protocol/key-messages.ts'
import { type Movement, movementTypes, type Update } from '../protocol/updates.ts'

export type Sample = readonly [labels: Readonly<Record<string, string>>, value: number]

/** Limit of the tokens that have series of their own. Of the counters, the others share one series. */
export const TOKEN_SERIES_BOUND = 500
const OTHER_TOKENS = 'other'

const SECONDS_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** Metrics of Node that break Prometheus' naming rules. Each one repeats another metric, so nothing is lost without it. */
const misnamedMetrics = [
  'nodejs_active_handles',
  'nodejs_active_handles_total',
  'nodejs_active_requests',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_histogram',
  'nodejs_eventloop_utilization_summary',
]

export function openMetrics() {
  const registry = new Registry()
  const metrics = metricsOf(makerOf(registry))
  const market = marketCounter(metrics)
  const deliveriesBySource = new Map<string, ReturnType<typeof metrics.deliverySeconds.labels>>()
  const deliveriesOf = (source: string) => {
    const known = deliveriesBySource.get(source) ?? metrics.deliverySeconds.labels({ source })
    deliveriesBySource.set(source, known)
    return known
  }
  let readings = 0
  return {
    ...metrics,
    text: () => {
      readings += 1
      return registry.metrics()
    },
    json: () => {
      readings += 1
      return registry.getMetricsAsJSON()
    },
    /** Returns a function that measures once for each reading of the metrics, for several metrics that need the value. */
    oncePerReading: <Value>(measure: () => Value): (() => Value) => {
      let last: { readonly reading: number; readonly value: Value } | null = null
      return () => {
        if (last?.reading !== readings) last = { reading: readings, value: measure() }
        return last.value
      }
    },
    /** Adds Node's own metrics: memory, processor time, event loop, descriptors. Call it once in a process. */
    addProcess: (commit: string | null) => {
      metrics.buildInfo.measureBy(() => [[{ version, commit: commit ?? '', node: process.versions.node }, 1]])
      collectDefaultMetrics({ register: registry })
      for (const name of misnamedMetrics) registry.removeSingleMetric(name)
    },
    countPublished: (entries: readonly { readonly update: Update }[]): void => {
      const { updates, keys } = metrics
      for (const { update } of entries) {
        updates.inc({ type: update.type })
        if (isMovement(update)) market.countMovement(update)
        else if (update.type === 'trade') market.countTrade(update)
        const event = keyEventOf(update)
        if (event !== null) keys.inc({ event }, update.type === 'seal' ? followedKeys(update).length : 1)
      }
    },
    /** Measures the time from the receipt of each log to its delivery, by source. Most logs of a batch were received together. */
    countDelivered: (entries: readonly { readonly update: Update }[], now: number): void => {
      let [lastTime, seconds] = ['', 0]
      for (const { update } of entries) {
        if (!('ingest' in update)) continue
        const { source, received_at } = update.ingest
        if (received_at !== lastTime) [lastTime, seconds] = [received_at, Math.max(0, now - Date.parse(received_at)) / 1_000]
        deliveriesOf(source).observe(seconds)
      }
    },
    /** `failed` is the kind of the error; null if there was none. */
    countUpstreamRequest: (endpoint: string, durationSeconds: number, failed: string | null): void => {
      metrics.upstreamSeconds.observe({ endpoint }, durationSeconds)
      if (failed !== null) metrics.upstreamErrors.inc({ endpoint, kind: failed })
    },
  }
}

export type Metrics = ReturnType<typeof openMetrics>
export type MetricsJson = Awaited<ReturnType<Metrics['json']>>

export const mergeMetrics = (all: readonly MetricsJson[]): Promise<string> => Registry.aggregate([...all]).metrics()

const isMovement = (update: Update): update is Movement => movementTypes.has(update.type)

function marketCounter({ movements, movementValue, trades, tradeValue }: ReturnType<typeof metricsOf>) {
  const symbols = new Set<string>()
  const boundedSymbol = (symbol: string): string => {
    if (symbols.size < TOKEN_SERIES_BOUND) symbols.add(symbol)
    return symbols.has(symbol) ? symbol : OTHER_TOKENS
  }
  return {
    countMovement: ({ symbol: given, type, reference_value: value }: Movement): void => {
      const symbol = boundedSymbol(given)
      movements.inc({ symbol, type })
      if (value !== null) movementValue.inc({ symbol, type }, Number(value))
    },
    countTrade: ({ symbol: given, side, currency_amount, venue }: CountedTrade): void => {
      const labels = { symbol: boundedSymbol(given), venue: venue.kind }
      trades.inc({ ...labels, side: side ?? 'none' })
      tradeValue.inc({ ...labels, currency: venue.currency.symbol }, Number(currency_amount))
    },
  }
}
type CountedTrade = Extract<Update, { type: 'trade' }>

const metricsOf = (maker: Maker) => ({ ...sourceMetrics(maker), ...marketMetrics(maker), ...clientMetrics(maker) })

const sourceMetrics = ({ counter, measured, seconds }: Maker) => ({
  buildInfo: measured('build_info', 'Always 1; the labels say what runs', 'max', ['version', 'commit', 'node']),
  logLines: counter('log_lines_total', 'Lines of the log', ['level']),
  source: measured('source', 'Whether this is the source of events now', 'max', ['source']),
  sourceAge: measured('source_age_seconds', 'Time since the source or its reason changed', 'max'),
  headBlock: measured('head_block', 'Newest known block number of each stage', 'max', ['stage']),
  lag: measured('lag_seconds', 'Age of the newest block whose logs were settled', 'max'),
  settlingLag: measured('settling_lag_blocks', 'Sealed blocks whose logs are not settled yet', 'max'),
  listAge: measured('list_age_seconds', 'Time since the token list was read', 'max'),
  upstreamSeconds: seconds('upstream_request_seconds', 'Duration of requests to an upstream, answered or not', ['endpoint']),
  upstreamErrors: counter('upstream_errors_total', 'Failed requests to an upstream; busy is a rate limit', ['endpoint', 'kind']),
  upstreamSocketLosses: counter('upstream_socket_losses_total', 'Upstream sockets that were lost or never opened', ['endpoint']),
  listReads: counter('list_reads_total', 'Reads of the token list', ['outcome']),
  upstreamUnreadable: counter('upstream_unreadable_total', 'Upstream messages and list records that could not be read'),
  logsRepeated: counter('logs_repeated_total', 'Logs that were already published'),
  logsUnlisted: counter('logs_unlisted_total', 'Logs of addresses that are not listed'),
  updates: counter('updates_total', 'Updates written to the tape', ['type']),
  keys: counter('keys_total', 'Keys by what was published about them', ['event']),
  oldestOpenKey: measured('oldest_open_key_seconds', 'Age of the oldest key that is neither sealed nor retracted', 'max'),
  tapeRows: measured('tape_rows', 'Updates on the tape', 'max'),
  tapeBytes: measured('tape_bytes', 'Size of the tape file', 'max'),
  tapeOldestAge: measured('tape_oldest_age_seconds', 'Age of the oldest update on the tape', 'max'),
  tapeIsDurable: measured('tape_durable', 'Whether the tape is stored; 0 while the disk fails, or NATS refuses to store it', 'max'),
  tapeCommitSeconds: seconds('tape_commit_seconds', 'Duration of the transaction that writes a batch to the tape'),
  leads: measured('leads', 'Whether this process writes the tape that it shares over NATS', 'sum'),
  natsConnected: measured('nats_connected', 'Whether this process is connected to NATS', 'max'),
  natsLag: measured('nats_lag_messages', 'Messages of the stream in NATS that are not applied here yet', 'max'),
  streamUnreadable: counter('stream_unreadable_total', 'Messages of the stream in NATS that are no batch of the tape'),
})

const POOL_LABELS = ['symbol', 'venue', 'pool', 'currency'] as const

const marketMetrics = ({ counter, measured }: Maker) => ({
  tokens: measured('tokens', 'Listed tokens by the state of their NAV', 'max', ['nav_state']),
  navAge: measured('nav_age_seconds', 'Age of the NAV of each token', 'max', ['symbol']),
  navState: measured('nav_state', 'Whether this is the state of the NAV of the token', 'max', ['symbol', 'state']),
  navPrice: measured('nav_price', 'NAV of each token in USD', 'max', ['symbol']),
  navFrozen: measured('nav_frozen', 'Whether the oracle reports the feed of the token as frozen', 'max', ['symbol']),
  quoteAge: measured('quote_age_seconds', 'Age of the block in which the main pool of each token was read', 'max', ['symbol']),
  poolPrice: measured('pool_price', 'Price of a token in a pool, in units of the currency', 'max', POOL_LABELS),
  poolDepth: measured('pool_depth', 'Units of the currency that raise the price in a pool by one percent', 'max', POOL_LABELS),
  poolBasis: measured('pool_basis_bps', 'Price in a pool against the NAV, in basis points; premium: the NAV is fresh', 'max', [
    ...POOL_LABELS,
    'basis',
  ]),
  supply: measured('token_supply', 'Supply of each token', 'max', ['symbol']),
  multiplier: measured('multiplier', 'Multiplier of each token', 'max', ['symbol']),
  multiplierNext: measured('multiplier_next', 'The next multiplier of a token, if one is scheduled', 'max', ['symbol']),
  multiplierNextTime: measured('multiplier_next_timestamp_seconds', 'When the next multiplier takes effect', 'max', ['symbol']),
  paused: measured('paused', 'Always 1; the labels name a paused feature of a token', 'max', ['symbol', 'feature']),
  marketSession: measured('market_session', 'Whether this is the state of the market', 'max', ['market', 'state']),
  calendarEnd: measured('market_calendar_end_timestamp_seconds', 'When the calendar of the market ends', 'max', ['market']),
  movements: counter('movements_total', 'Movements published', ['symbol', 'type']),
  movementValue: counter('movement_value_usd_total', 'Reference value of the movements published', ['symbol', 'type']),
  trades: counter('trades_total', 'Trades published', ['symbol', 'venue', 'side']),
  tradeValue: counter('trade_value_total', 'Units of the currency of the trades published', ['symbol', 'venue', 'currency']),
})

const clientMetrics = ({ counter, gauge, measured, measuredTotal, seconds }: Maker) => ({
  deliverySeconds: seconds('delivery_seconds', 'From the receipt of a log to the end of its writes to all listeners', ['source']),
  listeners: gauge('listeners', 'Clients connected now', ['transport']),
  audiences: measured('audiences', 'Different selections of live listeners', 'sum'),
  disconnects: counter('disconnects_total', 'Ended connections; client: the client ended it', ['transport', 'reason', 'code']),
  refusals: counter('refusals_total', 'Requests and handshakes that were refused, by HTTP status', ['code']),
  gaps: counter('gaps_total', 'Gaps that listeners were sent', ['reason']),
  sentMessages: measuredTotal('sent_messages_total', 'Updates sent to clients, also in replays', ['transport']),
  sentBytes: measuredTotal('sent_bytes_total', 'Bytes sent to clients of streams, exports and sockets', ['transport']),
  keyClients: measured('key_clients', 'Connected clients of each API key', 'sum', ['key']),
  keyRequests: measuredTotal('key_requests_total', 'Requests and connections with each API key', ['key']),
  keyRefusals: measuredTotal('key_refusals_total', 'Requests and connections with each API key that were refused', ['key']),
  keyMessages: measuredTotal('key_sent_messages_total', 'Updates sent to the clients of each API key', ['key']),
  keyBytes: measuredTotal('key_sent_bytes_total', 'Bytes sent to the clients of each API key', ['key']),
  heldBytes: gauge('backlog_held_bytes', 'Memory that live updates hold because some listener has not taken them yet'),
  unsentBytes: measured('unsent_bytes', 'Bytes that listeners have not taken yet, those of replays included', 'sum'),
  replays: measured('replays', 'Listeners whose replay runs or waits now', 'sum'),
  replayBytes: measured('replay_bytes', 'Bytes of replays that listeners have not taken yet', 'sum'),
  requestsForwarded: counter('rpc_forwarded_total', 'JSON-RPC requests that were forwarded to an upstream', ['method']),
})

/** A metric that is measured whenever the metrics are read. It has no series until `measureBy` is called. */
type Measured = { measureBy(measure: Measure): void }
type Measure = () => number | null | Iterable<Sample>

type Maker = ReturnType<typeof makerOf>

const makerOf = (registry: Registry) => {
  const registers = [registry]
  const named = (name: string, help: string, labelNames: readonly string[]) => ({
    name: `stocktape_${name}`,
    help,
    labelNames,
    registers,
  })
  return {
    counter: (name: string, help: string, labels: readonly string[] = []) => new Counter(named(name, help, labels)),
    gauge: (name: string, help: string, labels: readonly string[] = []) => new Gauge(named(name, help, labels)),
    seconds: (name: string, help: string, labels: readonly string[] = []) =>
      new Histogram({ ...named(name, help, labels), buckets: SECONDS_BUCKETS }),
    /** `sum` if each process behind a port measures a part of the value, `max` if each one measures the whole value. */
    measured: (name: string, help: string, aggregator: 'sum' | 'max', labels: readonly string[] = []): Measured => {
      const hook = openHook()
      new Gauge({
        ...named(name, help, labels),
        aggregator,
        collect() {
          this.reset()
          // A reset sets a gauge without labels to 0, which is wrong for a value that is unknown.
          if (labels.length === 0) this.remove({})
          for (const [sampleLabels, value] of hook.samples()) this.set(sampleLabels, value)
        },
      })
      return hook
    },
    /** A counter whose value something else keeps. Processes behind a port have a part of it each. */
    measuredTotal: (name: string, help: string, labels: readonly string[]): Measured => {
      const hook = openHook()
      new Counter({
        ...named(name, help, labels),
        collect() {
          this.reset()
          for (const [sampleLabels, value] of hook.samples()) this.inc(sampleLabels, value)
        },
      })
      return hook
    },
  }
}

function openHook() {
  let measure: Measure = () => null
  return {
    measureBy: (by: Measure): void => {
      measure = by
    },
    samples: (): Iterable<Sample> => {
      const measured = measure()
      return measured === null ? [] : typeof measured === 'number' ? [[{}, measured]] : measured
    },
  }
}
