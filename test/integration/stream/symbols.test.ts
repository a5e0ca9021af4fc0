import { describe, expect, it } from 'vitest'
import { listenNdjson } from '../../support/test-listener.ts'
import { ask, openWorld, transfer, type World } from '../../support/test-stack.ts'
import { answered, carriers, liveOn } from './stream-listeners.ts'

const TWIN = `0x${'7e'.repeat(20)}` as const

/** Two tokens of one name on the list, and the relay knows of both. */
async function openWithTwins(): Promise<World> {
  const world = await openWorld()
  const ear = await listenNdjson(`${world.relay.url}/v1/stream?symbols=*&types=token&since=start`)
  world.devnet.list.add({ symbol: 'AAPLC', contract_address: TWIN, decimals: 8 })
  await ear.hear('token', ({ address }) => address === TWIN)
  ear.close()
  return world
}

describe('a name', () => {
  it.each([
    'aapl',
    'AAPL',
    'aaplC',
    '0xB200000000000000000000C2E324D24D7EECD1FB',
    'isin:us0378331005',
    'ISIN:US0378331005',
  ])('%s is heard as its token on every carrier, and taken out again by any other of its names', async (name) => {
    const world = await openWorld()
    for (const carrier of carriers) {
      const ear = await liveOn(world, carrier, `symbols=${name}&types=transfer`)
      expect(ear.all('subscribed')).toMatchObject([{ symbols: ['AAPLc'], rejected: [] }])
      expect(ear.all('snapshot').map(({ symbol }) => symbol)).toEqual(['AAPLc'])
      if (carrier !== 'ws') continue
      ear.send({ type: 'unsubscribe', req: 1, symbols: [name, 'AAPLc'] })
      expect(await ear.hear('unsubscribed')).toEqual({ type: 'unsubscribed', req: 1, symbols: ['AAPLc'] })
    }
  })

  it('that a token bore before still finds it, also where it was subscribed to before the change', async () => {
    const world = await openWorld()
    const before = await liveOn(world, 'ws', 'symbols=AAPLc&types=transfer,token')
    world.devnet.list.change('AAPLc', { symbol: 'APLEc' })
    expect(await before.hear('token')).toMatchObject({
      change: 'changed',
      changed: ['symbol'],
      was: { symbol: 'AAPLc' },
    })
    for (const carrier of carriers) {
      const ear = await liveOn(world, carrier, 'symbols=AAPLc,aple&types=transfer')
      expect(ear.all('subscribed')).toMatchObject([{ symbols: ['APLEc'], rejected: [] }])
      expect(ear.all('snapshot')).toHaveLength(1)
    }
    before.send({ type: 'list', req: 1 })
    expect(await before.hear('subscribed', ({ req }) => req === 1)).toMatchObject({ symbols: ['APLEc'] })
    transfer(world, 'APLEc')
    expect(await before.hear('transfer')).toMatchObject({ symbol: 'APLEc' })
    before.send({ type: 'unsubscribe', symbols: ['AAPLc'] })
    expect(await before.hear('unsubscribed')).toMatchObject({ symbols: ['APLEc'] })
  })

  it('that several bear is rejected with their addresses, and the rest is heard', async () => {
    const world = await openWithTwins()
    const address = world.devnet.list.addressOf('AAPLc')
    for (const carrier of carriers) {
      const ear = await liveOn(world, carrier, 'symbols=aaplc,TSLA,nvdia&types=transfer')
      const [subscribed] = ear.all('subscribed')
      expect(subscribed).toMatchObject({ symbols: ['TSLAc'] })
      expect(subscribed?.rejected[0]).toMatchObject({ symbol: 'aaplc', reason: 'ambiguous_symbol' })
      expect(subscribed?.rejected[0]?.suggest.toSorted()).toEqual([TWIN, address].toSorted())
      expect(subscribed?.rejected[1]).toMatchObject({ symbol: 'nvdia', reason: 'unknown_symbol', suggest: ['NVDAc'] })
      expect(ear.all('snapshot').map(({ symbol }) => symbol)).toEqual(['TSLAc'])
    }
    const exact = await liveOn(world, 'ws', `symbols=${TWIN.toUpperCase().replace('X', 'x')}`)
    expect(exact.all('snapshot')).toMatchObject([{ address: TWIN }])
  })

  it('that several bear is a 404 where it is the only one, and so is a list of which nothing is known', async () => {
    const { relay } = await openWithTwins()
    for (const path of ['/v1/stream/aaplc', '/v1/tail/aaplc', '/v1/stream?symbols=aaplc,nvdia']) {
      expect(await ask(`${relay.url}${path}`), path).toMatchObject({ status: 404, json: { code: 404 } })
    }
    expect(await ask(`${relay.url}/v1/stream/appl,nvdia`)).toMatchObject({
      status: 404,
      json: {
        code: 404,
        details: [{ '@type': 'stocktape/unknown_symbol', suggest: expect.arrayContaining(['AAPLc']) }],
      },
    })
  })

  it('beside * that is not known is rejected, and everything is heard', async () => {
    const world = await openWorld()
    for (const carrier of carriers) {
      const ear = await liveOn(world, carrier, 'symbols=APPL,*,TSLAc&types=transfer')
      expect(ear.all('subscribed')).toMatchObject([
        { symbols: ['*'], rejected: [{ symbol: 'APPL', reason: 'unknown_symbol', suggest: ['AAPLc'] }] },
      ])
      expect(ear.all('snapshot')).toHaveLength(world.devnet.tokens.length)
    }
  })
})

describe('the star', () => {
  it('joins what is heard already, brings only the snapshots that were not given, and stays the star', async () => {
    const world = await openWorld()
    const ear = await liveOn(world, 'ws', 'symbols=AAPLc&types=transfer')
    ear.send({ type: 'subscribe', req: 1, symbols: ['*'] })
    expect(await ear.hear('subscribed', ({ req }) => req === 1)).toMatchObject({ symbols: ['*'], resume: 'none' })
    await answered(ear)
    const given = ear.all('snapshot').map(({ symbol }) => symbol)
    expect(given.toSorted()).toEqual(world.devnet.tokens.map(({ symbol }) => symbol).toSorted())
    ear.send({ type: 'subscribe', req: 2, symbols: ['TSLAc'] })
    expect(await ear.hear('subscribed', ({ req }) => req === 2)).toMatchObject({ symbols: ['*'] })
    ear.send({ type: 'list', req: 3 })
    expect(await ear.hear('subscribed', ({ req }) => req === 3)).toMatchObject({ symbols: ['*'] })
    await answered(ear)
    expect(ear.all('snapshot')).toHaveLength(given.length)
    expect(ear.all('live')).toHaveLength(1)
  })

  it('hears of a token that is listed later, without being asked again', async () => {
    const world = await openWorld()
    const ear = await liveOn(world, 'ws', 'symbols=*&types=token,transfer')
    world.devnet.list.add({ symbol: 'NEWc', contract_address: TWIN, decimals: 8 })
    expect(await ear.hear('token')).toMatchObject({ change: 'listed', symbol: 'NEWc', address: TWIN })
    world.devnet.transfer({ address: TWIN, raw: 5n })
    world.devnet.flash()
    expect(await ear.hear('transfer')).toMatchObject({ symbol: 'NEWc', raw: '5' })
  })
})
