import type { GeneratedTape, TokenName } from './full-tape-generator.ts'

/** A kind of query: paths that are requested in turn, and the parameter that continues with the next page, if any. */
export type HistoryQuery = {
  readonly name: string
  readonly paths: readonly string[]
  readonly cursorParameter: 'after' | 'before' | null
}

const HOLDER = `0x${'a'.repeat(36)}0001`

/** Every kind of query, from both ends and in both views, and those without pages. */
export function historyQueriesFor(
  { epoch, end, keys, times }: GeneratedTape,
  tokens: readonly TokenName[],
): readonly HistoryQuery[] {
  const [busy, quiet] = [tokens[0]?.symbol ?? '', tokens.at(-1)?.symbol ?? '']
  const middle = Math.floor(end / 2)
  const selections: readonly (readonly [what: string, query: string])[] = [
    ['everything', ''],
    [`a busy token`, `symbols=${busy}`],
    [`a quiet token`, `symbols=${quiet}`],
    ['types=transfer', 'types=transfer'],
    ['types=pause', 'types=pause'],
    ['types=pause of one token', `types=pause&symbols=${quiet}`],
    ['types=nav', 'types=nav'],
    ['types=approval', 'types=approval'],
    ['types=retract', 'types=retract'],
    ['types=hole (no update has it)', 'types=hole'],
    ['all types of one token', `types=*&symbols=${quiet}`],
    ['from the middle', `MIDDLE`],
    ['pauses from the middle', `types=pause&MIDDLE`],
  ]
  const pages = selections.flatMap(([what, query]) =>
    (['asc', 'desc'] as const).flatMap((order) =>
      (['preconfirmed', 'sealed'] as const).map((stage): HistoryQuery => {
        const [from, cursorParameter] = order === 'asc' ? (['after', 'after'] as const) : (['before', 'before'] as const)
        const parameters = query.replace('MIDDLE', `${from}=${epoch}.${middle}`)
        const path = `/v1/events?${parameters}&order=${order}&stage=${stage}`
        // The relay refuses a second `after`, so a query from the middle is not continued.
        const isFollowed = !query.includes('MIDDLE')
        return {
          name: `${what}, ${order}${stage === 'sealed' ? ', sealed' : ''}`,
          paths: [path],
          cursorParameter: isFollowed ? cursorParameter : null,
        }
      }),
    ),
  )
  return [
    ...pages,
    { name: 'since a time', paths: times.map((time) => `/v1/events?since=${time}`), cursorParameter: 'after' },
    { name: 'a key', paths: keys.map((key) => `/v1/events/${key}`), cursorParameter: null },
    { name: 'a token', paths: tokens.map(({ symbol }) => `/v1/tokenized-stocks/${symbol}`), cursorParameter: null },
    { name: 'one account', paths: [`/v1/events?types=transfer&account=${HOLDER}`], cursorParameter: 'after' },
    { name: 'a value that no update has', paths: ['/v1/events?types=transfer&min_value=1000000000'], cursorParameter: 'after' },
  ]
}
