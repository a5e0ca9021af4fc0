import fc from 'fast-check'
import { lastValueFrom, of, toArray } from 'rxjs'
import { expect, it } from 'vitest'
import { Reader } from '../../src/chain/reader.ts'
import { FakeChain } from './chain.ts'
import { apple, keyOf } from './wire.ts'

const HEAD = 100_000

it('a restart at any distance, on a node with any bound, loses nothing sealed and nothing pending', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.nat(5_000), fc.constantFrom(1_991, 1_992, 1_999, 2_000, 3_995)),
      fc.constantFrom(7, 100, 1_000, 2_000),
      async (distance, rangeBound) => {
        const chain = new FakeChain(HEAD)
        if (distance / rangeBound > 60) return
        chain.rangeBound = rangeBound
        const logs = [...new Set([HEAD - distance, HEAD - Math.floor(distance / 2), HEAD, HEAD + 1])].map((block) =>
          chain.put(block),
        )
        const reader = new Reader({ ask: chain.ask, cursor: HEAD - distance, backfillBoundMs: 1e9 })
        const found = await lastValueFrom(reader.read([apple]).pipe(toArray()))
        const keys = new Set(found.flatMap((one) => (one.type === 'log' ? [one.log.key] : [])))
        expect([...keys].sort()).toEqual(logs.map(keyOf).sort())
      },
    ),
  )
})

it('an answer that is no list of logs is a failure, not the news that nothing happened', async () => {
  for (const answer of [null, undefined, {}, '0x']) {
    const chain = new FakeChain(HEAD)
    const ask: FakeChain['ask'] = (method, params) =>
      method === 'eth_getLogs' ? of(answer) : chain.ask(method, params)
    const reader = new Reader({ ask, cursor: HEAD - 5, backfillBoundMs: 1e9 })
    await expect(lastValueFrom(reader.read([apple]).pipe(toArray()))).rejects.toMatchObject({ kind: 'unreadable' })
  }
})
