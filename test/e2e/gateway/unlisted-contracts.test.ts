import { describe, expect, it } from 'vitest'
import { openWorld } from '../../support/test-stack.ts'
import { generous, inShort, RpcEar } from './rpc-test-client.ts'

const NOBODY = `0x${'07'.repeat(20)}` as const
const OTHER = `0x${'08'.repeat(20)}` as const

describe('a contract that is not listed', () => {
  it('is refused with a sentence that says where it can be asked for', async () => {
    const world = await openWorld(generous)
    const ear = await RpcEar.open(world)
    for (const kind of ['pendingLogs', 'logs'])
      expect((await ear.call('eth_subscribe', kind, { address: [NOBODY] })).error).toEqual({
        code: -32602,
        message: expect.stringMatching(new RegExp(`not a listed tokenized stock: ${NOBODY}\\. .*eth_getLogs`)),
      })
    expect(world.devnet.subscriptions().pendingLogs).toBe(1)
  })

  it('is served where that is open, by one upstream subscription of its own that ends with its last subscriber', async () => {
    const world = await openWorld({ ...generous, RPC_OPEN: 'true' })
    const { devnet } = world
    const say = (address: `0x${string}`, raw: number) =>
      devnet.emit({ address, topics: [], data: `0x${raw.toString(16).padStart(64, '0')}` })
    const [ear, second] = [await RpcEar.open(world), await RpcEar.open(world)]
    const all = await ear.subscribe('pendingLogs')
    expect(devnet.subscriptions().pendingLogs).toBe(1)
    const apple = devnet.list.addressOf('AAPLc')
    const mixed = await ear.subscribe('pendingLogs', { address: [NOBODY, apple] })
    await devnet.until(() => devnet.subscriptions().pendingLogs === 2)
    const [alone, logs] = [
      await second.subscribe('pendingLogs', { address: NOBODY }),
      await second.subscribe('logs', { address: NOBODY }),
    ]
    say(NOBODY, 1)
    say(OTHER, 2)
    const gone = say(NOBODY, 3)
    say(apple, 4)
    devnet.flash()
    await Promise.all([mixed.hear(3), alone.hear(2), all.hear(1)])
    devnet.weather.drop(gone)
    devnet.seal()
    await Promise.all([alone.hear(3), logs.hear(1)])
    await ear.settled()
    expect(alone.logs.map(inShort)).toEqual(['+1', '+3', '-3'])
    expect(logs.logs.map(inShort)).toEqual(['+1 sealed'])
    expect(all.logs.map(inShort).filter((text) => !text.includes('4'))).toEqual([])
    expect(mixed.logs.map(({ address }) => address)).toContain(apple)

    second.line.socket.terminate()
    expect((await ear.call('eth_unsubscribe', mixed.id)).result).toBe(true)
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1 && devnet.sockets() === 1)
    const again = await ear.subscribe('pendingLogs', { address: OTHER })
    await devnet.until(() => devnet.subscriptions().pendingLogs === 2)
    say(OTHER, 5)
    devnet.flash()
    await again.hear(1)
    expect(again.logs.map(inShort)).toEqual(['+5'])
  })
})
