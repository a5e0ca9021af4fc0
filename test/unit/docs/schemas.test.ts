import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { examples } from '../../../src/docs/examples.ts'
import { type JsonSchema, messageTypes, namedSchemas, publishedSchemas } from '../../../src/docs/schemas.ts'
import { Notice } from '../../../src/protocol/notices.ts'
import { Request } from '../../../src/protocol/requests.ts'
import { Update, updateTypes } from '../../../src/protocol/updates.ts'
import { findSchemaError } from '../../support/message-validator.ts'

const schemas = publishedSchemas()
const { updates, notices, requests } = messageTypes

/** Every object schema inside of one, with the way to it. */
function objectSchemasIn(schema: unknown, path = ''): readonly (readonly [string, JsonSchema])[] {
  if (typeof schema !== 'object' || schema === null) return []
  const inner = Object.entries(schema).flatMap(([name, value]) =>
    name === 'examples' ? [] : objectSchemasIn(value, `${path}/${name}`),
  )
  return 'properties' in schema ? [[path, schema as JsonSchema], ...inner] : inner
}

describe('the published schemas', () => {
  it('are one for each type of message', () => {
    expect([...schemas.keys()]).toEqual([...updates, ...notices, ...requests])
    expect(updates).toEqual(updateTypes)
  })

  it('allow every message that the contract shows, and carry it as an example', () => {
    for (const example of examples) {
      expect(findSchemaError(example)).toBeNull()
      expect(schemas.get(example.type)?.examples).toContainEqual(example)
    }
    for (const schema of schemas.values()) expect(schema.examples).not.toEqual([])
  })

  it('say of each message and of each of its fields what it is', () => {
    const all = namedSchemas('#/$defs/')
    for (const [type, schema] of schemas) {
      expect(schema.description, type).toMatch(/^[A-Z].*\.$/)
      for (const part of Object.keys(schema.$defs ?? {})) expect(all[part]?.description, part).toMatch(/\.$/)
    }
  })

  it('leave room for fields that are still to come', () => {
    for (const [type, schema] of schemas) {
      for (const [path, object] of objectSchemasIn(schema))
        expect(object.additionalProperties, `${type}${path}`).toBeUndefined()
    }
    for (const example of examples) expect(findSchemaError({ ...example, added_later: { anything: 1 } })).toBeNull()
  })

  it('name no part that they do not hold', () => {
    for (const [type, schema] of schemas) {
      const referred = [...JSON.stringify(schema).matchAll(/"#\/\$defs\/(\w+)"/g)].map(([, name]) => name)
      expect(new Set(referred), type).toEqual(new Set(Object.keys(schema.$defs ?? {})))
    }
  })
})

/** An example with one of its fields, at any depth, taken out or put wrong. */
const corruptedMessage = fc
  .record({
    index: fc.nat(),
    way: fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
    by: fc.constantFrom(undefined, 7.5, 'x', [], {}, null),
  })
  .map(({ index, way, by }) => {
    const message = structuredClone(examples[index % examples.length]) as Record<string, unknown>
    let at = message
    for (const [depth, step] of way.entries()) {
      const fields = Object.keys(at)
      const field = fields[step % fields.length]
      if (field === undefined) return message
      const inner = at[field]
      if (depth < way.length - 1 && typeof inner === 'object' && inner !== null) at = inner as Record<string, unknown>
      else {
        if (by === undefined) delete at[field]
        else at[field] = by
        return message
      }
    }
    return message
  })

const isReadable = (message: unknown): boolean =>
  [Update, Notice, Request].some((schema) => schema.safeParse(message).success)

describe('a message that was spoilt', () => {
  it('is refused by the published schema where the schema that checks refuses it, and by no other', () => {
    fc.assert(
      fc.property(corruptedMessage, (message) => {
        // What a client says is read with more than a schema can say: of a time, a place, a name.
        const isSaid = requests.some((type) => type === message.type)
        if (isReadable(message)) expect(findSchemaError(message)).toBeNull()
        else if (!isSaid) expect(findSchemaError(message)).not.toBeNull()
      }),
      { numRuns: 3_000 },
    )
  })

  it('is seen: of the spoilt ones many are refused', () => {
    const refused = fc.sample(corruptedMessage, 500).filter((message) => findSchemaError(message) !== null)
    expect(refused.length).toBeGreaterThan(150)
  })
})
