import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Refusal } from '../../../src/protocol/refusal.ts'
import { readRequest } from '../../../src/protocol/requests.ts'

const read = (given: unknown) => readRequest(JSON.stringify(given) ?? null)
const refusalOf = (given: unknown): Refusal => {
  try {
    read(given)
  } catch (failure) {
    if (failure instanceof Refusal) return failure
    throw failure
  }
  throw new Error(`${JSON.stringify(given)} was accepted`)
}

const account = '0xb200000000000000000000c2e324d24d7eecd1fb'

describe('a request', () => {
  it('of the contract parses', () => {
    const subscribe = {
      type: 'subscribe',
      req: 1,
      symbols: ['AAPLc', account, 'isin:US88160R1014', '*'],
      types: ['transfer', 'nav'],
      stage: 'preconfirmed',
      since: 'k3f9a1.18000',
      snapshot: true,
      min_value: '10000',
      min_shares: '1',
      account: [account],
    }
    expect(read(subscribe)).toEqual({
      ...subscribe,
      since: { from: 'position', text: 'k3f9a1.18000', position: { epoch: 'k3f9a1', seq: 18_000, n: null } },
      min_value: { units: 10_000n, scale: 0 },
      min_shares: { units: 1n, scale: 0 },
    })
    expect(read({ type: 'unsubscribe', req: 2, symbols: ['TSLAc'] })).toMatchObject({ symbols: ['TSLAc'] })
    expect(read({ type: 'list', req: 3 })).toEqual({ type: 'list', req: 3 })
    expect(read({ type: 'ping', req: 'a1' })).toEqual({ type: 'ping', req: 'a1' })
  })

  it('clears an option with null and keeps options that it does not name', () => {
    const cleared = { types: null, since: null, snapshot: null, stage: null, min_value: null, min_shares: null, account: null }
    expect(read({ type: 'subscribe', req: null, ...cleared })).toEqual({ type: 'subscribe', req: undefined, ...cleared })
    expect(read({ type: 'subscribe' })).toEqual({ type: 'subscribe' })
  })

  it.each([
    [{ type: 'subscribe', symbol: ['*'] }, 'symbol', ['symbols']],
    [{ type: 'subscribe', symbols: ['*'], colour: 'blue' }, 'colour', []],
    [{ type: 'unsubscribe', symbols: ['*'], types: ['nav'] }, 'types', ['type']],
    [{ type: 'subscribe', symbols: ['*'], party: account }, 'party', ['account']],
    [{ type: 'ping', reqs: 1 }, 'reqs', ['req']],
    [{ type: 'ping', key: 1 }, 'key', []],
    [{ type: 'list', _: 1 }, '_', []],
  ])('with an unknown field is refused: %j', (request, parameter, suggest) => {
    expect(refusalOf(request)).toMatchObject({ code: 400, reason: 'unknown_parameter', details: { parameter, suggest } })
  })

  it.each([
    ['symbols', ['AAPLc', [1], [''], ['x'.repeat(129)], Array.from({ length: 201 }, (_, index) => `S${index}`)]],
    ['types', ['transfer', [], ['swap']]],
    ['stage', ['safe']],
    ['since', ['yesterday', 18_000]],
    ['snapshot', ['yes']],
    ['on_gap', ['wait']],
    ['min_value', [10_000, '1e4', '-1']],
    ['min_shares', ['', '1,5']],
    ['account', [account, [], ['0x12'], ['alice'], Array(21).fill(account)]],
    ['req', [1.5, {}, 'x'.repeat(65)]],
  ])('with a bad %s is refused with its name: %j', (name, values) => {
    for (const value of values) {
      const { code, reason, message, details } = refusalOf({ type: 'subscribe', [name]: value })
      expect([code, reason]).toEqual([400, 'bad_parameter'])
      expect(message.startsWith(name)).toBe(true)
      expect(String(details.parameter).split('.')[0]).toBe(name)
    }
  })

  it('to unsubscribe without symbols is refused', () => {
    expect(refusalOf({ type: 'unsubscribe' }).message).toMatch(/^symbols: /)
  })

  it('of an unknown type is refused with the known types', () => {
    expect(refusalOf({ type: 'buy' }).message).toMatch(/^type: .*subscribe.*unsubscribe.*list.*ping/)
  })

  it('of any shape is either parsed or refused in one line', () => {
    const types = fc.constantFrom('subscribe', 'unsubscribe', 'list', 'ping', 'other')
    const names = ['symbols', 'types', 'stage', 'since', 'snapshot', 'min_value', 'min_shares', 'account', 'req']
    const fields = fc.dictionary(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 2 }))
    const anything = fc.oneof(
      fc.jsonValue(),
      fc.tuple(types, fields).map(([type, given]) => ({ type, ...given })),
    )
    fc.assert(
      fc.property(anything, (given) => {
        try {
          expect(typeof read(given).type).toBe('string')
        } catch (failure) {
          if (!(failure instanceof Refusal)) throw failure
          expect(failure.code).toBe(400)
          expect(failure.message.split('\n')).toHaveLength(1)
        }
      }),
      { numRuns: 200 },
    )
  })
})
