import { expect, it } from 'vitest'
import { unknownSymbol } from '../../../../../src/relay/edge/limits/refusals.ts'
import { CurrentState } from '../../../../../src/relay/edge/select/current-state.ts'
import { resolveSymbols } from '../../../../../src/relay/edge/select/resolve-symbols.ts'
import { apple, notesOfTokens, tesla } from '../../tape/update-drafts.ts'

const twin = `0x${'3'.repeat(40)}` as const

/** The selection among two tokens, and a third one whose symbol differs from the first in its case alone. */
const resolveIn = (selectors: readonly string[], twinState: 'listed' | 'delisted' = 'delisted') => {
  const listed = [
    { address: apple, symbol: 'AAPLc' },
    { address: tesla, symbol: 'TSLAc' },
    { address: twin, symbol: 'aaplC', state: twinState },
  ]
  const notes = notesOfTokens(listed.map((token) => ({ ...token, formerSymbols: [] })))
  return resolveSymbols(new CurrentState(notes), selectors)
}
const unknown = (symbol: string, ...suggest: readonly string[]) => ({ symbol, reason: 'unknown_symbol', suggest })

// By which names a token is found is in the tests of the directory.
it.each([
  ['each token that one of them names, once', ['AAPL', 'aaplc', apple, 'TSLAc'], { tokens: new Set([apple, tesla]), rejected: [] }],
  ['a delisted token by its address', [twin], { tokens: new Set([twin]), rejected: [] }],
  ['all tokens with *', ['*'], { tokens: null, rejected: [] }],
  ['all tokens with * beside others', ['NOPE', '*'], { tokens: null, rejected: [unknown('NOPE')] }],
  ['none for an unknown symbol, which is rejected', ['APPL'], { tokens: new Set(), rejected: [unknown('APPL', 'AAPLc')] }],
  ['the others beside an unknown symbol', ['', 'TSLAc'], { tokens: new Set([tesla]), rejected: [unknown('')] }],
])('symbols select %s', (_, selectors, resolved) => {
  expect(resolveIn(selectors)).toEqual(resolved)
})

it('a symbol that several tokens match is rejected and refused with their addresses', () => {
  const { tokens, rejected } = resolveIn(['aapl'], 'listed')
  expect([tokens, rejected]).toEqual([new Set(), [{ symbol: 'aapl', reason: 'ambiguous_symbol', suggest: [apple, twin] }]])
  const { code, reason, message } = unknownSymbol(rejected)
  expect([code, reason]).toEqual([404, 'ambiguous_symbol'])
  expect(message).toContain(`Did you mean ${apple} or ${twin}?`)
})

it('a symbol that no token matches is refused in the format of the contract', () => {
  expect(unknownSymbol(resolveIn(['APPL']).rejected).record).toEqual({
    code: 404,
    message: "No tokenized stock 'APPL'. Did you mean AAPLc?",
    reason: 'unknown_symbol',
    details: [{ '@type': 'stocktape/unknown_symbol', suggest: ['AAPLc'] }],
  })
  expect(unknownSymbol(resolveIn(['ZZZZZZZZ']).rejected).message).toBe("No tokenized stock 'ZZZZZZZZ'.")
})
