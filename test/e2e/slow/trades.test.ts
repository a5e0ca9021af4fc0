import { describe, expect, it } from 'vitest'
import { SeededRandom } from '../../simulation/seeded-random.ts'
import { isNightly } from '../../support/test-length.ts'
import { countQuotesAhead, judgeTape, openers, type Swap, swapsOn, waitForQuotes } from './trade-judge.ts'
import { openMarkets, replaceBlocks, sealBlock, sendSwaps } from './traded-markets.ts'

const SWAPS = isNightly ? 2_000 : 700
const REORGS = isNightly ? 60 : 15
const MOST_IN_BLOCK = 14
const MOST_REPLACED = 4
/** Few pools, so that a swap that is dropped changes later ones. */
const MARKETS_OF_REORGS = 3
const BLOCKS_OF_FAULT = 4

const contentOf = ({ log, token, paid }: Swap): string => [log.transactionHash, token, paid].join()

/** Returns the fate of a swap in a reorganisation, and the retract of its key that the tape should have. */
function fateOf(old: Swap, chain: readonly Swap[]) {
  const same = chain.find(({ key }) => key === old.key)
  if (same) return { fate: contentOf(same) === contentOf(old) ? 'kept' : 'changed', reason: null, replacedBy: null }
  const moved = chain.find((swap) => contentOf(swap) === contentOf(old))
  if (!moved) return { fate: 'dropped', reason: 'reorg', replacedBy: null }
  // The relay settles blocks in order, so it does not know the later one yet.
  if (moved.log.blockNumber > old.log.blockNumber) return { fate: 'moved to a later block', reason: 'reorg', replacedBy: null }
  const isShifted = moved.log.blockNumber === old.log.blockNumber
  return { fate: isShifted ? 'shifted' : 'moved to an earlier block', reason: 'replaced', replacedBy: moved.key }
}

describe('trades of a real node', () => {
  it('are those of Uniswap to the last digit, and sealed in log order', async () => {
    const random = new SeededRandom('trades')
    const opened = await openMarkets(random, openers)
    const { listener, markets } = opened
    while (listener.messagesOf('trade').length < SWAPS) {
      await sendSwaps(opened, random, MOST_IN_BLOCK)
      await sealBlock(opened)
    }
    await sealBlock(opened)
    const judged = await judgeTape(opened)
    const isAsSealed = ({ swap, trade }: (typeof judged)[number]) => trade.tx.index === swap.log.transactionIndex
    expect(judged.filter((each) => each.trade.stage !== 'preconfirmed' || !isAsSealed(each))).toEqual([])
    expect([...listener.messagesOf('retract'), ...listener.messagesOf('amend')]).toEqual([])
    const swaps = judged.map(({ swap }) => swap)
    const ahead = countQuotesAhead(listener.messages, swaps)
    expect(ahead).toBeLessThan(SWAPS / 2)
    const sides = new Set(judged.map(({ trade }) => `${trade.side} ${trade.venue.pool}`))
    for (const { pool } of markets) for (const side of ['buy', 'sell']) expect(sides).toContain(`${side} ${pool.id}`)
    const edges = judged.flatMap(({ swap, trade }) => [
      trade.raw === '0' && 'no token',
      trade.raw !== '0' && trade.price === null && 'no price',
      trade.pool_price === null && 'no pool price',
      swap.state.liquidity === 0n && 'an empty pool',
    ])
    for (const edge of ['no token', 'no price', 'no pool price', 'an empty pool']) expect(edges).toContain(edge)
  })

  it('are retracted, amended and sealed again as reorganisations drop, move, change and keep them', async () => {
    const random = new SeededRandom('reorganisations')
    const opened = await openMarkets(random, openers)
    const { anvil, listener } = opened
    const fates: string[] = []
    for (let round = 0; round < REORGS; round += 1) {
      const depth = random.int(1, MOST_REPLACED)
      for (let block = 0; block < depth; block += 1) {
        await sendSwaps(opened, random, MOST_IN_BLOCK / 2, opened.markets.slice(0, MARKETS_OF_REORGS))
        await sealBlock(opened)
      }
      const [head, before] = [Number(await anvil.rpc('eth_blockNumber')), await swapsOn(opened)]
      const known = listener.messages.length
      await replaceBlocks(opened, random, depth)
      await sealBlock(opened)
      const after = await swapsOn(opened)
      const published = listener.messages.slice(known)
      for (const old of before.filter(({ log }) => log.blockNumber > head - depth)) {
        const { fate, reason, replacedBy } = fateOf(old, after)
        const told = published.filter(({ type, ...message }) => type === 'retract' && 'key' in message && message.key === old.key)
        expect(told, fate).toMatchObject(reason === null ? [] : [{ fact_type: 'trade', reason, replaced_by: replacedBy }])
        fates.push(fate)
      }
    }
    await sealBlock(opened)
    await judgeTape(opened)
    await waitForQuotes(opened)
    expect(new Set(fates)).toEqual(
      new Set(['kept', 'changed', 'shifted', 'moved to an earlier block', 'moved to a later block', 'dropped']),
    )
  })

  it('are late and in the seal if they were never pushed', async () => {
    const random = new SeededRandom('late trades')
    const opened = await openMarkets(random, openers)
    const { listener, node, markets } = opened
    await sendSwaps(opened, random, MOST_IN_BLOCK)
    await sealBlock(opened)
    const [pushed, sealed] = [listener.messagesOf('trade').length, listener.messagesOf('seal').length]
    node.withholds = ({ address }) => markets.some(({ pool }) => (pool.manager ?? pool.id) === address)
    for (let block = 0; block < BLOCKS_OF_FAULT; block += 1) {
      await sendSwaps(opened, random, MOST_IN_BLOCK)
      await sealBlock(opened)
    }
    await sealBlock(opened)
    const judged = await judgeTape(opened)
    expect(judged.filter(({ trade }) => trade.late).length).toBe(judged.length - pushed)
    expect(judged.length).toBeGreaterThan(pushed + BLOCKS_OF_FAULT)
    for (const { keys, types, late_keys } of listener.messagesOf('seal').slice(sealed))
      expect(late_keys).toEqual(keys.filter((_, place) => types[place] === 'trade'))
  })

  it('are all published after a time in which the node refuses its logs', async () => {
    const random = new SeededRandom('refused logs')
    const opened = await openMarkets(random, openers)
    const { anvil, node } = opened
    await sendSwaps(opened, random, MOST_IN_BLOCK)
    await sealBlock(opened)
    node.refusesLogs = true
    // About half of the transactions are pushed.
    node.withholds = ({ transactionHash }) => /[02468ace]$/.test(transactionHash)
    for (let block = 0; block < BLOCKS_OF_FAULT; block += 1) {
      const { refused } = node
      await sendSwaps(opened, random, MOST_IN_BLOCK)
      await anvil.rpc('evm_mine')
      await expect.poll(() => node.refused).toBeGreaterThan(refused)
    }
    node.refusesLogs = false
    await sealBlock(opened)
    await sealBlock(opened)
    const judged = await judgeTape(opened)
    expect(new Set(judged.map(({ trade }) => trade.stage))).toEqual(new Set(['preconfirmed', 'sealed']))
  })
})
