import { BehaviorSubject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { compareCounts } from '../../../../../src/relay/chain/blocks/compare-counts.ts'
import type { ReadFilter } from '../../../../../src/relay/chain/logs/log-filter.ts'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import { classify, UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
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
const open = async (wanted: readonly ReadFilter[] = [tokens, pools]) => {
  const opened = openSource({ filters: new BehaviorSubject(wanted) })
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
})

describe('a block to settle again', () => {
  it.each<[string, (node: Awaited<ReturnType<typeof open>>['node'], hash: Hex) => void]>([
    [
      'has lost it',
      (node) => {
        node.header = (block) => (block === HEAD + 1 ? null : undefined)
      },
    ],
    [
      'refuses the filter for old blocks only',
      (node, hash) => {
        node.refuses = ({ blockHash }) => (blockHash === hash ? refusal : null)
      },
    ],
  ])('does not keep the others waiting without end if the node %s', async (_, change) => {
    const { node, openKeys, chain, seal, advance, run, settled } = await open()
    for (const ahead of [1, 2]) openKeys.add({ block: HEAD + ahead, address: manager, topics, tx: txHash(HEAD + ahead, 999) })
    chain.addLog(HEAD + 2, manager, txHash(HEAD + 2, 999))
    node.refuses = () => refusal
    for (const _block of [1, 2]) await seal(0)
    await advance(13_000)
    expect(settled()).toEqual(['1 1', '2 1'])
    node.refuses = () => null
    change(node, chain.hashOf(HEAD + 1))
    await run(60_000)
    expect(settled()).toContain('2 2')
  })

  it.each([[0], [20], [50]])('is read for both managers if both answer again: delay %i', async (delayMs) => {
    const opened = await open([tokens, pools, filterOf(other, word(8))])
    const { node, openKeys, chain, seal, advance, settled, refusals } = opened
    const block = HEAD + 1
    // A transfer and two trades of one transaction, by both managers.
    const { tx } = chain.addLog(block)
    for (const [index, [address, id]] of [[manager, word(7)] as const, [other, word(8)] as const].entries()) {
      openKeys.add({ block, index: index + 1, address, topics: [SWAP, id], tx })
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

describe('a node that refuses the filter', () => {
  it('by block hash alone, as invalid, is asked by block number, as for the other filters', async () => {
    const { node, refusals, run, settled, statuses } = await open()
    node.refuses = ({ blockHash }) => (blockHash ? new UpstreamError('invalid', '-32602 invalid params') : null)
    await run(60_000)
    expect([refusals(), statuses(), settled().at(-1)]).toEqual([[], ['pendingLogs ok'], '300 2'])
  })

  it.each<[string, UpstreamError]>([
    ['500 and an error', classify(new Response(null, { status: 500 }), { code: -32_000, message: 'filter is not supported' })],
    ['400 alone', classify(new Response(null, { status: 400 }), null)],
    ['501 alone', classify(new Response(null, { status: 501 }), null)],
  ])('with HTTP %s holds up the other logs for ten seconds at most', async (_, failure) => {
    const { node, refusals, run, statuses, sealedBlocks } = await open()
    node.refuses = () => failure
    await run(20_000)
    expect([refusals(), statuses(), sealedBlocks().length > 90]).toEqual([['refused'], ['pendingLogs ok'], true])
  })

  it('for the listed pools and for another pool with an open key at once is reported once', async () => {
    const { node, openKeys, seal, advance, refusals } = await open()
    openKeys.add({ block: HEAD + 1, address: manager, topics: [SWAP, word(70)] })
    node.refuses = () => refusal
    await seal(0)
    await advance(13_000)
    expect(refusals()).toEqual(['refused'])
  })

  it('for ranges alone has the logs of tokens found that it indexed late', async () => {
    const { node, chain, run, sealedBlocks } = await open()
    node.refuses = ({ fromBlock, toBlock }) => (fromBlock !== undefined && toBlock !== fromBlock ? refusal : null)
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

it('a recheck without the filter finds a late log of a token in a block that was settled with it', async () => {
  const chain = new FakeChain(HEAD)
  for (const _ of [1, 2]) chain.addLog(HEAD - 1)
  // The block had one log of the token and one swap.
  const block = { number: HEAD - 1, hash: chain.hashOf(HEAD - 1), logCount: 2, wholeCount: 1, filters: [tokens, pools] }
  const { signal } = new AbortController()
  const context = { node: new ChainReader(chain.request), signal } as unknown as Parameters<typeof compareCounts>[0]
  expect((await compareCounts(context, [block], [tokens], () => true)).incomplete).toEqual([HEAD - 1])
})
