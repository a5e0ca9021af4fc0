import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Hex } from '../../lib/hex.ts'
import { type Movement, movementTypes, type Update } from '../../protocol/updates.ts'
import { type Pool, poolAccount } from '../chain/pools/pool.ts'
import type { PoolPoller } from '../chain/pools/pool-poller.ts'
import type { PoolSetting } from '../config/pools.ts'
import type { Entry } from '../tape/tape.ts'
import type { IngestState } from './ingest-state.ts'

/** Blocks with unsettled movements that name a pool. Beyond it the periodic reading has to do. */
const BLOCKS_BOUND = 1_024

type Options = {
  readonly state: IngestState
  readonly settings: readonly PoolSetting[]
  readonly poller: Pick<PoolPoller, 'setPools' | 'read'>
  readonly warn: (kind: string, detail: unknown) => void
}

/** Finds in what is published which pools have to be read: those of listed tokens whose state may have changed. */
export class ListedPools {
  readonly #state: IngestState
  readonly #settings: readonly PoolSetting[]
  readonly #poller: Options['poller']
  readonly #warn: Options['warn']
  /** The settings whose token was not found, once a list was read. */
  readonly #unknown = new Set<PoolSetting>()
  /** The pool of each setting, fixed while its token is listed: its symbol may pass to another token. */
  readonly #resolved = new Map<PoolSetting, Pool>()
  /** The pools of listed tokens, by the account that their movements name. */
  #byAccount: ReadonlyMap<Hex, readonly Pool[]> = new Map()
  readonly #byBlock = new BoundedMap<number, Set<Pool>>(BLOCKS_BOUND)

  constructor({ state, settings, poller, warn }: Options) {
    this.#state = state
    this.#settings = settings
    this.#poller = poller
    this.#warn = warn
    this.#findPools()
    // Of the previous run, what is not settled yet.
    for (const address of new Set([...this.#byAccount.values()].flat().map(({ token }) => token)))
      for (const { published } of state.ledger.factsOf(address))
        if (published.state === 'open' && isMovement(published.draft)) this.#named(published.draft)
  }

  observe(entries: readonly Entry[]): void {
    if (this.#settings.length === 0) return
    const due = new Set<Pool>()
    for (const { update } of entries) for (const pool of this.#poolsOf(update)) due.add(pool)
    if (entries.some(({ update }) => update.type === 'token')) this.#findPools()
    if (due.size > 0) this.#poller.read(due)
  }

  /** The pools that an update changes. A block that is settled shows whether its movements happened. */
  #poolsOf(update: Update): Iterable<Pool> {
    switch (update.type) {
      case 'seal':
        return this.#settled(update.block.number)
      case 'retract':
        // Its block, and not the one that proves it. After a restart it is not known which pools it named.
        return this.#settled(Number.parseInt(update.key, 10), movementTypes.has(update.fact_type) ? update.address : null)
      case 'amend':
        return isMovement(update.update) ? this.#named(update.update) : []
      default:
        return isMovement(update) ? this.#named(update) : []
    }
  }

  #named({ from, to, address, block }: Pick<Movement, 'from' | 'to' | 'address' | 'block'>): readonly Pool[] {
    const named = [...(this.#byAccount.get(from) ?? []), ...(this.#byAccount.get(to) ?? [])].filter(
      ({ token }) => token === address,
    )
    if (named.length === 0) return named
    const ofBlock = this.#byBlock.get(block.number) ?? new Set()
    for (const pool of named) ofBlock.add(pool)
    this.#byBlock.set(block.number, ofBlock)
    return named
  }

  #settled(block: number, retractedToken: Hex | null = null): Iterable<Pool> {
    const named = this.#byBlock.get(block) ?? []
    return retractedToken === null ? named : [...named, ...this.#poolsOfToken(retractedToken)]
  }

  #poolsOfToken(address: Hex): readonly Pool[] {
    return [...this.#byAccount.values()].flat().filter(({ token }) => token === address)
  }

  #findPools(): void {
    const { tokens } = this.#state
    const pools = this.#settings.flatMap((setting) => {
      const pool = this.#resolve(setting)
      return pool && tokens.get(pool.token)?.state === 'listed' ? [pool] : []
    })
    this.#byAccount = Map.groupBy(pools, poolAccount)
    this.#poller.setPools(pools)
  }

  #resolve(setting: PoolSetting): Pool | undefined {
    const { tokens, directory, listOrder } = this.#state
    const known = this.#resolved.get(setting)
    if (known && tokens.get(known.token)?.state !== 'delisted') return known
    const found = directory?.find(setting.token)
    if (found?.kind !== 'found') {
      if (listOrder !== null && !this.#unknown.has(setting))
        this.#warn('POOLS names a token that is not listed', { token: setting.token, pool: setting.id })
      if (listOrder !== null) this.#unknown.add(setting)
      return undefined
    }
    const pool = { ...setting, token: found.token.address }
    this.#resolved.set(setting, pool)
    return pool
  }
}

const isMovement = (update: { readonly type: string }): update is Movement => movementTypes.has(update.type as Update['type'])
