import { crc32 } from 'node:zlib'
import { request } from '../integration/http/raw-connection.ts'
import { AnswerReader, call, LineReader, type Way } from './crowd-stream-readers.ts'
import { isRemark, keptOf, type Order, type Piece, sayPlace, seqOfOrder } from './received-history.ts'

/** How many readings of the tape go on at once. */
const READINGS = 6

/** What the tape gives for a selection, asked for when it is at rest. */
type Given = { readonly orders: readonly Order[]; readonly sums: readonly number[] }

/** The stretch of the tape on which everybody was judged: after a position, and up to a place. */
type Stretch = { readonly since: string; readonly to: Order }

/** Reads that stretch for a selection; text from where its query says up to the present. */
function tapeOf(way: Way, query: string, { since, to }: Stretch): Promise<Given> {
  const isText = query.endsWith('format=text')
  const path = `/v1/stream?${query}&snapshot=false${isText ? '' : `&format=ndjson&since=${since}`}`
  const orders: Order[] = []
  const sums: number[] = []
  return new Promise((resolve, reject) => {
    const socket = call(way)
    const done = (fault?: string) => {
      socket.destroy()
      if (fault === undefined) resolve({ orders, sums })
      else reject(new Error(`${path}: ${fault}`))
    }
    const take = (line: Buffer) => {
      const isLive = line.toString('latin1', 0, 13) === (isText ? '# live after ' : '{"type":"live')
      if (isLive) return done()
      const kept = isText ? null : keptOf(line)
      if (kept && kept.order > to) return done()
      if (!kept && (!isText || isRemark(line))) return
      orders.push(kept?.order ?? orders.length + 1)
      sums.push(crc32(line))
    }
    const answer = new AnswerReader(new LineReader(take, isText ? 'text' : 'ndjson'), (head) => done(head))
    socket.on('data', (bytes: Buffer) => answer.read(bytes))
    socket.on('close', () => done('ended early'))
    socket.on('error', () => socket.destroy())
    socket.write(request(`GET ${path}`))
  })
}

/** Holds what was heard against the tape: what speaks against it, and how many messages were compared. */
export class Judge {
  readonly #tapes = new Map<string, Given>()
  compared = 0

  /** Reads the tape once for every selection, some at a time. */
  async read(pieces: readonly Piece[], ways: readonly Way[], epoch: string): Promise<void> {
    const places = pieces.flatMap(({ query, from, to }) => (query.endsWith('format=text') ? [] : [from, to]))
    const told = places.filter((place) => place !== null)
    const since = `${epoch}.${seqOfOrder(told.reduce((least, place) => Math.min(least, place), Number.MAX_SAFE_INTEGER))}`
    const stretch = { since, to: told.reduce((most, place) => Math.max(most, place), 0) }
    const queries = [...new Set(pieces.map(({ query }) => query))]
    const readOn = async (way: Way) => {
      for (let query = queries.pop(); query !== undefined; query = queries.pop()) {
        this.#tapes.set(query, await tapeOf(way, query, stretch))
      }
    }
    await Promise.all(ways.slice(0, READINGS).map(readOn))
  }

  get questions(): number {
    return this.#tapes.size
  }

  /** What speaks against a piece of a story; null if nothing does. */
  fault(piece: Piece): string | null {
    const first = piece.orders[0]
    const to = piece.to ?? piece.orders.at(-1)
    if (to === undefined) return null
    const { orders, sums } = this.#tapes.get(piece.query) ?? { orders: [], sums: [] }
    const from = piece.from === null ? orders.indexOf(first ?? 0) : after(orders, piece.from)
    if (from < 0) return first === undefined ? null : `${piece.query}: ${sayPlace(first)} is not on the tape`
    const end = after(orders, to)
    this.compared += piece.orders.length
    for (let at = 0; at < Math.max(piece.orders.length, end - from); at += 1) {
      const [told, heard] = [orders[from + at], piece.orders[at]]
      const differs = told !== heard || sums[from + at] !== piece.sums[at] || from + at >= end
      if (differs)
        return `${piece.query}: ${sayPlace(heard)} was heard where the tape has ${sayPlace(told)}, the ${at + 1}th of ${end - from}`
    }
    return null
  }
}

/** How many stand up to and with a place. */
function after(orders: readonly Order[], place: Order): number {
  let [low, high] = [0, orders.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((orders[middle] ?? 0) <= place) low = middle + 1
    else high = middle
  }
  return low
}
