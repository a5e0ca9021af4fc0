import { z } from 'zod'
import type { Hex } from '../../lib/hex.ts'
import { Address, Head, quoteFields, SourceName, SourceReason, sessionFields } from '../../protocol/fields.ts'
import type { MarketSession } from '../market/market-calendar.ts'
import type { TokenQuotes } from '../tokens/quotes.ts'
import { Milliseconds, StoredToken } from '../tokens/stored-token.ts'
import type { Token } from '../tokens/token.ts'

export type Note<Value> = { readonly name: string; readonly read: (stored: unknown) => Value }

export type NoteFamily<Value> = { readonly prefix: string; readonly at: (key: string) => Note<Value> }

/** The schemas of the notes that this process may read, by name; those of a family by its prefix. */
const schemas = new Map<string, z.ZodType>()

/** The schema version vouches for the shape of a stored note: an older tape is refused when it is opened. */
export function defineNote<Value>(name: string, schema?: z.ZodType<Value>): Note<Value> {
  if (schema) schemas.set(name, schema)
  return { name, read: (stored) => stored as Value }
}

/** A prefix ends with a slash, and has no other. */
export function defineNotes<Value>(prefix: string, schema?: z.ZodType<Value>): NoteFamily<Value> {
  if (schema) schemas.set(prefix, schema)
  return { prefix, at: (key) => defineNote(prefix + key) }
}

/** Whether a value from another process has the shape that readers of this note expect. */
export function isReadableNote(name: string, value: unknown): boolean {
  const schema = schemas.get(name) ?? schemas.get(name.slice(0, name.indexOf('/') + 1))
  return schema === undefined || schema.safeParse(value).success
}

export interface NoteReader {
  note<Value>(note: Note<Value>): Value | undefined
  notes<Value>(family: NoteFamily<Value>): ReadonlyMap<string, Value>
}

/** Small values kept beside the tape, by name. In the notes of a batch, null removes a note. */
export class Notes implements NoteReader {
  readonly #values: Map<string, unknown>

  constructor(values: Readonly<Record<string, unknown>> = {}) {
    this.#values = new Map(Object.entries(values))
  }

  get size(): number {
    return this.#values.size
  }

  [Symbol.iterator](): Iterator<readonly [string, unknown]> {
    return this.#values.entries()
  }

  set<Value>(note: Note<Value>, value: NoInfer<Value> | null): this {
    this.#values.set(note.name, value)
    return this
  }

  merge(batch: Notes): void {
    for (const [name, value] of batch) {
      if (value === null) this.#values.delete(name)
      else this.#values.set(name, value)
    }
  }

  note<Value>({ name, read }: Note<Value>): Value | undefined {
    const value = this.#values.get(name) ?? undefined
    return value === undefined ? undefined : read(value)
  }

  notes<Value>({ prefix, at }: NoteFamily<Value>): ReadonlyMap<string, Value> {
    const found = new Map<string, Value>()
    for (const [name, value] of this.#values) {
      if (value === null || !name.startsWith(prefix)) continue
      const key = name.slice(prefix.length)
      found.set(key, at(key).read(value))
    }
    return found
  }
}

/** The time of a sealed block, in seconds. */
export type SealedBlockTime = { readonly number: number; readonly timestamp: number }

export type SourceStatusNote = { readonly source: SourceName; readonly reason: SourceReason; readonly started_at: string }

// Ingest writes these notes and the edge reads them. Every other note is declared beside the code that owns it.

export const headNote = defineNote<Head>('head', Head)
export const statusNote = defineNote<SourceStatusNote>(
  'status',
  z.object({ source: SourceName, reason: SourceReason, started_at: z.string() }),
)
export const newestSettledNote = defineNote<SealedBlockTime>('newest-settled', z.object({ number: z.int(), timestamp: z.number() }))
/** Steady time in ms at which the relay last read the token list. Each poll of the list writes it. */
export const listReadNote = defineNote<number>('list-read', Milliseconds)
/** The addresses of the token list, in its order. A poll writes it only if the order changed. */
export const listOrderNote = defineNote<readonly Hex[]>('list-order', z.array(Address))
export const tokenNotes = defineNotes<Token>('token/', StoredToken)
export const quoteNotes = defineNotes<TokenQuotes>('quote/', z.array(z.object(quoteFields)))
/** The last published market session; null without a calendar. */
export const sessionNote = defineNote<{ readonly session: MarketSession | null }>(
  'session',
  z.object({ session: z.object({ ...sessionFields, market: z.literal('XNYS') }).nullable() }),
)
