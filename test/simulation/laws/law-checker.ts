import type { ChainEvent } from '../../../src/relay/chain/source/source.ts'
import type { Entry } from '../../../src/relay/tape/tape.ts'
import { BlockSettlement } from './block-settlement.ts'
import { ChainHeads } from './chain-heads.ts'
import { Completeness } from './completeness.ts'
import { FinalityWatermarks } from './finality-watermarks.ts'
import { FollowedPools } from './followed-pools.ts'
import type { Law, LawContext } from './law.ts'
import { ListedTokens } from './listed-tokens.ts'
import { MultiplierSchedules } from './multiplier-schedules.ts'
import { MultiplierValues } from './multiplier-values.ts'
import { NavValues } from './nav-values.ts'
import { OpenKeys } from './open-keys.ts'
import { PublishedBars } from './published-bars.ts'
import { ResumedReaders } from './resumed-readers.ts'
import { RpcNotifications } from './rpc-notifications.ts'
import { SourceStatusLaw } from './source-status.ts'
import { UpdateNumbering } from './update-numbering.ts'

/** A batch, and when it was written (ms since the simulation began). */
type WrittenBatch = { readonly at: number; readonly entries: readonly Entry[] }

/** Compares what the relay writes with the truth, after each batch and at the end. */
export class LawChecker implements Law {
  readonly #context: LawContext
  readonly #written: WrittenBatch[] = []
  readonly #readers: ResumedReaders
  readonly #heads: ChainHeads
  #tapeLaws: TapeLaws

  constructor(context: LawContext) {
    this.#context = context
    this.#readers = new ResumedReaders(context)
    this.#heads = new ChainHeads(context)
    this.#tapeLaws = new TapeLaws(context)
  }

  receive(event: ChainEvent): void {
    this.#tapeLaws.receive(event)
  }

  onBatch(entries: readonly Entry[]): void {
    this.#written.push({ at: this.#context.clock.elapsedMs, entries })
    for (const law of this.#laws) law.onBatch?.(entries)
  }

  onTick(): void {
    for (const law of this.#laws) law.onTick?.()
  }

  onRelayStart(): void {
    for (const law of this.#laws) law.onRelayStart?.()
  }

  /** The tape holds nothing after this number. Its laws begin anew with what it holds. */
  onTapeLost(storedEnd: number): void {
    const { clock } = this.#context
    const isStored = ({ seq }: Entry) => seq <= storedEnd
    this.#readers.onTapeLost(storedEnd)
    const stored = this.#written.splice(0).map(({ at, entries }) => ({ at, entries: entries.filter(isStored) }))
    let then: number | null = 0
    const past = {
      get elapsedMs() {
        return then ?? clock.elapsedMs
      },
      now: () => clock.now(),
    }
    const violation: LawContext['violation'] = (law, detail) => then === null && this.#context.violation(law, detail)
    this.#tapeLaws = new TapeLaws({ ...this.#context, clock: past, violation })
    for (const batch of stored) {
      then = batch.at
      this.#tapeLaws.onBatch(batch.entries)
      this.#written.push(batch)
    }
    then = null
  }

  onEnd(recovered: boolean): void {
    for (const law of this.#laws) law.onEnd?.(recovered)
  }

  get #laws(): readonly Law[] {
    return [this.#readers, this.#heads, this.#tapeLaws]
  }
}

/** The laws about what the tape holds. */
class TapeLaws implements Law {
  readonly #rpcNotifications: RpcNotifications
  readonly #bars: PublishedBars
  readonly #laws: readonly Law[]

  constructor(context: LawContext) {
    const tokens = new ListedTokens(context)
    const pools = new FollowedPools(context, tokens)
    const settlement = new BlockSettlement(context, pools)
    const completeness = new Completeness(context, { settlement, tokens, pools })
    this.#rpcNotifications = new RpcNotifications(context, tokens, completeness)
    this.#bars = new PublishedBars(context, tokens)
    this.#laws = [
      new UpdateNumbering(context),
      // Needs the state of a key before the batch, so it comes before the settlement.
      new SourceStatusLaw(context, { lifecycles: settlement.lifecycles, tokens, pools }),
      new OpenKeys(context, settlement.lifecycles),
      tokens,
      pools,
      settlement,
      new NavValues(context),
      new FinalityWatermarks(context),
      completeness,
      new MultiplierValues(context, settlement.lifecycles, tokens, completeness),
      new MultiplierSchedules(context, settlement.lifecycles, tokens, completeness),
      this.#rpcNotifications,
      this.#bars,
    ]
  }

  receive(event: ChainEvent): void {
    this.#rpcNotifications.receive(event)
    this.#bars.receive(event)
  }

  onBatch(entries: readonly Entry[]): void {
    for (const law of this.#laws) law.onBatch?.(entries)
  }

  onTick(): void {
    for (const law of this.#laws) law.onTick?.()
  }

  onRelayStart(): void {
    for (const law of this.#laws) law.onRelayStart?.()
  }

  onEnd(recovered: boolean): void {
    for (const law of this.#laws) law.onEnd?.(recovered)
  }
}
