import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import type { DevnetTransaction } from '../../../src/devnet/chain/chain-types.ts'
import { digest } from '../../../src/devnet/chain/hashes.ts'
import { createChances } from '../../../src/devnet/faults/recurring-faults.ts'
import { testToken, tokens } from '../../../src/devnet/tokens/issued-tokens.ts'
import { faultDefinitions, isWithin, requestedFaults, windowEndMs } from '../../../src/lib/fault-settings.ts'

const second = 1_000
const minute = 60 * second

describe('the text of FAULTS', () => {
  it.each<[string, object]>([
    ['reorg=2%', { reorg: { share: 0.02, depth: 1 } }],
    ['reorg=2%x3', { reorg: { share: 0.02, depth: 3 } }],
    ['drop=0%,late=100%', { drop: { share: 0, depth: 1 }, late: { share: 1, depth: 1 } }],
    ['drop=0.25%', { drop: { share: 0.0025, depth: 1 } }],
    ['silent=30s', { silent: { lengthMs: 30 * second, periodMs: 2 * minute } }],
    [
      ' silent = 30s/5m , gap ',
      { silent: { lengthMs: 30 * second, periodMs: 5 * minute }, gap: { lengthMs: 10 * second, periodMs: 40 * second } },
    ],
    ['stall=500ms/2s', { stall: { lengthMs: 500, periodMs: 2 * second } }],
    ['lag', { lag: 3 }],
    ['lag=7', { lag: 7 }],
  ])('%s is read', (text, faults) => {
    expect(requestedFaults(text)).toEqual(faults)
  })

  it('gives every fault that is named alone its documented value', () => {
    for (const [name, { fallback }] of Object.entries(faultDefinitions))
      expect(requestedFaults(name)).toEqual(requestedFaults(`${name}=${fallback}`))
  })

  it.each([
    ['', 'must be faults such as reorg=2%,silent=30s,gap, and "" is none (there are reorg, drop,'],
    ['rerog=2%', 'and "rerog=2%" is none (did you mean reorg?)'],
    ['drop=5%,silence=30s', 'and "silence=30s" is none (did you mean silent?)'],
    ['weather', 'and "weather" is none (there are reorg, drop,'],
    ['rain\nhail', 'and "rain\\nhail" is none'],
    ['=5%', 'and "=5%" is none (there are reorg, drop,'],
    ['drop=5', 'must give drop a share such as 5%, and has "drop=5"'],
    ['drop=', 'must give drop a share such as 5%, and has "drop="'],
    ['drop=101%', ', and has "drop=101%"'],
    ['drop=5%x2', ', and has "drop=5%x2"'],
    ['reorg=2%x0', 'must give reorg a share such as 2%, or 2%x3 for reorgs of 3 blocks, and has "reorg=2%x0"'],
    ['reorg=2%=3', ', and has "reorg=2%=3"'],
    ['silent=30', 'must give silent a time such as 30s, or 30s/5m for 30 s of every 5 minutes, and has "silent=30"'],
    ['silent=0s', ', and has "silent=0s"'],
    ['silent=5m/30s', ', and has "silent=5m/30s"'],
    ['silent=30s/61m', ', and has "silent=30s/61m"'],
    ['silent=1s/2s/3s', ', and has "silent=1s/2s/3s"'],
    ['lag=5%', 'must give lag a number of blocks such as 3, and has "lag=5%"'],
    ['lag=0', ', and has "lag=0"'],
    ['gap,gap=5s', 'must name each fault once, and gap appears twice'],
  ])('%s is a mistake', (text, message) => {
    expect(() => requestedFaults(text)).toThrow(message)
  })

  it('is described by docs/faults.md', async () => {
    const document = await readFile(new URL('../../../docs/faults.md', import.meta.url), 'utf8')
    const rows = Object.entries(faultDefinitions).map(
      ([name, { fallback, what }]) => `| \`${name}\` | \`${name}=${fallback}\` | ${what} |`,
    )
    expect(document).toContain(`| name | alone means | what happens |\n|---|---|---|\n${rows.join('\n')}\n\n`)
  })
})

describe('chance', () => {
  const transactions = Array.from({ length: 2_000 }, (_, index) => {
    const hash = digest('chance', index)
    return {
      hash,
      from: hash,
      to: tokens[0]?.address ?? hash,
      input: '0x',
      gasUsed: 1,
      logs: [],
      writes: [],
      nonce: 0n,
      run: () => {
        throw new Error('nothing executes it')
      },
    } satisfies DevnetTransaction
  })
  const countsOf = (text: string, seed = 'seed') => {
    const chances = createChances(requestedFaults(text), seed)
    return {
      dropped: transactions.filter((transaction) => chances.atSeal(transaction) !== 'kept').length,
      late: transactions.filter((_, index) => chances.isLate(index, 1, 2)).length,
      reorgs: transactions.filter((_, index) => chances.reorgDepthAfter(index) > 0).length,
    }
  }

  it.each([
    ['0%', 0, 0],
    ['5%', 60, 140],
    ['100%', 2_000, 2_000],
  ])('of %s has its share, and the same with the same seed', (share, least, most) => {
    const text = `drop=${share},late=${share},reorg=${share}`
    for (const count of Object.values(countsOf(text))) {
      expect(count).toBeGreaterThanOrEqual(least)
      expect(count).toBeLessThanOrEqual(most)
    }
    expect(countsOf(text)).toEqual(countsOf(text))
  })

  it('has other victims with another seed, and none without a fault', () => {
    expect(countsOf('drop=5%,late=5%,reorg=5%', 'another')).not.toEqual(countsOf('drop=5%,late=5%,reorg=5%'))
    expect(countsOf('lag')).toEqual({ dropped: 0, late: 0, reorgs: 0 })
  })

  it('spares the test token', () => {
    const { atSeal, inReorg } = createChances(requestedFaults('drop=100%,reorg=100%'), 'seed')
    for (const transaction of transactions)
      expect([atSeal, inReorg].map((outcomeOf) => outcomeOf({ ...transaction, to: testToken.address }))).toEqual(['kept', 'kept'])
  })
})

describe('a recurring window', () => {
  it.each([
    [0, false, 10],
    [6, false, 10],
    [7, true, 10],
    [9, true, 10],
    [10, false, 20],
    [17, true, 20],
  ])('is the end of its period: %i', (at, within, end) => {
    const window = { lengthMs: 3, periodMs: 10 }
    expect([isWithin(window, at), windowEndMs(window, at)]).toEqual([within, end])
  })
})
