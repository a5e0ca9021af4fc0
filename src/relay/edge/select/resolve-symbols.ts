import type { Hex } from '../../../lib/hex.ts'
import type { RejectedSymbol } from '../../../protocol/notices.ts'
import { noList, symbolsRequired, unknownSymbol } from '../limits/refusals.ts'
import type { CurrentState } from './current-state.ts'

/** The selected tokens (null for all), and the selectors that name no token or several. */
export type ResolvedSymbols = { readonly tokens: ReadonlySet<Hex> | null; readonly rejected: readonly RejectedSymbol[] }

/** Finds the named tokens. Refuses the request if no selector names one. */
export function resolveKnownSymbols(current: CurrentState, selectors: readonly string[]): ResolvedSymbols {
  if (selectors.length === 0) throw symbolsRequired
  const resolved = resolveSymbols(current, selectors)
  if (resolved.tokens?.size === 0) throw unknownSymbol(resolved.rejected)
  return resolved
}

export function resolveSymbols(current: CurrentState, selectors: readonly string[]): ResolvedSymbols {
  if (!current.hasTokens) throw noList
  const tokens = new Set<Hex>()
  const rejected: RejectedSymbol[] = []
  for (const selector of selectors) {
    if (selector === '*') continue
    const found = current.directory.find(selector)
    if (found.kind === 'found') tokens.add(found.token.address)
    else {
      const reason = found.kind === 'unknown' ? 'unknown_symbol' : 'ambiguous_symbol'
      rejected.push({ symbol: selector, reason, suggest: [...found.suggest] })
    }
  }
  return { tokens: selectors.includes('*') ? null : tokens, rejected }
}
