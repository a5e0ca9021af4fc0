import { closeCodes } from '../../src/protocol/close-codes.ts'
import { handshakeRequest } from '../integration/http/raw-websocket-client.ts'
import { encodeFrame } from '../integration/http/websocket-frames.ts'
import type { SeededRandom } from '../simulation/seeded-random.ts'
import { type ConnectionEnd, CrowdConnection, openStream, type RelayAddress } from './crowd-connection.ts'
import { CHANGING_SYMBOL_COUNT, EVERYTHING_QUERY, pickFrom, type SelectionChoices } from './crowd-selections.ts'
import { hostileRequests } from './hostile-requests.ts'
import { orderOfPosition, parseTapeMessage, type ReceivedHistory } from './received-history.ts'

/** How the clients of the crowd behave until the test stops them. */

/** What a client knows of the test: the relay's address, its random numbers, and where it records what it receives. */
type ClientContext = {
  readonly address: RelayAddress
  readonly random: SeededRandom
  readonly selections: readonly [string, ...string[]]
  readonly choices: SelectionChoices
  readonly history: ReceivedHistory
  readonly stopSignal: AbortSignal
  /** Whether the client sometimes stops reading. */
  readonly isStaller: boolean
}

const streamTransports = ['ws', 'sse', 'sse-named', 'ndjson'] as const
/** Share, in %, of the stalling clients that select everything, the fastest stream. */
const EVERYTHING_PERCENT = 40

/** Resolves when the time has passed, if there is one, or when the test stops. */
const pause = (ms: number | null, { stopSignal }: ClientContext): Promise<void> =>
  new Promise((resolve) => {
    if (stopSignal.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      stopSignal.removeEventListener('abort', done)
      resolve()
    }
    const timer = ms === null ? undefined : setTimeout(done, ms)
    stopSignal.addEventListener('abort', done)
  })

/** Stays connected for this time, or until the relay disconnects. Returns how it ended; null while it is open. */
async function stayFor(connection: CrowdConnection, ms: number | null, context: ClientContext): Promise<ConnectionEnd | null> {
  const end = await Promise.race([connection.ended, pause(ms, context).then(() => null)])
  if (end) checkEnding(end, context)
  return end
}

/**
 * The relay ends a connection only because the client read too slowly or did not answer a ping, and says so. A client
 * that reads nothing for longer than the relay waits for `bye` may lose the connection without it.
 */
function checkEnding({ bye, code }: ConnectionEnd, { history, stopSignal, isStaller }: ClientContext): void {
  if (stopSignal.aborted) return
  const reason = bye?.reason
  if (reason === undefined && code === null && isStaller) return
  if (reason !== 'too_slow' && reason !== 'no_pong') return history.addFault(`ended with code ${code} and ${JSON.stringify(bye)}`)
  if (code !== null && code !== closeCodes[reason]) history.addFault(`got bye ${reason} and close code ${code}`)
}

type ListeningHabit = {
  /** How long it stays; null for the whole test. */
  readonly stayMs: (random: SeededRandom) => number | null
  /** How long it reads nothing before it continues; absent for clients that never stall. */
  readonly stallMs?: (random: SeededRandom) => number
}

const leaveModes = ['reset', 'close', 'half', 'close frame'] as const

/** Listens, leaves in one of several ways, and reconnects with its last position, again and again. */
const listeningClient =
  ({ stayMs, stallMs }: ListeningHabit) =>
  async (context: ClientContext): Promise<void> => {
    const { address, random, history, stopSignal } = context
    const query = stallMs && random.chance(EVERYTHING_PERCENT) ? EVERYTHING_QUERY : random.pick(context.selections)
    const transport = random.pick(streamTransports)
    while (!stopSignal.aborted) {
      const connection = new CrowdConnection(address, history, {
        transport,
        query,
        heartbeatS: random.int(1, 15),
        resumesByHeader: random.chance(50),
        snapshot: random.chance(10),
      })
      let ended = await stayFor(connection, stayMs(random), context)
      if (!ended && stallMs && !stopSignal.aborted) {
        connection.socket.pause()
        await pause(stallMs(random), context)
        connection.socket.resume()
        ended = await stayFor(connection, stayMs(random), context)
      }
      if (!ended) await connection.leave(stopSignal.aborted ? 'close' : random.pick(leaveModes))
      await pause(random.int(50, 3_000), context)
    }
  }

/** Changes its selection again and again, with mistakes in between. Each selection is a segment of its history. */
async function selectionChanger(context: ClientContext): Promise<void> {
  const { address, random, history, stopSignal } = context
  const symbols = new Set([pickFrom(random, context.choices.symbols.slice(0, CHANGING_SYMBOL_COUNT))])
  let types: string | null = null
  let minValue: string | null = null
  const queryOf = (): string => {
    const query = new URLSearchParams({ symbols: [...symbols].toSorted().join(',') })
    if (types !== null) query.set('types', types)
    if (minValue !== null) query.set('min_value', minValue)
    return query.toString()
  }
  let req = 0
  while (!stopSignal.aborted) {
    const connection = new CrowdConnection(address, history, { transport: 'ws', query: queryOf(), heartbeatS: random.int(1, 15) })
    await Promise.race([connection.live, connection.ended, pause(null, context)])
    const changes = random.int(3, 20)
    let ended: ConnectionEnd | null = null
    for (let change = 0; change < changes && !ended && !stopSignal.aborted; change += 1) {
      req += 1
      const symbol = pickFrom(random, context.choices.symbols.slice(0, CHANGING_SYMBOL_COUNT))
      const action = random.int(0, 4)
      if (action === 0) {
        await connection.sendRequest({ type: 'nonsense', req }, 'error', () => {})
      } else if (action === 1 && symbols.size > 1 && symbols.has(symbol)) {
        await connection.sendRequest({ type: 'unsubscribe', symbols: [symbol], req }, 'unsubscribed', () => {
          symbols.delete(symbol)
          // The answer has no position: the segment before ends with its last message, and the next one begins there.
          history.beginSegment(queryOf(), null)
        })
      } else {
        const changesFilters = action === 2
        const nextTypes = changesFilters ? random.pick([null, '*', 'transfer']) : types
        const nextValue = changesFilters ? random.pick([null, '1000']) : minValue
        const options = changesFilters ? { types: nextTypes?.split(',') ?? null, min_value: nextValue } : { symbols: [symbol] }
        await connection.sendRequest(
          { type: 'subscribe', snapshot: random.chance(10), ...options, req },
          'subscribed',
          ({ id }) => {
            if (!changesFilters) symbols.add(symbol)
            types = nextTypes
            minValue = nextValue
            history.passPosition(id ?? '')
            history.beginSegment(queryOf(), orderOfPosition(id ?? ''))
          },
        )
      }
      ended = await stayFor(connection, random.int(150, 1_500), context)
    }
    if (!ended) await connection.leave(stopSignal.aborted ? 'close' : random.pick(leaveModes))
    await pause(random.int(50, 3_000), context)
  }
}

/** Sends one hostile request after the other, and waits for none to finish. */
async function hostileClient(context: ClientContext): Promise<void> {
  const { address, random, history, stopSignal } = context
  while (!stopSignal.aborted) {
    const { bytesFor, code } = random.pick(hostileRequests)
    // Where no code is expected, the answer may be anything.
    const socket = openStream(address, code === undefined ? 'ndjson' : 'ws', bytesFor(random), {
      close: (payload) => {
        const actual = payload.readUInt16BE(0)
        if (actual !== code) history.addFault(`sent a hostile request for ${code}, and was closed with ${actual}`)
      },
    })
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    await Promise.race([closed, pause(random.int(20, 4_000), context)])
    if (random.chance(50)) socket.resetAndDestroy()
    else socket.destroy()
    await pause(random.int(500, 4_000), context)
  }
}

/** Subscribes to the transfers of all tokens over JSON-RPC, and leaves after a while. Each log comes once until it is removed. */
async function rpcSubscriber(context: ClientContext): Promise<void> {
  const { address, random, history, stopSignal } = context
  const kind = random.pick(['pendingLogs', 'logs'])
  while (!stopSignal.aborted) {
    const current = new Set<string>()
    const take = (message: Buffer) => {
      const { error, params } = JSON.parse(message.toString())
      if (error) history.addFault(`subscribed to ${kind} and got ${message}`)
      if (!params) return
      const { blockNumber, transactionHash, logIndex, removed } = params.result
      const log = `${blockNumber} ${transactionHash} ${logIndex}`
      if (removed) current.delete(log)
      else if (current.has(log)) history.addFault(`subscribed to ${kind} and got the log ${log} twice`)
      else current.add(log)
    }
    const params = [kind, { topics: [TRANSFER_TOPIC] }]
    const subscription = encodeFrame({ payload: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params }) })
    const socket = openStream(address, 'ws', [handshakeRequest('/rpc'), subscription], {
      message: take,
      close: () => socket.end(),
      refused: (head) => history.addFault(`asked for /rpc and got ${head}`),
    })
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    const isClosed = await Promise.race([closed.then(() => true), pause(random.int(1_000, 20_000), context)])
    if (isClosed && !stopSignal.aborted) history.addFault(`subscribed to ${kind} and was disconnected`)
    if (random.chance(50)) socket.resetAndDestroy()
    else socket.destroy()
    await pause(random.int(50, 3_000), context)
  }
}

const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

/** Asks for the history again and again, each time for what came after the last answer. */
async function historyReader(context: ClientContext): Promise<void> {
  const { address, random, history, stopSignal } = context
  const read = async (query: string): Promise<readonly string[]> => {
    try {
      const url = `http://127.0.0.1:${address.port}/v1/events?${query}&format=ndjson`
      // An audit holds this process for seconds, and the relay would close a connection that is kept meanwhile.
      const headers = { connection: 'close' }
      return (await (await fetch(url, { headers, signal: stopSignal })).text()).split('\n').slice(0, -1)
    } catch (failure) {
      if (!stopSignal.aborted) history.addFault(`asked for the history and failed: ${failure}`)
      return []
    }
  }
  const query = random.pick(context.selections)
  const [newest = ''] = await read('order=desc&limit=1')
  const { position = '' } = parseTapeMessage(Buffer.from(newest)) ?? {}
  history.beginSegment(query, orderOfPosition(position))
  history.passPosition(position)
  while (!stopSignal.aborted) {
    await pause(random.int(500, 5_000), context)
    for (const line of await read(`${query}&after=${history.lastPosition}`)) {
      const message = Buffer.from(line)
      const tapeMessage = parseTapeMessage(message)
      if (tapeMessage) history.receive(message, tapeMessage)
      else history.addFault(`asked for the history and got ${line}`)
    }
  }
}

type ClientBehavior = { readonly name: string; readonly percent: number; readonly run: (context: ClientContext) => Promise<void> }

/** Percentages of the crowd. */
const behaviors: readonly ClientBehavior[] = [
  { name: 'steady', percent: 36, run: listeningClient({ stayMs: () => null }) },
  { name: 'returning', percent: 25, run: listeningClient({ stayMs: (random) => random.int(200, 20_000) }) },
  {
    name: 'staller',
    percent: 17,
    run: listeningClient({ stayMs: (random) => random.int(500, 6_000), stallMs: (random) => random.int(500, 40_000) }),
  },
  { name: 'selection changer', percent: 10, run: selectionChanger },
  { name: 'hostile', percent: 7, run: hostileClient },
  { name: 'RPC subscriber', percent: 3, run: rpcSubscriber },
  { name: 'history reader', percent: 2, run: historyReader },
]

export function behaviorOf(nth: number): ClientBehavior {
  let left = nth % 100
  for (const behavior of behaviors) {
    left -= behavior.percent
    if (left < 0) return behavior
  }
  throw new Error('the percentages add up to less than a hundred')
}
