import { BehaviorSubject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { compareCounts } from '../../../../../src/relay/chain/blocks/compare-counts.ts'
import type { ReadFilter } from '../../../../../src/relay/chain/logs/log-filter.ts'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import { classify, UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { waitOn } from '../../../../support/virtual-time.ts'
import { FakeChain, type RpcRequest } from '../fake-chain.ts'
import { apple, tesla, txHash, word } from '../node-json.ts'
import { HEAD, liveSignal, openSource } from './source-fixture.ts'

const manager = tesla
const other: Hex = `0x${'0d'.repeat(20)}`
const SWAP = word(9)
const topics = [SWAP, word(7)]
const tokens: ReadFilter = { addresses: [apple] }
const filterOf = (address: Hex, id = word(7)): ReadFilter => ({ addresses: [address], topics: [[SWAP], [id]] })
const pools = filterOf(manager)
const refusal = new UpstreamError('unknown', '-32000 the filter is not supported')

type Fields = { address: readonly Hex[]; topics?: unknown; blockHash?: Hex; fromBlock?: string; toBlock?: string }
const fieldsOf = ({ method, params: [filter] }: RpcRequest): Fields | null => (method === 'eth_getLogs' ? (filter as Fields) : null)

type Rule = (fields: Fields) => UpstreamError | null
const open = async (wanted: readonly ReadFilter[] = [tokens, pools], settings: Parameters<typeof openSource>[0] = {}) => {
  const filters = new BehaviorSubject<readonly ReadFilter[]>(wanted)
  const opened = openSource({ ...settings, filters })
  const { chain, emit, head } = opened
  const node: { refuses: Rule; header: (block: number) => unknown } = { refuses: () => null, header: () => undefined }
  chain.override = (request) => {
    const fields = fieldsOf(request)
    if (!fields) return /^0x/.test(String(request.params[0])) ? node.header(Number(request.params[0])) : undefined
    const error = fields.topics ? node.refuses(fields) : null
    if (error) throw error
    return undefined
  }
  await emit({ ...liveSignal(), filters: wanted, pushed: wanted }, head())
  const settled = () => opened.sealedBlocks().map(({ number, filters: read }) => `${number - HEAD} ${read.length}`)
  const refusals = () => opened.ofType('refusal').map(({ isOver }) => (isOver ? 'answered' : 'refused'))
  /** Seals blocks of 200 ms for this long. */
  const run = async (ms: number) => {
    for (let at = 0; at < ms; at += 200) await opened.seal(0)
  }
  return { ...opened, node, settled, refusals, run }
}

describe('a node that refuses the filter of a pool manager', () => {
  it('holds up the blocks for ten seconds, and the status stays', async () => {
    const { node, seal, advance, settled, refusals, statuses } = await open()
    await seal(1)
    expect(settled()).toEqual(['1 2'])
    node.refuses = () => refusal
    for (let blocks = 0; blocks < 4; blocks += 1) {
      await seal(1)
      await advance(1_800)
    }
    expect([settled().length, refusals()]).toEqual([1, []])
    await advance(4_000)
    expect(refusals()).toEqual(['refused'])
    expect(settled().slice(1)).toEqual(['2 1', '3 1', '4 1', '5 1'])
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('is asked again every ten seconds, and its filter is read again once it answers', async () => {
    const { node, seal, advance, settled, refusals, chain } = await open()
    node.refuses = () => refusal
    await seal(1)
    await advance(13_000)
    await seal(1)
    const asked = () => chain.requests.filter((request) => fieldsOf(request)?.topics).length
    const before = asked()
    await advance(20_000)
    expect([asked() - before, refusals()]).toEqual([2, ['refused']])
    node.refuses = () => null
    await advance(10_000)
    expect(refusals()).toEqual(['refused', 'answered'])
    await seal(1)
    expect(settled().at(-1)).toBe('3 2')
  })

  it('leaves the keys of the manager alone, and their blocks are settled again before the filter is read again', async () => {
    const { node, seal, advance, sealedBlocks, openKeys, chain, received } = await open()
    openKeys.add({ block: HEAD + 1, index: 1, address: manager, topics })
    for (const address of [apple, manager]) chain.addLog(HEAD + 1, address)
    node.refuses = () => refusal
    await seal(0)
    await advance(13_000)
    await seal(1)
    node.refuses = () => null
    await advance(10_000)
    expect(sealedBlocks().map(({ logs }) => logs.length)).toEqual([1, 1, 2])
    const told = received.flatMap((event) => {
      if (event.type === 'refusal') return [event.isOver ? 'answered' : 'refused']
      return event.type === 'sealed' ? event.blocks.map(({ number, filters }) => `${number - HEAD} ${filters.length}`) : []
    })
    expect(told).toEqual(['refused', '1 1', '2 1', '1 2', 'answered'])
  })

  it('is not one that does not answer in time, which holds up the blocks', async () => {
    const { node, seal, advance, settled, refusals, statuses } = await open()
    node.refuses = () => new UpstreamError('unreachable', 'no answer')
    for (let blocks = 0; blocks < 4; blocks += 1) await seal(1)
    await advance(20_000)
    expect([settled(), refusals(), statuses().at(-1)]).toEqual([[], [], 'pendingLogs behind'])
  })
})

describe('a block to settle again that needs several reads', () => {
  const outdatedBlocks = async () => {
    const opened = await open()
    const { node, openKeys, chain, seal, advance } = opened
    for (const ahead of [1, 2]) {
      openKeys.add({ block: HEAD + ahead, address: manager, topics, tx: txHash(HEAD + ahead, 999) })
      if (ahead === 2) chain.addLog(HEAD + 2, manager, txHash(HEAD + 2, 999))
    }
    node.refuses = () => refusal
    await seal(0)
    await seal(0)
    await advance(13_000)
    expect(opened.settled()).toEqual(['1 1', '2 1'])
    return opened
  }

  it('is settled on a chain with fast blocks, so that its trade is retracted (its transaction is in the block, its log is not)', async () => {
    const { node, run, settled } = await outdatedBlocks()
    node.refuses = () => null
    await run(40_000)
    expect(settled().filter((text) => text.endsWith(' 2'))).toEqual(expect.arrayContaining(['1 2', '2 2']))
  })

  it('does not keep the others waiting without end if the node has lost it', async () => {
    const { node, run, settled } = await outdatedBlocks()
    node.refuses = () => null
    node.header = (block) => (block === HEAD + 1 ? null : undefined)
    await run(60_000)
    expect(settled()).toContain('2 2')
  })

  it('does not keep the others waiting without end if the node refuses the filter for old blocks only', async () => {
    const { node, run, settled, chain } = await outdatedBlocks()
    node.refuses = ({ blockHash }) => (blockHash === chain.hashOf(HEAD + 1) ? refusal : null)
    await run(60_000)
    expect(settled()).toContain('2 2')
  })
})

describe('a restart with a settled block whose trade is still open', () => {
  it('reads the block again', async () => {
    const cursor = { number: HEAD, hash: null }
    const { openKeys, chain, run, settled } = await open([tokens, pools], { cursor, outdated: [HEAD - 5] })
    openKeys.add({ block: HEAD - 5, address: manager, topics })
    chain.addLog(HEAD - 5, manager)
    await run(2_000)
    expect(settled()[0]).toBe('-5 2')
  })

  it('waits with it while the node refuses the filter', async () => {
    const { openKeys, chain, run, settled, node, refusals } = await open([tokens, pools], { leftOut: [pools] })
    openKeys.add({ block: HEAD + 1, address: manager, topics })
    chain.addLog(HEAD + 1, manager)
    node.refuses = () => refusal
    await run(13_000)
    expect([settled()[0], refusals()]).toEqual(['1 1', []])
    node.refuses = () => null
    await run(10_000)
    expect([settled().includes('1 2'), refusals()]).toEqual([true, ['answered']])
  })
})

describe('a node that refuses the filter by block hash alone, as invalid', () => {
  it('is asked by block number, as for the other filters', async () => {
    const { node, refusals, run, settled, statuses } = await open()
    node.refuses = ({ blockHash }) => (blockHash ? new UpstreamError('invalid', '-32602 invalid params') : null)
    await run(60_000)
    expect([refusals(), statuses(), settled().at(-1)]).toEqual([[], ['pendingLogs ok'], '300 2'])
  })
})

describe('a node that refuses the filter with an error and a status of HTTP', () => {
  it.each<[string, UpstreamError]>([
    ['500 and an error', classify(new Response(null, { status: 500 }), { code: -32_000, message: 'filter is not supported' })],
    ['400 alone', classify(new Response(null, { status: 400 }), null)],
    ['501 alone', classify(new Response(null, { status: 501 }), null)],
  ])('holds up the other logs for ten seconds at most: %s', async (_, failure) => {
    const { node, refusals, run, statuses, sealedBlocks } = await open()
    node.refuses = () => failure
    await run(20_000)
    expect([refusals(), statuses(), sealedBlocks().length > 90]).toEqual([['refused'], ['pendingLogs ok'], true])
  })
})

describe('a node that refuses the filter for ranges alone', () => {
  it.each([[true], [false]])('has the logs of tokens found that it indexed late: refused %s', async (isRefused) => {
    const { node, chain, run, sealedBlocks } = await open()
    node.refuses = ({ fromBlock, toBlock }) => (isRefused && fromBlock !== undefined && toBlock !== fromBlock ? refusal : null)
    const block = HEAD + 3
    chain.addLog(block)
    chain.hideLogs(block)
    await run(1_000)
    expect(sealedBlocks().find(({ number }) => number === block)?.logs).toEqual([])
    chain.hideLogs(block, 0)
    await run(20_000)
    expect(sealedBlocks().findLast(({ number }) => number === block)?.logs.length).toBe(1)
  })
})

describe('a recheck while the filter is left out of a block that was settled with it', () => {
  it('finds a log of a token that the node indexed late', async () => {
    const chain = new FakeChain(HEAD)
    for (const _ of [1, 2]) chain.addLog(HEAD - 1)
    const listed = [tokens]
    const block = { number: HEAD - 1, hash: chain.hashOf(HEAD - 1), logCount: 2, wholeCount: 1, filters: [tokens, pools] }
    const signal = new AbortController().signal
    const context = { node: new ChainReader(chain.request), signal } as unknown as Parameters<typeof compareCounts>[0]
    const { incomplete } = await compareCounts(context, [block], listed, () => true)
    // The block had one log of the token and one swap.
    expect(incomplete).toEqual([HEAD - 1])
  })
})

describe('a block to settle again', () => {
  it.each([[0], [20], [50]])('is read for both managers if both answer again: delay %i', async (delayMs) => {
    const opened = await open([tokens, pools, filterOf(other, word(8))])
    const { node, openKeys, chain, seal, advance, settled, refusals } = opened
    const block = HEAD + 1
    // A transfer and two trades of one transaction, by both managers.
    const { tx } = chain.addLog(block)
    for (const [index, [address, id]] of [
      [manager, word(7)],
      [other, word(8)],
    ].entries()) {
      openKeys.add({ block, index: index + 1, address: address as Hex, topics: [SWAP, id as Hex], tx })
      chain.addLog(block, address, tx)
    }
    node.refuses = () => refusal
    await seal(0)
    await advance(13_000)
    chain.delayMs = delayMs
    node.refuses = () => null
    await advance(30_000)
    expect(refusals()).toEqual(['refused', 'refused', 'answered', 'answered'])
    expect(settled().at(-1)).toBe('1 3')
  })
})

describe('a manager whose listed pools and whose pool with an open key are refused at once', () => {
  it('is reported once', async () => {
    const { node, openKeys, seal, advance, refusals } = await open()
    openKeys.add({ block: HEAD + 1, address: manager, topics: [SWAP, word(70)] })
    node.refuses = () => refusal
    await seal(0)
    await advance(13_000)
    expect(refusals()).toEqual(['refused'])
  })
})

describe('a subscription to the swaps that the node refused once', () => {
  it('is tried again', async () => {
    const { emit, seal, advance, probeTimes } = await open()
    await emit({ ...liveSignal(), filters: [tokens, pools], pushed: [tokens] })
    for (let minute = 0; minute < 10; minute += 1) {
      await seal(1)
      await advance(60_000)
    }
    expect(probeTimes.length).toBeGreaterThan(0)
  })
})

describe('the blocks to settle again', () => {
  it('are read before a newer block', async () => {
    const { node, openKeys, chain, seal, advance, settled, head, emit, refusals } = await open()
    for (const ahead of [1, 2, 3]) {
      openKeys.add({ block: HEAD + ahead, address: manager, topics })
      chain.addLog(HEAD + ahead, manager)
    }
    node.refuses = () => refusal
    for (const _ of [1, 2, 3]) await seal(0)
    await advance(13_000)
    chain.delayMs = 50
    node.refuses = () => null
    while (!refusals().includes('answered')) await advance(10)
    chain.head += 1
    await emit(head())
    await advance(2_000)
    expect(settled().slice(3)).toEqual(['1 2', '2 2', '3 2', '4 2'])
  })
})

describe('an old block that is settled again', () => {
  it('does not take the restart back to it, so that a restart reports no hole over settled blocks', async () => {
    const { node, openKeys, chain, seal, run, ofType, settled } = await open()
    openKeys.add({ block: HEAD + 1, address: manager, topics })
    chain.addLog(HEAD + 1, manager)
    node.refuses = () => refusal
    await seal(0)
    await run(60_000)
    const before = ofType('sealed').length
    node.refuses = () => null
    await run(12_000)
    expect(settled()).toContain('1 2')
    const lowest = Math.min(
      ...ofType('sealed')
        .slice(before)
        .map(({ restartCursor }) => restartCursor.number - HEAD),
    )
    expect(lowest).toBeGreaterThan(200)
  })
})

describe('a poll of a node that does not answer the filter for pending blocks alone', () => {
  it('does not hold up the pre-confirmed logs of tokens', async () => {
    const { chain, clock, advance, pendingLogs } = await open([tokens, pools], { hasLink: false })
    await advance(1_000)
    const usual = chain.override
    chain.override = (request) => {
      const fields = fieldsOf(request)
      if (!fields?.topics || fields.toBlock !== 'pending') return usual(request)
      return waitOn(clock, 5_000, new AbortController().signal).then(() => {
        throw new UpstreamError('unreachable', 'The operation was aborted due to timeout')
      })
    }
    chain.addLog(HEAD + 1)
    await advance(2_000)
    expect(pendingLogs()).toHaveLength(1)
  })
})
