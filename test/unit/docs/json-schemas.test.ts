import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type JsonSchema, messageTypes, namedSchemas, publishedSchemas } from '../../../src/docs/json-schemas.ts'
import { examples } from '../../../src/protocol/contract-examples.ts'
import { Notice } from '../../../src/protocol/notices.ts'
import { Request } from '../../../src/protocol/requests.ts'
import { Update, updateTypes } from '../../../src/protocol/updates.ts'
import { findSchemaError } from '../../support/message-validator.ts'

const schemas = publishedSchemas()
const { updates, notices, requests } = messageTypes

/** Every object schema inside a schema, with its path. */
function objectSchemasIn(schema: unknown, path = ''): readonly (readonly [string, JsonSchema])[] {
  if (typeof schema !== 'object' || schema === null) return []
  const inner = Object.entries(schema).flatMap(([name, value]) =>
    name === 'examples' ? [] : objectSchemasIn(value, `${path}/${name}`),
  )
  return 'properties' in schema ? [[path, schema as JsonSchema], ...inner] : inner
}

describe('the published schemas', () => {
  it('are one per message type', () => {
    expect([...schemas.keys()]).toEqual([...updates, ...notices, ...requests, 'message'])
    expect(updates).toEqual(updateTypes)
  })

  it('accept every example of the contract page, and contain it', () => {
    for (const example of examples) {
      expect(findSchemaError(example)).toBeNull()
      expect(schemas.get(example.type)?.examples).toContainEqual(example)
    }
    for (const schema of schemas.values()) expect(schema.examples).not.toEqual([])
  })

  it('describe each message and each shared part', () => {
    const all = namedSchemas('#/$defs/')
    for (const [type, schema] of schemas) {
      expect(schema.description, type).toMatch(/^[A-Z].*\.$/)
      for (const part of Object.keys(schema.$defs ?? {})) expect(all[part]?.description, part).toMatch(/\.$/)
    }
  })

  it('accept unknown fields, as later versions may add some', () => {
    for (const [type, schema] of schemas) {
      for (const [path, object] of objectSchemasIn(schema)) expect(object.additionalProperties, `${type}${path}`).toBeUndefined()
    }
    for (const example of examples) expect(findSchemaError({ ...example, added_later: { anything: 1 } })).toBeNull()
  })

  it('contain every part that they refer to, and no other', () => {
    for (const [type, schema] of schemas) {
      const referred = [...JSON.stringify(schema).matchAll(/"#\/\$defs\/(\w+)"/g)].map(([, name]) => name)
      expect(new Set(referred), type).toEqual(new Set(Object.keys(schema.$defs ?? {})))
    }
  })
})

/** An example with one field, at any depth, removed or replaced by a wrong value. */
const corruptedMessage = fc
  .record({
    index: fc.nat(),
    path: fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
    by: fc.constantFrom(undefined, 7.5, 'x', [], {}, null),
  })
  .map(({ index, path, by }) => {
    const message = structuredClone(examples[index % examples.length]) as Record<string, unknown>
    let at = message
    for (const [depth, step] of path.entries()) {
      const fields = Object.keys(at)
      const field = fields[step % fields.length]
      if (field === undefined) return message
      const inner = at[field]
      if (depth < path.length - 1 && typeof inner === 'object' && inner !== null) at = inner as Record<string, unknown>
      else {
        if (by === undefined) delete at[field]
        else at[field] = by
        return message
      }
    }
    return message
  })

const isReadable = (message: unknown): boolean => [Update, Notice, Request].some((schema) => schema.safeParse(message).success)

describe('a corrupted message', () => {
  it('is refused by the published schema if and only if the zod schema refuses it', () => {
    fc.assert(
      fc.property(corruptedMessage, (message) => {
        // The zod schemas of client messages also check times, positions and names, which JSON Schema cannot express.
        const isRequest = requests.some((type) => type === message.type)
        if (isReadable(message)) expect(findSchemaError(message)).toBeNull()
        else if (!isRequest) expect(findSchemaError(message)).not.toBeNull()
      }),
      { numRuns: 3_000 },
    )
  })
})
