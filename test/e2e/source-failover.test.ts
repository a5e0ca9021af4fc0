import { describe, expect, it } from 'vitest'
import { aliveIn, sealedKeysOf } from '../support/key-states.ts'
import type { Ear } from '../support/test-listener.ts'
import { hearAll, openDevnet, openWorld, relayOn, transfer } from '../support/test-stack.ts'

const source = (ear: Ear, name: string) =>
  ear.until(() => ear.all('status').at(-1)?.source === name, `that the source is ${name}`)

const blockOf = (key: string): number => Number(key.split('-')[0])

describe('a subscription that is accepted and then silent', () => {
  it('is noticed by three sealed logs that it never announced, and polling loses nothing', async () => {
    const world = await openWorld()
    const { devnet } = world
    const ear = await hearAll(world)
    const begin = devnet.chain.head.number
    devnet.weather.silent = ['pendingLogs']
    for (let block = 0; block < 3; block += 1) {
      transfer(world, 'AAPLc')
      devnet.seal()
      await ear.until(() => ear.all('seal').length === block + 1)
    }
    await source(ear, 'poll')
    expect(ear.all('status').at(-1)).toMatchObject({ source: 'poll', reason: 'silent' })
    transfer(world, 'TSLAc')
    const polled = await ear.hear('transfer', ({ symbol }) => symbol === 'TSLAc')
    expect(polled).toMatchObject({ stage: 'preconfirmed', ingest: { source: 'poll' } })
    devnet.seal()
    await ear.until(() => aliveIn(ear.messages, 'sealed').join() === sealedKeysOf(devnet, begin).join())
    devnet.weather.clear()
    transfer(world, 'NVDAc')
    await source(ear, 'pendingLogs')
    expect(ear.all('transfer').filter(({ late }) => late)).toHaveLength(3)
  })

  it('is never suspected because the market is quiet', async () => {
    const world = await openWorld()
    const { devnet } = world
    const ear = await hearAll(world)
    devnet.weather.silent = ['pendingLogs']
    for (let block = 0; block < 80; block += 1) devnet.seal()
    devnet.weather.silent = []
    transfer(world, 'AAPLc')
    await ear.hear('transfer', ({ ingest }) => ingest.source === 'pendingLogs')
    devnet.seal()
    await ear.hear('seal')
    expect(ear.all('status')).toEqual([])
  })
})

describe('an upstream that pre-confirms nothing', () => {
  it.each([
    ['accepts pendingLogs and says nothing', { silent: ['pendingLogs'] as const }, {}],
    ['refuses pendingLogs', { refused: ['pendingLogs'] as const }, {}],
    ['has no socket', {}, { UPSTREAM_WS_URL: '' }],
  ])('and %s is told as it is sealed, 200 ms blocks and all', async (_, weather, settings) => {
    const devnet = await openDevnet({ blockMs: 200, flashMs: 200, transactionsPerFlash: 2 })
    Object.assign(devnet.weather, { pending: 'latest', ...weather })
    const relay = await relayOn(devnet, settings)
    const ear = await hearAll({ relay }, 'start')
    await source(ear, 'sealed')
    const begin = devnet.chain.head.number
    await ear.until(() => ear.all('seal').some(({ block }) => block.number > begin + 8), 'nine blocks')
    const told = ear.all('transfer').filter(({ block }) => block.number > begin && block.number <= begin + 8)
    const ways = told.map(({ stage, late, ingest }) => `${stage} ${late} ${ingest.source}`)
    expect(new Set(ways)).toEqual(new Set(['sealed false sealed']))
    expect(ear.all('transfer').filter(({ stage }) => stage === 'preconfirmed')).toEqual([])
    const sealed = aliveIn(ear.messages, 'sealed').filter((key) => blockOf(key) <= begin + 8)
    const first = Math.min(...sealed.map(blockOf))
    expect(sealed).toEqual(sealedKeysOf(devnet, first - 1).filter((key) => blockOf(key) <= begin + 8))
    expect(ear.all('retract')).toEqual([])
  })
})
