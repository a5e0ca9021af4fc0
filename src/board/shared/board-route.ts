/** State of the page in its URL after `#`, so that a link shows the same page to another person. */
export type BoardRoute = { readonly page: BoardPage; readonly filter: BoardFilter; readonly view: BoardView }

type BoardPage =
  | { readonly name: 'symbols' | 'health' | 'play' }
  | { readonly name: 'symbol'; readonly symbol: string }
  | { readonly name: 'fact'; readonly key: string }

/** Parameters of the stream. An empty list selects everything. */
export type BoardFilter = {
  readonly symbols: readonly string[]
  readonly types: readonly string[]
  readonly minValue: string
  readonly account: readonly string[]
}

export type BoardView = {
  readonly layout: 'table' | 'tiles'
  readonly sort: SortKey
  readonly isDescending: boolean
  readonly search: string
  readonly pins: readonly string[]
  /** Whether the page is larger and has no controls, for a screen on a wall. */
  readonly isWall: boolean
  /** The part that a narrow screen shows. */
  readonly tab: 'symbols' | 'tape'
  /** The part of the tape that is shown. */
  readonly show: TapeShow
}
/** Parts of the tape, in their order. */
export const tapeShows = ['all', 'trades', 'moves', 'events', 'retracted'] as const
export type TapeShow = (typeof tapeShows)[number]
export const sortKeys = ['symbol', 'quote', 'change', 'basis', 'volume', 'nav'] as const
export type SortKey = (typeof sortKeys)[number]

export const emptyFilter: BoardFilter = { symbols: [], types: [], minValue: '', account: [] }

export const toggled = (list: readonly string[], item: string): readonly string[] =>
  list.includes(item) ? list.filter((other) => other !== item) : [...list, item]

export function parseRoute(hash: string): BoardRoute {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?')
  const parameters = new URLSearchParams(query)
  const text = (name: string) => parameters.get(name) ?? ''
  const list = (name: string) => text(name).split(',').filter(Boolean)
  const sort = sortKeys.find((key) => key === text('sort').replace(/^-/, ''))
  return {
    page: pageOf(path),
    filter: { symbols: list('symbols'), types: list('types'), minValue: text('min_value'), account: list('account') },
    view: {
      layout: text('layout') === 'tiles' ? 'tiles' : 'table',
      sort: sort ?? 'volume',
      isDescending: sort === undefined || text('sort').startsWith('-'),
      search: text('search'),
      pins: list('pins'),
      isWall: parameters.has('wall'),
      tab: text('tab') === 'tape' ? 'tape' : 'symbols',
      show: tapeShows.find((name) => name === text('show')) ?? 'all',
    },
  }
}

function pageOf(path: string): BoardPage {
  const [first = '', second = ''] = path.split('/').map(decodeText)
  if (first === '') return { name: 'symbols' }
  if (first === 'health' || first === 'play') return { name: first }
  // Old links.
  if (first === 'source') return { name: 'health' }
  if (first === 'fact') return { name: 'fact', key: second }
  return { name: 'symbol', symbol: first }
}

/** Decodes a part of a URL. Returns it unchanged if one of its escapes is invalid. */
export function decodeText(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function formatRoute({ page, filter, view }: BoardRoute): string {
  const query = [
    ...filterParameters(filter),
    ...given('layout', view.layout === 'tiles' ? 'tiles' : ''),
    ...given('sort', view.sort === 'volume' && view.isDescending ? '' : `${view.isDescending ? '-' : ''}${view.sort}`),
    ...given('search', view.search),
    ...given('pins', view.pins.join()),
    ...(view.isWall ? ['wall'] : []),
    ...given('tab', view.tab === 'tape' ? 'tape' : ''),
    ...given('show', view.show === 'all' ? '' : view.show),
  ]
  return `#/${pathOf(page)}${query.length > 0 ? `?${query.join('&')}` : ''}`
}

export const filterParameters = ({ symbols, types, minValue, account }: BoardFilter): readonly string[] => [
  ...given('symbols', symbols.join()),
  ...given('types', types.join()),
  ...given('min_value', minValue),
  ...given('account', account.join()),
]

/** Encodes a parameter except for its commas, so that a person can read a list. */
const given = (name: string, value: string): readonly string[] =>
  value === '' ? [] : [`${name}=${encodeURIComponent(value).replaceAll('%2C', ',')}`]

/** The part of the hash that names the page. */
export function pathOf(page: BoardPage): string {
  if (page.name === 'symbol') return encodeURIComponent(page.symbol)
  if (page.name === 'fact') return `fact/${encodeURIComponent(page.key)}`
  return page.name === 'symbols' ? '' : page.name
}
