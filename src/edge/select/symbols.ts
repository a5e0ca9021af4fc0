import type { Hex } from '../../protocol/fields.ts'
import type { Rejected } from '../../protocol/notices.ts'
import { Refusal } from '../../protocol/refusal.ts'
import type { View } from './view.ts'

/** What a list of selectors names: tokens (null for all), and those that name none or several. */
export type Choice = { readonly tokens: ReadonlySet<Hex> | null; readonly rejected: readonly Rejected[] }

export const noList = (): Refusal =>
  new Refusal(503, 'no_list', 'The list of tokenized stocks has not been read yet; come back in a moment.')

/** Finds the tokens that a client named. */
export function choose(view: View, selectors: readonly string[]): Choice {
  if (view.tokens.length === 0) throw noList()
  const tokens = new Set<Hex>()
  const rejected: Rejected[] = []
  for (const selector of selectors) {
    if (selector === '*') continue
    const finding = view.directory.find(selector)
    if (finding.kind === 'found') tokens.add(finding.token.address)
    else {
      const reason = finding.kind === 'unknown' ? 'unknown_symbol' : 'ambiguous_symbol'
      rejected.push({ symbol: selector, reason, suggest: [...finding.suggest] })
    }
  }
  return { tokens: selectors.includes('*') ? null : tokens, rejected }
}

/** Nothing of what was named can be heard: says of the first name what is wrong with it. */
export function unknownSymbol([first]: readonly Rejected[]): Refusal {
  const named = `'${first?.symbol ?? ''}'`
  const suggest = first?.suggest ?? []
  const hint = suggest.length > 0 ? ` Did you mean ${suggest.join(' or ')}?` : ''
  return first?.reason === 'ambiguous_symbol'
    ? new Refusal(
        404,
        'ambiguous_symbol',
        `Several tokenized stocks are called ${named}: name one by its address.${hint}`,
        { suggest },
      )
    : new Refusal(404, 'unknown_symbol', `No tokenized stock ${named}.${hint}`, { suggest })
}
