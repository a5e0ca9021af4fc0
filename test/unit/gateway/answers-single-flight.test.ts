import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../src/chain/rpc/error.ts'
import { alice, apple, blockHash, TRANSFER, tesla } from '../chain/node-json.ts'
import { answering, faultOf, heard, type Passed } from './answers-fixture.ts'

type Asking = readonly [method: string, ...params: unknown[]]

const HEAD = 1_000
const NEAR = '0x3e7'
const DEEP = '0x10'
const balance = (block: unknown) => ['eth_getBalance', alice, block] as const
const block = (number: string) => ['eth_getBlockByNumber', number, false] as const
const logs = (filter: object) => ['eth_getLogs', filter] as const

/** Asks twice, with something in between while the first is under way; how often the node was asked. */
async function timesAsked(
  first: Asking,
  second: Asking,
  between: (node: ReturnType<typeof answering>) => void = () => {},
): Promise<number> {
  const node = answering({ head: HEAD })
  const given = [node.ask(...first)]
  await nextTurn()
  between(node)
  given.push(node.ask(...second))
  await nextTurn()
  for (const [at, { give }] of node.passed.entries()) await give({ at })
  expect(await Promise.all(given)).toEqual(['{"at":0}', `{"at":${node.passed.length - 1}}`])
  return node.passed.length
}

describe('a question that is under way', () => {
  it('is not asked again by whoever asks the same', async () => {
    const { ask, passed } = answering()
    const given = Array.from({ length: 1_000 }, () => ask(...balance('pending')))
    await nextTurn()
    expect(passed).toMatchObject([{ method: 'eth_getBalance', params: [alice, 'pending'] }])
    await passed[0]?.give('0x5')
    expect(new Set(await Promise.all(given))).toEqual(new Set(['"0x5"']))
  })

  it.each([
    ['an address in capitals', balance('latest'), ['eth_getBalance', `0x${'A1'.repeat(20)}`, 'latest']],
    ['a number in capitals', block('0xab'), block('0xAB')],
    ['a hash in capitals', balance(`0x${'ab'.repeat(32)}`), balance(`0x${'AB'.repeat(32)}`)],
    ['a topic in capitals', logs({ topics: [TRANSFER] }), logs({ topics: [`0x${TRANSFER.slice(2).toUpperCase()}`] })],
    ['another order of criteria', logs({ address: apple, topics: [null] }), logs({ topics: [null], address: apple })],
    ['criteria that say nothing', logs({ address: apple }), logs({ address: apple, topics: null, blockHash: null })],
    [
      'a range beside a hash, which wins',
      logs({ blockHash: blockHash(5) }),
      logs({ blockHash: blockHash(5), fromBlock: '0x1', toBlock: '0x2' }),
    ],
  ] as const)('is the same with %s', async (_, first, second) => {
    expect(await timesAsked(first, second)).toBe(1)
  })

  it.each([
    ['another order of topics', logs({ topics: [TRANSFER, null] }), logs({ topics: [null, TRANSFER] })],
    ['one topic in place of any', logs({ address: apple, topics: [] }), logs({ address: apple, topics: [TRANSFER] })],
    ['another address', logs({ address: apple }), logs({ address: tesla })],
    ['another block', block(NEAR), block('0x3e6')],
    ['another tag', balance('latest'), balance('pending')],
    ['whole transactions', block(NEAR), ['eth_getBlockByNumber', NEAR, true]],
    ['another method', balance('latest'), ['eth_getTransactionCount', alice, 'latest']],
    ['another slot', ['eth_getStorageAt', apple, '0x1', 'latest'], ['eth_getStorageAt', apple, '0x2', 'latest']],
  ] as const)('is another one with %s', async (_, first, second) => {
    expect(await timesAsked(first, second)).toBe(2)
  })

  it.each([
    ['the pending state, after a log', balance('pending'), heard.log(HEAD + 1)],
    ['the pending state, after a block was begun', balance('pending'), heard.building(HEAD + 1)],
    ['the pending state, after a head', balance('pending'), heard.head(HEAD + 1)],
    ['pending logs, after a log', logs({ fromBlock: NEAR, toBlock: 'pending' }), heard.log(HEAD + 1)],
    ['the latest block, after a head', block('latest'), heard.head(HEAD + 1)],
    ['logs without a range, after a head', logs({ address: apple }), heard.head(HEAD + 1)],
    ['the newest number, after a head', ['eth_blockNumber'], heard.head(HEAD + 1)],
    ['the safe block, after it rose', block('safe'), heard.finality('safe', 900)],
    ['the finalized block, after it rose', block('finalized'), heard.finality('finalized', 800)],
    ['a number near the head, after a head', block(NEAR), heard.head(HEAD + 1)],
    ['a number above the head, after a head', block('0x3e9'), heard.head(HEAD + 1)],
    ['a hash, after a head', logs({ blockHash: blockHash(999) }), heard.head(HEAD + 1)],
    ['the pending state, after a reorganisation', balance('pending'), heard.doubted(HEAD)],
    ['the latest block, after a reorganisation', block('latest'), heard.doubted(HEAD)],
    ['a number, after a reorganisation', block(NEAR), heard.doubted(HEAD)],
    ['a number deep down, after a reorganisation', block(DEEP), heard.doubted(HEAD)],
    ['a hash, after a reorganisation', balance(blockHash(999)), heard.doubted(HEAD)],
  ] as const)('is asked anew where it is about %s', async (_, question, news) => {
    expect(await timesAsked(question, question, ({ moment }) => moment.hear(news))).toBe(2)
  })

  it.each([
    ['the latest block, after a log', block('latest'), heard.log(HEAD + 1)],
    ['a number, after a log', block(NEAR), heard.log(HEAD + 1)],
    ['a number deep down, after a head', block(DEEP), heard.head(HEAD + 1)],
    ['the pending state, after a block that was settled', balance('pending'), heard.sealed(HEAD)],
    ['the chain, after a head', ['eth_chainId'], heard.head(HEAD + 1)],
  ] as const)('is the same still where it is about %s', async (_, question, news) => {
    expect(await timesAsked(question, question, ({ moment }) => moment.hear(news))).toBe(1)
  })

  it('fails all who share it, and the next one asks anew', async () => {
    const { ask, passed } = answering()
    const faults = [1, 2, 3].map(() => faultOf(ask(...balance('pending'))))
    await nextTurn()
    await passed[0]?.fail(new UpstreamError('unreachable', 'timed out'))
    expect((await Promise.all(faults)).map(({ code }) => code)).toEqual([-32000, -32000, -32000])
    const answer = ask(...balance('pending'))
    await nextTurn()
    await passed[1]?.give('0x7')
    expect(await answer).toBe('"0x7"')
    expect(passed).toHaveLength(2)
  })

  it('that lands late takes nothing from one that was asked after it', async () => {
    const { ask, passed, moment } = answering()
    const before = ask(...block('latest'))
    await nextTurn()
    moment.hear(heard.head(HEAD + 1))
    const after = [ask(...block('latest'))]
    await nextTurn()
    await passed[0]?.give({ number: HEAD })
    after.push(ask(...block('latest')))
    await nextTurn()
    await passed[1]?.give({ number: HEAD + 1 })
    expect(await before).toBe('{"number":1000}')
    expect(await Promise.all(after)).toEqual(Array(2).fill('{"number":1001}'))
    expect(passed).toHaveLength(2)
  })
})

describe('questions under way', () => {
  const quick = (n: number): Asking => ['eth_getBlockByNumber', `0x${(n + 1).toString(16)}`, false]
  const slow = (n: number): Asking => ['eth_getLogs', { fromBlock: `0x${(n + 1).toString(16)}`, toBlock: '0x100' }]
  const lanes: [string, (n: number) => Asking, number, number][] = [
    ['for logs', slow, 8, 100],
    ['for anything else', quick, 16, 500],
  ]
  const placeOf = ({ method, params: [first] }: Passed) =>
    Number(method === 'eth_getLogs' ? (first as { fromBlock: string }).fromBlock : first) - 1

  it.each(lanes)('%s are so many: the others wait, and are asked in their order', async (_, nth, atOnce) => {
    const { ask, passed } = answering({ head: 10_000 })
    const count = atOnce + 10
    const given = Array.from({ length: count }, (_, n) => ask(...nth(n)).catch(() => 'failed'))
    await nextTurn()
    expect(passed).toHaveLength(atOnce)
    await passed[7]?.give({ n: 7 })
    await passed[3]?.fail(new UpstreamError('unreachable', 'timed out'))
    expect(passed.map(placeOf)).toEqual(Array.from({ length: atOnce + 2 }, (_, n) => n))
    for (let n = 0; n < count; n += 1) await passed[n]?.give({ n })
    expect(await Promise.all(given)).toEqual(given.map((_, n) => (n === 3 ? 'failed' : `{"n":${n}}`)))
  })

  it.each(lanes)(
    '%s wait in a number: one more is refused at once, and whoever shares one still may',
    async (...lane) => {
      const [, nth, atOnce, waiting] = lane
      const count = atOnce + waiting
      const { ask, passed } = answering({ head: 10_000 })
      const given = Array.from({ length: count }, (_, n) => ask(...nth(n)))
      await nextTurn()
      expect(await faultOf(ask(...nth(count)))).toMatchObject({ code: -32005, status: 503 })
      given.push(ask(...nth(count - 1)))
      for (let n = 0; n < count; n += 1) await passed[n]?.give({ n })
      expect((await Promise.all(given)).at(-1)).toBe(`{"n":${count - 1}}`)
      expect(passed).toHaveLength(count)
      const again = ask(...nth(count))
      await nextTurn()
      await passed[count]?.give({})
      expect(await again).toBe('{}')
    },
  )

  it('for logs hold up no others, however long they take', async () => {
    const { ask, passed } = answering({ head: 10_000 })
    const given = Array.from({ length: 50 }, (_, n) => ask(...slow(n)))
    await nextTurn()
    const other = ask(...quick(0))
    await nextTurn()
    await passed.at(-1)?.give({})
    expect(await other).toBe('{}')
    for (let n = 0; n <= 50; n += 1) await passed[n]?.give([])
    expect(await Promise.all(given)).toEqual(given.map(() => '[]'))
  })

  it('wait for a while: who waited too long is refused instead of asked', async () => {
    const { ask, passed, clock } = answering({ head: 10_000 })
    const given = Array.from({ length: 16 }, (_, n) => ask(...quick(n)))
    await nextTurn()
    const early = faultOf(ask(...quick(16)))
    clock.uptime = 1
    const late = ask(...quick(17))
    clock.uptime = 10_000
    await nextTurn()
    await passed[0]?.give({})
    expect(await early).toMatchObject({ code: -32005, status: 503 })
    for (const { give } of passed) await give({})
    expect(await late).toBe('{}')
    expect(await Promise.all(given)).toEqual(given.map(() => '{}'))
    expect(passed.map(placeOf)).not.toContain(24)
  })
})
