import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { openApi } from '../../../src/docs/openapi.ts'
import { describedRoutes as routes } from '../../../src/docs/route-texts.ts'
import { examples } from '../../../src/protocol/contract-examples.ts'
import { EventsQuery } from '../../../src/protocol/history.ts'
import { StreamQuery } from '../../../src/protocol/parameters/selection.ts'
import { findAnswerError } from '../../support/openapi-validator.ts'

const document = openApi()
/** The document as a client parses it. */
const served = JSON.parse(JSON.stringify(document))

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
)

describe('openapi.json', () => {
  it('passes an independent OpenAPI 3.1 validator', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(structuredClone(served))
    expect(errors).toBeUndefined()
    expect([valid, validator.version]).toEqual([true, '3.1'])
  })

  it('contains the target of every reference', () => {
    for (const [, ref = ''] of JSON.stringify(served).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      const target = ref.split('/').reduce((at, name) => at?.[name], served)
      expect(target, ref).toBeDefined()
    }
  })

  it('has every operation once, with a summary and a code sample', () => {
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
  ])('describes every parameter of %s', (path, names) => {
    const { parameters = [] } = document.paths[path]?.get ?? {}
    expect(parameters.filter((one) => one.in === 'query').map(({ name }) => name)).toEqual(names)
    for (const { name, description } of parameters) expect(description, name).toMatch(/\.$/)
  })

  it('describes every path parameter', () => {
    for (const { path, operation } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const named = operation?.parameters?.filter((one) => one.in === 'path').map(({ name }) => name) ?? []
      expect(named, path).toEqual(inPath)
    }
  })

  it('shows only examples that its own schemas accept', () => {
    let shown = 0
    for (const { path, method, operation } of operations) {
      for (const [status, response] of Object.entries(operation?.responses ?? {})) {
        if (!response || '$ref' in response) continue
        for (const [type, media] of Object.entries(response.content ?? {})) {
          if (media.example === undefined || !type.endsWith('json') || type.includes('nd')) continue
          shown += 1
          const text = JSON.stringify(media.example)
          const answer = { method: method.toUpperCase(), path: path.replaceAll(/[{}]/g, ''), status: Number(status), type }
          expect(findAnswerError({ ...answer, text }), path).toBeNull()
        }
      }
    }
    expect(shown).toBeGreaterThan(6)
  })

  it('shows messages of the contract page, byte for byte', () => {
    const known = new Set(examples.map((example) => JSON.stringify(example)))
    const stream = document.paths['/v1/stream']?.get?.responses[200]
    if (!stream || '$ref' in stream) throw new Error('there is no stream')
    const { 'application/x-ndjson': lines, 'text/event-stream': events } = stream.content ?? {}
    expect(known).toContain(String(lines?.example).trim())
    expect(known).toContain(/^data: (.*)$/m.exec(String(events?.example))?.[1])
  })
})
