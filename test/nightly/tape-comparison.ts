import { crc32 } from 'node:zlib'
import { formatRequest } from '../integration/http/raw-connection.ts'
import { openStream, type RelayAddress } from './crowd-connection.ts'
import { formatOrder, parseTapeMessage, type ReceivedSegment, seqOfOrder, type TapeOrder } from './received-history.ts'

/** What the tape contains for a selection. */
type TapeContent = { readonly orders: readonly TapeOrder[]; readonly checksums: readonly number[] }

/** The part of the tape that is compared: after a position, up to an order. */
type TapeRange = { readonly since: string; readonly to: TapeOrder }

/** Reads that part for a selection, while more is written or not. */
function readTapeRange(address: RelayAddress, query: string, { since, to }: TapeRange): Promise<TapeContent> {
  const path = `/v1/stream?${query}&snapshot=false&format=ndjson&since=${since}`
  const orders: TapeOrder[] = []
  const checksums: number[] = []
  return new Promise((resolve, reject) => {
    const done = (fault?: string) => {
      socket.destroy()
      if (fault === undefined) resolve({ orders, checksums })
      else reject(new Error(`${path}: ${fault}`))
    }
    const takeLine = (line: Buffer) => {
      if (line.toString('latin1', 0, LIVE.length) === LIVE) return done()
      const tapeMessage = parseTapeMessage(line)
      if (!tapeMessage) return
      if (tapeMessage.order > to) return done()
      orders.push(tapeMessage.order)
      checksums.push(crc32(line))
    }
    const handlers = { message: takeLine, refused: (head: string) => done(head) }
    const socket = openStream(address, 'ndjson', [formatRequest(`GET ${path}`)], handlers)
    socket.on('close', () => done('ended early'))
  })
}

const LIVE = '{"type":"live'

/** Compares received messages with the tape. */
export class TapeComparison {
  readonly #tapes = new Map<string, TapeContent>()
  comparedCount = 0

  /** Reads the tape once for each selection, with one read at a time from each address. */
  async readTapes(segments: readonly ReceivedSegment[], addresses: readonly RelayAddress[], epoch: string): Promise<void> {
    const orders = segments.flatMap(({ from, to }) => [from, to])
    const published = orders.filter((order) => order !== null)
    const least = seqOfOrder(published.reduce((least, order) => Math.min(least, order), Number.MAX_SAFE_INTEGER))
    // From one number earlier: a segment may begin inside the messages of a seal.
    const since = `${epoch}.${Math.max(0, least - 1)}`
    const range = { since, to: published.reduce((most, order) => Math.max(most, order), 0) }
    const queries = [...new Set(segments.map(({ query }) => query))]
    const readNextTapes = async (address: RelayAddress) => {
      for (let query = queries.pop(); query !== undefined; query = queries.pop()) {
        this.#tapes.set(query, await readTapeRange(address, query, range))
      }
    }
    await Promise.all(addresses.map(readNextTapes))
  }

  /** The first difference between a segment and the tape; null if there is none. */
  findFault(segment: ReceivedSegment): string | null {
    const first = segment.orders[0]
    const to = segment.to ?? segment.orders.at(-1)
    if (to === undefined) return null
    const { orders, checksums } = this.#tapes.get(segment.query) ?? { orders: [], checksums: [] }
    const from = segment.from === null ? orders.indexOf(first ?? 0) : indexAfter(orders, segment.from)
    if (from < 0) return first === undefined ? null : `${segment.query}: ${formatOrder(first)} is not on the tape`
    const end = indexAfter(orders, to)
    this.comparedCount += segment.orders.length
    for (let at = 0; at < Math.max(segment.orders.length, end - from); at += 1) {
      const [published, received] = [orders[from + at], segment.orders[at]]
      const differs = published !== received || checksums[from + at] !== segment.checksums[at] || from + at >= end
      if (differs)
        return `${segment.query}: got ${formatOrder(received)} where the tape has ${formatOrder(published)}, message ${at + 1} of ${end - from}`
    }
    return null
  }
}

/** How many orders are at most this one. */
function indexAfter(orders: readonly TapeOrder[], order: TapeOrder): number {
  let [low, high] = [0, orders.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((orders[middle] ?? 0) <= order) low = middle + 1
    else high = middle
  }
  return low
}
