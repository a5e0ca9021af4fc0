import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Notice } from '../../../src/protocol/notices.ts'
import { Update } from '../../../src/protocol/updates.ts'

type JsonSchema = { readonly [keyword: string]: unknown }

const isSchema = (given: unknown): given is JsonSchema => typeof given === 'object' && given !== null && !Array.isArray(given)

/** The JSON types that a schema allows, without null. An array's type names the type of its items. */
function typesOf(schema: JsonSchema): readonly string[] {
  const branches = [schema.anyOf, schema.oneOf].flat().filter(isSchema)
  if (branches.length > 0) return branches.flatMap(typesOf)
  if (schema.const !== undefined) return [typeof schema.const]
  if (schema.enum !== undefined) return [...new Set([schema.enum].flat().map((value) => typeof value))]
  if (Array.isArray(schema.type)) return schema.type.flatMap((type) => typesOf({ ...schema, type }))
  const { type, items } = schema
  if (type === 'null') return []
  if (type === 'array') return typesOf(isSchema(items) ? items : {}).map((item) => `array of ${item}`)
  return [type === 'integer' ? 'number' : String(type ?? 'anything')]
}

/** Calls `found` with each field at every depth, but `req`, which is the client's own. A record has no known fields. */
function walkFields(schema: JsonSchema, found: (name: string, types: readonly string[]) => void): void {
  for (const branch of [schema.anyOf, schema.oneOf, schema.items].flat().filter(isSchema)) walkFields(branch, found)
  if (!isSchema(schema.properties)) return
  for (const [name, field] of Object.entries(schema.properties)) {
    if (!isSchema(field) || name === 'req') continue
    found(name, typesOf(field))
    walkFields(field, found)
  }
}

/** Each field name that has several JSON types, with where it has which. */
function conflictsIn(schemas: readonly z.ZodObject<{ type: z.ZodLiteral<string> }>[]): Readonly<Record<string, string[]>> {
  const places = new Map<string, Map<string, string[]>>()
  for (const schema of schemas) {
    const [message] = schema.shape.type.values
    const json = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any', reused: 'inline' })
    walkFields(json, (name, types) => {
      const byType = places.get(name) ?? new Map<string, string[]>()
      places.set(name, byType)
      for (const type of types) byType.set(type, [...(byType.get(type) ?? []), String(message)])
    })
  }
  return Object.fromEntries(
    [...places]
      .filter(([, byType]) => byType.size !== 1)
      .map(([name, byType]) => [name, [...byType].map(([type, messages]) => `${type} in ${[...new Set(messages)]}`)]),
  )
}

describe('the JSON type of a field name', () => {
  it('is the same in every message of the tape and of a connection, but for one that the contract names', () => {
    const conflicts = conflictsIn([...Update.options, ...Notice.options])
    expect(conflicts).toEqual({ venues: ['array of string in bar', 'array of object in snapshot'] })
  })
})
