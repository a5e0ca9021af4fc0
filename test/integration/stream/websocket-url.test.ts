import { describe, expect, it } from 'vitest'
import { openWorld, tapeOf, transfer, typesOf } from '../../support/test-stack.ts'
import { answered, listen } from './stream-listeners.ts'

describe('what the URL of a WebSocket says', () => {
  it('is cleared by null in the first subscription', async () => {
    const world = await openWorld()
    const ear = await listen(world, 'ws', 'since=start&stage=sealed&snapshot=false&types=token,transfer')
    ear.send({ type: 'subscribe', symbols: ['AAPLc'], since: null, stage: null, snapshot: null })
    await ear.hear('live')
    expect(typesOf(ear.heard)).toEqual(['hello', 'subscribed', 'snapshot', 'live'])
    transfer(world)
    await ear.hear('transfer', ({ stage }) => stage === 'preconfirmed')
  })

  it('holds whole or not at all: where its symbols are a mistake, the next subscription begins anew', async () => {
    const world = await openWorld()
    const ear = await listen(world, 'ws', 'symbols=APPL&types=transfer&since=start')
    await ear.hear('error')
    ear.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await ear.hear('live')
    expect(tapeOf(ear)).toEqual([])
    transfer(world)
    world.devnet.seal()
    await ear.hear('seal')
  })

  it('is no bad message where it is a mistake: nine after it do not end the connection', async () => {
    const world = await openWorld()
    const ear = await listen(world, 'ws', 'symbols=AAPLc&types=dividends')
    await ear.hear('error')
    for (let time = 0; time < 9; time += 1) ear.send('nonsense')
    await answered(ear)
  })
})

describe('a first subscription of which nothing is known', () => {
  it('leaves it to the next one to say where to begin', async () => {
    const world = await openWorld()
    const steady = await listen(world, 'ws', 'symbols=AAPLc&types=transfer')
    transfer(world)
    const { id } = await steady.hear('transfer')
    const ear = await listen(world, 'ws', '')
    ear.send({ type: 'subscribe', req: 1, symbols: ['APPL'], since: 'start' })
    ear.send({ type: 'subscribe', req: 2, symbols: ['AAPLc'], types: ['transfer'], since: 'start', snapshot: false })
    ear.send({ type: 'ping', req: 3 })
    await ear.hear('pong')
    expect(ear.all('subscribed')).toMatchObject([
      { req: 1, symbols: [], rejected: [{ symbol: 'APPL', suggest: ['AAPLc'] }] },
      { req: 2, symbols: ['AAPLc'], rejected: [] },
    ])
    expect(tapeOf(ear).map((update) => update.id)).toEqual([id])
    expect(typesOf(ear.heard).slice(-3)).toEqual(['transfer', 'live', 'pong'])
  })
})
