import { describe, expect, it, onTestFinished } from 'vitest'
import type { Arrival } from '../../../src/ingest/reducer.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { Update } from '../../../src/protocol/updates.ts'
import { Directory } from '../../../src/tokens/directory.ts'
import { openEmbedded } from '../tape/test-tape.ts'
import { APPLE, apple } from '../tokens/stock-records.ts'
import { hearing, listed, restore, sealedWith, status, transaction } from './reducer-fixture.ts'
import { capped, described, named, paused, renamed, transfer, unpaused } from './token-logs.ts'

const address = APPLE as Hex
const at = (block: number, index = 0) => ({ block, index })

const begin = async () => {
  const embedded = await openEmbedded()
  onTestFinished(() => embedded.close())
  const house = await restore(embedded.tape)
  await house.tell(listed(apple()), hearing, status('pendingLogs'))
  const tell = async (...turn: Arrival[]) =>
    (await house.tell(...turn)).map(({ update, text }) => {
      expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
      return update
    })
  return { embedded, ...house, tell }
}

describe('a token that changes its symbol on chain', () => {
  const rename = transaction([renamed(at(5), 'APPc')])

  it('is told under the new one, by which and by the old one it is found', async () => {
    const { tell, teller } = await begin()
    expect(await tell(rename, transaction([transfer(at(6), 1n)]))).toMatchObject([
      { type: 'token', symbol: 'APPc', changed: ['symbol'], token: { symbol: 'APPc' }, was: { symbol: 'AAPLc' } },
      { type: 'transfer', symbol: 'APPc', address },
    ])
    const directory = new Directory(teller.board.values())
    for (const name of ['APPc', 'aaplc', 'AAPL'])
      expect(directory.find(name)).toMatchObject({ kind: 'found', token: { address } })
  })

  it('is not told again when the list follows, and not displaced by a list that does not yet', async () => {
    const { tell, teller } = await begin()
    await tell(rename)
    expect(await tell(listed(apple()), listed(apple({ name: 'Apple Inc' })))).toMatchObject([
      { type: 'token', symbol: 'APPc', changed: ['name'], token: { symbol: 'APPc', name: 'Apple Inc' } },
    ])
    expect(await tell(listed(apple({ symbol: 'APPc', name: 'Apple Inc' })))).toEqual([])
    expect(teller.board.get(address)?.symbol).toBe('APPc')
  })

  it('has another one where the list says so later', async () => {
    const { tell } = await begin()
    await tell(rename)
    expect(await tell(listed(apple({ symbol: 'APPLE' })))).toMatchObject([
      { type: 'token', symbol: 'APPLE', changed: ['symbol'], was: { symbol: 'APPc' }, source: 'list' },
    ])
  })

  it('has its former one back where that was not so', async () => {
    const { tell, teller } = await begin()
    await tell(rename)
    expect(await tell(sealedWith(5, []))).toMatchObject([
      { type: 'retract', of: 'token', symbol: 'AAPLc', now: { symbol: 'AAPLc', name: 'Apple' } },
    ])
    expect(teller.board.get(address)).toMatchObject({ symbol: 'AAPLc', record: { symbol: 'AAPLc' } })
  })

  it.each(['*', '  ', ''])('to %o goes by its address', async (symbol) => {
    const { tell } = await begin()
    expect(await tell(transaction([renamed(at(5), symbol)]))).toMatchObject([{ symbol: address, changed: ['symbol'] }])
  })
})

describe('what a log says of the record', () => {
  it('is held with what others said, and taken back alone', async () => {
    const { tell, teller } = await begin()
    await tell(transaction([named(at(5), 'Apple Inc')]), transaction([capped(at(6), 10n, 20n)]))
    await tell(transaction([described(at(7), 'site', 'a')]), transaction([described(at(8), 'desk', 'b')]))
    expect(teller.board.get(address)?.record).toMatchObject({
      name: 'Apple Inc',
      supply_cap: '20',
      extra_metadata: { site: 'a', desk: 'b' },
    })
    await tell(sealedWith(5, []), sealedWith(7, []))
    expect(teller.board.get(address)?.record).toMatchObject({ name: 'Apple', extra_metadata: { desk: 'b' } })
  })

  it('is nothing where an entry is removed, and null where there is no cap', async () => {
    const { tell } = await begin()
    await tell(transaction([described(at(5), 'site', 'a')]))
    const [removed, uncapped] = await tell(
      transaction([described(at(6), 'site', '')]),
      transaction([capped(at(7), 10n, 2n ** 128n - 1n)]),
    )
    expect(removed).toMatchObject({ token: { extra_metadata: {} }, was: { extra_metadata: { site: 'a' } } })
    expect(uncapped).toMatchObject({ token: { supply_cap: null }, was: { supply_cap: '10' } })
  })

  it('may be called anything', async () => {
    const { tell, embedded } = await begin()
    const [told] = await tell(transaction([described(at(5), '__proto__', 'a')]))
    expect(told?.type === 'token' && Object.entries(told.token.extra_metadata as object)).toEqual([['__proto__', 'a']])
    const again = await restore(embedded.tape)
    expect(await again.tell(listed(apple()))).toEqual([])
  })
})

describe('a pause', () => {
  it('says what it names and what is paused then', async () => {
    const { tell, teller } = await begin()
    expect(
      await tell(
        transaction([paused(at(5), [0, 1])]),
        transaction([paused(at(6), [1, 3])]),
        transaction([unpaused(at(7), [0])]),
      ),
    ).toMatchObject([
      { paused: true, features: ['TRANSFER', 'MINT'], raw: [0, 1], now: [0, 1] },
      { paused: true, raw: [1, 3], now: [0, 1, 3] },
      { paused: false, raw: [0], now: [1, 3] },
    ])
    expect(teller.board.get(address)?.paused).toEqual([1, 3])
  })

  it('that was not so is taken back with what holds again', async () => {
    const { tell } = await begin()
    await tell(transaction([paused(at(5), [0])]), transaction([paused(at(6), [1])]))
    expect(await tell(sealedWith(5, []))).toMatchObject([{ type: 'retract', of: 'pause', now: [1] }])
  })

  it('that the list repeats, or does not know yet, is told once', async () => {
    const { tell } = await begin()
    await tell(transaction([paused(at(5), [0])]))
    expect(await tell(listed(apple()), listed(apple({ paused_features: [0] })))).toEqual([])
    expect(await tell(listed(apple({ paused_features: [] })))).toMatchObject([
      { type: 'pause', paused: false, raw: [0], now: [], source: 'list' },
    ])
  })
})
