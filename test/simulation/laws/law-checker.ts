import type { Entry } from '../../../src/tape/tape.ts'
import { BlockSettlement } from './block-settlement.ts'
import { Completeness } from './completeness.ts'
import { FinalityWatermarks } from './finality-watermarks.ts'
import type { Law, LawContext } from './law.ts'
import { ListedTokens } from './listed-tokens.ts'
import { MultiplierSchedules } from './multiplier-schedules.ts'
import { MultiplierValues } from './multiplier-values.ts'
import { NavValues } from './nav-values.ts'
import { RpcNotifications } from './rpc-notifications.ts'
import { SourceStatusLaw } from './source-status.ts'
import { UpdateNumbering } from './update-numbering.ts'

/** Compares what the relay writes with the truth, after each batch and at the end. */
export class LawChecker implements Law {
  readonly settlement: BlockSettlement
  readonly tokens: ListedTokens
  readonly sourceStatus: SourceStatusLaw
  readonly completeness: Completeness
  readonly multiplierValues: MultiplierValues
  readonly rpcNotifications: RpcNotifications
  readonly #laws: readonly Law[]

  constructor(context: LawContext) {
    this.settlement = new BlockSettlement(context)
    this.tokens = new ListedTokens(context)
    this.sourceStatus = new SourceStatusLaw(context, this.settlement.lifecycles, this.tokens)
    this.completeness = new Completeness(context, this.settlement, this.tokens)
    this.multiplierValues = new MultiplierValues(context, this.settlement.lifecycles, this.tokens, this.completeness)
    this.rpcNotifications = new RpcNotifications(context, this.tokens, this.completeness)
    this.#laws = [
      new UpdateNumbering(context),
      // Needs the state of a key before the batch, so it comes before the settlement.
      this.sourceStatus,
      this.settlement,
      this.tokens,
      new NavValues(context),
      new FinalityWatermarks(context),
      this.completeness,
      this.multiplierValues,
      new MultiplierSchedules(context, this.tokens, this.completeness),
      this.rpcNotifications,
    ]
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
