import type { Hex } from '../../../lib/hex.ts'
import type { SelectionOptions } from '../../../protocol/parameters/selection.ts'
import { shownFilters } from '../../../protocol/parameters/value-filters.ts'
import { formatPosition, type TapePosition } from '../../../protocol/position.ts'
import { defaultTypes, updateTypes } from '../../../protocol/updates.ts'
import type { TokenDirectory } from '../../tokens/token-directory.ts'
import type { Selection } from '../select/compiled-selection.ts'

/** Limit of a list of addresses in a URL: a proxy may refuse a longer line. The relay accepts 8 KiB, including the headers. */
const SYMBOLS_BOUND_CHARS = 4_096

/** The skipped part of a replay: all matching updates after a position, up to and including a sequence number. */
type SkippedRange = { readonly epoch: string; readonly after: TapePosition; readonly upTo: number }

/** The history URL of a skipped range. Its pages, followed by `next`, contain exactly that range. */
export function backfillUrlOf(
  { tokens, options }: Selection,
  { epoch, after, upTo }: SkippedRange,
  directory: TokenDirectory,
): string {
  const next = upTo + 1
  const parameters: readonly (readonly [string, string | readonly string[] | null])[] = [
    ['symbols', tokens && symbolsOf(tokens, directory)],
    ['types', typesOf(options)],
    ['stage', options.stage],
    ...Object.entries(shownFilters(options)),
    ['after', formatPosition(epoch, after.seq, after.n)],
    // The updates that the sealed view emits just before the next seal were not skipped: they are sent live.
    ['before', formatPosition(epoch, next, options.stage === 'sealed' ? 1 : null)],
  ]
  return `/v1/events?${parameters.flatMap(([name, value]) => (value ? [`${name}=${value}`] : [])).join('&')}`
}

/** Addresses, because symbols can change; symbols if the addresses would make the URL too long. */
function symbolsOf(tokens: ReadonlySet<Hex>, directory: TokenDirectory): string {
  const addresses = [...tokens].sort()
  const text = addresses.join(',')
  return text.length <= SYMBOLS_BOUND_CHARS ? text : addresses.map((address) => shortestSelector(address, directory)).join(',')
}

function shortestSelector(address: Hex, directory: TokenDirectory): string {
  const found = directory.find(address)
  if (found.kind !== 'found') return address
  const { symbol } = found.token
  const resolved = unsafeInList.test(symbol) ? null : directory.find(symbol)
  if (resolved?.kind !== 'found' || resolved.token.address !== address) return address
  const encoded = encodeURIComponent(symbol)
  return encoded.length < address.length ? encoded : address
}

/** Matches characters because of which a symbol, even encoded, would be misread in a list of symbols. */
const unsafeInList = /[,*\s\p{C}]/u

function typesOf({ types }: SelectionOptions): string | null {
  if (types.length === updateTypes.length) return '*'
  return types.join() === defaultTypes.join() ? null : types.join()
}
