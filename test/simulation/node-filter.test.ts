import { expect, it } from 'vitest'
import { matchesFilter, type NodeFilter } from './node-filter.ts'

/** The filters of `eth_getLogs` as its specification has them. */

const log = { address: '0xa1', topics: ['0x1', '0x2'] } as const

it.each<[matches: boolean, NodeFilter]>([
  [true, {}],
  [true, { address: '0xa1' }],
  [true, { address: ['0xa2', '0xa1'] }],
  [false, { address: ['0xa2'] }],
  [true, { address: [] }],
  [true, { topics: ['0x1'] }],
  [true, { topics: [null, '0x2'] }],
  [true, { topics: [['0x3', '0x1'], []] }],
  [false, { topics: ['0x2'] }],
  [false, { topics: ['0x1', ['0x1', '0x3']] }],
  // A log with fewer topics has none in that place.
  [false, { topics: ['0x1', '0x2', null] }],
  [false, { address: '0xa2', topics: ['0x1'] }],
])('%s: %j', (matches, filter) => {
  expect(matchesFilter(filter, log)).toBe(matches)
})
