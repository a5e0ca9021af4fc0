import { Parser } from '@asyncapi/parser'
import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { asyncApi } from '../../../src/docs/asyncapi.ts'
import { messageTypes } from '../../../src/docs/json-schemas.ts'
import { examplesOf } from '../../../src/protocol/contract-examples.ts'

const document = asyncApi()
const served = JSON.stringify(document)
const { updates, notices, requests } = messageTypes
/** Severities: 0 is an error, 1 a warning. The note that a newer version exists is less than a warning. */
const WARNING = 1

async function problemsOf(text: string): Promise<readonly string[]> {
  const { diagnostics } = await new Parser().parse(text)
  return diagnostics.filter(({ severity }) => severity <= WARNING).map(({ message, path }) => `${path.join('/')}: ${message}`)
}

describe('asyncapi.json', () => {
  it('passes an independent AsyncAPI 3.0 validator', async () => {
    expect(document.asyncapi).toBe('3.0.0')
    expect(await problemsOf(served)).toEqual([])
  })

  it('accepts each of its examples in its own dialect, and no corrupted one', () => {
    const ajv = new Ajv({ strict: false }).addSchema(JSON.parse(served), 'asyncapi.json')
    for (const [type, { payload, examples }] of Object.entries(document.components.messages)) {
      const validate = ajv.compile({ $ref: `asyncapi.json${payload.$ref}` })
      for (const example of examples) expect([validate(example.payload), validate.errors]).toEqual([true, null])
      const [corrupted] = examples.map((example) => ({ ...example.payload, type: `${type}s`, jsonrpc: '1.0' }))
      expect(validate(corrupted), type).toBe(false)
    }
  })

  it('has every message with the examples of the contract page', () => {
    const types = [...updates, ...notices, ...requests]
    expect(Object.keys(document.components.messages).slice(0, types.length)).toEqual(types)
    for (const type of types) {
      expect(document.components.messages[type]?.examples.map(({ payload }) => payload)).toEqual(examplesOf(type))
    }
  })

  it('has every client message, on a WebSocket only', () => {
    const received = Object.entries(document.operations).filter(([, { action }]) => action === 'receive')
    const onSocket = received.filter(([, { channel }]) => channel.$ref === '#/channels/socket')
    expect(onSocket.map(([name]) => name)).toEqual(requests)
    expect(received.length - onSocket.length).toBe(1)
    for (const type of requests) expect(document.channels.stream.messages).not.toHaveProperty(type)
  })
})
