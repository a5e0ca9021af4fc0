import { BoundedMap, getOrAdd } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import { type Movement, movementTypes, type Update } from '../../../protocol/updates.ts'
import { type Pool, poolAccount } from '../../chain/pools/pool.ts'
import type { PoolPoller } from '../../chain/pools/pool-poller.ts'
import { idText, type PoolSetting } from '../../config/pool-settings.ts'
import type { Host } from '../../host.ts'
import type { Entry } from '../../tape/tape.ts'
import type { IngestState } from '../ingest-state.ts'
import { findNamedPools } from './named-pools.ts'

/** Limit of blocks whose movements to or from pools are remembered. Pools of other blocks wait for the periodic reading. */
const BLOCKS_BOUND = 1_024

type Options = Pick<Host, 'log'> & { readonly state: IngestState; readonly poller: Pick<PoolPoller, 'setPools' | 'read'> }

/** Derives from the published updates which pools to read: those of listed tokens whose state may have changed. */
export class PoolsToRead {
  readonly #options: Options
  /** Settings that name no pool of their own. Each is reported once. */
  readonly #reported = new Set<PoolSetting>()
  #byAccount: ReadonlyMap<Hex, readonly Pool[]> = new Map()
  readonly #byBlock = new BoundedMap<number, Set<Pool>>(BLOCKS_BOUND)

  constructor(options: Options) {
    this.#options = options
    this.#findPools()
    // Restores the unsettled movements of the previous run.
    for (const address of new Set(this.#pools.map(({ token }) => token)))
      for (const { published } of options.state.ledger.factsOf(address))
        if (published.state === 'open' && isMovement(published.draft)) this.#named(published.draft)
  }

  observe(entries: readonly Entry[]): void {
    const { state, poller } = this.#options
    if (state.quoteSettings.pools.length === 0) return
    const due = new Set<Pool>()
    for (const { update } of entries) for (const pool of this.#poolsOf(update)) due.add(pool)
    if (entries.some(({ update }) => update.type === 'token')) this.#findPools()
    if (due.size > 0) poller.read(due)
  }

  /** Returns the pools that an update may change. A seal counts too, because it shows which movements happened. */
  #poolsOf(update: Update): Iterable<Pool> {
    switch (update.type) {
      case 'seal':
        return this.#byBlock.get(update.block.number) ?? []
      case 'retract': {
        // The block in the key is the block of the fact. The field `block` is the sealed block that lacks the fact.
        const named = this.#byBlock.get(Number.parseInt(update.key, 10)) ?? []
        // After a restart it is unknown which pools the fact changed, so all pools of its token are read.
        const mayHaveSwapped = update.fact_type === 'trade' || movementTypes.has(update.fact_type)
        const ofToken = this.#pools.filter(({ token }) => mayHaveSwapped && token === update.address)
        return [...named, ...ofToken]
      }
      case 'amend':
        return isMovement(update.update) ? this.#named(update.update) : []
      default:
        return isMovement(update) ? this.#named(update) : []
    }
  }

  #named({ from, to, address, block }: Pick<Movement, 'from' | 'to' | 'address' | 'block'>): readonly Pool[] {
    const ofAccounts = [...(this.#byAccount.get(from) ?? []), ...(this.#byAccount.get(to) ?? [])]
    const named = ofAccounts.filter(({ token }) => token === address)
    if (named.length === 0) return named
    const ofBlock = getOrAdd(this.#byBlock, block.number, () => new Set<Pool>())
    for (const pool of named) ofBlock.add(pool)
    return named
  }

  get #pools(): readonly Pool[] {
    return [...this.#byAccount.values()].flat()
  }

  #findPools(): void {
    const { state, poller } = this.#options
    const named = findNamedPools(state)
    const pools = [...named.values()].filter(({ token }) => state.tokens.get(token)?.state === 'listed')
    this.#byAccount = Map.groupBy(pools, poolAccount)
    poller.setPools(pools)
    if (state.listOrder === null) return
    for (const setting of state.quoteSettings.pools) if (!named.has(setting)) this.#report(setting)
  }

  #report(setting: PoolSetting): void {
    const { state, log } = this.#options
    if (this.#reported.has(setting)) return
    this.#reported.add(setting)
    const isRepeated = state.directory?.find(setting.token).kind === 'found'
    log(isRepeated ? 'pool_repeated' : 'pool_unlisted', { token: setting.token, pool: idText(setting.id) })
  }
}

const isMovement = (update: { readonly type: string }): update is Movement => movementTypes.has(update.type as Update['type'])
