import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { SeededRandom } from '../../simulation/seeded-random.ts'
import { keyStatesFrom, keysInState } from '../../support/key-states.ts'
import { isNightly } from '../../support/test-length.ts'
import type { Message } from '../../support/test-listener.ts'
import type { PushingNode } from './pushing-node.ts'
import {
  countQuotesAhead,
  judgeTape,
  openers,
  otherKeysOn,
  type Swap,
  sumOf,
  swapsOn,
  transfersOf,
  waitForQuotes,
} from './trade-judge.ts'
import { type Market, type Markets, openMarkets, replaceBlocks, sealBlock, sendCall, sendSwaps } from './traded-markets.ts'
import { EVERYTHING, farthestRoot, nearbyRoot } from './uniswap-pools.ts'

const SWAPS = isNightly ? 2_000 : 700
const REORGS = isNightly ? 60 : 15
const MOST_IN_BLOCK = 14
const MOST_REPLACED = 4
/** Few pools, so that a swap that is dropped changes later ones. */
const MARKETS_OF_REORGS = 4
const BLOCKS_OF_FAULT = 4

const kinds = ['uniswap_v3', 'uniswap_v4']
const CODES = [-32_000, -32_602]
/** The blocks while the node refuses filters; it has not done so for ten seconds at the last one. */
const [REFUSED_BLOCKS, REFUSED_BLOCK_MS] = [16, 350]
const SOLD = 10_000n

/** The filters of pool managers are those with topics. */
const refusesTopicsWith =
  (code: number): PushingNode['refuses'] =>
  ({ topics }) =>
    topics ? code : null
const refusals: readonly (readonly [string, PushingNode['refuses']])[] = [
  ['all logs', () => -32_000],
  ...CODES.map((code) => [`those of a pool manager with ${code}`, refusesTopicsWith(code)] as const),
]

const contentOf = ({ log, market, token, paid }: Swap): string => [log.transactionHash, market.pool.id, token, paid].join()

/**
 * Returns the fate of a swap in a reorganisation, and the retract of its key that the tape should have. Null if its key
 * and its content are of different logs now: what the tape says then depends on where both were and are.
 */
function fateOf(old: Swap, before: readonly Swap[], chain: readonly Swap[], others: ReadonlySet<string>) {
  const same = chain.find(({ key }) => key === old.key)
  const isElsewhere = (swap: Swap, swaps: readonly Swap[]) =>
    swaps.some((other) => other.key !== swap.key && contentOf(other) === contentOf(swap))
  if (others.has(old.key) || (same && (isElsewhere(old, chain) || isElsewhere(same, before)))) return null
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
    const random = new SeededRandom('reorganisations 5')
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
      const [after, others] = [await swapsOn(opened), await otherKeysOn(opened)]
      const published = listener.messages.slice(known)
      for (const old of before.filter(({ log }) => log.blockNumber > head - depth)) {
        const judged = fateOf(old, before, after, others)
        if (!judged) continue
        const { fate, reason, replacedBy } = judged
        const told = published.filter(({ type, ...message }) => type === 'retract' && 'key' in message && message.key === old.key)
        expect(told, fate).toMatchObject(reason === null ? [] : [{ fact_type: 'trade', reason, replaced_by: replacedBy }])
        fates.push(`${fate} in ${old.market.pool.kind}`)
      }
    }
    await sealBlock(opened)
    await judgeTape(opened)
    await waitForQuotes(opened)
    const all = ['kept', 'changed', 'shifted', 'moved to an earlier block', 'moved to a later block', 'dropped']
    expect(new Set(fates)).toEqual(new Set(all.flatMap((fate) => kinds.map((kind) => `${fate} in ${kind}`))))
  })

  it('have in each version the same side, and are all there if no token is transferred or hooks take a part of it', async () => {
    const random = new SeededRandom('sides')
    const opened = await openMarkets(random, openers)
    const { listener, provider, stocks } = opened
    const [sides, routed, hooked] = stocks.map((stock) => opened.markets.filter((market) => market.stock === stock))
    const sent: { readonly hash: string; readonly market: Market; readonly side: 'buy' | 'sell' }[] = []
    const isFirst = ({ stock, currency }: Market) => BigInt(stock.address) < BigInt(currency.address)
    for (const market of sides ?? [])
      for (const [side, amount] of [['sell', SOLD] as const, ['buy', -SOLD] as const]) {
        const zeroForOne = isFirst(market) === (side === 'sell')
        sent.push({
          hash: await sendCall(opened, market.pool.swapCall(zeroForOne, amount, farthestRoot(zeroForOne))),
          market,
          side,
        })
      }
    const [sold = expect.unreachable(), bought = expect.unreachable()] = (routed ?? []).filter(({ pool }) => pool.manager)
    const route = await sendCall(opened, sold.pool.routeCall(bought.pool, sold.stock.address, SOLD))
    const cut = (hooked ?? []).find(({ hooks }) => hooks?.startsWith('0x')) ?? expect.unreachable()
    const limit = nearbyRoot(random, cut.home, !isFirst(cut))
    const withHooks = await sendCall(opened, cut.pool.swapCall(!isFirst(cut), EVERYTHING, limit))
    await sealBlock(opened)
    await judgeTape(opened)
    const tradesOf = (hash: string) => listener.messagesOf('trade').filter(({ tx }) => tx.hash === hash)
    for (const { hash, market, side } of sent)
      expect(tradesOf(hash)).toMatchObject([{ side, raw: String(SOLD), venue: { pool: market.pool.id, hooks: market.hooks } }])
    expect(new Set(sent.map(({ market, side }) => `${side} in ${market.pool.kind}`)).size).toBe(4)

    const routedTrades = tradesOf(route)
    expect(routedTrades).toMatchObject([{ side: 'sell' }, { side: 'buy' }])
    expect(transfersOf(sold.stock, await provider.getTransactionReceipt(route))).toEqual([])
    // Nothing else of this token is in the block.
    const seal = await listener.waitFor('seal', ({ address }) => address === sold.stock.address)
    expect(seal).toMatchObject({ keys: routedTrades.map(({ key }) => key), types: ['trade', 'trade'] })

    const [trade = expect.unreachable()] = tradesOf(withHooks)
    const transfers = transfersOf(cut.stock, await provider.getTransactionReceipt(withHooks))
    const taken = sumOf(transfers.filter(({ to }) => to === cut.hooks))
    expect(taken).toBe(BigInt(trade.raw) / 100n)
    expect(taken).toBeGreaterThan(0n)
    // The trader gets less than the pool gave.
    expect(sumOf(transfers)).toBe(BigInt(trade.raw))
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

  it.each(refusals)('are all published after a time in which the node refuses %s', async (_, refuses) => {
    const random = new SeededRandom('refused logs')
    const opened = await openMarkets(random, openers)
    const { anvil, node } = opened
    await sendSwaps(opened, random, MOST_IN_BLOCK)
    await sealBlock(opened)
    node.refuses = refuses
    // About half of the transactions are pushed.
    node.withholds = ({ transactionHash }) => /[02468ace]$/.test(transactionHash)
    for (let block = 0; block < BLOCKS_OF_FAULT; block += 1) {
      const { refused } = node
      await sendSwaps(opened, random, MOST_IN_BLOCK)
      await anvil.rpc('evm_mine')
      await expect.poll(() => node.refused).toBeGreaterThan(refused)
    }
    node.refuses = () => null
    await sealBlock(opened)
    await sealBlock(opened)
    const judged = await judgeTape(opened)
    expect(new Set(judged.map(({ trade }) => trade.stage))).toEqual(new Set(['preconfirmed', 'sealed']))
    expect(opened.listener.messagesOf('venue').filter(({ change }) => change === 'dropped')).toEqual([])
  })

  it.each(isNightly ? CODES : CODES.slice(0, 1))(
    'stay open while the node refuses those of a pool manager with %i',
    async (code) => {
      const random = new SeededRandom('refused manager 1')
      const opened = await openMarkets(random, openers)
      const { anvil, listener, markets, node } = opened
      const few = markets.slice(0, MARKETS_OF_REORGS)
      const known = listener.messages.length
      const first = Number(await anvil.rpc('eth_blockNumber')) + 1
      const last = first + REFUSED_BLOCKS - 1
      node.refuses = refusesTopicsWith(code)
      // Enough blocks for a source that waits for them to be behind. The others have no swaps of the manager's.
      for (let number = first; number <= last; number += 1) {
        const isOpen = number === first || number === last
        await sendSwaps(opened, random, MOST_IN_BLOCK, isOpen ? few : few.filter(({ pool }) => !pool.manager))
        await anvil.rpc('evm_mine')
        await setTimeout(REFUSED_BLOCK_MS)
      }
      await waitForManaged(opened, 'dropped', known)
      const dropped = listener.messages.length
      for (let block = 0; block < 2; block += 1) {
        await sendSwaps(opened, random, MOST_IN_BLOCK)
        await sealBlock(opened)
      }
      const open = (await swapsOn(opened)).filter(
        ({ market, log }) => market.pool.manager && log.blockNumber >= first && log.blockNumber <= last,
      )
      const keys = open.map(({ key }) => key).toSorted()
      expect(keysInState(listener.messages, 'preconfirmed')).toEqual(keys)
      await replaceBlocks(opened, random, 3)
      await sealBlock(opened)
      // The token's own logs show that a swap is not in the block if one of them has its key now.
      const others = await otherKeysOn(opened)
      expect(keysInState(listener.messages, 'preconfirmed')).toEqual(keys.filter((key) => !others.has(key)))
      expect(new Set(kindsOfTrades(listener.messages.slice(dropped)))).toEqual(new Set(['uniswap_v3']))

      node.refuses = () => null
      await waitForManaged(opened, 'followed', known)
      const followed = listener.messages.length
      await sendSwaps(opened, random, MOST_IN_BLOCK)
      await sealBlock(opened)
      // The node is asked again for logs of a transaction that is in the block and has none.
      await listener.until(() => keysInState(listener.messages, 'preconfirmed').length === 0, 'every trade settled')
      await judgeTape(opened)
      expect(kindsOfTrades(listener.messages.slice(followed))).toContain('uniswap_v4')
      const states = keyStatesFrom(listener.messages)
      const fates = open.map(({ key, log }) => `${states.get(key)} in ${log.blockNumber === first ? 'the first' : 'the replaced'}`)
      expect(new Set(fates)).toEqual(new Set(['sealed in the first', 'sealed in the replaced', 'retracted in the replaced']))
      const seals = listener.messagesOf('seal').filter(({ block }) => block.number === first)
      const ofFirst = open.filter(({ log }) => log.blockNumber === first).map(({ key }) => key)
      expect(seals.map(({ keys: listed }) => ofFirst.filter((key) => listed.includes(key)))).toEqual([[], ofFirst])
      expect(listener.messages.slice(known).filter(({ type }) => type === 'status')).toEqual([])
    },
  )

  it.skipIf(!isNightly).each(CODES)('are pushed once a node serves them that refused them with %i from the start', async (code) => {
    const random = new SeededRandom('refused from the start')
    const opened = await openMarkets(random, openers, refusesTopicsWith(code))
    const { listener, node } = opened
    await waitForManaged(opened, 'dropped', 0)
    const dropped = listener.messages.length
    await sendSwaps(opened, random, MOST_IN_BLOCK)
    await sealBlock(opened)
    expect(kindsOfTrades(listener.messages)).not.toContain('uniswap_v4')
    node.refuses = () => null
    await waitForManaged(opened, 'followed', dropped)
    // In the first block the subscription may not be accepted yet.
    await sealBlock(opened)
    const followed = listener.messages.length
    for (let block = 0; block < BLOCKS_OF_FAULT; block += 1) {
      await sendSwaps(opened, random, MOST_IN_BLOCK)
      await sealBlock(opened)
    }
    await judgeTape(opened)
    const trades = listener.messages.slice(followed).filter((message) => message.type === 'trade')
    expect(kindsOfTrades(trades)).toContain('uniswap_v4')
    expect(trades.filter(({ stage, late }) => stage !== 'preconfirmed' || late)).toEqual([])
  })
})

const kindsOfTrades = (messages: readonly Message[]) =>
  messages.flatMap((message) => (message.type === 'trade' ? [message.venue.kind] : []))

/** Resolves when all pools of the manager have this change after the first messages. */
const waitForManaged = ({ listener, markets }: Markets, change: 'followed' | 'dropped', known: number) => {
  const isChange = (message: Message) =>
    message.type === 'venue' && message.change === change && message.venue.kind === 'uniswap_v4'
  const count = markets.filter(({ pool }) => pool.manager).length
  return listener.until(() => listener.messages.slice(known).filter(isChange).length === count, `all pools ${change}`)
}
