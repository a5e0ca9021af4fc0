import { lastValueFrom, type Observable, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { BlockReader } from '../../../../src/chain/rpc/block-reader.ts'
import { UpstreamError, type UpstreamErrorKind } from '../../../../src/chain/rpc/error.ts'
import {
  addressesToQuery,
  MissingLogsError,
  RetryCounter,
  readBlockLogs,
} from '../../../../src/chain/sealed/block-logs.ts'
import { behindError, FakeChain } from '../fake-chain.ts'
import { apple, keyOf, sealedLog, tesla, txHash, word } from '../node-json.ts'
import { FakeOpenKeys, sealedHeader } from './sealed-blocks-fixture.ts'

const HEAD = 1_000

const openReader = () => {
  const chain = new FakeChain(HEAD)
  const owed = new FakeOpenKeys()
  const settle = async (block = HEAD, { believing: acceptsMissing = false } = {}) => {
    const header = sealedHeader(chain.headerOf(block))
    const openKeys = owed.at(block)
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
  return { chain, owed, settle }
}

describe('the logs that settle a block', () => {
  it('are asked for once where they have all that was told', async () => {
    const { chain, owed, settle } = openReader()
    const logs = [chain.addLog(HEAD), chain.addLog(HEAD)]
    for (const log of logs) owed.add(log)
    expect(await settle()).toEqual(logs.map(keyOf))
    expect(chain.requests).toHaveLength(1)
  })

  it('may lack what was told where another log of the same transaction is there', async () => {
    const { chain, owed, settle } = openReader()
    const log = chain.addLog(HEAD)
    owed.add(log)
    owed.add({ ...log, index: 7 })
    expect(await settle()).toEqual([keyOf(log)])
    expect(chain.requestedHeaders()).toEqual([])
  })

  it('may lack what was told where the block does not list its transaction', async () => {
    const { chain, owed, settle } = openReader()
    const log = chain.addLog(HEAD)
    owed.add({ block: HEAD, index: 7 })
    expect(await settle()).toEqual([keyOf(log)])
    expect(chain.requestedHeaders()).toEqual([HEAD])
  })

  it('are in doubt where the block lists the transaction', async () => {
    const { chain, owed, settle } = openReader()
    owed.add(chain.addLog(HEAD))
    chain.hideLogs(HEAD)
    await expect(settle()).rejects.toBeInstanceOf(MissingLogsError)
    expect(await settle(HEAD, { believing: true })).toEqual([])
  })

  it('are in doubt where the block lists one of two transactions', async () => {
    const { chain, owed, settle } = openReader()
    owed.add(chain.addLog(HEAD))
    owed.add({ block: HEAD, index: 7, tx: txHash(HEAD, 7) })
    chain.hideLogs(HEAD)
    await expect(settle()).rejects.toBeInstanceOf(MissingLogsError)
  })

  it('are in doubt where the block shows no transactions', async () => {
    const { chain, owed, settle } = openReader()
    owed.add({ block: HEAD })
    chain.listsTransactions = false
    await expect(settle()).rejects.toBeInstanceOf(MissingLogsError)
    chain.override = ({ method }) =>
      method === 'eth_getLogs' ? undefined : { ...chain.headerOf(HEAD), transactions: 5 }
    await expect(settle()).rejects.toBeInstanceOf(MissingLogsError)
  })

  it('are those of another node, where it has another block there', async () => {
    const { chain, owed, settle } = openReader()
    owed.add({ block: HEAD })
    chain.override = ({ method }) =>
      method === 'eth_getLogs' ? undefined : { ...chain.headerOf(HEAD), hash: word(77), parentHash: word(76) }
    await expect(settle()).rejects.toMatchObject({ kind: 'behind' })
  })

  it('are asked for by number of a node that does not know the question by hash', async () => {
    const { chain, settle } = openReader()
    chain.supportsBlockHash = false
    const log = chain.addLog(HEAD)
    expect(await settle()).toEqual([keyOf(log)])
    expect(chain.requestedRanges()).toEqual([[HEAD, HEAD]])
    chain.override = ({ params }) => (params[0] === '0x3e8' ? null : undefined)
    await expect(settle()).rejects.toMatchObject({ kind: 'behind' })
  })

  it('by number are not those of another block', async () => {
    const { chain, settle } = openReader()
    chain.supportsBlockHash = false
    for (const blockHash of [null, word(77)]) {
      chain.override = ({ params }) =>
        JSON.stringify(params).includes('fromBlock') ? [{ ...sealedLog({ block: HEAD }), blockHash }] : undefined
      await expect(settle()).rejects.toMatchObject({ kind: 'behind' })
    }
  })

  it('are asked for the wanted tokens and for those of which something was told, each once', () => {
    const owing = [tesla, apple, tesla].map((address, index) => ({ key: `${index}`, address, tx: txHash(1) }))
    expect(addressesToQuery([apple], owing)).toEqual([apple, tesla])
    const wanted = [apple, tesla]
    expect(addressesToQuery(wanted, owing)).toBe(wanted)
  })
})

describe('patience', () => {
  const trouble = (kind: UpstreamErrorKind) => new UpstreamError(kind, 'no')
  /** Waits after each of these failures; how long each wait was. */
  const waits = (patience: RetryCounter, failures: readonly unknown[]) => {
    const clock = new VirtualTimeScheduler()
    return failures.map((failure) => {
      const before = clock.frame
      patience.waitToRetry(failure, clock).subscribe()
      clock.flush()
      return clock.frame - before
    })
  }

  it('waits longer each time, up to two seconds, and less after a success', () => {
    const patience = new RetryCounter()
    const failures = Array(8).fill(trouble('busy'))
    expect(waits(patience, failures)).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000])
    patience.succeeded()
    expect(patience.totalFailures).toBe(0)
    expect(waits(patience, [behindError()])).toEqual([50])
  })

  it('waits half a second and a second in doubt of a block, and believes then', () => {
    const patience = new RetryCounter()
    expect(waits(patience, [new MissingLogsError(5)])).toEqual([500])
    expect(patience.acceptsMissing(5)).toBe(false)
    expect(waits(patience, [new MissingLogsError(5), new MissingLogsError(5)])).toEqual([1_000, 2_000])
    expect(patience.acceptsMissing(5)).toBe(true)
    patience.succeeded()
    expect(patience.acceptsMissing(5)).toBe(false)
  })

  it('believes nothing because of failures of another kind, or for doubt of another block', () => {
    const patience = new RetryCounter()
    waits(patience, [
      behindError(),
      trouble('unreachable'),
      trouble('busy'),
      new MissingLogsError(4),
      new MissingLogsError(4),
    ])
    expect(patience.acceptsMissing(5)).toBe(false)
    expect(waits(patience, [new MissingLogsError(5)])).toEqual([500])
  })

  it('gives up on what was refused often enough, for the same reason', () => {
    const patience = new RetryCounter()
    const refused = trouble('too_large')
    waits(patience, [...Array(9).fill(trouble('unreachable')), ...Array(4).fill(refused)])
    expect(patience.isExhausted(refused)).toBe(false)
    waits(patience, [refused])
    expect(patience.isExhausted(refused)).toBe(true)
    expect(patience.isExhausted(trouble('gone'))).toBe(false)
    expect(patience.isExhausted(trouble('unreachable'))).toBe(false)
    expect(patience.isExhausted(new MissingLogsError(5))).toBe(false)
  })

  it('takes for forgotten what a node often enough says that it does not know', () => {
    const patience = new RetryCounter()
    waits(patience, Array(5).fill(behindError()))
    expect(patience.isPruned(behindError())).toBe(true)
    expect(patience.isExhausted(behindError())).toBe(false)
    waits(patience, Array(9).fill(trouble('unreachable')))
    expect(patience.isPruned(trouble('unreachable'))).toBe(false)
  })

  it('has none with a bug of ours', () => {
    const bug = new TypeError('no')
    const heard: unknown[] = []
    const waiting: Observable<unknown> = new RetryCounter().waitToRetry(bug, new VirtualTimeScheduler())
    waiting.subscribe({ error: (failure) => heard.push(failure) })
    expect(heard).toEqual([bug])
  })
})
