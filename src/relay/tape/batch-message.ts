import { z } from 'zod'
import { parseJson } from '../../lib/safe-json.ts'
import { parsePosition } from '../../protocol/position.ts'
import { Update } from '../../protocol/updates.ts'
import { BarRow, isReadableRow } from './bars/bar-row.ts'
import { isReadableNote, Notes } from './notes.ts'
import { SEQ_BOUND } from './runs.ts'
import type { Entry } from './tape.ts'
import { SCHEMA_VERSION } from './tape-database.ts'
import { channelOf, entryOf } from './tape-row.ts'
import type { NumberedBatch, TapeStore } from './tape-store.ts'

/** Limit of an epoch's name. It is part of every position, and positions should be short. */
const EPOCH_BOUND_CHARS = 32

const Seq = z.int().min(0).max(SEQ_BOUND)
const Header = z.object({
  version: z.int(),
  epoch: z
    .string()
    .max(EPOCH_BOUND_CHARS)
    .regex(/^[0-9a-z]+$/),
  epochBeganAt: z.number(),
  /** Number of the last update before this batch. A process whose tape ends at another number has missed a batch. */
  after: Seq,
  /** Number of the first update in this batch. Each further update has the next number. */
  first: Seq,
  count: z.int().min(0),
  notes: z.record(z.string(), z.unknown()),
  bars: z.array(BarRow).readonly(),
  keepAfter: z.number().nullable(),
  /** Last number of each token and type; null unless the batch is a checkpoint, whose `notes` are all notes of the tape. */
  lastSeqs: z
    .array(z.tuple([z.string().regex(/^\S+ \w+$/), Seq]).readonly())
    .readonly()
    .nullable(),
  /** Whether the leader stops after this batch. If so, another ingester can lead at once. */
  resigns: z.boolean(),
})
const Versioned = Header.pick({ version: true })

/** A batch as other processes receive it: the texts of its numbered updates, and its notes. */
export type BatchMessage = Readonly<Omit<z.infer<typeof Header>, 'version' | 'count'>> & { readonly texts: readonly string[] }

/** Returns the message of a batch that follows what the store contains. */
export const batchMessageOf = (store: TapeStore, { entries, notes, bars = [], keepAfter }: NumberedBatch): BatchMessage => ({
  ...{ epoch: store.epoch, epochBeganAt: store.epochBeganAt, after: store.end() },
  first: entries[0]?.seq ?? 0,
  texts: entries.map(({ text }) => text),
  notes: Object.fromEntries(notes),
  bars,
  keepAfter: Number.isFinite(keepAfter) ? keepAfter : null,
  ...{ lastSeqs: null, resigns: false },
})

/** Returns a batch that the store can write. `entries` are its updates, or those of them that the store lacks. */
export const numberedBatchOf = ({ notes, bars, keepAfter }: BatchMessage, entries: readonly Entry[]): NumberedBatch => ({
  ...{ entries, bars },
  notes: new Notes(notes),
  keepAfter: keepAfter ?? Number.POSITIVE_INFINITY,
})

export const entriesOf = ({ first, texts }: BatchMessage): readonly Entry[] =>
  texts.map((text, nth) => entryOf([first + nth, text]))

/** Encodes a batch as one line of JSON, then one line for each update. The version is that of the tape's file. */
export function encodeBatch({ texts, ...rest }: BatchMessage): Uint8Array {
  return Buffer.from([JSON.stringify({ version: SCHEMA_VERSION, ...rest, count: texts.length }), ...texts].join('\n'))
}

/** Returns null for bytes that are no batch of this version. Does not check the texts of updates and the values of notes. */
export function decodeBatch(bytes: Uint8Array): BatchMessage | null {
  const [head, texts] = splitHead(bytes)
  const header = Header.safeParse(parseJson(head))
  if (!header.success || header.data.version !== SCHEMA_VERSION) return null
  const { version: _, count, ...batch } = header.data
  // Splits off one line more than expected, which is enough to refuse the batch.
  const lines = texts === null ? [] : texts.split('\n', count + 1)
  return lines.length === count ? { ...batch, texts: lines } : null
}

export type ReadableBatch = { readonly batch: BatchMessage; readonly entries: readonly Entry[] }

/** `otherVersion`: schema version of a message that another version of stocktape wrote; null for other unreadable messages. */
type UnreadableMessage = { readonly batch: null; readonly otherVersion: number | null }

/** Reads and checks a message of the stream: anybody who can reach NATS may have written it, and the tape's file stores it. */
export function readMessage(bytes: Uint8Array): ReadableBatch | UnreadableMessage {
  try {
    const batch = decodeBatch(bytes)
    const entries = batch && checkedEntriesOf(batch)
    if (batch && entries && areReadable(batch.notes) && batch.bars.every(isReadableRow)) return { batch, entries }
    const { version = SCHEMA_VERSION } = Versioned.safeParse(parseJson(splitHead(bytes)[0])).data ?? {}
    return { batch: null, otherVersion: version === SCHEMA_VERSION ? null : version }
  } catch {
    // A value that is nested too deep overflows the stack.
    return { batch: null, otherVersion: null }
  }
}

/** Returns the updates of a batch with their numbers; null if an update or a number is wrong. */
function checkedEntriesOf(batch: BatchMessage): readonly Entry[] | null {
  const { epoch, after, first, texts, lastSeqs } = batch
  if (lastSeqs?.some(([, seq]) => seq > after)) return null
  if (texts.length === 0) return []
  if (first <= after || first + texts.length > SEQ_BOUND) return null
  const entries = entriesOf(batch)
  return entries.every((entry) => isReadable(entry, epoch)) ? entries : null
}

function isReadable({ seq, text, update }: Entry, epoch: string): boolean {
  if (!Update.safeParse(update).success || !Number.isFinite(Date.parse(update.time))) return false
  const { type, address } = channelOf(text)
  if (type !== update.type || address !== update.address || update.id !== `${epoch}.${seq}`) return false
  const prev = update.prev === null ? null : parsePosition(update.prev)
  return prev === null || (prev.epoch === epoch && prev.seq < seq)
}

const areReadable = (notes: BatchMessage['notes']): boolean =>
  JSON.stringify(notes) !== undefined &&
  Object.entries(notes).every(([name, value]) => value === null || isReadableNote(name, value))

function splitHead(bytes: Uint8Array): readonly [head: string, texts: string | null] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  const end = text.indexOf('\n')
  return end === -1 ? [text, null] : [text.slice(0, end), text.slice(end + 1)]
}
