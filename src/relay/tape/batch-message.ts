import { z } from 'zod'
import { parseJson } from '../../lib/json.ts'
import type { ChannelSeqs } from './last-seqs.ts'
import { SEQ_BOUND } from './runs.ts'
import { SCHEMA_VERSION } from './tape-schema.ts'

/** Positions are short. */
const EPOCH_BOUND_CHARS = 32

/** A batch as the stream stores it: the texts of its updates, already numbered, and its notes. */
export type BatchMessage = {
  readonly epoch: string
  readonly epochBeganAt: number
  /** The end of the tape before this batch. A reader whose tape ends elsewhere has missed something. */
  readonly after: number
  /** The number of the first update. The others follow without a hole. */
  readonly first: number
  readonly texts: readonly string[]
  readonly notes: Readonly<Record<string, unknown>>
  readonly keepAfter: number | null
  /** Of a checkpoint, whose notes are all that there are: the last number of each token and type. */
  readonly lastSeqs: ChannelSeqs | null
  /** The leader stops with this batch, so that another ingester can take over at once. */
  readonly resigns: boolean
}

const Seq = z.int().min(0).max(SEQ_BOUND)
const Header = z.object({
  version: z.int(),
  epoch: z
    .string()
    .max(EPOCH_BOUND_CHARS)
    .regex(/^[0-9a-z]+$/),
  epochBeganAt: z.number(),
  after: Seq,
  first: Seq,
  count: z.int().min(0),
  notes: z.record(z.string(), z.unknown()),
  keepAfter: z.number().nullable(),
  lastSeqs: z.array(z.tuple([z.string().regex(/^\S+ \w+$/), Seq])).nullable(),
  resigns: z.boolean(),
})

/** The notes of a batch are those of the tape in a file, so its version is the same. */
const Versioned = z.object({ version: z.int() })

/** One line of JSON, then one line for each update. */
export function encodeBatch({ texts, ...rest }: BatchMessage): Uint8Array {
  return Buffer.from([JSON.stringify({ version: SCHEMA_VERSION, ...rest, count: texts.length }), ...texts].join('\n'))
}

/** Null for bytes that are no batch of this version. The texts of its updates, and the values of its notes, may be anything. */
export function decodeBatch(bytes: Uint8Array): BatchMessage | null {
  const [head, texts] = splitHead(bytes)
  const header = Header.safeParse(parseJson(head))
  if (!header.success || header.data.version !== SCHEMA_VERSION) return null
  const { version: _, count, ...batch } = header.data
  // One more line than there should be is enough to know.
  const lines = texts === null ? [] : texts.split('\n', count + 1)
  return lines.length === count ? { ...batch, texts: lines } : null
}

/** The version of a batch that only another version of stocktape can read; null for everything else. */
export function otherVersionOf(bytes: Uint8Array): number | null {
  const { version = SCHEMA_VERSION } = Versioned.safeParse(parseJson(splitHead(bytes)[0])).data ?? {}
  return version === SCHEMA_VERSION ? null : version
}

/** The first line, and the others: null without any. */
function splitHead(bytes: Uint8Array): readonly [head: string, texts: string | null] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  const end = text.indexOf('\n')
  return end === -1 ? [text, null] : [text.slice(0, end), text.slice(end + 1)]
}
