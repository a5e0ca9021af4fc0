import { expect, it } from 'vitest'
import { MissingLogsError } from '../../../../../src/relay/chain/blocks/block-logs.ts'
import {
  acceptsMissing,
  afterFailure,
  COUNTS_BOUND,
  type Failures,
  isExhausted,
  isPruned,
  isReadFailure,
  noFailures,
  type ReadFailure,
} from '../../../../../src/relay/chain/blocks/read-failures.ts'
import { UpstreamError, type UpstreamErrorKind } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { blockHash } from '../node-json.ts'

const refusal = (kind: UpstreamErrorKind) => new UpstreamError(kind, 'no')
const missing = (number: number, hash = blockHash(number)) => new MissingLogsError(`block ${number} lacks logs`, [hash])
const times = (count: number, failure: ReadFailure): readonly ReadFailure[] => Array(count).fill(failure)
const after = (...all: readonly ReadFailure[]): Failures =>
  all.reduce((failures, failure) => afterFailure(failures, failure, 0), noFailures)

it.each<[string, readonly ReadFailure[], readonly number[]]>([
  ['longer each time, up to two seconds', times(8, refusal('busy')), [50, 100, 200, 400, 800, 1_600, 2_000, 2_000]],
  ['half a second at first if logs are missing', times(3, missing(5)), [500, 1_000, 2_000]],
  ['by the failures of one block if logs are missing', [refusal('busy'), missing(4), missing(5)], [50, 500, 500]],
])('a read is repeated after a delay: %s', (_, failures, delays) => {
  expect(failures.map((_failure, index) => after(...failures.slice(0, index + 1)).retryAt)).toEqual(delays)
})

it('missing logs of a block are accepted after two reads that lacked them, and no other failure counts', () => {
  expect(acceptsMissing(after(missing(5)), blockHash(5))).toBe(false)
  expect(acceptsMissing(after(missing(5), missing(5)), blockHash(5))).toBe(true)
  expect(acceptsMissing(after(...times(2, refusal('behind')), ...times(2, missing(4)), missing(5)), blockHash(5))).toBe(false)
  // Reads of another block with the same number do not count.
  expect(acceptsMissing(after(...times(2, missing(5, blockHash(6)))), blockHash(5))).toBe(false)
})

it('the counts are limited, though each read may find another block in the place of the last one', () => {
  const counts = new Map(Array.from({ length: COUNTS_BOUND }, (_, nth) => [blockHash(nth), 1] as const))
  const failures = afterFailure({ ...noFailures, counts }, missing(5, blockHash(COUNTS_BOUND)), 0)
  expect([failures.counts.size, failures.counts.has(blockHash(0))]).toEqual([COUNTS_BOUND, false])
})

it.each<[string, readonly ReadFailure[], ReadFailure, exhausted: boolean, pruned: boolean]>([
  ['five refusals of its kind', times(5, refusal('too_large')), refusal('too_large'), true, true],
  ['four refusals of its kind', [...times(9, refusal('unreachable')), ...times(4, refusal('gone'))], refusal('gone'), false, false],
  ['refusals of another kind', times(5, refusal('too_large')), refusal('gone'), false, false],
  ['a node that lags often', times(5, refusal('behind')), refusal('behind'), false, true],
  ['lost connections', times(9, refusal('unreachable')), refusal('unreachable'), false, false],
  ['missing logs', times(9, missing(5)), missing(5), false, false],
])('a read is given up, or its block counts as pruned, after %s', (_, failures, last, exhausted, pruned) => {
  expect([isExhausted(after(...failures), last), isPruned(after(...failures), last)]).toEqual([exhausted, pruned])
})

it('an error of our own is no failed read', () => {
  expect([new TypeError('no'), refusal('busy'), missing(5)].map(isReadFailure)).toEqual([false, true, true])
})
