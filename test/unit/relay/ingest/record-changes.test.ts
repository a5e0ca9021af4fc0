import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { TokenDirectory } from '../../../../src/relay/tokens/token-directory.ts'
import { APPLE, apple } from '../tokens/stock-records.ts'
import { listEvent, openIngest, push, sealedEventOfLogs } from './reducer-fixture.ts'
import { extraMetadataUpdated, nameUpdated, paused, supplyCapUpdated, symbolUpdated, transfer, unpaused } from './token-logs.ts'

const address = APPLE as Hex
const at = (block: number, index = 0) => ({ block, index })

const openListed = () => openIngest((update) => update)

describe('a token that changes its symbol on chain', () => {
  const rename = push(symbolUpdated(at(5), 'APPc'))

  it('is published under the new symbol and found by both', async () => {
    const { publish, state } = await openListed()
    expect(await publish(rename, push(transfer(at(6), 1n)))).toMatchObject([
      { type: 'token', symbol: 'APPc', changed: ['symbol'], token: { symbol: 'APPc' }, before: { symbol: 'AAPLc' } },
      { type: 'transfer', symbol: 'APPc', address },
    ])
    const directory = new TokenDirectory(state.tokens.values())
    for (const name of ['APPc', 'aaplc', 'AAPL']) expect(directory.find(name)).toMatchObject({ kind: 'found', token: { address } })
  })

  it('is not published again by the list, and an old list does not revert it', async () => {
    const { publish, state } = await openListed()
    await publish(rename)
    expect(await publish(listEvent(apple()), listEvent(apple({ name: 'Apple Inc' })))).toMatchObject([
      { type: 'token', symbol: 'APPc', changed: ['name'], token: { symbol: 'APPc', name: 'Apple Inc' } },
    ])
    expect(await publish(listEvent(apple({ symbol: 'APPc', name: 'Apple Inc' })))).toEqual([])
    expect(state.tokens.get(address)?.symbol).toBe('APPc')
  })

  it('gets its former symbol back if the log is not sealed', async () => {
    const { publish, state } = await openListed()
    await publish(rename)
    expect(await publish(sealedEventOfLogs(5, []))).toMatchObject([
      { type: 'retract', fact_type: 'token', symbol: 'AAPLc', restored: { token: { symbol: 'AAPLc', name: 'Apple' } } },
    ])
    expect(state.tokens.get(address)).toMatchObject({ symbol: 'AAPLc', record: { symbol: 'AAPLc' } })
  })

  it.each(['*', '  ', ''])('to %o is published under its address', async (symbol) => {
    const { publish } = await openListed()
    expect(await publish(push(symbolUpdated(at(5), symbol)))).toMatchObject([{ symbol: address, changed: ['symbol'] }])
  })
})

describe('a record change from a log', () => {
  it('is merged with other changes and reverted alone', async () => {
    const { publish, state } = await openListed()
    await publish(
      ...[nameUpdated(at(5), 'Apple Inc'), supplyCapUpdated(at(6), 10n, 20n)].map((log) => push(log)),
      ...[extraMetadataUpdated(at(7), 'site', 'a'), extraMetadataUpdated(at(8), 'desk', 'b')].map((log) => push(log)),
    )
    expect(state.tokens.get(address)?.record).toMatchObject({
      name: 'Apple Inc',
      supply_cap: '20',
      extra_metadata: { site: 'a', desk: 'b' },
    })
    await publish(sealedEventOfLogs(5, []), sealedEventOfLogs(7, []))
    expect(state.tokens.get(address)?.record).toMatchObject({ name: 'Apple', extra_metadata: { desk: 'b' } })
  })

  it('removes an empty entry, and maps the highest cap to null', async () => {
    const { publish } = await openListed()
    await publish(push(extraMetadataUpdated(at(5), 'site', 'a')))
    const [removed, uncapped] = await publish(
      push(extraMetadataUpdated(at(6), 'site', '')),
      push(supplyCapUpdated(at(7), 10n, 2n ** 128n - 1n)),
    )
    expect(removed).toMatchObject({ token: { extra_metadata: {} }, before: { extra_metadata: { site: 'a' } } })
    expect(uncapped).toMatchObject({ token: { supply_cap: null }, before: { supply_cap: '10' } })
  })

  it('accepts any entry name', async () => {
    const { publish, restart } = await openListed()
    const [update] = await publish(push(extraMetadataUpdated(at(5), '__proto__', 'a')))
    expect(update?.type === 'token' && Object.entries(update.token.extra_metadata as object)).toEqual([['__proto__', 'a']])
    expect(await (await restart()).publish(listEvent(apple()))).toEqual([])
  })
})

describe('a pause', () => {
  it('lists the features of the log and all paused features', async () => {
    const { publish, state } = await openListed()
    expect(await publish(push(paused(at(5), [0, 1])), push(paused(at(6), [1, 3])), push(unpaused(at(7), [0])))).toMatchObject([
      { change: 'paused', features: ['TRANSFER', 'MINT'], feature_ids: [0, 1], paused: ['TRANSFER', 'MINT'] },
      { change: 'paused', feature_ids: [1, 3], paused: ['TRANSFER', 'MINT', 'SEIZE'] },
      { change: 'unpaused', feature_ids: [0], paused: ['MINT', 'SEIZE'] },
    ])
    expect(state.tokens.get(address)?.paused).toEqual([1, 3])
  })

  it('is retracted with the features that are still paused', async () => {
    const { publish } = await openListed()
    await publish(push(paused(at(5), [0])), push(paused(at(6), [1])))
    expect(await publish(sealedEventOfLogs(5, []))).toMatchObject([
      { type: 'retract', fact_type: 'pause', restored: { paused: ['MINT'] } },
    ])
  })

  it('is published once, whether the list repeats it or lags behind', async () => {
    const { publish } = await openListed()
    await publish(push(paused(at(5), [0])))
    expect(await publish(listEvent(apple()), listEvent(apple({ paused_features: [0] })))).toEqual([])
    expect(await publish(listEvent(apple({ paused_features: [] })))).toMatchObject([
      { type: 'pause', change: 'unpaused', feature_ids: [0], paused: [], source: 'list' },
    ])
  })
})
