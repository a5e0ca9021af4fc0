import { z } from 'zod'
import { examplesOf } from '../protocol/contract-examples.ts'
import { Notice } from '../protocol/notices.ts'
import { Request } from '../protocol/requests.ts'
import { schemaRegistry } from '../protocol/schema-registry.ts'
import { Update } from '../protocol/updates.ts'

/** The part of JSON Schema that the documents read. */
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
  readonly oneOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
  readonly [keyword: string]: unknown
}

type Schemas = Readonly<Record<string, JsonSchema>>

/**
 * Returns every registered schema by its name. Schemas allow unknown fields, because the contract may grow. `refPrefix`
 * is the path of named schemas in the target document.
 */
export function namedSchemas(refPrefix: string, target: 'draft-2020-12' | 'draft-07' = 'draft-2020-12'): Schemas {
  const { schemas } = z.toJSONSchema(schemaRegistry, {
    target,
    io: 'input',
    uri: (id) => `${refPrefix}${id}`,
    unrepresentable: 'any',
    // Omits the greatest and the least integer of JavaScript, which tell a reader nothing.
    override: ({ jsonSchema }) => {
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    },
  })
  return Object.fromEntries(
    Object.entries(schemas as Schemas).map(([id, { $schema: _draft, $id: _id, ...schema }]) => [id, schema]),
  )
}

/** Describes a query string as an object, with a property for each parameter. */
export function querySchema(query: z.ZodObject): JsonSchema {
  const { $schema: _draft, ...schema } = z.toJSONSchema(query, {
    io: 'input',
    unrepresentable: 'any',
    // Omits the pattern of a number, which describes its text.
    override: ({ jsonSchema }) => {
      if (jsonSchema.type !== 'string') delete jsonSchema.pattern
    },
  }) as JsonSchema
  return schema
}

/** The types of messages on the tape, of messages about a connection, and of messages from a client. */
export const messageTypes = {
  updates: Update.options.map(({ shape }) => shape.type.value),
  notices: Notice.options.map(({ shape }) => shape.type.value),
  requests: Request.options.map(({ shape }) => shape.type.value),
} as const

export const allMessageTypes: readonly string[] = Object.values(messageTypes).flat()

export const isMessageType = (name: string): boolean => allMessageTypes.includes(name)

const DEFS = '#/$defs/'

/** Makes a self-contained schema with examples for each message type, and `message` for every message to a listener. */
export function publishedSchemas(): ReadonlyMap<string, JsonSchema> {
  const schemas = namedSchemas(DEFS)
  const publish = (title: string, schema: JsonSchema | undefined): readonly [string, JsonSchema] => {
    const names = [...referencedNames(schema, schemas)].sort()
    const $defs = Object.fromEntries(names.map((name) => [name, schemas[name]]))
    return [title, { $schema: 'https://json-schema.org/draft/2020-12/schema', title, ...schema, $defs }]
  }
  const received = [...messageTypes.updates, ...messageTypes.notices]
  return new Map([
    ...allMessageTypes.map((type) => publish(type, { ...schemas[type], examples: examplesOf(type) })),
    publish('message', {
      description: 'Any message that a listener can receive.',
      oneOf: received.map((type) => ({ $ref: DEFS + type })),
    }),
  ])
}

/** The names that a schema refers to, directly or indirectly. */
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
