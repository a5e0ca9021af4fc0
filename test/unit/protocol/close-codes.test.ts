import { describe, expect, it } from 'vitest'
import { type CloseReason, closeCodes, formatCloseReason } from '../../../src/protocol/close-codes.ts'
import { Refusal } from '../../../src/protocol/refusal.ts'

const closeNames = Object.keys(closeCodes) as CloseReason[]

describe('a close code', () => {
  it('fits into a close frame with the longest position', () => {
    const longest = `${'z'.repeat(32)}.${Number.MAX_SAFE_INTEGER}.999999999`
    for (const word of closeNames) expect(formatCloseReason(word, longest)).toBe(`${word} ${longest}`)
    expect(Buffer.byteLength(formatCloseReason('too_many_connections', 'z'.repeat(500)))).toBe(123)
  })
})

describe('a refusal', () => {
  it('is the error record of the Read API', () => {
    const refusal = new Refusal(404, 'unknown_symbol', "No tokenized stock 'APPL'. Did you mean AAPLc?", { suggest: ['AAPLc'] })
    expect(JSON.stringify(refusal.record)).toBe(
      `{"code":404,"reason":"unknown_symbol","message":"No tokenized stock 'APPL'. Did you mean AAPLc?","details":[{"@type":"stocktape/unknown_symbol","suggest":["AAPLc"]}]}`,
    )
  })
})
