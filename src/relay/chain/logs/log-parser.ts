import { ADDRESS_CHARS, type Hex, readHex, readQuantity, WORD_CHARS, ZERO_WORD } from '../../../lib/hex.ts'
import { NEVER_SECONDS } from '../../../lib/iso-time.ts'
import { formatKey } from '../../../protocol/fields.ts'

/** Number of topics that the EVM allows a log to have. */
const TOPICS_BOUND = 4
/** Limit of the logs of one answer. A longer answer counts as unreadable. */
const LOGS_BOUND = 200_000

/** A log with lower-case hex and parsed numbers, whatever form the node sends. */
export type Log = {
  readonly key: string
  readonly address: Hex
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly blockNumber: number
  /** Null while the log is pre-confirmed. Some nodes send a partial hash then, so a hash does not prove that it is sealed. */
  readonly blockHash: Hex | null
  readonly blockTimestamp: number | null
  readonly transactionHash: Hex
  readonly transactionIndex: number
  readonly logIndex: number
  readonly removed: boolean
  /** Fields that the node adds to the standard ones. Most nodes add none. */
  readonly more?: Readonly<Record<string, Primitive>>
}

type Primitive = string | number | boolean | null
const PRIMITIVE_BOUND_CHARS = 128
const EXTRA_FIELDS_BOUND = 8

/** `unreadable` is the number of unreadable logs, `unreadableTxs` their transactions: null if the hash is unreadable too. */
export type Logs = { readonly logs: readonly Log[]; readonly unreadable: number; readonly unreadableTxs?: ReadonlySet<Hex | null> }

/** Returns the log that the relay received before for this place in the chain. */
export type FindLog = (block: number, transaction: string, logIndex: number) => Log | undefined

const findNone: FindLog = () => undefined

/** Reads one log or an array of logs: nodes send both. If `findLog` returns an earlier copy, the new log reuses its strings. */
export function parseLogs(answer: unknown, findLog: FindLog = findNone): Logs {
  const wireLogs: readonly unknown[] = Array.isArray(answer) ? answer : [answer]
  if (wireLogs.length > LOGS_BOUND) return { logs: [], unreadable: 1 }
  const logs: Log[] = []
  for (const wire of wireLogs) {
    const log = isRecord(wire) ? parseLog(wire, findLog) : null
    if (log) logs.push(log)
  }
  return { logs, unreadable: wireLogs.length - logs.length }
}

export function unreadableTxsOf(wireLogs: readonly unknown[]): ReadonlySet<Hex | null> {
  if (wireLogs.length > LOGS_BOUND) return new Set([null])
  const unreadable = wireLogs.filter((wire) => parseLogs([wire]).unreadable > 0)
  return new Set(unreadable.map((wire) => (isRecord(wire) ? readHex(wire.transactionHash, WORD_CHARS) : null)))
}

type WireRecord = Readonly<Record<string, unknown>>

const isRecord = (value: unknown): value is WireRecord => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Checked without a schema, which takes four times as long: the relay reads each pushed log by this function. */
function parseLog(wire: WireRecord, findLog: FindLog): Log | null {
  const blockNumber = readQuantity(wire.blockNumber)
  const transactionIndex = readQuantity(wire.transactionIndex)
  const logIndex = readQuantity(wire.logIndex)
  const blockHash = readHex(wire.blockHash ?? ZERO_WORD, WORD_CHARS)
  const removed = wire.removed ?? false
  if (blockNumber === null || transactionIndex === null || logIndex === null) return null
  if (blockHash === null || typeof removed !== 'boolean') return null
  const earlier = findLog(blockNumber, String(wire.transactionHash), logIndex)
  // Strings that equal those of the earlier copy need no check.
  const known = earlier && hasContent(earlier, wire) ? earlier : null
  const content = known ?? readContent(wire)
  if (!content) return null
  const { address, topics, data, transactionHash } = content
  const timestamp = readQuantity(wire.blockTimestamp)
  const log = {
    key: known?.key ?? formatKey(blockNumber, transactionHash, logIndex),
    address,
    topics,
    data,
    blockNumber,
    blockHash: blockHash === ZERO_WORD ? null : blockHash,
    blockTimestamp: timestamp !== null && timestamp < NEVER_SECONDS ? timestamp : null,
    transactionHash,
    transactionIndex,
    logIndex,
    removed,
  }
  const more = readExtraFields(wire)
  return more ? { ...log, more } : log
}

type Content = Pick<Log, 'address' | 'topics' | 'data' | 'transactionHash'>

export const hasContent = (log: Log, { address, topics, data }: Readonly<Partial<Record<keyof Content, unknown>>>): boolean =>
  log.address === address &&
  log.data === data &&
  Array.isArray(topics) &&
  log.topics.length === topics.length &&
  log.topics.every((topic, index) => topic === topics[index])

function readContent(wire: WireRecord): Content | null {
  const address = readHex(wire.address, ADDRESS_CHARS)
  const topics = readTopics(wire.topics)
  const data = readHex(wire.data, null)
  const transactionHash = readHex(wire.transactionHash, WORD_CHARS)
  if (address === null || topics === null || data === null || transactionHash === null) return null
  return { address, topics, data, transactionHash }
}

function readTopics(value: unknown): readonly Hex[] | null {
  if (!Array.isArray(value) || value.length > TOPICS_BOUND) return null
  const topics = value.map((word: unknown) => readHex(word, WORD_CHARS))
  return topics.every((topic) => topic !== null) ? topics : null
}

const knownFields: ReadonlySet<string> = new Set([
  ...['address', 'topics', 'data', 'blockNumber', 'blockHash', 'blockTimestamp'],
  ...['transactionHash', 'transactionIndex', 'logIndex', 'removed', '__proto__'],
])

function readExtraFields(wire: WireRecord): Log['more'] | null {
  let more: Record<string, Primitive> | null = null
  let count = 0
  for (const name in wire) {
    if (knownFields.has(name)) continue
    const value = wire[name]
    if (!isPrimitive(value)) continue
    more ??= {}
    more[name] = value
    count += 1
    if (count === EXTRA_FIELDS_BOUND) break
  }
  return more
}

const isPrimitive = (value: unknown): value is Primitive =>
  typeof value === 'string'
    ? value.length <= PRIMITIVE_BOUND_CHARS
    : value === null || typeof value === 'boolean' || Number.isFinite(value)
