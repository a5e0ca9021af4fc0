import { setTimeout as wait } from 'node:timers/promises'
import type { Hex } from '../../lib/hex.ts'
import { LOGS_RANGE_BOUND } from '../../protocol/json-rpc-methods.ts'
import { largestPage, shrunkPage } from '../../relay/chain/blocks/page-size.ts'
import { poolOf } from '../../relay/chain/pools/pool.ts'
import { poolQueries } from '../../relay/chain/pools/pool-queries.ts'
import { isSealed, type SealedHeader } from '../../relay/chain/rpc/block-header.ts'
import { ChainReader } from '../../relay/chain/rpc/chain-reader.ts'
import { UpstreamError } from '../../relay/chain/rpc/upstream-error.ts'
import { noPendingMemory, type PendingMemory } from '../../relay/chain/source/pending-status.ts'
import { type PollResult, pollPending, readLatest } from '../../relay/chain/source/polls.ts'
import { STALE_HEAD_MS } from '../../relay/chain/source/source-decisions.ts'
import { initialState, NO_PENDING_MIN_POLLS } from '../../relay/chain/source/source-evidence.ts'
import type { Config } from '../../relay/config/config.ts'
import type { PoolSetting } from '../../relay/config/pool-settings.ts'
import type { Host } from '../../relay/host.ts'
import type { EndpointProbe } from './endpoint-probe.ts'
import { counted, fail, noPendingAdvice, type Outcome, ok, skip, timeUp, warn } from './finding.ts'
import { ANY_ADDRESS } from './socket-probe.ts'

type RpcCheckInputs = Pick<Host, 'wallTime'> & {
  readonly probe: EndpointProbe
  readonly config: Config
  readonly addresses: Promise<readonly Hex[]>
  readonly deadline: AbortSignal
}

type CheckContext = RpcCheckInputs & {
  readonly reader: ChainReader
  readonly latest: SealedHeader
  readonly tokens: readonly Hex[]
}

/** Names of the checks that need no token, and so do not wait for the list. */
const blockChecks = ['head', 'block_time', 'clock', 'pending', 'finality', 'batch'] as const
const tokenChecks = ['pending_logs', 'logs_range', 'tokens', 'storage', 'call'] as const
type CheckName = (typeof blockChecks)[number] | (typeof tokenChecks)[number]

type RpcCheck = (context: CheckContext) => Promise<Outcome>

/** Number of blocks between the two times that are compared. Timestamps are whole seconds, and five blocks may share one. */
const BLOCK_TIME_SPAN = 100
/** Limit of the difference between the clocks of two machines that are synchronised. */
const CLOCK_BOUND_MS = 2_000
/** Limit of the tokens that the check looks for on the chain. */
const TOKENS_BOUND = 3
/** Number of headers that a JSON-RPC batch of the relay asks for, besides its queries for pools. */
const BATCH_HEADERS = 3
const MIN_BATCH = 10
/** Least size of a batch that is tried: an endpoint that refuses two requests in one answers no JSON-RPC batches. */
const MIN_SPLIT_BATCH = 2

const rpcChecks: Readonly<Record<CheckName, RpcCheck>> = {
  head: async ({ latest, wallTime }) => {
    if (latest.timestamp === null) return ok(`block ${latest.number}, without a time`, { number: latest.number, age_ms: null })
    const ageMs = Math.max(0, wallTime() - latest.timestamp * 1_000)
    const value = { number: latest.number, age_ms: ageMs }
    const message = `block ${latest.number}, ${secondsText(ageMs)} old`
    if (ageMs <= STALE_HEAD_MS) return ok(message, value)
    return warn(message, 'the chain stands still or the node is behind: compare with another node in UPSTREAM_RPC_URL', value)
  },
  block_time: async ({ reader, latest }) => {
    const span = Math.min(BLOCK_TIME_SPAN, latest.number)
    const earlier = span === 0 ? null : await reader.header(latest.number - span)
    const seconds = (latest.timestamp ?? 0) - (earlier?.timestamp ?? latest.timestamp ?? 0)
    if (!earlier || seconds <= 0) return skip('not known: too few blocks')
    const blockMs = Math.round((seconds * 1_000) / span)
    return ok(`${blockMs} ms over the last ${counted(span, 'block')}`, blockMs)
  },
  clock: async ({ probe, latest, wallTime }) => {
    const headAheadMs = (latest.timestamp ?? 0) * 1_000 - wallTime()
    const aheadMs = Math.round(probe.clockAheadMs ?? Math.max(0, headAheadMs))
    const isHeadAhead = headAheadMs > CLOCK_BOUND_MS
    if (!isHeadAhead && Math.abs(aheadMs) <= CLOCK_BOUND_MS) {
      if (probe.clockAheadMs === null) return skip('the answers have no Date')
      return ok(`differs by ${secondsText(Math.abs(aheadMs))}`, aheadMs)
    }
    const byMs = isHeadAhead ? Math.max(headAheadMs, aheadMs) : aheadMs
    const message = `this machine is ${secondsText(Math.abs(byMs))} ${byMs > 0 ? 'behind' : 'ahead of'} the node`
    return warn(message, 'synchronise the clocks (NTP): lag_ms and the age of each NAV depend on them', byMs)
  },
  pending: async (context) => pendingOutcome(await readPendingBlock(context)),
  pending_logs: readPendingLogs,
  logs_range: readLogsRange,
  finality: async ({ reader, latest }) => {
    const [safe, finalized] = [await reader.header('safe'), await reader.header('finalized')]
    if (!isSealed(safe) || !isSealed(finalized))
      return warn('the node has no safe or no finalized block now', 'nothing becomes safe or finalized until it has')
    const value = { safe: safe.number, finalized: finalized.number }
    const [safeDepth, finalizedDepth] = [safe, finalized].map(({ number }) => Math.max(0, latest.number - number))
    return ok(`safe is ${safeDepth} below latest, finalized ${finalizedDepth}`, value)
  },
  tokens: async ({ probe, tokens }) => {
    if (tokens.length === 0) return skip('no list')
    for (const token of tokens.slice(0, TOKENS_BOUND))
      if ((await probe.request('eth_getCode', [token, 'latest'])) !== '0x') return ok('the listed tokens are on this chain', true)
    const advice = 'the list and the node are of different chains: check STOCKS_API_URL and UPSTREAM_RPC_URL'
    return warn('no listed token has code on this chain', advice, false)
  },
  storage: async ({ probe, tokens }) => {
    await probe.request('eth_getStorageAt', [tokens[0] ?? ANY_ADDRESS, '0x0', 'pending'])
    return ok('eth_getStorageAt answers at pending', true)
  },
  call: async ({ probe, tokens }) => {
    try {
      await probe.request('eth_call', [{ to: tokens[0] ?? ANY_ADDRESS, data: MULTIPLIER_SELECTOR }, 'pending'])
    } catch (failure) {
      // A contract without the function reverts, which is an answer too.
      if (!(failure instanceof UpstreamError && failure.kind === 'reverted')) throw failure
    }
    return ok('eth_call answers at pending', true)
  },
  batch: readBatch,
}

/** Advice if the endpoint refuses the request of a check. */
const adviceOf: Readonly<Partial<Record<CheckName, string>>> = {
  pending: 'the relay follows sealed blocks here',
  pending_logs: 'the relay cannot poll pre-confirmed logs here: set UPSTREAM_WS_URL to a node that pushes pendingLogs',
  logs_range: 'the relay cannot read missed blocks here: name a node in UPSTREAM_RPC_URL that answers eth_getLogs',
  finality: 'nothing becomes safe or finalized: name a node in UPSTREAM_RPC_URL that has these tags',
  storage: 'the relay reads pools by eth_call alone: name a node in UPSTREAM_RPC_URL that answers eth_getStorageAt',
  call: 'the relay reads multipliers from the list and logs, and pools from storage; quotes of Slipstream pools need a node with eth_call',
  batch: 'the relay sends such requests one by one, which costs more round trips: quotes are slower',
}

const MULTIPLIER_SELECTOR = '0x1b3ed722'

/** The pending block as the relay judges it, compared with the newest block `latest`. */
type PendingReading = { readonly memory: PendingMemory; readonly latest: SealedHeader }

/** Polls several times, as the relay does, because a node may show no pending block between two flashblocks. */
async function readPendingBlock({ reader, latest, config, wallTime }: CheckContext): Promise<PendingReading> {
  const state = initialState(0, config.chain.silenceMs, wallTime())
  const { signal } = new AbortController()
  let reading: PendingReading = { memory: noPendingMemory, latest }
  for (let polls = 1; ; polls += 1) {
    const results: PollResult[] = []
    const { memory } = reading
    const inputs = { node: reader, state, memory, filters: [], knowsSealed: () => false, now: wallTime, signal }
    await pollPending({ ...inputs, emit: (result) => results.push(result) }, 'none')
    for (const result of results) {
      if (result.type === 'latest') reading = { ...reading, latest: result.header }
      if (result.type === 'pending') reading = { ...reading, memory: result.memory }
    }
    if (reading.memory.status === 'preconfirmed' || polls === NO_PENDING_MIN_POLLS) return reading
    await wait(config.chain.pendingPollMs)
  }
}

function pendingOutcome({ memory: { status, block }, latest }: PendingReading): Outcome {
  switch (status) {
    case 'preconfirmed':
      if (block?.number == null) return ok(`pre-confirmed: on top of latest, ${latest.number}`, status)
      return ok(`pre-confirmed: block ${block.number}, latest is ${latest.number}`, status)
    case 'behind': {
      const advice = 'this node lags with pre-confirmations: use another one'
      return warn(`block ${block?.number}, but latest is ${latest.number}`, advice, status)
    }
    case 'latest':
      return warn('pending is the latest block: nothing is pre-confirmed', noPendingAdvice, status)
    case 'null':
      return warn('there is no pending block: nothing is pre-confirmed', noPendingAdvice, status)
  }
}

async function readPendingLogs({ reader, latest, tokens }: CheckContext): Promise<Outcome> {
  if (tokens.length === 0) return skip('no list')
  const { logs, unreadable } = await reader.logsInRange(latest.number, 'pending', [{ addresses: tokens }])
  // Reads the newest block after the logs, because the chain has new blocks since the first checks.
  const { number } = await readLatest(reader)
  const preconfirmed = logs.filter(({ blockNumber }) => blockNumber > number).length
  const message = `eth_getLogs to pending answers: ${counted(preconfirmed, 'pre-confirmed log')} now`
  if (unreadable === 0) return ok(message, preconfirmed)
  return warn(`${message}, ${unreadable} unreadable`, 'the relay skips unreadable logs')
}

/** Sends a JSON-RPC batch as long as the relay's, then shorter ones until the endpoint accepts one. */
async function readBatch({ probe, config }: CheckContext): Promise<Outcome> {
  const wanted = Math.max(
    MIN_BATCH,
    config.tokens.pools.reduce((sum, pool) => sum + queriesOf(pool), BATCH_HEADERS),
  )
  let refusal: UpstreamError | null = null
  for (let size = wanted; ; size = Math.floor(size / 2)) {
    try {
      const answers = await probe.batch(Array.from({ length: size }, () => ({ method: 'eth_blockNumber', params: [] }) as const))
      const failed = answers.find((answer) => !answer.ok)
      if (failed && !failed.ok) return warn(`a request of a batch of ${size} fails: ${failed.error.message}`, adviceOf.batch)
      if (!refusal) return ok(`${size} requests in one batch are answered`, size)
      return warn(`${size} requests in one batch are answered; ${wanted} are refused: ${refusal.message}`, adviceOf.batch, size)
    } catch (failure) {
      if (!(failure instanceof UpstreamError) || failure.isRetryable || size < 2 * MIN_SPLIT_BATCH) throw failure
      refusal ??= failure
    }
  }
}

const queriesOf = (pool: PoolSetting): number =>
  Object.keys(poolQueries(poolOf(pool, ANY_ADDRESS), 'call', { areTokensRight: false, feeBps: null }, 'pending')).length

/** Halves the range until the node answers, as the relay does when it reads missed blocks. */
async function readLogsRange({ reader, latest, tokens }: CheckContext): Promise<Outcome> {
  if (tokens.length === 0) return skip('no list')
  let page = largestPage
  let refusal: UpstreamError | null = null
  for (;;) {
    const range = { from: Math.max(0, latest.number - page.blocks + 1), to: latest.number }
    try {
      const { logs } = await reader.logsInRange(range.from, range.to, [{ addresses: tokens }])
      const blocks = range.to - range.from + 1
      const message = `${counted(blocks, 'block')} in one eth_getLogs: ${counted(logs.length, 'log')}`
      if (!refusal) return ok(message, blocks)
      return warn(`${message}; more is refused: ${refusal.message}`, rangeAdvice(refusal, blocks), blocks)
    } catch (failure) {
      if (!(failure instanceof UpstreamError && ['too_large', 'gone'].includes(failure.kind)) || page.blocks === 1) throw failure
      refusal ??= failure
      page = shrunkPage(range, failure.message)
    }
  }
}

const rangeAdvice = ({ kind }: UpstreamError, blocks: number): string =>
  kind === 'gone'
    ? 'the node keeps no older logs: after a longer interruption the relay reports a gap; an archive node in UPSTREAM_RPC_URL avoids it'
    : `the relay reads missed blocks in pages of ${blocks} instead of ${LOGS_RANGE_BOUND}: slower after an interruption`

export async function runRpcChecks(inputs: RpcCheckInputs, report: (name: string, outcome: Outcome) => void): Promise<void> {
  const reader = new ChainReader(inputs.probe.request)
  const run = async (names: readonly CheckName[], context: CheckContext) => {
    const outcomes = await Promise.all(
      names.map((name) => rpcChecks[name](context).catch((failure: unknown) => refusalOutcome(name, failure, inputs.deadline))),
    )
    for (const [index, outcome] of outcomes.entries()) report(names[index] ?? '', outcome)
  }
  try {
    const latest = await readLatest(reader)
    await run(blockChecks, { ...inputs, reader, latest, tokens: [] })
    await run(tokenChecks, { ...inputs, reader, latest, tokens: await inputs.addresses })
  } catch (failure) {
    if (!(failure instanceof UpstreamError)) throw failure
    const advice = 'the relay cannot follow this node: name another one in UPSTREAM_RPC_URL'
    report('head', fail(`no latest block: ${failure.message}`, advice))
  }
}

function refusalOutcome(name: CheckName, failure: unknown, deadline: AbortSignal): Outcome {
  if (!(failure instanceof UpstreamError)) throw failure
  if (deadline.aborted) return timeUp
  return warn(failure.message, adviceOf[name] ?? 'the relay works without it')
}

const secondsText = (ms: number): string => (ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 1_000)} s`)
