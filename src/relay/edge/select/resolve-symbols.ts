import type { Hex } from '../../../lib/hex.ts'
import type { RejectedSymbol } from '../../../protocol/notices.ts'
import { Refusal } from '../../../protocol/refusal.ts'
import type { CurrentState } from './current-state.ts'

/** The selected tokens (null for all), and the selectors that name no token or several. */
export type ResolvedSymbols = { readonly tokens: ReadonlySet<Hex> | null; readonly rejected: readonly RejectedSymbol[] }

export const listUnavailable = (): Refusal =>
  new Refusal(503, 'no_list', 'The list of tokenized stocks has not been read yet; retry in a moment.')

export const symbolsRequired = new Refusal(400, 'bad_parameter', 'symbols: name at least one symbol, or * for all.', {
  parameter: 'symbols',
})

/** Finds the named tokens. Refuses the request if no selector names one. */
export function resolveKnownSymbols(current: CurrentState, selectors: readonly string[]): ResolvedSymbols {
  if (selectors.length === 0) throw symbolsRequired
  const resolved = resolveSymbols(current, selectors)
  if (resolved.tokens?.size === 0) throw unknownSymbol(resolved.rejected)
  return resolved
}

export function resolveSymbols(current: CurrentState, selectors: readonly string[]): ResolvedSymbols {
  if (!current.hasTokens) throw listUnavailable()
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

export function unknownSymbol([first]: readonly RejectedSymbol[]): Refusal {
  const quoted = `'${first?.symbol ?? ''}'`
  const suggest = first?.suggest ?? []
  const hint = suggest.length > 0 ? ` Did you mean ${suggest.join(' or ')}?` : ''
  return first?.reason === 'ambiguous_symbol'
    ? new Refusal(404, 'ambiguous_symbol', `Several tokenized stocks are called ${quoted}: name one by its address.${hint}`, {
        suggest,
      })
    : new Refusal(404, 'unknown_symbol', `No tokenized stock ${quoted}.${hint}`, { suggest })
}
