import { lastValueFrom, type Observable, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { BlockReader } from '../../../../src/chain/rpc/block-reader.ts'
import { UpstreamError, type UpstreamErrorKind } from '../../../../src/chain/rpc/error.ts'
import { addressesToQuery, MissingLogsError, RetryCounter, readBlockLogs } from '../../../../src/chain/sealed/block-logs.ts'
import { behindError, FakeChain } from '../fake-chain.ts'
import { apple, keyOf, sealedLog, tesla, txHash, word } from '../node-json.ts'
import { FakeOpenKeys, sealedHeader } from './sealed-blocks-fixture.ts'

const HEAD = 1_000

const openReader = () => {
  const chain = new FakeChain(HEAD)
  const openKeysOfChain = new FakeOpenKeys()
  const settle = async (block = HEAD, { acceptsMissing = false } = {}) => {
    const header = sealedHeader(chain.headerOf(block))
    const openKeys = openKeysOfChain.at(block)
    const { logs } = await lastValueFrom(
      readBlockLogs(new BlockReader(chain.request), {
        header,
        openKeys,
        addresses: addressesToQuery([apple], openKeys),
        acceptsMissing,
      }),
    )
    return logs.map(({ key }) => key)
  }
  return { chain, openKeysOfChain, settle }
}

describe('the logs that settle a block', () => {
  it('are read once if they include all open keys', async () => {
    const { chain, openKeysOfChain, settle } = openReader()
    const logs = [chain.addLog(HEAD), chain.addLog(HEAD)]
    for (const log of logs) openKeysOfChain.add(log)
    expect(await settle()).toEqual(logs.map(keyOf))
    expect(chain.requests).toHaveLength(1)
  })

  it('may lack an open key if its transaction has another log', async () => {
    const { chain, openKeysOfChain, settle } = openReader()
    const log = chain.addLog(HEAD)
    openKeysOfChain.add(log)
    openKeysOfChain.add({ ...log, index: 7 })
    expect(await settle()).toEqual([keyOf(log)])
    expect(chain.requestedHeaders()).toEqual([])
  })

  it('may lack an open key if the block does not list its transaction', async () => {
    const { chain, openKeysOfChain, settle } = openReader()
    const log = chain.addLog(HEAD)
    openKeysOfChain.add({ block: HEAD, index: 7 })
    expect(await settle()).toEqual([keyOf(log)])
    expect(chain.requestedHeaders()).toEqual([HEAD])
  })

  it('are doubted if the block lists the transaction', async () => {
    const { chain, openKeysOfChain, settle } = openReader()
    openKeysOfChain.add(chain.addLog(HEAD))
    chain.hideLogs(HEAD)
    await expect(settle()).rejects.toBeInstanceOf(MissingLogsError)
    expect(await settle(HEAD, { acceptsMissing: true })).toEqual([])
  })

  it('are doubted if the block lists one of two transactions', async () => {
    const { chain, openKeysOfChain, settle } = openReader()
    openKeysOfChain.add(chain.addLog(HEAD))
    openKeysOfChain.add({ block: HEAD, index: 7, tx: txHash(HEAD, 7) })
    chain.hideLogs(HEAD)
    await expect(settle()).rejects.toBeInstanceOf(MissingLogsError)
  })

  it('are doubted if the block lists no transactions', async () => {
    const { chain, openKeysOfChain, settle } = openReader()
    openKeysOfChain.add({ block: HEAD })
    chain.listsTransactions = false
    await expect(settle()).rejects.toBeInstanceOf(MissingLogsError)
    chain.override = ({ method }) => (method === 'eth_getLogs' ? undefined : { ...chain.headerOf(HEAD), transactions: 5 })
    await expect(settle()).rejects.toBeInstanceOf(MissingLogsError)
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

  it('are read for listed tokens and those with open keys, each once', () => {
    const openKeys = [tesla, apple, tesla].map((address, index) => ({ key: `${index}`, address, tx: txHash(1) }))
    expect(addressesToQuery([apple], openKeys)).toEqual([apple, tesla])
    const listed = [apple, tesla]
    expect(addressesToQuery(listed, openKeys)).toBe(listed)
  })
})

describe('the retry counter', () => {
  const failureOf = (kind: UpstreamErrorKind) => new UpstreamError(kind, 'no')
  /** Waits after each of these failures, and returns the delays. */
  const waits = (retries: RetryCounter, failures: readonly unknown[]) => {
    const clock = new VirtualTimeScheduler()
    return failures.map((failure) => {
      const before = clock.frame
      retries.waitToRetry(failure, clock).subscribe()
      clock.flush()
      return clock.frame - before
    })
  }

  it('waits longer each time, up to two seconds, and less after a success', () => {
    const retries = new RetryCounter()
    const failures = Array(8).fill(failureOf('busy'))
    expect(waits(retries, failures)).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000])
    retries.succeeded()
    expect(retries.totalFailures).toBe(0)
    expect(waits(retries, [behindError()])).toEqual([50])
  })

  it('accepts missing logs of a block after waits of half a second and a second', () => {
    const retries = new RetryCounter()
    expect(waits(retries, [new MissingLogsError(5)])).toEqual([500])
    expect(retries.acceptsMissing(5)).toBe(false)
    expect(waits(retries, [new MissingLogsError(5), new MissingLogsError(5)])).toEqual([1_000, 2_000])
    expect(retries.acceptsMissing(5)).toBe(true)
    retries.succeeded()
    expect(retries.acceptsMissing(5)).toBe(false)
  })

  it('accepts no missing logs because of other failures or another block', () => {
    const retries = new RetryCounter()
    waits(retries, [behindError(), failureOf('unreachable'), failureOf('busy'), new MissingLogsError(4), new MissingLogsError(4)])
    expect(retries.acceptsMissing(5)).toBe(false)
    expect(waits(retries, [new MissingLogsError(5)])).toEqual([500])
  })

  it('gives up after enough refusals of the same kind', () => {
    const retries = new RetryCounter()
    const refused = failureOf('too_large')
    waits(retries, [...Array(9).fill(failureOf('unreachable')), ...Array(4).fill(refused)])
    expect(retries.isExhausted(refused)).toBe(false)
    waits(retries, [refused])
    expect(retries.isExhausted(refused)).toBe(true)
    expect(retries.isExhausted(failureOf('gone'))).toBe(false)
    expect(retries.isExhausted(failureOf('unreachable'))).toBe(false)
    expect(retries.isExhausted(new MissingLogsError(5))).toBe(false)
  })

  it('takes an old block for pruned after the node lacked it often enough', () => {
    const retries = new RetryCounter()
    waits(retries, Array(5).fill(behindError()))
    expect(retries.isPruned(behindError())).toBe(true)
    expect(retries.isExhausted(behindError())).toBe(false)
    waits(retries, Array(9).fill(failureOf('unreachable')))
    expect(retries.isPruned(failureOf('unreachable'))).toBe(false)
  })

  it('passes on an error of our own', () => {
    const bug = new TypeError('no')
    const failures: unknown[] = []
    const waiting: Observable<unknown> = new RetryCounter().waitToRetry(bug, new VirtualTimeScheduler())
    waiting.subscribe({ error: (failure) => failures.push(failure) })
    expect(failures).toEqual([bug])
  })
})
