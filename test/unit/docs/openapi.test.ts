import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { examples } from '../../../src/docs/examples.ts'
import { openApi } from '../../../src/docs/openapi.ts'
import { routes } from '../../../src/docs/route-table.ts'
import { EventsQuery } from '../../../src/protocol/history.ts'
import { StreamQuery } from '../../../src/protocol/selection.ts'
import { findAnswerError } from '../../support/openapi-validator.ts'

const document = openApi()
/** As whoever fetches it has it. */
const served = JSON.parse(JSON.stringify(document))

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
)

describe('openapi.json', () => {
  it('is OpenAPI 3.1 to a validator of its own', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(structuredClone(served))
    expect(errors).toBeUndefined()
    expect([valid, validator.version]).toEqual([true, '3.1'])
  })

  it('would not be, were something wrong with it', async () => {
    const wrong = structuredClone(served)
    wrong.paths['/v1/events'].get.parameters[0].in = 'somewhere'
    expect((await new Validator().validate(wrong)).valid).toBe(false)
  })

  it('refers to nothing that it does not hold', () => {
    for (const [, ref = ''] of JSON.stringify(served).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      const target = ref.split('/').reduce((at, name) => at?.[name], served)
      expect(target, ref).toBeDefined()
    }
  })

  it('names every operation once, says what it is for, and gives a line to copy', () => {
    expect(new Set(routes.map(({ id }) => id)).size).toBe(routes.length)
    expect(operations).toHaveLength(routes.length)
    for (const { operation } of operations) {
      expect(operation?.summary).not.toMatch(/\.$/)
      expect(operation?.['x-codeSamples'][0]?.source).toContain('://127.0.0.1:8080')
    }
  })

  it.each([
    ['/v1/stream', Object.keys(StreamQuery.shape)],
    ['/v1/events', Object.keys(EventsQuery.shape)],
  ])('names every parameter of %s and describes it', (path, names) => {
    const { parameters = [] } = document.paths[path]?.get ?? {}
    expect(parameters.filter((one) => one.in === 'query').map(({ name }) => name)).toEqual(names)
    for (const { name, description } of parameters) expect(description, name).toMatch(/\.$/)
  })

  it('names what stands in a path', () => {
    for (const { path, operation } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const named = operation?.parameters?.filter((one) => one.in === 'path').map(({ name }) => name) ?? []
      expect(named, path).toEqual(inPath)
    }
  })

  it('shows only examples that its own schemas allow', () => {
    let shown = 0
    for (const { path, method, operation } of operations) {
      for (const [status, response] of Object.entries(operation?.responses ?? {})) {
        if (!response || '$ref' in response) continue
        for (const [type, media] of Object.entries(response.content ?? {})) {
          if (media.example === undefined || !type.endsWith('json') || type.includes('nd')) continue
          shown += 1
          const text = JSON.stringify(media.example)
          const answer = {
            method: method.toUpperCase(),
            path: path.replaceAll(/[{}]/g, ''),
            status: Number(status),
            type,
          }
          expect(findAnswerError({ ...answer, text }), path).toBeNull()
        }
      }
    }
    expect(shown).toBeGreaterThan(6)
  })

  it('shows messages that the contract shows, word for word', () => {
    const said = new Set(examples.map((example) => JSON.stringify(example)))
    const stream = document.paths['/v1/stream']?.get?.responses[200]
    if (!stream || '$ref' in stream) throw new Error('there is no stream')
    const { 'application/x-ndjson': lines, 'text/event-stream': events } = stream.content ?? {}
    expect(said).toContain(String(lines?.example).trim())
    expect(said).toContain(/^data: (.*)$/m.exec(String(events?.example))?.[1])
  })

  it('says what presence does not imply', () => {
    expect(document.info.description).toContain('does not imply trading availability or eligibility')
  })
})

describe('an answer that is not as the document says', () => {
  const page = { path: '/v1/events', status: 200, type: 'application/json' }
  it.each([
    ['has another status', { ...page, status: 201 }, { events: [], next: null }],
    ['has another type', { ...page, type: 'text/html' }, { events: [], next: null }],
    ['lacks a field', page, { events: [] }],
    ['holds what is no message', page, { events: [{ type: 'dividend' }], next: null }],
    ['is a refusal without a record', { ...page, status: 400 }, { error: 'no' }],
  ])('is seen: it %s', (_, answer, body) => {
    expect(findAnswerError({ ...answer, text: JSON.stringify(body) })).not.toBeNull()
  })
})
