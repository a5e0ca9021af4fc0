import { z } from 'zod'
import type { Hex } from '../../protocol/fields.ts'
import { formatKey } from '../../protocol/key.ts'

/** An answer with more topics per log, or more logs, is garbage. */
const TOPICS_BOUND = 4
const LOGS_BOUND = 200_000

/** The last second of year 9999. A later timestamp is garbage. */
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

/** Unix seconds. An unreadable one becomes null, since it must not cost a log or a block. */
const Timestamp = HexQuantity.refine((seconds) => seconds <= TIMESTAMP_BOUND_S)
  .nullish()
  .catch(null)
  .transform((seconds) => seconds ?? null)

/** A log with lower-case hex and numbers, whichever node sent it. */
export type Log = {
  readonly key: string
  readonly address: Hex
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly blockNumber: number
  /** Null while pre-confirmed. Some nodes send zeros or a partial hash then, so a hash alone proves nothing. */
  readonly blockHash: Hex | null
  readonly blockTimestamp: number | null
  readonly transactionHash: Hex
  readonly transactionIndex: number
  readonly logIndex: number
  readonly removed: boolean
  /** Further fields; most nodes send none. */
  readonly more?: Readonly<Record<string, Primitive>>
}

const Primitive = z.union([z.string().max(128), z.number(), z.boolean(), z.null()])
type Primitive = z.infer<typeof Primitive>
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

/** Logs, and how many more were unreadable. */
export type Logs = { readonly logs: readonly Log[]; readonly unreadable: number }

const WireLogs = z.array(z.unknown()).max(LOGS_BOUND)

/** Reads both shapes that nodes send: one log, or an array of all pending ones. A bad log never drops the others. */
export function readLogs(answer: unknown): Logs {
  const list = Array.isArray(answer) ? WireLogs.safeParse(answer) : { success: true as const, data: [answer] }
  if (!list.success) return { logs: [], unreadable: 1 }
  const parsed = list.data.map((item) => WireLog.safeParse(item))
  const logs = parsed.flatMap((result) => (result.success ? [result.data] : []))
  return { logs, unreadable: parsed.length - logs.length }
}

/** Some nodes send whole transactions where only hashes were requested. */
const TransactionHash = z.union([HexWord, z.object({ hash: HexWord }).transform(({ hash }) => hash)])

/** The fields of a block header that the relay uses. A pending one may lack number and hash. */
export const Header = z.object({
  number: HexQuantity.nullish().transform((number) => number ?? null),
  hash: HexWord.nullish().transform((hash) => hash ?? null),
  parentHash: HexWord.nullish().transform((hash) => hash ?? null),
  timestamp: Timestamp,
  gasUsed: HexQuantity.nullish().catch(null),
  transactions: z.array(TransactionHash).nullish().catch(null),
})
export type Header = z.infer<typeof Header>

export type SealedHeader = Header & { readonly number: number; readonly hash: Hex }

export const isSealed = (header: Header | null): header is SealedHeader => header?.number != null && header.hash !== null
