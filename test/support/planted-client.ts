import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { comparePositions } from '../../src/sdk/client/position-order.ts'

/** A client of the contract, over a WebSocket, without the SDK. The argument names a mistake that it makes. */

const mistake = process.argv[2] ?? 'none'
const makes = (name: string): boolean => mistake === name
const url = (process.env.STOCKTAPE_URL ?? '').replace('http', 'ws')
const file = process.env.STOCKTAPE_POSITION ?? 'client.position'
const HEARTBEAT_S = 2
/** The first message may take this long. */
const CONNECT_MS = 15_000
const RETRY_MS = 200
/** Long enough that a busy machine does not look like a growing wait. */
const CONSTANT_RETRY_MS = 1_000
const QUEUE = 50

let position = existsSync(file) ? readFileSync(file, 'utf8') : null
let firstPosition: string | null = null
let start = ''
let attempts = 0
let retryMs = 0
let isRefused = false
const lastIds = new Map<string, string>()
const queue: string[] = []

/** Only one mistake drops what its reader does not take; all others let the pipe hold the client back. */
function print(line: string): void {
  if (makes('drops what is not read') && queue.length >= QUEUE) return
  queue.push(line)
  flush()
}

let isFlushing = false
function flush(): void {
  if (isFlushing) return
  const line = queue.shift()
  if (line === undefined) return
  isFlushing = !process.stdout.write(`${line}\n`)
  if (!isFlushing) return flush()
  process.stdout.once('drain', () => {
    isFlushing = false
    flush()
  })
}

function save(place: string): void {
  firstPosition ??= place
  position = place
  writeFileSync(`${file}.new`, place)
  renameSync(`${file}.new`, file)
}

type Received = { type: string; id?: string | null; prev?: string | null; address?: string; [field: string]: unknown }

function handle(text: string): void {
  const message: Received = JSON.parse(text)
  const { type, id, prev, address } = message
  if (type === 'error') {
    process.stderr.write(`${message.message}\n`)
    isRefused = !makes('goes on after a lasting refusal')
  }
  if (type === 'bye' && !makes('ignores retry_ms')) retryMs = Number(message.retry_ms)
  if (type === 'heartbeat') attempts = 0
  if (type === 'hello' && id && start === '') start = id
  if (type === 'gap' && id) {
    if (!makes('swallows gaps')) print(text)
    start = id
    position = null
    lastIds.clear()
  }
  if (prev !== undefined && id) {
    if (position !== null && (comparePositions(id, position) ?? 1) <= 0 && !makes('prints repetitions')) return
    const chain = `${address} ${type}`
    const last = makes('believes that a chain begins with its first message') ? (lastIds.get(chain) ?? null) : lastIds.get(chain)
    const isBroken = prev !== null && prev !== last && (last !== undefined || (comparePositions(prev, start) ?? 1) > 0)
    if (isBroken && !makes('does not compare prev'))
      print(JSON.stringify({ type: 'gap', reason: 'missed', id: position, after: last ?? start, through: prev }))
    lastIds.set(chain, id)
    if (makes('dies of an unknown type') && !knownTypes.has(type)) throw new Error(`unknown type ${type}`)
    if (type === 'retract' && makes('swallows retracts')) return save(id)
    print(
      makes('reads decimals as numbers')
        ? JSON.stringify(message, (name, value) => (name === 'amount' ? Number(value) : value))
        : text,
    )
  } else if (makes('dies of an unknown type') && !knownTypes.has(type)) process.exit(1)
  if (id) save(id)
}

const knownTypes = new Set(
  'hello subscribed snapshot live heartbeat gap error bye transfer nav seal retract amend action'.split(' '),
)

function laterThan(place: string | null): string | null {
  const [epoch, seq] = place?.split('.') ?? []
  return seq === undefined ? null : `${epoch}.${BigInt(seq) + 1n}`
}

function connect(): void {
  const query = new URLSearchParams({ symbols: 'AAPLc', heartbeat: String(HEARTBEAT_S) })
  const since = makes('comes back without a position')
    ? null
    : makes('comes back with its first position')
      ? firstPosition
      : makes('comes back after what it received')
        ? laterThan(position)
        : position
  if (since !== null) query.set('since', since)
  const socket = new WebSocket(`${url}/v1/ws?${query}`, 'stocktape.v1')
  let silence = setTimeout(() => {}, 0)
  const watch = (withinMs = 3_000 * HEARTBEAT_S) => {
    clearTimeout(silence)
    if (!makes('waits for ever on a silent connection')) silence = setTimeout(() => end(1006), withinMs)
  }
  const end = (code: number) => {
    clearTimeout(silence)
    socket.onmessage = null
    socket.onclose = null
    socket.onerror = () => {}
    socket.close()
    if (isRefused || (code >= 4_000 && code < 4_100 && !makes('comes back after 4003'))) process.exit(1)
    const backoffMs = makes('does not back off') ? CONSTANT_RETRY_MS : RETRY_MS * 2 ** attempts
    attempts += 1
    setTimeout(connect, retryMs + backoffMs * (1 + Math.random() / 4))
    retryMs = 0
  }
  watch(CONNECT_MS)
  socket.onmessage = ({ data }) => {
    watch()
    handle(String(data))
  }
  socket.onclose = ({ code }) => end(code)
}

connect()
