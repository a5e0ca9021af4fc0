import { z } from 'zod'
import type { ChannelSeqs } from './last-seqs.ts'

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

const Header = z.object({
  epoch: z.string().regex(/^[0-9a-z]+$/),
  epochBeganAt: z.number(),
  after: z.int().min(0),
  first: z.int().min(0),
  count: z.int().min(0),
  notes: z.record(z.string(), z.unknown()),
  keepAfter: z.number().nullable(),
  lastSeqs: z.array(z.tuple([z.string(), z.int()])).nullable(),
  resigns: z.boolean(),
})

/** One line of JSON, then one line for each update. */
export function encodeBatch({ texts, ...rest }: BatchMessage): Uint8Array {
  return Buffer.from([JSON.stringify({ ...rest, count: texts.length }), ...texts].join('\n'))
}

/** Null for bytes that are no batch. */
export function decodeBatch(bytes: Uint8Array): BatchMessage | null {
  const [head = '', ...texts] = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8').split('\n')
  const header = Header.safeParse(parseJson(head))
  if (!header.success) return null
  const { count, ...rest } = header.data
  return texts.length === count ? { ...rest, texts } : null
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
