import { z } from 'zod'
import { parseJson } from '../../lib/json.ts'
import type { ChannelSeqs } from './last-seqs.ts'
import type { Notes } from './notes.ts'
import { SEQ_BOUND } from './runs.ts'
import type { Entry } from './tape.ts'
import { SCHEMA_VERSION } from './tape-schema.ts'

/** An epoch is part of every position, and positions are short. */
const EPOCH_BOUND_CHARS = 32

/** A batch as other processes receive it: the texts of its numbered updates, and its notes. */
export type BatchMessage = {
  readonly epoch: string
  readonly epochBeganAt: number
  /** The end of the tape before this batch. A reader whose tape ends elsewhere has missed a batch. */
  readonly after: number
  /** The number of the first update. The others follow without a hole. */
  readonly first: number
  readonly texts: readonly string[]
  readonly notes: Readonly<Record<string, unknown>>
  readonly keepAfter: number | null
  /** The last number of each token and type. Only a checkpoint has them, and then `notes` are all notes of the tape. */
  readonly lastSeqs: ChannelSeqs | null
  /** The leader stops after this batch, so another ingester can take over at once. */
  readonly resigns: boolean
}

/** The message of a batch. `after` is the end of the tape before it. */
export const batchMessageOf = (
  { epoch, epochBeganAt }: Pick<BatchMessage, 'epoch' | 'epochBeganAt'>,
  after: number,
  entries: readonly Entry[],
  notes: Notes,
  keepAfter: number,
): BatchMessage => ({
  ...{ epoch, epochBeganAt, after },
  first: entries[0]?.seq ?? 0,
  texts: entries.map(({ text }) => text),
  notes: Object.fromEntries(notes),
  keepAfter: Number.isFinite(keepAfter) ? keepAfter : null,
  ...{ lastSeqs: null, resigns: false },
})

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

const Versioned = Header.pick({ version: true })

/** One line of JSON, then one line for each update. The version is that of the tape's file, which holds the same notes. */
export function encodeBatch({ texts, ...rest }: BatchMessage): Uint8Array {
  return Buffer.from([JSON.stringify({ version: SCHEMA_VERSION, ...rest, count: texts.length }), ...texts].join('\n'))
}

/** Null for bytes that are no batch of this version. The texts of its updates and the values of its notes are not checked. */
export function decodeBatch(bytes: Uint8Array): BatchMessage | null {
  const [head, texts] = splitHead(bytes)
  const header = Header.safeParse(parseJson(head))
  if (!header.success || header.data.version !== SCHEMA_VERSION) return null
  const { version: _, count, ...batch } = header.data
  // One line too many is enough to refuse the batch.
  const lines = texts === null ? [] : texts.split('\n', count + 1)
  return lines.length === count ? { ...batch, texts: lines } : null
}

/** The version of a batch that only another version of stocktape can read; null for all other bytes. */
export function otherVersionOf(bytes: Uint8Array): number | null {
  const { version = SCHEMA_VERSION } = Versioned.safeParse(parseJson(splitHead(bytes)[0])).data ?? {}
  return version === SCHEMA_VERSION ? null : version
}

function splitHead(bytes: Uint8Array): readonly [head: string, texts: string | null] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  const end = text.indexOf('\n')
  return end === -1 ? [text, null] : [text.slice(0, end), text.slice(end + 1)]
}
