import { Parser } from '@asyncapi/parser'
import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { asyncApi } from '../../../src/docs/asyncapi.ts'
import { examplesOf } from '../../../src/docs/examples.ts'
import { messageTypes } from '../../../src/docs/schemas.ts'

const document = asyncApi()
const served = JSON.stringify(document)
const { updates, notices, requests } = messageTypes
/** How much a diagnosis weighs: 0 is an error, 1 a warning. What is newer than 3.0 is none of either. */
const WARNING = 1

async function problemsOf(text: string): Promise<readonly string[]> {
  const { diagnostics } = await new Parser().parse(text)
  return diagnostics
    .filter(({ severity }) => severity <= WARNING)
    .map(({ message, path }) => `${path.join('/')}: ${message}`)
}

describe('asyncapi.json', () => {
  it('is AsyncAPI 3.0 to a validator of its own', async () => {
    expect(document.asyncapi).toBe('3.0.0')
    expect(await problemsOf(served)).toEqual([])
  })

  it('would not be, were a channel wrong', async () => {
    const wrong = JSON.parse(served)
    wrong.operations.sendOnSocket.channel.$ref = '#/channels/elsewhere'
    expect(await problemsOf(JSON.stringify(wrong))).not.toEqual([])
  })

  it('allows each of its examples in the dialect that it has, and not a spoilt one', () => {
    const ajv = new Ajv({ strict: false }).addSchema(JSON.parse(served), 'asyncapi.json')
    for (const [type, { payload, examples }] of Object.entries(document.components.messages)) {
      const judge = ajv.compile({ $ref: `asyncapi.json${payload.$ref}` })
      for (const example of examples) expect([judge(example.payload), judge.errors]).toEqual([true, null])
      const [spoilt] = examples.map((example) => ({ ...example.payload, type: `${type}s`, jsonrpc: '1.0' }))
      expect(judge(spoilt), type).toBe(false)
    }
  })

  it('has every message, with the examples that the contract shows', () => {
    const types = [...updates, ...notices, ...requests]
    expect(Object.keys(document.components.messages).slice(0, types.length)).toEqual(types)
    for (const type of types) {
      expect(document.components.messages[type]?.examples.map(({ payload }) => payload)).toEqual(examplesOf(type))
    }
  })

  it('has a client say what it may say, on a WebSocket alone', () => {
    const said = Object.entries(document.operations).filter(([, { action }]) => action === 'receive')
    const onSocket = said.filter(([, { channel }]) => channel.$ref === '#/channels/socket')
    expect(onSocket.map(([name]) => name)).toEqual(requests)
    expect(said.length - onSocket.length).toBe(1)
    for (const type of requests) expect(document.channels.stream.messages).not.toHaveProperty(type)
  })
})
