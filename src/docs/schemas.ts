import { z } from 'zod'
import { schemaRegistry } from '../protocol/fields.ts'
import { Notice } from '../protocol/notices.ts'
import { Request } from '../protocol/requests.ts'
import { Update } from '../protocol/updates.ts'
import { examplesOf } from './examples.ts'

/**
 * The schemas that check the messages, as JSON Schema. They are open as the contract is: a field that a client does not
 * know is no mistake.
 */

/** A JSON Schema, as far as it is looked into here. */
export type JsonSchema = {
  readonly $ref?: string
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly pattern?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
  readonly [keyword: string]: unknown
}

type Schemas = Readonly<Record<string, JsonSchema>>
type JsonSchemaDraft = 'draft-2020-12' | 'draft-07'

/** Every schema that has a name, by it. `place` is where such names are found in the document at hand. */
export function namedSchemas(refPrefix: string, target: JsonSchemaDraft = 'draft-2020-12'): Schemas {
  const { schemas } = z.toJSONSchema(schemaRegistry, {
    target,
    io: 'input',
    uri: (id) => `${refPrefix}${id}`,
    unrepresentable: 'any',
    // That an integer is exact as a double needs no saying.
    override: ({ jsonSchema }) => {
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    },
  })
  return Object.fromEntries(
    Object.entries(schemas as Schemas).map(([id, { $schema: _draft, $id: _id, ...schema }]) => [id, schema]),
  )
}

/** What a query string may hold, as an object of its parameters. */
export function querySchema(query: z.ZodObject): JsonSchema {
  const { $schema: _draft, ...schema } = z.toJSONSchema(query, {
    io: 'input',
    unrepresentable: 'any',
    // What is said of the text of a number is not said of the number.
    override: ({ jsonSchema }) => {
      if (jsonSchema.type !== 'string') delete jsonSchema.pattern
    },
  }) as JsonSchema
  return schema
}

/** The types of messages: those on the tape, those of a connection, and what a client may say. */
export const messageTypes = {
  updates: Update.options.map(({ shape }) => shape.type.value),
  notices: Notice.options.map(({ shape }) => shape.type.value),
  requests: Request.options.map(({ shape }) => shape.type.value),
} as const

const DEFS = '#/$defs/'

/** What is served for each type of message: a schema that needs no other document, with its examples. */
export function publishedSchemas(): ReadonlyMap<string, JsonSchema> {
  const schemas = namedSchemas(DEFS)
  return new Map(
    Object.values(messageTypes)
      .flat()
      .map((type) => {
        const names = [...referencedNames(schemas[type], schemas)].sort()
        const $defs = Object.fromEntries(names.map((name) => [name, schemas[name]]))
        const $schema = 'https://json-schema.org/draft/2020-12/schema'
        return [type, { $schema, title: type, ...schemas[type], examples: examplesOf(type), $defs }]
      }),
  )
}

/** The names that a schema refers to, and those that these refer to. */
function referencedNames(schema: unknown, schemas: Schemas, found = new Set<string>()): ReadonlySet<string> {
  if (typeof schema !== 'object' || schema === null) return found
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword !== '$ref') referencedNames(value, schemas, found)
    else if (typeof value === 'string' && !found.has(value.slice(DEFS.length))) {
      const name = value.slice(DEFS.length)
      found.add(name)
      referencedNames(schemas[name], schemas, found)
    }
  }
  return found
}
