import { z } from 'zod'
import type { Hex } from '../../protocol/fields.ts'
import { formatKey } from '../../protocol/key.ts'

/** Topics of one log, and logs of one answer: beyond these an answer is taken for garbage. */
const TOPICS_BOUND = 4
const LOGS_BOUND = 200_000

/** The last second that can be written as a date; a timestamp beyond it is garbage. */
const TIMESTAMP_BOUND_S = Date.UTC(9999, 11, 31, 23, 59, 59) / 1_000

const hexSchema = (pattern: RegExp) =>
  z
    .string()
    .regex(pattern)
    .transform((text) => text.toLowerCase() as Hex)

export const HexAddress = hexSchema(/^0x[0-9a-fA-F]{40}$/)
export const HexWord = hexSchema(/^0x[0-9a-fA-F]{64}$/)
export const HexQuantity = z
  .string()
  .regex(/^0x[0-9a-fA-F]{1,64}$/)
  .transform(Number)
  .refine(Number.isSafeInteger)

/** Seconds since 1970. Not worth a log or a block: what cannot be read is unknown. */
const Timestamp = HexQuantity.refine((seconds) => seconds <= TIMESTAMP_BOUND_S)
  .nullish()
  .catch(null)
  .transform((seconds) => seconds ?? null)

/** What the node sends: one thing that a contract said, in lower case and in numbers, whichever node it came from. */
export type Log = {
  readonly key: string
  readonly address: Hex
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly blockNumber: number
  /** Null while pre-confirmed; a node may send zeros or a partial hash instead, so it proves nothing alone. */
  readonly blockHash: Hex | null
  readonly blockTimestamp: number | null
  readonly transactionHash: Hex
  readonly transactionIndex: number
  readonly logIndex: number
  readonly removed: boolean
  /** What else the node says of it; most say nothing. */
  readonly more?: Readonly<Record<string, Primitive>>
}

/** A value that has no parts. */
const Primitive = z.union([z.string().max(128), z.number(), z.boolean(), z.null()])
type Primitive = z.infer<typeof Primitive>
/** So much of what a node says more is kept. */
const EXTRA_FIELDS_BOUND = 8

const WireLog = z
  .looseObject({
    address: HexAddress,
    topics: z.array(HexWord).max(TOPICS_BOUND),
    data: hexSchema(/^0x([0-9a-fA-F]{2})*$/),
    blockNumber: HexQuantity,
    blockHash: HexWord.nullish(),
    blockTimestamp: Timestamp,
    transactionHash: HexWord,
    transactionIndex: HexQuantity,
    logIndex: HexQuantity,
    removed: z.boolean().nullish(),
  })
  .transform((wire): Log => {
    const { address, topics, data, blockNumber, blockHash, blockTimestamp, ...rest } = wire
    const { transactionHash, transactionIndex, logIndex, removed, ...others } = rest
    return {
      key: formatKey(blockNumber, transactionHash, logIndex),
      ...{ address, topics, data, blockNumber, blockTimestamp, transactionHash, transactionIndex, logIndex },
      blockHash: blockHash && /[^0x]/.test(blockHash) ? blockHash : null,
      removed: removed ?? false,
      ...extraFieldsOf(others),
    }
  })

function extraFieldsOf(fields: Readonly<Record<string, unknown>>): Pick<Log, 'more'> {
  const primitives = Object.entries(fields).flatMap(([name, value]) => {
    const { data } = Primitive.safeParse(value)
    return data === undefined ? [] : [[name, data] as const]
  })
  return primitives.length > 0 ? { more: Object.fromEntries(primitives.slice(0, EXTRA_FIELDS_BOUND)) } : {}
}

/** Some logs, and how many more could not be read. */
export type Logs = { readonly logs: readonly Log[]; readonly unreadable: number }

const WireLogs = z.array(z.unknown()).max(LOGS_BOUND)

/** Reads both shapes that nodes send: one log, or an array of all that are pending. One bad log never drops the rest. */
export function readLogs(answer: unknown): Logs {
  const list = Array.isArray(answer) ? WireLogs.safeParse(answer) : { success: true as const, data: [answer] }
  if (!list.success) return { logs: [], unreadable: 1 }
  const parsed = list.data.map((item) => WireLog.safeParse(item))
  const logs = parsed.flatMap((one) => (one.success ? [one.data] : []))
  return { logs, unreadable: parsed.length - logs.length }
}

/** A transaction in a block's header: its hash, or all of it where a node sends more than was asked for. */
const TransactionHash = z.union([HexWord, z.object({ hash: HexWord }).transform(({ hash }) => hash)])

/** The header of a block, as far as the relay asks. A pending one may lack number and hash. */
export const Header = z.object({
  number: HexQuantity.nullish().transform((number) => number ?? null),
  hash: HexWord.nullish().transform((hash) => hash ?? null),
  parentHash: HexWord.nullish().transform((hash) => hash ?? null),
  timestamp: Timestamp,
  gasUsed: HexQuantity.nullish().catch(null),
  transactions: z.array(TransactionHash).nullish().catch(null),
})
export type Header = z.infer<typeof Header>

/** The header of a block that has its place: only a pending one may lack number or hash. */
export type SealedHeader = Header & { readonly number: number; readonly hash: Hex }

export const isSealed = (header: Header | null): header is SealedHeader =>
  header?.number != null && header.hash !== null
