import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { Logs } from '../../../../../src/relay/chain/logs/log-parser.ts'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import { UnparsedLogs } from '../../../../../src/relay/chain/rpc/unparsed-logs.ts'
import { FilterRefusedError, UpstreamError, type UpstreamErrorKind } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { behindError, FakeChain } from '../fake-chain.ts'
import { apple, blockHash, header, keyOf, sealedLog, tesla, txHash, word } from '../node-json.ts'

const HEAD = 1_000

const neverAborted = new AbortController().signal

const blockAt = (number: number) => ({ number, hash: blockHash(number) })

const openReader = () => {
  const chain = new FakeChain(HEAD)
  const reader = new ChainReader(chain.request)
  return {
    chain,
    reader,
    header: (block: Parameters<typeof reader.header>[0]) => reader.header(block),
    logsOf: (number = HEAD, addresses = [apple]) => reader.logsByHash(blockAt(number), [{ addresses }]),
    logsBetween: (from: number, to: number | 'pending', addresses = [apple]) => reader.logsInRange(from, to, [{ addresses }]),
  }
}

type Read = (reader: ChainReader, addresses: readonly Hex[]) => Promise<Logs | null>
const reads: readonly (readonly [string, Read])[] = [
  ['of a block', (reader, addresses) => reader.logsByHash(blockAt(HEAD), [{ addresses }])],
  ['of a range', (reader, addresses) => reader.logsInRange(HEAD - 9, HEAD, [{ addresses }])],
  ['up to the pending block', (reader, addresses) => reader.logsInRange(HEAD, 'pending', [{ addresses }])],
]

describe('the header of a block', () => {
  it('is read without transactions, as numbers', async () => {
    const { chain, header } = openReader()
    expect(await header(5)).toMatchObject({ number: 5, hash: blockHash(5), parentHash: blockHash(4) })
    expect(await header('latest')).toMatchObject({ number: HEAD })
    expect(chain.requests.map(({ params }) => params)).toEqual([
      ['0x5', false],
      ['latest', false],
    ])
  })

  it('is requested once more by number when the node lacks it, since another node may answer', async () => {
    const { chain, header } = openReader()
    chain.override = () => {
      chain.override = () => undefined
      return null
    }
    expect(await header(5)).toMatchObject({ number: 5 })
    expect([await header(HEAD + 1), await header('safe')]).toEqual([null, null])
    expect(chain.requestedHeaders()).toEqual([5, 5, HEAD + 1, HEAD + 1, 'safe'])
  })

  it.each([undefined, { number: 'five' }, { ...header(5), hash: '0x5' }])('is never %j', async (answer) => {
    const { chain, header } = openReader()
    chain.override = () => answer ?? 'nothing'
    await expect(header(5)).rejects.toMatchObject({ kind: 'unreadable' })
  })
})

describe('the logs of a block', () => {
  it('are requested by hash, for the given tokens alone', async () => {
    const { chain, logsOf } = openReader()
    const log = chain.addLog(HEAD)
    chain.addLog(HEAD, tesla)
    chain.addLog(HEAD - 1)
    expect((await logsOf()).logs.map(({ key }) => key)).toEqual([keyOf(log)])
    expect(chain.requests[0]?.params).toEqual([{ address: [apple], blockHash: blockHash(HEAD) }])
  })

  it('are requested twice, and no more, from a node that lacks the block', async () => {
    const { chain, logsOf } = openReader()
    chain.addLog(HEAD)
    chain.override = () => {
      chain.override = () => undefined
      throw behindError()
    }
    expect((await logsOf()).logs).toHaveLength(1)
    chain.failure = behindError()
    await expect(logsOf()).rejects.toMatchObject({ kind: 'behind' })
    expect(chain.requests).toHaveLength(4)
  })

  it.each([
    ['the hash of another block', { blockHash: blockHash(HEAD - 1) }],
    ['no hash', { blockHash: null }],
    ['another number', { blockNumber: header(HEAD + 1).number }],
  ])('are refused if one of them has %s', async (_, place) => {
    const { chain, logsOf } = openReader()
    chain.override = () => [sealedLog({ block: HEAD }), { ...sealedLog({ block: HEAD, index: 1 }), ...place }]
    await expect(logsOf()).rejects.toMatchObject({ kind: 'unreadable' })
  })

  it('are requested by halves of the contracts when they are too many, and returned in order', async () => {
    const { chain, logsOf } = openReader()
    const others = ['01', '02', '03'].map((digits) => `0x${digits.repeat(20)}` as const)
    for (const address of [...others, apple, ...others]) chain.addLog(HEAD, address)
    chain.resultsBound = 2
    const { logs, unreadable } = await logsOf(HEAD, [apple, ...others])
    expect(logs.map(({ logIndex }) => logIndex)).toEqual([0, 1, 2, 3, 4, 5, 6])
    expect(unreadable).toBe(0)
    expect(chain.requestedAddresses().map((addresses) => addresses.length)).toEqual([4, 2, 1, 1, 2, 1, 1])
  })
})

describe('a node that refuses a filter with more than two addresses', () => {
  const addresses = [1, 2, 3, 4, 5].map((nth): Hex => `0x${String(nth).padStart(40, '0')}`)
  it.each<(typeof reads)[number]>([
    ...reads,
    ['to compare', (reader, list) => reader.logsIfCountsDiffer(new Map(), HEAD - 9, HEAD, [{ addresses: list }], neverAborted)],
  ])('is asked for the logs %s in parts, and refuses only once', async (_, read) => {
    const { chain, reader } = openReader()
    for (const address of addresses) chain.addLog(HEAD, address)
    chain.addressesBound = 2
    const found = async () => (await read(reader, addresses))?.logs.map(({ address }) => address)
    expect(await found()).toEqual(addresses)
    chain.requests.length = 0
    expect(await found()).toEqual(addresses)
    expect(chain.requestedAddresses().map(({ length }) => length)).toEqual([2, 1, 2])
  })
})

describe('the logs of a range', () => {
  it('are requested from the first block to the last, or to pending', async () => {
    const { chain, logsBetween } = openReader()
    await logsBetween(16, 255)
    await logsBetween(HEAD, 'pending', [apple, tesla])
    expect(chain.requests.map(({ params }) => params)).toEqual([
      [{ address: [apple], fromBlock: '0x10', toBlock: '0xff' }],
      [{ address: [apple, tesla], fromBlock: '0x3e8', toBlock: 'pending' }],
    ])
  })

  it('are never requested without a token, which means every contract to a node', async () => {
    const { chain, logsBetween, logsOf } = openReader()
    expect(await logsBetween(1, 2, [])).toEqual({ logs: [], unreadable: 0 })
    expect(await logsOf(1, [])).toEqual({ logs: [], unreadable: 0 })
    expect(chain.requests).toEqual([])
  })

  it('are in the order of the chain, in any order the node sends them', async () => {
    const { chain, logsBetween, logsOf } = openReader()
    const places = [2, 0, 1].map((index) => ({ block: HEAD, index }))
    chain.override = () => places.map(sealedLog)
    expect((await logsOf()).logs.map(({ logIndex }) => logIndex)).toEqual([0, 1, 2])
    chain.override = () => [...places, { block: 5, index: 7 }].map(sealedLog)
    const keys = [{ block: 5, index: 7 }, ...[0, 1, 2].map((index) => ({ block: HEAD, index }))].map(keyOf)
    expect((await logsBetween(1, HEAD)).logs.map(({ key }) => key)).toEqual(keys)
  })

  it('are refused if they belong to other blocks, unless the range is open to pending', async () => {
    const { chain, logsBetween } = openReader()
    chain.override = () => [sealedLog({ block: 5 })]
    await expect(logsBetween(6, 9)).rejects.toMatchObject({ kind: 'unreadable' })
    await expect(logsBetween(1, 4)).rejects.toMatchObject({ kind: 'unreadable' })
    expect((await logsBetween(6, 'pending')).logs).toHaveLength(1)
  })

  it.each([null, {}])('are never %j: that is a failure and not an empty answer', async (answer) => {
    for (const [, read] of reads)
      await expect(read(new ChainReader(async () => answer), [apple])).rejects.toMatchObject({ kind: 'unreadable' })
  })
})

it.each([new UpstreamError('busy', 'over rate limit'), new TypeError('no')])('a reader passes on %s at once', async (failure) => {
  for (const read of [...reads.map(([, read]) => read), (reader: ChainReader) => reader.header(5)]) {
    const { chain, reader } = openReader()
    chain.override = () => {
      throw failure
    }
    await expect(read(reader, [apple])).rejects.toBe(failure)
    expect(chain.requests).toHaveLength(1)
  }
})

describe('an answer with one log twice', () => {
  const log = sealedLog({ block: HEAD, index: 3 })
  const between = { ...log, transactionHash: txHash(HEAD, 9) }

  it.each(reads)('is refused where the two differ, %s', async (_, read) => {
    const { chain, reader } = openReader()
    for (const other of [{ data: word(2) }, { address: tesla }, { transactionIndex: '0x1' }, { removed: true }]) {
      chain.override = () => [sealedLog({ block: HEAD }), log, between, { ...log, ...other }]
      await expect(read(reader, [apple])).rejects.toMatchObject({
        kind: 'unreadable',
        message: expect.stringMatching(/contradicts itself/),
      })
    }
  })

  it.each(reads)('is read where both are the same, %s', async (_, read) => {
    const { chain, reader } = openReader()
    chain.override = () => [log, sealedLog({ block: HEAD }), log]
    expect((await read(reader, [apple]))?.logs.map(({ logIndex }) => logIndex)).toEqual([0, 3, 3])
  })
})

describe('a long list of logs', () => {
  const wireLogs = [4, 5, 5, 6].map((block, index) => sealedLog({ block, index }))
  const longAnswer = (text = JSON.stringify(wireLogs)) => new UnparsedLogs(Buffer.from(text), () => JSON.parse(text), 300)
  const readerOf = (answer: unknown) => new ChainReader(async () => answer)

  it('is read in parts, like a short one', async () => {
    const short = await readerOf(wireLogs).logsInRange(4, 6, [{ addresses: [apple] }])
    expect(await readerOf(longAnswer()).logsInRange(4, 6, [{ addresses: [apple] }])).toEqual(short)
    expect(short.logs).toHaveLength(4)
  })

  it('stops with the signal', async () => {
    const controller = new AbortController()
    const reading = readerOf(longAnswer()).logsInRange(4, 6, [{ addresses: [apple] }], controller.signal)
    controller.abort()
    await expect(reading).rejects.toBe(controller.signal.reason)
  })

  it.each<[string, Readonly<Record<number, number>>, boolean]>([
    ['as many logs of each block as expected', { 4: 1, 5: 2, 6: 1 }, false],
    ['as many of those that are asked about', { 5: 2, 7: 0 }, false],
    ['more logs of a block', { 5: 1 }, true],
    ['fewer logs of a block', { 4: 2 }, true],
    ['logs of a block that had none', { 6: 0 }, true],
  ])('with %s is read or only counted', async (_, counts, isRead) => {
    const expected = new Map(Object.entries(counts).map(([block, count]) => [blockHash(Number(block)), count]))
    const read = (answer: unknown) => readerOf(answer).logsIfCountsDiffer(expected, 4, 6, [{ addresses: [apple] }], neverAborted)
    expect((await read(longAnswer()))?.logs.length).toBe(isRead ? 4 : undefined)
    expect((await read(wireLogs))?.logs).toHaveLength(4)
  })
})

describe('a filter with topics that the node answers with an error', () => {
  const narrow = { addresses: [tesla], topics: [[word(9)]] }
  type Refused = (kind: UpstreamErrorKind) => Promise<unknown>
  const openRefused = (ofTokens?: UpstreamError) => {
    const { chain, reader } = openReader()
    const failing = (kind: UpstreamErrorKind) => {
      chain.override = ({ params: [filter] }) => {
        if ('topics' in Object(filter)) throw new UpstreamError(kind, 'no')
        if (ofTokens) throw ofTokens
        return undefined
      }
    }
    const filters = [{ addresses: [apple] }, narrow]
    const rejectionOf = (reading: Promise<unknown>) => reading.catch((failure: unknown) => failure)
    const ofBlock: Refused = (kind) => {
      failing(kind)
      return rejectionOf(reader.logsByHash(blockAt(HEAD), filters))
    }
    const ofRange: Refused = (kind) => {
      failing(kind)
      return rejectionOf(reader.logsInRange(HEAD - 9, HEAD, filters))
    }
    return { ofBlock, ofRange, reader, failing }
  }

  it.each<[UpstreamErrorKind, ofBlock: string, ofRange: string]>([
    ['invalid', 'filter_refused', 'filter_refused'],
    ['unknown_method', 'filter_refused', 'filter_refused'],
    ['forbidden', 'filter_refused', 'filter_refused'],
    ['unknown', 'filter_refused', 'filter_refused'],
    ['reverted', 'filter_refused', 'filter_refused'],
    ['too_large', 'filter_refused', 'too_large'],
    ['unreachable', 'unreachable', 'unreachable'],
    ['busy', 'busy', 'busy'],
    ['gone', 'gone', 'gone'],
    ['behind', 'behind', 'behind'],
  ])('as %s is, for a block and for a range: %s, %s', async (kind, expectedOfBlock, expectedOfRange) => {
    const { ofBlock, ofRange } = openRefused()
    expect(await ofBlock(kind)).toMatchObject({ kind: expectedOfBlock })
    const failure = await ofRange(kind)
    expect(failure).toMatchObject({ kind: expectedOfRange })
    if (failure instanceof FilterRefusedError) expect(failure.filters).toEqual([narrow])
  })

  it('is no refusal if the node answers the tokens with an error too, or is asked for that filter alone', async () => {
    const ofTokens = new UpstreamError('invalid', 'no hashes')
    expect(await openRefused(ofTokens).ofBlock('unknown')).toBe(ofTokens)
    const { reader, failing } = openRefused()
    failing('unknown')
    await expect(reader.logsByHash(blockAt(HEAD), [narrow])).rejects.toMatchObject({ kind: 'unknown' })
  })
})
