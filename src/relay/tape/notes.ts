import type { z } from 'zod'

export type Note<Value> = { readonly name: string; readonly read: (stored: unknown) => Value }

export type NoteFamily<Value> = { readonly prefix: string; readonly at: (key: string) => Note<Value> }

/** Schemas of the notes that this process may read, by the name of the note or by the prefix of its family. */
const schemas = new Map<string, z.ZodType>()

/** Defines a note. Reading does not check the stored value: a tape of another schema version is refused when it is opened. */
export function defineNote<Value>(name: string, schema?: z.ZodType<Value>): Note<Value> {
  if (schema) schemas.set(name, schema)
  return { name, read: (stored) => stored as Value }
}

/** Defines all notes whose names begin with a prefix. The prefix ends with a slash, and contains no other. */
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

/**
 * Small JSON values that are stored beside the tape, by name. The tape does not know what they mean: the code that writes and reads
 * a note defines its type. In the notes of a batch, null removes a note.
 */
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
