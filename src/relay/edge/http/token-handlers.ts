import { createHash } from 'node:crypto'
import type { Hex } from '../../../lib/hex.ts'
import { chunk, nextTurn } from '../../../lib/turns.ts'
import { readParameters } from '../../../protocol/parameters/read-parameters.ts'
import { SnapshotQuery } from '../../../protocol/parameters/selection.ts'
import type { TokenDetails } from '../../../protocol/token-list.ts'
import { globalTypes, updateTypes } from '../../../protocol/updates.ts'
import type { Tape } from '../../tape/tape.ts'
import type { Token } from '../../tokens/token.ts'
import type { LongWorkQueue } from '../limits/long-work-queue.ts'
import { noList, unknownSymbol } from '../limits/refusals.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { SNAPSHOTS_PER_TURN, tokensOf } from '../live/session-start.ts'
import type { CurrentState } from '../select/current-state.ts'
import { resolveKnownSymbols, resolveSymbols } from '../select/resolve-symbols.ts'
import { snapshotOf } from '../select/snapshot.ts'
import { RepeatedBody, varyHeaders } from '../transport/gzip.ts'
import { acceptEncodingOf, etagOf, type Handlers, hasCurrent, queryOf, sendJson } from './handler-basics.ts'

const tokenTypes = new Set(updateTypes.filter((type) => !globalTypes.includes(type)))
const RECORDS_PER_TURN = 1_000

/** Reads the token list in the form of the Read API, rendered once per change, and its age in seconds. */
function listReaderOf(current: CurrentState, now: () => number) {
  let cachedFrom: readonly Token[] | null = null
  let cached: ReturnType<typeof renderList> | null = null
  return async () => {
    const { listed, listReadAt } = current
    if (listed === null || listReadAt === null) throw noList
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
  return { body: new RepeatedBody(new Uint8Array(Buffer.concat(parts))), etag: etagOf(hash) }
}

export function tokenHandlers(
  edge: EdgeContext,
  workQueue: LongWorkQueue,
  cacheControl: string,
): Handlers<'tokens' | 'snapshot' | 'token'> {
  const readList = listReaderOf(edge.current, edge.now)
  return {
    tokens: async (c) => {
      const { body, etag, ageS } = await readList()
      const headers = { etag, age: String(ageS), 'cache-control': cacheControl }
      if (hasCurrent(c, etag)) return c.body(null, 304, { ...headers, ...varyHeaders })
      const encoded = await body.for(acceptEncodingOf(c))
      return c.body(encoded.bytes, 200, { ...headers, ...encoded.headers, 'content-type': 'application/json' })
    },
    snapshot: async (c) =>
      sendJson(c, await workQueue.run(edge.clientAddressOf(c.env.incoming), () => readSnapshots(queryOf(c), edge))),
    token: async (c) => {
      const token = await workQueue.run(edge.clientAddressOf(c.env.incoming), () =>
        readToken(c.req.param('selector') ?? '', edge, workQueue),
      )
      return sendJson(c, JSON.stringify(token))
    },
  }
}

/** Returns the JSON of snapshots at one position. A token object never changes, so the JSON may be made in several turns. */
async function readSnapshots(query: URLSearchParams, edge: EdgeContext): Promise<string> {
  const { symbols = ['*'] } = readParameters(SnapshotQuery, query)
  const { tokens, rejected } = resolveKnownSymbols(edge.current, symbols)
  edge.hub.delivery.flush()
  const asOf = edge.hub.position(edge.tape.end())
  const state = { id: asOf, asOf, now: edge.wallTime(), navStaleAfterMs: edge.navStaleAfterMs }
  const texts: string[] = []
  for (const [index, token] of tokensOf(edge, tokens).entries()) {
    if (index % SNAPSHOTS_PER_TURN === SNAPSHOTS_PER_TURN - 1) await nextTurn()
    texts.push(JSON.stringify(snapshotOf(token, edge.current, state)))
  }
  return `{"as_of":"${asOf}","snapshots":[${texts.join()}],"rejected":${JSON.stringify(rejected)}}`
}

async function readToken(selector: string, context: EdgeContext, workQueue: LongWorkQueue): Promise<TokenDetails> {
  const { current, tape, hub, wallTime, navStaleAfterMs } = context
  const { tokens, rejected } = resolveSymbols(current, [selector])
  const [address] = tokens ?? []
  // The selector `*` names no single token.
  const unknownToken = { symbol: selector, reason: 'unknown_symbol' as const, suggest: [] }
  if (address === undefined) throw unknownSymbol([...rejected, unknownToken])
  const seq = await newestSeqOf(address, tape, workQueue)
  const token = current.token(address)
  if (!token) throw unknownSymbol(rejected)
  const state = { id: null, asOf: hub.position(tape.end()), now: wallTime(), navStaleAfterMs }
  const { type: _type, id: _id, ...snapshot } = snapshotOf(token, current, state)
  return { ...snapshot, last: seq === null ? null : hub.position(seq) }
}

async function newestSeqOf(address: Hex, tape: Tape, workQueue: LongWorkQueue): Promise<number | null> {
  const wanted = { tokens: new Set([address]), types: tokenTypes }
  let before = tape.end() + 1
  for (;;) {
    const { entries, reached } = tape.read(wanted, { after: 0, before, order: 'desc', limit: 1 })
    const [newest] = entries
    if (newest) return newest.seq
    if (reached === null) return null
    before = reached
    await workQueue.nextSlice()
  }
}
