import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { filtersToRead, MissingLogsError, readBlock, readLogs } from '../../../../../src/relay/chain/blocks/block-logs.ts'
import type { ReadFilter } from '../../../../../src/relay/chain/logs/log-filter.ts'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { FakeChain } from '../fake-chain.ts'
import { apple, keyOf, sealedLog, tesla, txHash, word } from '../node-json.ts'
import { FakeOpenKeys, sealedHeader } from '../sealed/sealed-chain-fixture.ts'

const HEAD = 1_000
const NOW = 5_000_000
const { signal: neverAborted } = new AbortController()

const openReader = (listed: readonly ReadFilter[] = [{ addresses: [apple] }]) => {
  const clock = new VirtualTimeScheduler()
  clock.frame = NOW
  const chain = new FakeChain(HEAD)
  const openKeysOfChain = new FakeOpenKeys()
  const contextNow = () => {
    const node = new ChainReader(chain.request)
    const { signal } = new AbortController()
    const { confirmChain } = chain
    return { node, confirmChain, openKeys: openKeysOfChain, filters: () => listed, clock, signal }
  }
  const settle = async (block = HEAD, { acceptsMissing = false } = {}) => {
    const { logs } = await readBlock(contextNow(), sealedHeader(chain.headerOf(block)), acceptsMissing)
    return logs.map(({ key }) => key)
  }
  return { chain, openKeysOfChain, settle, contextNow }
}

describe('the logs that settle a block', () => {
  it('are read once if they include all open keys', async () => {
    const { chain, openKeysOfChain, settle } = openReader()
    const logs = [chain.addLog(HEAD), chain.addLog(HEAD)]
    for (const log of logs) openKeysOfChain.add(log)
    expect(await settle()).toEqual(logs.map(keyOf))
    expect(chain.requests).toHaveLength(1)
  })

  it.each([
    ['its transaction has another log', 0, []],
    ['the block does not list its transaction', 7, [HEAD]],
  ])('may lack an open key if %s', async (_, tx, headers) => {
    const { chain, openKeysOfChain, settle } = openReader()
    const log = chain.addLog(HEAD)
    openKeysOfChain.add({ block: HEAD, index: 7, tx: txHash(HEAD, tx) })
    expect(await settle()).toEqual([keyOf(log)])
    expect(chain.requestedHeaders()).toEqual(headers)
  })

  it.each([
    ['the block lists the transaction', true, []],
    ['the block lists one of two transactions', true, [7]],
    ['the header lists no transactions, though the block used gas', false, []],
  ])('are doubted if %s', async (_, listsTransactions, others) => {
    const { chain, openKeysOfChain, settle } = openReader()
    openKeysOfChain.add(chain.addLog(HEAD))
    for (const index of others) openKeysOfChain.add({ block: HEAD, index })
    chain.listsTransactions = listsTransactions
    chain.hideLogs(HEAD)
    await expect(settle()).rejects.toBeInstanceOf(MissingLogsError)
    expect(await settle(HEAD, { acceptsMissing: true })).toEqual([])
  })

  it('are read again if a key needs a filter that the read did not have', async () => {
    const { chain, openKeysOfChain, settle } = openReader()
    const manager = { block: HEAD, index: 1, tx: txHash(7), address: tesla }
    let reads = 0
    chain.override = ({ method }) => {
      if (method !== 'eth_getLogs') return undefined
      reads += 1
      if (reads === 1) openKeysOfChain.add(manager)
      return []
    }
    await expect(settle()).rejects.toMatchObject({ kind: 'behind' })
    expect(await settle()).toEqual([])
    expect(JSON.stringify(chain.requests.at(-2))).toContain(tesla)
  })

  it('are refused if the node has another block there', async () => {
    const { chain, openKeysOfChain, settle } = openReader()
    openKeysOfChain.add({ block: HEAD })
    chain.override = ({ method }) =>
      method === 'eth_getLogs' ? undefined : { ...chain.headerOf(HEAD), hash: word(77), parentHash: word(76) }
    await expect(settle()).rejects.toMatchObject({ kind: 'behind' })
  })

  it('are read by number from a node without support for block hashes', async () => {
    const { chain, settle } = openReader()
    chain.supportsBlockHash = false
    const log = chain.addLog(HEAD)
    expect(await settle()).toEqual([keyOf(log)])
    expect(chain.requestedRanges()).toEqual([[HEAD, HEAD]])
    chain.override = ({ params }) => (params[0] === '0x3e8' ? null : undefined)
    await expect(settle()).rejects.toMatchObject({ kind: 'behind' })
  })

  it('are refused by number if they belong to another block', async () => {
    const { chain, settle } = openReader()
    chain.supportsBlockHash = false
    for (const blockHash of [null, word(77)]) {
      chain.override = ({ params }) =>
        JSON.stringify(params).includes('fromBlock') ? [{ ...sealedLog({ block: HEAD }), blockHash }] : undefined
      await expect(settle()).rejects.toMatchObject({ kind: 'behind' })
    }
  })

  it.each([
    ['lack an open key', { block: HEAD, index: 7 }, 1],
    ['have an open key of another token', { block: HEAD, index: 0, address: tesla }, 1],
    ['include all open keys', { block: HEAD, index: 0 }, 0],
  ])('are of a chain that was confirmed in the last minute if they %s', async (_, openKey, times) => {
    const { chain, openKeysOfChain, settle } = openReader()
    chain.addLog(HEAD)
    openKeysOfChain.add(openKey)
    await settle()
    expect(chain.confirmations).toEqual(Array(times).fill({ answeredSince: NOW, askedAfter: NOW - 60_000 }))
    chain.chainFailure = new UpstreamError('wrong_chain', 'it is of chain 1')
    if (times > 0) await expect(settle()).rejects.toBe(chain.chainFailure)
  })

  it('retract nothing, and need no chain, if one of them cannot be read', async () => {
    const { chain, openKeysOfChain, settle } = openReader()
    openKeysOfChain.add({ block: HEAD, index: 7 })
    chain.override = ({ method }) => (method === 'eth_getLogs' ? [{}] : undefined)
    await expect(settle()).rejects.toBeInstanceOf(MissingLogsError)
    expect(await settle(HEAD, { acceptsMissing: true })).toEqual([])
    expect(chain.confirmations).toEqual([])
  })

  it('are read for listed tokens and those with open keys, each once', () => {
    const openKeys = [tesla, apple, tesla].map((address, index) => ({ key: `${index}`, address, tx: txHash(1) }))
    expect(filtersToRead([{ addresses: [apple] }], openKeys)).toEqual([{ addresses: [apple, tesla] }])
    // The token of a pool's key is read with the pool.
    const ofPool = [{ key: '0', address: apple, token: tesla, tx: txHash(1) }]
    expect(filtersToRead([{ addresses: [apple] }], ofPool)).toEqual([{ addresses: [apple, tesla] }])
    const listed = [{ addresses: [apple, tesla] }]
    expect(filtersToRead(listed, [...openKeys, ...ofPool])).toBe(listed)
  })

  it('are those of every filter: a contract with topics is read beside the tokens, and its open keys by their topics', async () => {
    const [pool, otherPool] = [word(1), word(2)]
    const tokens = { addresses: [apple] }
    const listed = [tokens, { addresses: [tesla], topics: [[word(9)], [pool]] }]
    const openKeys = [pool, otherPool].map((topic) => ({ key: topic, address: tesla, topics: [word(9), topic], tx: txHash(1) }))
    expect(filtersToRead(listed, openKeys.slice(0, 1))).toBe(listed)
    const filters = [...listed, { addresses: [tesla], topics: [[word(9)], [otherPool]] }]
    // Many keys of a pool are one filter.
    expect(filtersToRead(listed, [...openKeys, ...openKeys])).toEqual(filters)
    const { chain } = openReader()
    const sent: unknown[] = []
    chain.override = ({ method, params: [filter] }) => {
      if (method !== 'eth_getLogs') return undefined
      const { address, topics } = filter as { address: string[]; topics?: string[][] }
      sent.push(topics)
      return [sealedLog({ block: HEAD, index: topics ? topics.flat().indexOf(otherPool) + 3 : 1, address: address[0] as Hex })]
    }
    const { logs } = await readLogs(new ChainReader(chain.request), sealedHeader(chain.headerOf(HEAD)), filters, neverAborted)
    expect(sent).toEqual([undefined, [[word(9)], [pool]], [[word(9)], [otherPool]]])
    expect(logs.map(({ logIndex, address }) => [logIndex, address])).toEqual([
      [1, apple],
      [2, tesla],
      [4, tesla],
    ])
  })
})
