import { describe, expect, it } from 'vitest'
import { classify, type UpstreamErrorKind } from '../../../../../src/relay/chain/rpc/upstream-error.ts'

const answer = (status: number, headers: Record<string, string> = {}) => new Response(null, { status, headers })

/** Errors of nodes and proxies, and their kinds. */
const rows: readonly (readonly [who: string, status: number, code: number, message: string, kind: UpstreamErrorKind])[] = [
  ['proxyd', 403, -32601, 'rpc method is not whitelisted', 'forbidden'],
  ['proxyd', 429, -32016, 'over rate limit', 'busy'],
  ['proxyd in a 200', 200, -32016, 'over rate limit', 'busy'],
  ['proxyd', 500, -32020, 'backend response too large', 'too_large'],
  ['proxyd', 503, -32010, 'backend is offline', 'unreachable'],
  ['proxyd', 200, -32602, 'block range greater than 2000 max', 'too_large'],
  ['reth', 200, -32602, 'query exceeds max block range 100000', 'too_large'],
  ['reth', 200, -32602, 'query exceeds max results 20000, retry with the range 100-200', 'too_large'],
  ['reth', 200, -32602, 'filter not found', 'invalid'],
  ['older reth', 200, -32602, 'invalid block range params', 'invalid'],
  ['reth', 200, -32602, 'block range extends beyond current head block: requested 110, head 100', 'behind'],
  ['reth', 200, -32001, `block not found: hash 0x${'ab'.repeat(32)}`, 'behind'],
  ['reth', 200, 4444, 'pruned history unavailable', 'gone'],
  ['geth', 200, -32000, 'unknown block', 'behind'],
  ['geth', 200, -32000, 'header not found', 'behind'],
  ['geth', 200, -32000, 'header for hash not found', 'behind'],
  ['geth', 200, -32000, 'hash is not currently canonical', 'behind'],
  ['geth', 200, -32000, `missing trie node ${'ab'.repeat(32)} (path )`, 'gone'],
  ['another', 200, -32000, 'history is not available', 'gone'],
  ['erigon', 200, -32000, 'could not find block 60000000', 'behind'],
  ['nethermind', 200, -39001, 'Unknown block error', 'behind'],
  ['nethermind', 200, -32001, '60000000 could not be found', 'behind'],
  ['nethermind', 200, -32000, `0x${'ab'.repeat(32)} block is not canonical`, 'behind'],
  ['proxyd', 400, -32019, 'block is out of range', 'behind'],
  ['another', 200, -32000, 'cannot find block', 'behind'],
  ['another', 200, -32000, 'requested block is not yet available', 'behind'],
  ['proxyd', 413, -32021, 'request body too large', 'too_large'],
  ['proxyd', 413, -32014, 'too many RPC calls in batch request', 'too_large'],
  ['mainnet.base.org', 200, -32014, 'maximum 10 calls in 1 batch', 'too_large'],
  ['Infura', 200, -32602, 'block range 0-20000 exceeds limit of 10000', 'too_large'],
  ['Alchemy', 200, 429, 'Your app has exceeded its compute units per second capacity', 'busy'],
  ['QuickNode', 200, -32012, 'credits limited to 30/sec', 'busy'],
  ['another', 200, -32005, 'limit exceeded', 'too_large'],
  ['geth', 200, -32602, 'exceed max addresses or topics per search position', 'too_large'],
  ['another', 200, -32005, 'query returned more than 10000 results', 'too_large'],
  ['another', 200, -32602, 'more than 1000 addresses are not allowed', 'too_large'],
  ['another', 200, -32005, 'daily request rate limit exceeded', 'busy'],
  ['geth', 200, 3, 'anything', 'reverted'],
  ['geth', 200, -32000, 'execution reverted', 'reverted'],
  ['geth', 200, -32000, 'invalid opcode: INVALID', 'reverted'],
  ['geth', 200, -32000, 'invalid jump destination', 'reverted'],
  ['geth', 200, -32000, 'out of gas', 'reverted'],
  ['geth', 200, -32000, 'stack underflow (0 <=> 1)', 'reverted'],
  ['reth', 200, -32003, 'EVM error: InvalidFEOpcode', 'reverted'],
  ['nethermind', 200, -32015, 'VM execution error.', 'reverted'],
  ['hardhat', 200, -32603, 'VM Exception while processing transaction: reverted without a reason', 'reverted'],
  ['another', 200, -32000, 'Reverted 0x', 'reverted'],
  ['any', 200, -32601, 'the method eth_getBlockReceipts does not exist', 'unknown_method'],
  ['any', 200, -32602, 'invalid argument 0: hex string without 0x prefix', 'invalid'],
  ['any', 200, -32600, 'invalid request', 'invalid'],
  ['any', 200, -32603, 'internal error', 'unknown'],
  ['any', 500, -32603, 'internal error', 'unreachable'],
  ['any', 200, -32000, 'unexplained failure', 'unknown'],
]

describe('an upstream error', () => {
  it.each(rows)('of %s, HTTP %i %i "%s", is %s', (_, status, code, message, kind) => {
    const failure = classify(answer(status), { code, message })
    expect(failure.kind).toBe(kind)
    expect(failure.message).toBe(`${code} ${message}`)
  })

  it.each<[number, UpstreamErrorKind]>([
    [401, 'forbidden'],
    [403, 'forbidden'],
    [404, 'unreachable'],
    [429, 'busy'],
    [500, 'unreachable'],
  ])('without a JSON-RPC error, HTTP %i, is %s', (status, kind) => {
    const failure = classify(answer(status), null)
    expect(failure.kind).toBe(kind)
    expect(failure.message).toBe(`HTTP ${status}`)
  })

  it.each([
    [true, 200, -32000, 'header not found'],
    [true, 403, -32601, 'rpc method is not whitelisted'],
    [false, 429, -32016, 'over rate limit'],
    [false, 200, -32603, 'internal error'],
  ])(
    'is specific to the request if it concerns one method or one block: %s for HTTP %i %i %s',
    (expected, status, code, message) => {
      expect(classify(answer(status), { code, message }).isRequestSpecific).toBe(expected)
    },
  )

  it.each<[string | null, number | null]>([
    ['7', 7_000],
    ['0', 0],
    ['86400', 300_000],
    ['-1', null],
    ['soon', null],
    ['1e3', null],
    [null, null],
  ])('with Retry-After %s has the right wait', (header, wait) => {
    for (const status of [429, 503])
      expect(classify(answer(status, header === null ? {} : { 'retry-after': header }), null).retryAfterMs).toBe(wait)
  })
})
