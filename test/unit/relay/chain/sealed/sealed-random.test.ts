import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { SealedHeader } from '../../../../../src/relay/chain/rpc/block-header.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { keyOf, word } from '../node-json.ts'
import { HEAD, openSealedBlocks, sealedHeader } from './sealed-chain-fixture.ts'

/** Events of the chain, of its node, and of the pushed heads. */
const arbChainEvent = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('sealed' as const),
      logs: fc.nat(3),
      isOpen: fc.boolean(),
      hidden: fc.constantFrom(0, 0, 0, 1, 2),
      pushed: fc.boolean(),
      afterMs: fc.constantFrom(0, 50, 200, 2_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('many' as const), blocks: fc.integer({ min: 60, max: 400 }) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('reorganised' as const), depth: fc.integer({ min: 1, max: 90 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('lagging' as const), lags: fc.array(fc.nat(5), { minLength: 1, maxLength: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('failing' as const), ms: fc.constantFrom(100, 1_000, 8_000) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('slow' as const), delayMs: fc.constantFrom(0, 30, 300) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('restarted' as const) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('safe' as const), depth: fc.integer({ min: 0, max: 60 }) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('garbage' as const), number: fc.constantFrom(1, 5_000, 90_000_000) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('limited' as const), bound: fc.constantFrom(3, 50, 2_000) }) },
)

it('settling ends with exactly the blocks of the chain, after any events', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(arbChainEvent, { minLength: 1, maxLength: 40 }), async (chainEvents) => {
      const { chain, openKeys, settledEvents, run, announceHead, advance, restart } = openSealedBlocks({
        recordsSettled: true,
        backfillLimitMs: 1e12,
      })
      const truth = new Map<number, string[]>()
      let lags = [0]
      let requestCount = 0
      // A safe block stays, and is published when it is settled.
      let safe = HEAD
      const marks: SealedHeader[] = []
      const publishedSafe = () => {
        const cursor = settledEvents.cursors().at(-1) ?? HEAD
        const known = marks.filter((mark) => mark.number <= cursor && run.sealed.isOurs(mark))
        return Math.max(HEAD, ...known.map(({ number }) => number))
      }
      chain.override = () => {
        requestCount += 1
        chain.lagBlocks = lags[requestCount % lags.length] ?? 0
        return undefined
      }
      const put = (block: number, logs: number, owes: boolean) => {
        const keys: string[] = []
        for (let log = 0; log < logs; log += 1) {
          const placed = chain.addLog(block)
          if (owes) openKeys.add(placed)
          keys.push(keyOf(placed))
        }
        truth.set(block, [...(truth.get(block) ?? []), ...keys])
      }
      for (const event of chainEvents) {
        switch (event.type) {
          case 'sealed': {
            chain.head += 1
            put(chain.head, event.logs, event.isOpen)
            // Only open keys keep a block in doubt for as long.
            if (event.isOpen && event.logs > 0) chain.hideLogs(chain.head, event.hidden)
            if (event.pushed) announceHead()
            await advance(event.afterMs)
            break
          }
          case 'many':
            chain.head += event.blocks
            put(chain.head - 7, 2, false)
            break
          case 'reorganised': {
            const from = Math.max(safe + 1, chain.head - event.depth + 1)
            if (from > chain.head) break
            chain.reorganise(chain.head - from + 1)
            for (const block of [...truth.keys()]) if (block >= from) truth.delete(block)
            put(chain.head, 1, false)
            put(from, 2, false)
            announceHead()
            break
          }
          case 'restarted':
            restart(publishedSafe())
            break
          case 'safe': {
            safe = Math.max(safe, chain.head - event.depth)
            const mark = sealedHeader(chain.headerOf(safe))
            marks.push(mark)
            run.sealed.markSafe(mark)
            break
          }
          case 'garbage': {
            const number = `0x${(chain.head + event.number).toString(16)}`
            run.sealed.receiveHead(sealedHeader({ ...chain.headerOf(chain.head), number, hash: word(event.number) }))
            break
          }
          case 'lagging':
            lags = [...event.lags, 0]
            break
          case 'failing':
            chain.failure = new UpstreamError('unreachable', 'ECONNREFUSED')
            await advance(event.ms)
            chain.failure = null
            break
          case 'slow':
            chain.delayMs = event.delayMs
            break
          case 'limited':
            chain.rangeBound = event.bound
            break
        }
      }
      lags = [0]
      chain.delayMs = 1
      chain.head += 1
      announceHead()
      await advance(120_000)
      expect(run.sealed.settled).toEqual({ number: chain.head, hash: chain.hashOf(chain.head) })
      expect(settledEvents.cursors().at(-1)).toBe(chain.head)
      expect(settledEvents.holes()).toEqual([])
      const last = new Map(settledEvents.blocks().map((block) => [block.number, block]))
      for (const [number, { hash, logs }] of last) {
        expect(logs.map(({ key }) => key)).toEqual(truth.get(number) ?? [])
        // An empty block published nothing, so its hash does not matter.
        if (logs.length > 0) expect([number, hash]).toEqual([number, chain.hashOf(number)])
      }
      for (const [number, keys] of truth) if (keys.length > 0) expect(last.has(number)).toBe(true)
    }),
    { numRuns: 40 },
  )
})
