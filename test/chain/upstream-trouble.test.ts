import { expect, it } from 'vitest'
import { classify } from '../../src/chain/upstream-error.ts'

it.each([
  // a node that lags: wait or ask another, never halve
  [200, -32602, 'block range extends beyond current head block: requested 110, head 100', ['busy', 'unreachable']],
  // permanent, no chunking helps
  [200, -32602, 'invalid block range params', ['invalid']],
  // the question is too big for it, whichever way; resting and repeating never helps
  [413, -32021, 'request body too large', ['too_large']],
  [413, -32014, 'too many RPC calls in batch request', ['too_large']],
  [200, -32014, 'too many RPC calls in batch request', ['too_large']],
])('HTTP %i %i "%s" is one of %s', (status, code, message, kinds) => {
  expect(kinds).toContain(classify(new Response(null, { status }), { code, message }).kind)
})
