import type { Hex } from '../../../lib/hex.ts'
import { type Pool, poolOf } from '../../chain/pools/pool.ts'
import type { PoolSetting } from '../../config/pool-settings.ts'
import type { IngestState } from '../ingest-state.ts'

/** Finds the pools of the settings whose tokens are known. If two settings name one pool, the first one applies. */
export function findNamedPools(state: IngestState): ReadonlyMap<PoolSetting, Pool> {
  const [named, ids] = [new Map<PoolSetting, Pool>(), new Set<Hex>()]
  for (const setting of state.quoteSettings.pools) {
    const pool = findPool(state, setting)
    if (!pool || ids.has(pool.id)) continue
    ids.add(pool.id)
    named.set(setting, pool)
  }
  state.namedPools = named
  return named
}

/** A setting keeps its pool while the token is listed, because another token may take its symbol. */
function findPool({ namedPools, tokens, directory }: IngestState, setting: PoolSetting): Pool | null {
  const known = namedPools.get(setting)
  if (known && tokens.get(known.token)?.state !== 'delisted') return known
  const found = directory?.find(setting.token)
  return found?.kind === 'found' ? poolOf(setting, found.token.address) : null
}

/** Returns a function that gives a pool as the settings name it. A setting whose token is unknown now may be of any token. */
export function openPoolSettings(state: IngestState): (pool: Pick<Pool, 'id' | 'token'>) => Pool | undefined {
  const named = findNamedPools(state)
  const byId = new Map([...named.values()].map((pool) => [pool.id, pool]))
  const others = state.quoteSettings.pools.filter((setting) => !named.has(setting))
  return ({ id, token }) => byId.get(id) ?? others.map((setting) => poolOf(setting, token)).find((pool) => pool.id === id)
}
