import type { GeneratedTape, TokenName } from './full-tape-generator.ts'

/** A kind of question, as paths that are asked in turn; and the parameter that the next page goes into, if it has pages. */
export type HistoryQuery = {
  readonly name: string
  readonly paths: readonly string[]
  readonly cursorParameter: 'after' | 'before' | null
}

const HOLDER = `0x${'a'.repeat(36)}0001`

/** Each kind of question, from both ends and in both views; and those that have no pages. */
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
    ['types=hole (there is none)', 'types=hole'],
    ['all types of one token', `types=*&symbols=${quiet}`],
    ['from the middle', `MIDDLE`],
    ['pauses from the middle', `types=pause&MIDDLE`],
  ]
  const pages = selections.flatMap(([what, query]) =>
    (['asc', 'desc'] as const).flatMap((order) =>
      (['preconfirmed', 'sealed'] as const).map((stage): HistoryQuery => {
        const [from, goesInto] = order === 'asc' ? (['after', 'after'] as const) : (['before', 'before'] as const)
        const asked = query.replace('MIDDLE', `${from}=${epoch}.${middle}`)
        const path = `/v1/events?${asked}&order=${order}&stage=${stage}`
        // A second `after` would be refused, and one from the middle is not followed further.
        const isFollowed = !query.includes('MIDDLE')
        return {
          name: `${what}, ${order}${stage === 'sealed' ? ', sealed' : ''}`,
          paths: [path],
          cursorParameter: isFollowed ? goesInto : null,
        }
      }),
    ),
  )
  return [
    ...pages,
    { name: 'since a time', paths: times.map((time) => `/v1/events?since=${time}`), cursorParameter: 'after' },
    { name: 'a key', paths: keys.map((key) => `/v1/events/${key}`), cursorParameter: null },
    { name: 'a token', paths: tokens.map(({ symbol }) => `/v1/tokenized-stocks/${symbol}`), cursorParameter: null },
    { name: 'one party', paths: [`/v1/events?types=transfer&party=${HOLDER}`], cursorParameter: 'after' },
    { name: 'more than there is', paths: ['/v1/events?types=transfer&min_value=1000000000'], cursorParameter: 'after' },
  ]
}
