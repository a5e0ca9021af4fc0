import { concat, delay, filter, from, fromEvent, interval, lastValueFrom, map, merge, NEVER, takeUntil, tap } from 'rxjs'
import type { Hex } from '../../lib/hex.ts'
import type { SourceName, SourceReason } from '../../protocol/fields.ts'
import { ChainIdentity } from '../../relay/chain/rpc/chain-identity.ts'
import { EndpointPool } from '../../relay/chain/rpc/endpoint-pool.ts'
import { turnsInOrder } from '../../relay/chain/rpc/limited-requests.ts'
import { sharedSourceOptions } from '../../relay/chain/source/shared-source-options.ts'
import { type ChainEvent, sourceFromNow } from '../../relay/chain/source/source.ts'
import type { Config } from '../../relay/config/config.ts'
import type { Host } from '../../relay/host.ts'

type TrialInputs = Pick<Host, 'clock' | 'random'> & {
  readonly config: Config
  readonly addresses: Promise<readonly Hex[]>
  readonly deadline: AbortSignal
}

export type Trial = {
  readonly source: SourceName
  readonly reason: SourceReason
  readonly isWrongChain: boolean
  /** False if the time was too short for a first status of the source. */
  readonly isDecided: boolean
  readonly hasNewBlocks: boolean
  /** Logs of listed tokens in blocks that began after the subscription to logs. */
  readonly sealedLogs: number
}

/** Time without a change after which a status is steady. Before that it may be a first guess. */
const STEADY_MS = 2_500
const STEADY_CHECK_MS = 100
/** Number of blocks that are not counted: the first head and the next block, whose first logs may precede the subscription. */
const UNCOUNTED_BLOCKS = 2

/** Runs the source of the relay on these endpoints until its status is steady, so the decision is the relay's own. */
export async function trySource({ config, addresses, clock, random, deadline }: TrialInputs): Promise<Trial> {
  const { chainId = null, upstreamRpcUrl } = config.chain
  const chain = new ChainIdentity(chainId, 'CHAIN_ID')
  const shared = { chain, random, log: () => {} }
  const untilItsTurn = turnsInOrder(clock)
  const endpoints = new EndpointPool({ ...shared, urls: upstreamRpcUrl, now: () => clock.now(), untilItsTurn })
  const events = sourceFromNow({
    ...sharedSourceOptions({ ...shared, config: config.chain, clock }),
    endpoints,
    filters: concat(from(addresses.then(notEmpty)), NEVER).pipe(map((list) => [{ addresses: list }])),
    clock,
    log: shared.log,
  })
  const trial = new RunningTrial()
  const steady = interval(STEADY_CHECK_MS).pipe(filter(() => trial.isSteady(clock.now())))
  // Without a list, the source may never report a status.
  const listless = from(addresses).pipe(
    filter((list) => list.length === 0),
    delay(STEADY_MS),
  )
  const taken = events.pipe(
    tap((event) => trial.take(event, clock.now())),
    takeUntil(merge(steady, listless, fromEvent(deadline, 'abort'))),
  )
  await lastValueFrom(taken, { defaultValue: null })
  return { ...trial.reading, isWrongChain: chain.isWrong(upstreamRpcUrl) }
}

/** Returns a promise that never resolves if there are no addresses, so that the source waits for them as in the relay. */
const notEmpty = (addresses: readonly Hex[]): readonly Hex[] | Promise<never> =>
  addresses.length > 0 ? addresses : new Promise<never>(() => {})

class RunningTrial {
  /** The relay, too, reports this source until its first status. */
  reading: Omit<Trial, 'isWrongChain'> = {
    source: 'down',
    reason: 'unreachable',
    isDecided: false,
    hasNewBlocks: false,
    sealedLogs: 0,
  }
  #statusAt = 0
  #firstHead: number | null = null
  #hasPushed = false

  take(event: ChainEvent, at: number): void {
    if (event.type === 'status') {
      this.reading = { ...this.reading, source: event.source, reason: event.reason, isDecided: true }
      this.#statusAt = at
    } else if (event.type === 'head' && event.sealed !== null) {
      this.reading = { ...this.reading, hasNewBlocks: this.#firstHead !== null }
      this.#firstHead ??= event.sealed
    } else if (event.type === 'logs' && event.via === 'pendingLogs') this.#hasPushed ||= event.logs.length > 0
    else if (event.type === 'sealed') {
      const countsFrom = (this.#firstHead ?? Number.POSITIVE_INFINITY) + UNCOUNTED_BLOCKS
      const counted = event.blocks.flatMap(({ number, logs }) => (number >= countsFrom ? logs : []))
      this.reading = { ...this.reading, sealedLogs: this.reading.sealedLogs + counted.length }
    }
  }

  /** The source `pendingLogs` is the default, so it is steady only after a log was pushed. */
  isSteady(at: number): boolean {
    const { isDecided, source } = this.reading
    return isDecided && at - this.#statusAt >= STEADY_MS && (source !== 'pendingLogs' || this.#hasPushed)
  }
}
