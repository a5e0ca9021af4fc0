import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { amounts, ask, listen, logs, manual, post, read, send } from '../devnet-client.ts'

const quantity = (amount: number) => `0x${amount.toString(16)}`

/** Four blocks with a log each, and a fifth that is pre-confirmed, read over HTTP from a replica that knows only two. */
const behind = async () => {
  const devnet = await manual()
  const blocks = [1n, 2n, 3n, 4n].map((raw) => {
    send(devnet, raw)
    devnet.flash()
    return devnet.seal()
  })
  send(devnet, 5n)
  devnet.flash()
  devnet.weather.lagBlocks = 2
  return { devnet, known: blocks.slice(0, 2), unknown: blocks.slice(2) }
}
const headsOf = async (devnet: Devnet, times: number) => {
  const heads = []
  for (let asked = 0; asked < times; asked++) heads.push(Number(await read(devnet, 'eth_blockNumber')))
  return heads.map((head) => head - devnet.chain.head.number)
}

describe('a replica that lags', () => {
  it('has an older latest, which is its pending too', async () => {
    const { devnet, known } = await behind()
    const [, head] = known
    for (const tag of ['latest', 'pending']) {
      expect(await read(devnet, 'eth_getBlockByNumber', tag, false)).toMatchObject({ hash: head?.hash })
    }
    expect(await read(devnet, 'eth_blockNumber')).toBe(quantity(head?.number ?? 0))
    expect(await logs(devnet, { fromBlock: 'pending', toBlock: 'pending' })).toEqual([])
    for (const tag of ['latest', 'pending']) {
      expect(await read(devnet, 'eth_getTransactionCount', devnet.custodian, tag)).toBe('0x2')
    }
  })

  it('numbers its pending, whatever those that are up to date do', async () => {
    const { devnet, known } = await behind()
    devnet.weather.pending = 'numberless'
    const { number, hash } = known[1] ?? {}
    expect(await read(devnet, 'eth_getBlockByNumber', 'pending', false)).toMatchObject({
      number: quantity(number ?? 0),
      hash,
    })
  })

  it('makes up that there is nothing in blocks above its head', async () => {
    const { devnet, unknown } = await behind()
    for (const { number } of unknown) {
      expect(await read(devnet, 'eth_getBlockByNumber', quantity(number), false)).toBeNull()
      expect(await logs(devnet, { fromBlock: quantity(number), toBlock: quantity(number) })).toEqual([])
    }
  })

  it('tells of a range what it knows', async () => {
    const { devnet, known, unknown } = await behind()
    const range = { fromBlock: quantity(known[1]?.number ?? 0), toBlock: quantity(unknown[1]?.number ?? 0) }
    expect(amounts(await logs(devnet, range))).toEqual([2])
    expect(amounts(await logs(devnet, { ...range, toBlock: 'pending' }))).toEqual([2])
  })

  it('does not find a block by a hash that it does not know', async () => {
    const { devnet, known, unknown } = await behind()
    for (const { hash } of unknown) {
      const { status, error } = await ask(devnet, 'eth_getLogs', { blockHash: hash })
      expect({ status, error }).toEqual({
        status: 200,
        error: { code: -32001, message: `block not found: hash ${hash}` },
      })
    }
    for (const { hash, logs: own } of known) expect(await logs(devnet, { blockHash: hash })).toEqual(own)
  })

  it('comes after the newest, and is not what sockets talk to', async () => {
    const { devnet } = await behind()
    const link = await listen(devnet)
    await link.subscribe('newHeads')
    await link.subscribe('pendingLogs', {})
    send(devnet, 6n)
    devnet.flash()
    const { number, hash } = devnet.seal()
    expect((await link.call('eth_blockNumber')).result).toBe(quantity(number))
    expect(link.results).toMatchObject([{ transactionIndex: '0x1' }, { hash }])
    expect(await headsOf(devnet, 1)).toEqual([-2])
    devnet.weather.clear()
    expect(await headsOf(devnet, 1)).toEqual([0])
  })
})

describe('a load balancer', () => {
  it('leads every so many-th request to the replica that lags', async () => {
    const { devnet } = await behind()
    devnet.weather.lagEvery = 3
    expect(await headsOf(devnet, 7)).toEqual([0, 0, -2, 0, 0, -2, 0])
  })

  it('leads a batch to one of them', async () => {
    const { devnet } = await behind()
    devnet.weather.lagEvery = 2
    const call = { jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] }
    const spread = async () => {
      const { json } = await post(devnet, [call, call, call])
      const answers = z.array(z.object({ result: z.string() })).parse(json)
      return answers.map(({ result }) => Number(result) - devnet.chain.head.number)
    }
    expect([await spread(), await spread()]).toEqual([
      [0, 0, 0],
      [-2, -2, -2],
    ])
  })
})
