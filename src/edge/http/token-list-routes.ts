import { createHash } from 'node:crypto'
import type { Hex, TokenRecord } from '../../protocol/fields.ts'
import type { TokenStanding } from '../../protocol/token-list.ts'
import { updateTypes } from '../../protocol/updates.ts'
import type { Reader, Tape } from '../../tape/tape.ts'
import type { Token } from '../../tokens/token.ts'
import type { Turnstile } from '../limits/work-queue.ts'
import type { House } from '../live/session.ts'
import { choose, noList, unknownSymbol } from '../select/symbols.ts'
import { snapshotOf, type View } from '../select/view.ts'

/** What concerns every listener is of no token. */
const aboutAll: ReadonlySet<string> = new Set(['status', 'hole', 'finality'])
const aboutTokens = new Set(updateTypes.filter((type) => !aboutAll.has(type)))
/** Bytes of a digest that tell one list from the next. */
const TAG_BYTES = 16

/** The list as it is answered, the tag that says which one it is, and how many seconds ago it was read. */
type Listing = { readonly body: string; readonly tag: string; readonly ageS: number }

/** The list as the Read API gives it, from the board. */
export class Listings {
  readonly #view: View
  readonly #now: () => number
  #of: readonly Token[] | null = null
  #made: Pick<Listing, 'body' | 'tag'> = { body: '', tag: '' }

  constructor(view: View, now: () => number) {
    this.#view = view
    this.#now = now
  }

  read(): Listing {
    const { listed, readAt } = this.#view
    if (listed === null || readAt === null) throw noList()
    if (this.#of !== listed) {
      this.#of = listed
      this.#made = madeOf(listed)
    }
    return { ...this.#made, ageS: Math.max(0, Math.floor((this.#now() - readAt) / 1_000)) }
  }
}

function madeOf(listed: readonly Token[]): Pick<Listing, 'body' | 'tag'> {
  const body = JSON.stringify({ tokens: listed.map(({ record }): TokenRecord => record) })
  const digest = createHash('sha256').update(body).digest('hex')
  return { body, tag: `"${digest.slice(0, 2 * TAG_BYTES)}"` }
}

/** Whether somebody who knows these tags knows this list: said weakly or not, it is the same list. */
export const knows = (ifNoneMatch: string | undefined, tag: string): boolean =>
  (ifNoneMatch ?? '').split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === tag)

/** A token as it stands now, and where on the tape its newest message is. */
export async function standingOf(selector: string, house: House, turnstile: Turnstile): Promise<TokenStanding> {
  const { view, tape, hub, now, staleMs } = house
  const { tokens, rejected } = choose(view, [selector])
  const [address] = tokens ?? []
  // All of them are none of them.
  const none = { symbol: selector, reason: 'unknown_symbol' as const, suggest: [] }
  if (address === undefined) throw unknownSymbol([...rejected, none])
  const seq = await newestOf(address, tape, turnstile)
  const token = view.tokens.find((one) => one.address === address)
  if (!token) throw unknownSymbol(rejected)
  const {
    type: _type,
    id: _id,
    ...standing
  } = snapshotOf(token, {
    id: null,
    asOf: hub.position(tape.end()),
    now: now(),
    staleMs,
  })
  return { ...standing, last: seq === null ? null : hub.position(seq) }
}

/** The number of the newest message of a token that is kept. */
async function newestOf(address: Hex, tape: Tape, turnstile: Turnstile): Promise<number | null> {
  const read: Reader = tape.reader({ tokens: new Set([address]), types: aboutTokens })
  let before = tape.end() + 1
  // Each step looks at a bounded part of the tape, further down than the one before.
  for (;;) {
    const { entries, reached } = await read({ after: 0, before, order: 'desc', limit: 1 })
    const [newest] = entries
    if (newest) return newest.seq
    if (reached === null) return null
    before = reached
    await turnstile.turn()
  }
}
