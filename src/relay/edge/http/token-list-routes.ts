import { createHash } from 'node:crypto'
import type { Hex } from '../../../lib/hex.ts'
import { chunk, nextTurn } from '../../../lib/turns.ts'
import { readParameters, SnapshotQuery } from '../../../protocol/selection.ts'
import type { TokenDetails } from '../../../protocol/token-list.ts'
import { globalTypes, updateTypes } from '../../../protocol/updates.ts'
import type { HistoryReader, SearchableTape } from '../../tape/tape.ts'
import type { Token } from '../../tokens/token.ts'
import type { WorkQueue } from '../limits/work-queue.ts'
import type { EdgeContext, StreamServices } from '../live/edge-context.ts'
import { SNAPSHOTS_PER_TURN, tokensOf } from '../live/stream-session.ts'
import { snapshotOf, type View } from '../select/state-view.ts'
import { listUnavailable, resolveKnownSymbols, resolveSymbols, unknownSymbol } from '../select/symbols.ts'
import { type Handlers, hasCurrent, queryOf, sendJson } from './handlers.ts'

const tokenTypes = new Set(updateTypes.filter((type) => !globalTypes.includes(type)))
const ETAG_BYTES = 16
const RECORDS_PER_TURN = 1_000

/** Returns a reader of the token list in the form of the Read API, with its age in seconds. It renders each new list once. */
function listReaderOf(view: View, now: () => number) {
  let cachedFrom: readonly Token[] | null = null
  let cached: ReturnType<typeof renderList> | null = null
  return async () => {
    const { listed, listReadAt } = view
    if (listed === null || listReadAt === null) throw listUnavailable()
    if (cachedFrom !== listed) cached = null
    cachedFrom = listed
    cached ??= renderList(listed)
    return { ...(await cached), ageS: Math.max(0, Math.floor((now() - listReadAt) / 1_000)) }
  }
}

async function renderList(listed: readonly Token[]) {
  const hash = createHash('sha256')
  const parts: Buffer[] = []
  const add = (text: string) => {
    const bytes = Buffer.from(text)
    hash.update(bytes)
    parts.push(bytes)
  }
  add('{"tokens":[')
  for (const [index, tokens] of chunk(listed, RECORDS_PER_TURN).entries()) {
    if (index > 0) {
      await nextTurn()
      add(',')
    }
    add(tokens.map(({ record }) => JSON.stringify(record)).join())
  }
  add(']}')
  return { body: Buffer.concat(parts), etag: `"${hash.digest('hex').slice(0, 2 * ETAG_BYTES)}"` }
}

export function tokenListHandlers(
  { edge, clientAddressOf }: StreamServices,
  workQueue: WorkQueue,
  cacheControl: string,
): Handlers<'tokens' | 'snapshot' | 'token'> {
  const readList = listReaderOf(edge.view, edge.now)
  return {
    tokens: async (c) => {
      const { body, etag, ageS } = await readList()
      const headers = { etag, age: String(ageS), 'cache-control': cacheControl }
      if (hasCurrent(c, etag)) return c.body(null, 304, headers)
      return c.body(body, 200, { ...headers, 'content-type': 'application/json' })
    },
    snapshot: async (c) => sendJson(c, await workQueue.run(clientAddressOf(c.env.incoming), () => readSnapshots(queryOf(c), edge))),
    token: async (c) => {
      const token = await workQueue.run(clientAddressOf(c.env.incoming), () =>
        readToken(c.req.param('selector') ?? '', edge, workQueue),
      )
      return sendJson(c, JSON.stringify(token))
    },
  }
}

/** Returns the JSON of snapshots at one position. A token object never changes, so the JSON may be made in several turns. */
async function readSnapshots(query: URLSearchParams, edge: EdgeContext): Promise<string> {
  const { symbols = ['*'] } = readParameters(SnapshotQuery, query)
  const { tokens, rejected } = resolveKnownSymbols(edge.view, symbols)
  edge.hub.delivery.flush()
  const asOf = edge.hub.position(edge.tape.end())
  const state = { id: asOf, asOf, now: edge.wallTime(), navStaleAfterMs: edge.navStaleAfterMs }
  const texts: string[] = []
  for (const [index, token] of tokensOf(edge, tokens).entries()) {
    if (index % SNAPSHOTS_PER_TURN === SNAPSHOTS_PER_TURN - 1) await nextTurn()
    texts.push(JSON.stringify(snapshotOf(token, edge.view, state)))
  }
  return `{"as_of":"${asOf}","snapshots":[${texts.join()}],"rejected":${JSON.stringify(rejected)}}`
}

async function readToken(selector: string, context: EdgeContext, workQueue: WorkQueue): Promise<TokenDetails> {
  const { view, tape, hub, wallTime, navStaleAfterMs } = context
  const { tokens, rejected } = resolveSymbols(view, [selector])
  const [address] = tokens ?? []
  // The selector `*` names no single token.
  const unknownToken = { symbol: selector, reason: 'unknown_symbol' as const, suggest: [] }
  if (address === undefined) throw unknownSymbol([...rejected, unknownToken])
  const seq = await newestSeqOf(address, tape, workQueue)
  const token = view.token(address)
  if (!token) throw unknownSymbol(rejected)
  const state = { id: null, asOf: hub.position(tape.end()), now: wallTime(), navStaleAfterMs }
  const { type: _type, id: _id, ...snapshot } = snapshotOf(token, view, state)
  return { ...snapshot, last: seq === null ? null : hub.position(seq) }
}

async function newestSeqOf(address: Hex, tape: SearchableTape, workQueue: WorkQueue): Promise<number | null> {
  const read: HistoryReader = tape.openReader({ tokens: new Set([address]), types: tokenTypes })
  let before = tape.end() + 1
  for (;;) {
    const { entries, reached } = await read({ after: 0, before, order: 'desc', limit: 1 })
    const [newest] = entries
    if (newest) return newest.seq
    if (reached === null) return null
    before = reached
    await workQueue.nextSlice()
  }
}
