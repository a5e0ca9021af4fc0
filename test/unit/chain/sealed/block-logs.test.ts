import { lastValueFrom, type Observable, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { Reader } from '../../../../src/chain/rpc/block-reader.ts'
import { type Trouble, UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { askedFor, Doubt, Patience, settlingLogs } from '../../../../src/chain/sealed/block-logs.ts'
import { behind, FakeChain } from '../fake-chain.ts'
import { apple, keyOf, sealedLog, tesla, txHash, word } from '../node-json.ts'
import { Debts, sealedHeader } from './sealed-blocks-fixture.ts'

const HEAD = 1_000

const open = () => {
  const chain = new FakeChain(HEAD)
  const owed = new Debts()
  const settle = async (block = HEAD, { believing = false } = {}) => {
    const header = sealedHeader(chain.headerOf(block))
    const owing = owed.at(block)
    const { logs } = await lastValueFrom(
      settlingLogs(new Reader(chain.ask), { header, owing, asked: askedFor([apple], owing), believing }),
    )
    return logs.map(({ key }) => key)
  }
  return { chain, owed, settle }
}

describe('the logs that settle a block', () => {
  it('are asked for once where they have all that was told', async () => {
    const { chain, owed, settle } = open()
    const logs = [chain.put(HEAD), chain.put(HEAD)]
    for (const log of logs) owed.owe(log)
    expect(await settle()).toEqual(logs.map(keyOf))
    expect(chain.asked).toHaveLength(1)
  })

  it('may lack what was told where another log of the same transaction is there', async () => {
    const { chain, owed, settle } = open()
    const log = chain.put(HEAD)
    owed.owe(log)
    owed.owe({ ...log, index: 7 })
    expect(await settle()).toEqual([keyOf(log)])
    expect(chain.headers()).toEqual([])
  })

  it('may lack what was told where the block does not list its transaction', async () => {
    const { chain, owed, settle } = open()
    const log = chain.put(HEAD)
    owed.owe({ block: HEAD, index: 7 })
    expect(await settle()).toEqual([keyOf(log)])
    expect(chain.headers()).toEqual([HEAD])
  })

  it('are in doubt where the block lists the transaction', async () => {
    const { chain, owed, settle } = open()
    owed.owe(chain.put(HEAD))
    chain.hide(HEAD)
    await expect(settle()).rejects.toBeInstanceOf(Doubt)
    expect(await settle(HEAD, { believing: true })).toEqual([])
  })

  it('are in doubt where the block lists one of two transactions', async () => {
    const { chain, owed, settle } = open()
    owed.owe(chain.put(HEAD))
    owed.owe({ block: HEAD, index: 7, tx: txHash(HEAD, 7) })
    chain.hide(HEAD)
    await expect(settle()).rejects.toBeInstanceOf(Doubt)
  })

  it('are in doubt where the block shows no transactions', async () => {
    const { chain, owed, settle } = open()
    owed.owe({ block: HEAD })
    chain.showsTransactions = false
    await expect(settle()).rejects.toBeInstanceOf(Doubt)
    chain.instead = ({ method }) =>
      method === 'eth_getLogs' ? undefined : { ...chain.headerOf(HEAD), transactions: 5 }
    await expect(settle()).rejects.toBeInstanceOf(Doubt)
  })

  it('are those of another node, where it has another block there', async () => {
    const { chain, owed, settle } = open()
    owed.owe({ block: HEAD })
    chain.instead = ({ method }) =>
      method === 'eth_getLogs' ? undefined : { ...chain.headerOf(HEAD), hash: word(77), parentHash: word(76) }
    await expect(settle()).rejects.toMatchObject({ kind: 'behind' })
  })

  it('are asked for by number of a node that does not know the question by hash', async () => {
    const { chain, settle } = open()
    chain.knowsHashes = false
    const log = chain.put(HEAD)
    expect(await settle()).toEqual([keyOf(log)])
    expect(chain.ranges()).toEqual([[HEAD, HEAD]])
    chain.instead = ({ params }) => (params[0] === '0x3e8' ? null : undefined)
    await expect(settle()).rejects.toMatchObject({ kind: 'behind' })
  })

  it('by number are not those of another block', async () => {
    const { chain, settle } = open()
    chain.knowsHashes = false
    for (const blockHash of [null, word(77)]) {
      chain.instead = ({ params }) =>
        JSON.stringify(params).includes('fromBlock') ? [{ ...sealedLog({ block: HEAD }), blockHash }] : undefined
      await expect(settle()).rejects.toMatchObject({ kind: 'behind' })
    }
  })

  it('are asked for the wanted tokens and for those of which something was told, each once', () => {
    const owing = [tesla, apple, tesla].map((address, index) => ({ key: `${index}`, address, tx: txHash(1) }))
    expect(askedFor([apple], owing)).toEqual([apple, tesla])
    const wanted = [apple, tesla]
    expect(askedFor(wanted, owing)).toBe(wanted)
  })
})

describe('patience', () => {
  const trouble = (kind: Trouble) => new UpstreamError(kind, 'no')
  /** Waits after each of these failures; how long each wait was. */
  const waits = (patience: Patience, failures: readonly unknown[]) => {
    const clock = new VirtualTimeScheduler()
    return failures.map((failure) => {
      const before = clock.frame
      patience.wait(failure, clock).subscribe()
      clock.flush()
      return clock.frame - before
    })
  }

  it('waits longer each time, up to two seconds, and less after a success', () => {
    const patience = new Patience()
    const failures = Array(8).fill(trouble('busy'))
    expect(waits(patience, failures)).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000])
    patience.succeeded()
    expect(patience.failures).toBe(0)
    expect(waits(patience, [behind()])).toEqual([50])
  })

  it('waits half a second and a second in doubt of a block, and believes then', () => {
    const patience = new Patience()
    expect(waits(patience, [new Doubt(5)])).toEqual([500])
    expect(patience.believes(5)).toBe(false)
    expect(waits(patience, [new Doubt(5), new Doubt(5)])).toEqual([1_000, 2_000])
    expect(patience.believes(5)).toBe(true)
    patience.succeeded()
    expect(patience.believes(5)).toBe(false)
  })

  it('believes nothing because of failures of another kind, or for doubt of another block', () => {
    const patience = new Patience()
    waits(patience, [behind(), trouble('unreachable'), trouble('busy'), new Doubt(4), new Doubt(4)])
    expect(patience.believes(5)).toBe(false)
    expect(waits(patience, [new Doubt(5)])).toEqual([500])
  })

  it('gives up on what was refused often enough, for the same reason', () => {
    const patience = new Patience()
    const refused = trouble('too_large')
    waits(patience, [...Array(9).fill(trouble('unreachable')), ...Array(4).fill(refused)])
    expect(patience.gaveUp(refused)).toBe(false)
    waits(patience, [refused])
    expect(patience.gaveUp(refused)).toBe(true)
    expect(patience.gaveUp(trouble('gone'))).toBe(false)
    expect(patience.gaveUp(trouble('unreachable'))).toBe(false)
    expect(patience.gaveUp(new Doubt(5))).toBe(false)
  })

  it('takes for forgotten what a node often enough says that it does not know', () => {
    const patience = new Patience()
    waits(patience, Array(5).fill(behind()))
    expect(patience.forgot(behind())).toBe(true)
    expect(patience.gaveUp(behind())).toBe(false)
    waits(patience, Array(9).fill(trouble('unreachable')))
    expect(patience.forgot(trouble('unreachable'))).toBe(false)
  })

  it('has none with a bug of ours', () => {
    const bug = new TypeError('no')
    const heard: unknown[] = []
    const waiting: Observable<unknown> = new Patience().wait(bug, new VirtualTimeScheduler())
    waiting.subscribe({ error: (failure) => heard.push(failure) })
    expect(heard).toEqual([bug])
  })
})
