import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { examples } from '../../../src/docs/examples.ts'
import { type JsonSchema, messageTypes, publishedSchemas, schemasUnder } from '../../../src/docs/schemas.ts'
import { Notice } from '../../../src/protocol/notices.ts'
import { Request } from '../../../src/protocol/requests.ts'
import { Update, updateTypes } from '../../../src/protocol/updates.ts'
import { objection } from '../../support/message-validator.ts'

const schemas = publishedSchemas()
const { taped, noticed, requested } = messageTypes

/** Every object schema inside of one, with the way to it. */
function objectsIn(schema: unknown, way = ''): readonly (readonly [string, JsonSchema])[] {
  if (typeof schema !== 'object' || schema === null) return []
  const inner = Object.entries(schema).flatMap(([name, value]) =>
    name === 'examples' ? [] : objectsIn(value, `${way}/${name}`),
  )
  return 'properties' in schema ? [[way, schema as JsonSchema], ...inner] : inner
}

describe('the published schemas', () => {
  it('are one for each type of message', () => {
    expect([...schemas.keys()]).toEqual([...taped, ...noticed, ...requested])
    expect(taped).toEqual(updateTypes)
  })

  it('allow every message that the contract shows, and carry it as an example', () => {
    for (const example of examples) {
      expect(objection(example)).toBeNull()
      expect(schemas.get(example.type)?.examples).toContainEqual(example)
    }
    for (const schema of schemas.values()) expect(schema.examples).not.toEqual([])
  })

  it('say of each message and of each of its fields what it is', () => {
    const all = schemasUnder('#/$defs/')
    for (const [type, schema] of schemas) {
      expect(schema.description, type).toMatch(/^[A-Z].*\.$/)
      for (const part of Object.keys(schema.$defs ?? {})) expect(all[part]?.description, part).toMatch(/\.$/)
    }
  })

  it('leave room for fields that are still to come', () => {
    for (const [type, schema] of schemas) {
      for (const [way, object] of objectsIn(schema))
        expect(object.additionalProperties, `${type}${way}`).toBeUndefined()
    }
    for (const example of examples) expect(objection({ ...example, added_later: { anything: 1 } })).toBeNull()
  })

  it('name no part that they do not hold', () => {
    for (const [type, schema] of schemas) {
      const referred = [...JSON.stringify(schema).matchAll(/"#\/\$defs\/(\w+)"/g)].map(([, name]) => name)
      expect(new Set(referred), type).toEqual(new Set(Object.keys(schema.$defs ?? {})))
    }
  })
})

/** An example with one of its fields, at any depth, taken out or put wrong. */
const spoilt = fc
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

const reads = (message: unknown): boolean =>
  [Update, Notice, Request].some((schema) => schema.safeParse(message).success)

describe('a message that was spoilt', () => {
  it('is refused by the published schema where the schema that checks refuses it, and by no other', () => {
    fc.assert(
      fc.property(spoilt, (message) => {
        // What a client says is read with more than a schema can say: of a time, a place, a name.
        const isSaid = requested.some((type) => type === message.type)
        if (reads(message)) expect(objection(message)).toBeNull()
        else if (!isSaid) expect(objection(message)).not.toBeNull()
      }),
      { numRuns: 3_000 },
    )
  })

  it('is seen: of the spoilt ones many are refused', () => {
    const refused = fc.sample(spoilt, 500).filter((message) => objection(message) !== null)
    expect(refused.length).toBeGreaterThan(150)
  })
})
