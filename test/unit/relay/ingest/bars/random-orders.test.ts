import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { Update } from '../../../../../src/protocol/updates.ts'
import type { Log } from '../../../../../src/relay/chain/logs/log-parser.ts'
import { minuteBarOf } from '../../../../../src/relay/tape/bars/bar-row.ts'
import { barFieldsOfMinute } from '../../../../../src/relay/tokens/minute-bars.ts'
import { expectedBar, type FoldedTrade, noNav } from '../../../../simulation/laws/expected-bars.ts'
import { blockHash } from '../../chain/node-json.ts'
import { APPLE } from '../../tokens/stock-records.ts'
import { everything, openFollowed, POOL } from '../pools/pool-fixture.ts'
import { sealedEventOfLogs, transactionEvent } from '../reducer-fixture.ts'
import { swap } from '../token-logs.ts'

/** Three blocks a minute. */
const FIRST = 101
const BLOCKS = 9
const BLOCK_S = 20
const BEGIN_S = 1_795_176_000
const STALE_AFTER_S = 93_600
/** Each has a tape of its own. */
const CHAINS = 25

/** Amounts of a swap in the least units. Positive if the pool gave tokens. */
type Swap = { readonly index: number; readonly tokens: number; readonly dollars: number; readonly isBuy: boolean }
/** The contents that a block has one after another: a reorganisation gives it the next one. */
type Versions = readonly (readonly Swap[])[]
type Step =
  | { readonly step: 'push'; readonly block: number; readonly nth: number; readonly isOlder: boolean }
  /** The next block, with some of its swaps not found yet. */
  | { readonly step: 'seal'; readonly missing: number }
  | { readonly step: 'complete'; readonly back: number }
  | { readonly step: 'reorg'; readonly depth: number }
  | { readonly step: 'restart' | 'crash' }

const swaps: fc.Arbitrary<readonly Swap[]> = fc.uniqueArray(
  fc.record({
    index: fc.integer({ min: 0, max: 3 }),
    tokens: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 1, max: 900_000_000 })),
    dollars: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 1, max: 900_000_000 })),
    isBuy: fc.boolean(),
  }),
  { selector: ({ index }) => index, maxLength: 4 },
)
const chains: fc.Arbitrary<readonly Versions[]> = fc.array(fc.array(swaps, { minLength: 1, maxLength: 3 }), {
  minLength: BLOCKS,
  maxLength: BLOCKS,
})
const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ step: fc.constant('push'), block: fc.nat(BLOCKS - 1), nth: fc.nat(3), isOlder: fc.boolean() }),
    },
    { weight: 6, arbitrary: fc.record({ step: fc.constant('seal'), missing: fc.nat(2) }) },
    { weight: 2, arbitrary: fc.record({ step: fc.constant('complete'), back: fc.nat(5) }) },
    { weight: 2, arbitrary: fc.record({ step: fc.constant('reorg'), depth: fc.integer({ min: 1, max: 5 }) }) },
    { weight: 1, arbitrary: fc.record({ step: fc.constantFrom('restart', 'crash') }) },
  ) as fc.Arbitrary<Step>,
  { maxLength: 40 },
)

const secondOf = (nth: number): number => BEGIN_S + nth * BLOCK_S

function logOf(nth: number, { index, tokens, dollars, isBuy }: Swap): Log {
  const amounts: [bigint, bigint] = isBuy ? [BigInt(dollars), -BigInt(tokens)] : [-BigInt(dollars), BigInt(tokens)]
  // A pre-confirmed log has a time that is not that of the block.
  return swap({ block: FIRST + nth, index, address: POOL }, amounts)
}

const decimal = (units: number, places: number): string => {
  const digits = units.toString().padStart(places + 1, '0')
  return `${digits.slice(0, -places)}.${digits.slice(-places)}`.replace(/\.?0+$/, '')
}

/** A trade as its swap makes it. The price is that of a bar with this trade alone. */
function tradeOf(nth: number, { index, tokens, dollars, isBuy }: Swap): FoldedTrade {
  const [amount, currency_amount] = [decimal(tokens, 8), decimal(dollars, 6)]
  const sold = tokens === 0 && dollars === 0 ? null : isBuy ? ('buy' as const) : ('sell' as const)
  const numbers = { amount, shares: amount, currency_amount, side: sold, basis_bps: null, basis: null, nav: noNav(STALE_AFTER_S) }
  const alone = { block: FIRST + nth, logIndex: index, pool: POOL, price: null, ...numbers }
  return { ...alone, price: dollars === 0 ? null : expectedBar([alone], STALE_AFTER_S).vwap }
}

type Ingest = Awaited<ReturnType<typeof openFollowed>>

/** A chain, and the events by which the relay learns of it. */
class PlayedChain {
  readonly #versions: readonly Versions[]
  readonly #current = Array.from({ length: BLOCKS }, () => 0)
  /** Blocks that were sealed without some of their swaps. */
  readonly #incomplete = new Set<number>()
  #run: Pick<Ingest, 'publish'>
  readonly #ingest: Ingest
  #settled = 0

  constructor(ingest: Ingest, versions: readonly Versions[]) {
    this.#ingest = ingest
    this.#run = ingest
    this.#versions = versions
  }

  contentOf(nth: number): readonly Swap[] {
    return this.#versions[nth]?.at(this.#current[nth] ?? 0) ?? []
  }

  async play(step: Step): Promise<void> {
    switch (step.step) {
      case 'push': {
        const version = step.isOlder ? this.#versions[step.block]?.[0] : this.contentOf(step.block)
        const pushed = version?.at(step.nth)
        if (pushed && step.block >= this.#settled) await this.#run.publish(transactionEvent([logOf(step.block, pushed)]))
        return
      }
      case 'seal':
        return this.#settled < BLOCKS ? this.#seal(this.#settled, step.missing) : undefined
      case 'complete': {
        const nth = this.#settled - 1 - step.back
        return this.#incomplete.has(nth) ? this.#seal(nth, 0) : undefined
      }
      case 'reorg':
        return this.#reorganise(Math.max(0, this.#settled - step.depth))
      case 'restart':
      case 'crash':
        this.#run = await this.#ingest[step.step]()
    }
  }

  /** All blocks have their last contents, and another minute begins. */
  async end(): Promise<void> {
    for (const nth of [...this.#incomplete]) if (nth < this.#settled) await this.#seal(nth, 0)
    while (this.#settled < BLOCKS) await this.#seal(this.#settled, 0)
    await this.#publishSealed(BLOCKS, [])
  }

  async #seal(nth: number, missing: number): Promise<void> {
    const content = this.contentOf(nth)
    const found = content.slice(0, content.length - missing)
    this.#incomplete[found.length < content.length ? 'add' : 'delete'](nth)
    this.#settled = Math.max(this.#settled, nth + 1)
    await this.#publishSealed(nth, found)
  }

  async #publishSealed(nth: number, content: readonly Swap[]): Promise<void> {
    const number = FIRST + nth
    const logs = content.toSorted((a, b) => a.index - b.index).map((one) => logOf(nth, one))
    const newest = Math.max(number, FIRST + this.#settled - 1)
    const block = { timestamp: secondOf(nth), hash: blockHash(number * 10 + (this.#current[nth] ?? 0)) }
    await this.#run.publish(sealedEventOfLogs(number, logs, { ...block, addresses: everything, newest, cursor: newest }))
  }

  async #reorganise(to: number): Promise<void> {
    const from = this.#settled
    if (to === from) return
    this.#settled = to
    await this.#run.publish({ type: 'reorg', from: FIRST + to })
    for (let nth = to; nth < BLOCKS; nth += 1) {
      this.#current[nth] = ((this.#current[nth] ?? 0) + 1) % (this.#versions[nth]?.length ?? 1)
      this.#incomplete.delete(nth)
    }
  }
}

const rest = ({ basis, basis_bps, nav, ...fields }: ReturnType<typeof expectedBar>) => fields

describe('the bars', () => {
  it('are those of the sealed chain after any order of late, amended, retracted and reorganised trades', async () => {
    await fc.assert(
      fc.asyncProperty(chains, steps, async (versions, played) => {
        const ingest = await openFollowed()
        const chain = new PlayedChain(ingest, versions)
        for (const step of played) await chain.play(step)
        await chain.end()
        const rows = ingest.openedTape.tape.readBars(APPLE as Hex, { since: 0, until: 1e12 }).map(minuteBarOf)
        const stored = new Map(rows.map((row) => [row.start, barFieldsOfMinute(row, STALE_AFTER_S)]))
        const bars = (await ingest.updates()).filter((update): update is Extract<Update, { type: 'bar' }> => update.type === 'bar')
        for (let first = 0; first < BLOCKS; first += 3) {
          const minute = [first, first + 1, first + 2]
          const trades = minute.flatMap((nth) => chain.contentOf(nth).map((one) => tradeOf(nth, one)))
          const bar = stored.get(secondOf(first))
          const published = bars.filter(({ start }) => Date.parse(start) === secondOf(first) * 1_000)
          expect(published.map(({ revision }) => revision)).toEqual(published.map((_, nth) => nth + 1))
          if (trades.length === 0 && !bar) {
            expect(published).toEqual([])
            continue
          }
          expect(bar).toMatchObject({ ...rest(expectedBar(trades, STALE_AFTER_S)), partial: null })
          expect(published.at(-1)).toMatchObject({ ...bar })
        }
        expect(rows.length).toBeLessThanOrEqual(BLOCKS / 3)
      }),
      { numRuns: CHAINS },
    )
  }, 60_000)
})
