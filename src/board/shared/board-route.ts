/** What the page shows: the part of its URL after `#`, so that a link shows the same to another person. */
export type BoardRoute = { readonly page: BoardPage; readonly filter: BoardFilter; readonly view: BoardView }

type BoardPage =
  | { readonly name: 'symbols' | 'source' | 'play' }
  | { readonly name: 'symbol'; readonly symbol: string }
  | { readonly name: 'fact'; readonly key: string }

/** What the stream is asked for, as the protocol's parameters. Empty lists select everything. */
export type BoardFilter = {
  readonly symbols: readonly string[]
  readonly types: readonly string[]
  readonly minValue: string
  readonly account: readonly string[]
}

/** How the symbols are shown. */
export type BoardView = {
  readonly layout: 'table' | 'tiles'
  readonly sort: SortKey
  readonly isDescending: boolean
  readonly search: string
  readonly pins: readonly string[]
  /** Larger, and without controls. */
  readonly isWall: boolean
}
export const sortKeys = ['symbol', 'nav', 'quote', 'basis', 'flow', 'updated'] as const
export type SortKey = (typeof sortKeys)[number]

export const emptyFilter: BoardFilter = { symbols: [], types: [], minValue: '', account: [] }

export function parseRoute(hash: string): BoardRoute {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?')
  const parameters = new URLSearchParams(query)
  const text = (name: string) => parameters.get(name) ?? ''
  const list = (name: string) => text(name).split(',').filter(Boolean)
  const sort = text('sort').replace(/^-/, '')
  return {
    page: pageOf(path),
    filter: { symbols: list('symbols'), types: list('types'), minValue: text('min_value'), account: list('account') },
    view: {
      layout: text('layout') === 'tiles' ? 'tiles' : 'table',
      sort: sortKeys.find((key) => key === sort) ?? 'symbol',
      isDescending: text('sort').startsWith('-'),
      search: text('search'),
      pins: list('pins'),
      isWall: parameters.has('wall'),
    },
  }
}

function pageOf(path: string): BoardPage {
  const [first = '', second = ''] = path.split('/').map(decode)
  if (first === '') return { name: 'symbols' }
  if (first === 'source' || first === 'play') return { name: first }
  if (first === 'fact') return { name: 'fact', key: second }
  return { name: 'symbol', symbol: first }
}

/** A broken escape stands for itself. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function formatRoute({ page, filter, view }: BoardRoute): string {
  const parameters: readonly (readonly [name: string, value: string])[] = [
    ['symbols', filter.symbols.join()],
    ['types', filter.types.join()],
    ['min_value', filter.minValue],
    ['account', filter.account.join()],
    ['layout', view.layout === 'tiles' ? 'tiles' : ''],
    ['sort', view.sort === 'symbol' && !view.isDescending ? '' : `${view.isDescending ? '-' : ''}${view.sort}`],
    ['search', view.search],
    ['pins', view.pins.join()],
  ]
  const query = parameters.flatMap(([name, value]) => (value === '' ? [] : [`${name}=${escapeValue(value)}`]))
  if (view.isWall) query.push('wall')
  return `#/${pathOf(page)}${query.length > 0 ? `?${query.join('&')}` : ''}`
}

/** Commas stay, because lists are meant to be read. */
const escapeValue = (value: string): string => encodeURIComponent(value).replaceAll('%2C', ',')

function pathOf(page: BoardPage): string {
  switch (page.name) {
    case 'symbols':
      return ''
    case 'symbol':
      return encodeURIComponent(page.symbol)
    case 'fact':
      return `fact/${encodeURIComponent(page.key)}`
    default:
      return page.name
  }
}
