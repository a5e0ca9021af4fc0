import { describe, expect, it } from 'vitest'
import { openTestStack } from '../../support/test-stack.ts'
import { highLimits, logSummary, RpcTestClient } from './rpc-test-client.ts'

const UNLISTED_ADDRESS = `0x${'07'.repeat(20)}` as const
const OTHER_UNLISTED_ADDRESS = `0x${'08'.repeat(20)}` as const

describe('a contract that is not listed', () => {
  it('is refused with a sentence that says where it can be asked for', async () => {
    const stack = await openTestStack(highLimits)
    const listener = await RpcTestClient.open(stack)
    for (const kind of ['pendingLogs', 'logs'])
      expect((await listener.call('eth_subscribe', kind, { address: [UNLISTED_ADDRESS] })).error).toEqual({
        code: -32602,
        message: expect.stringMatching(
          new RegExp(`not a listed tokenized stock: ${UNLISTED_ADDRESS}\\. .*eth_getLogs`),
        ),
      })
    expect(stack.devnet.subscriptions().pendingLogs).toBe(1)
  })

  it('is served where that is open, by one upstream subscription of its own that ends with its last subscriber', async () => {
    const stack = await openTestStack({ ...highLimits, RPC_OPEN: 'true' })
    const { devnet } = stack
    const emitLog = (address: `0x${string}`, raw: number) =>
      devnet.emit({ address, topics: [], data: `0x${raw.toString(16).padStart(64, '0')}` })
    const [listener, second] = [await RpcTestClient.open(stack), await RpcTestClient.open(stack)]
    const all = await listener.subscribe('pendingLogs')
    expect(devnet.subscriptions().pendingLogs).toBe(1)
    const apple = devnet.list.addressOf('AAPLc')
    const mixed = await listener.subscribe('pendingLogs', { address: [UNLISTED_ADDRESS, apple] })
    await devnet.until(() => devnet.subscriptions().pendingLogs === 2)
    const [alone, logs] = [
      await second.subscribe('pendingLogs', { address: UNLISTED_ADDRESS }),
      await second.subscribe('logs', { address: UNLISTED_ADDRESS }),
    ]
    emitLog(UNLISTED_ADDRESS, 1)
    emitLog(OTHER_UNLISTED_ADDRESS, 2)
    const gone = emitLog(UNLISTED_ADDRESS, 3)
    emitLog(apple, 4)
    devnet.makeFlashblock()
    await Promise.all([mixed.waitForResults(3), alone.waitForResults(2), all.waitForResults(1)])
    devnet.faults.drop(gone)
    devnet.seal()
    await Promise.all([alone.waitForResults(3), logs.waitForResults(1)])
    await listener.flush()
    expect(alone.logs.map(logSummary)).toEqual(['+1', '+3', '-3'])
    expect(logs.logs.map(logSummary)).toEqual(['+1 sealed'])
    expect(all.logs.map(logSummary).filter((text) => !text.includes('4'))).toEqual([])
    expect(mixed.logs.map(({ address }) => address)).toContain(apple)

    second.rawSocket.socket.terminate()
    expect((await listener.call('eth_unsubscribe', mixed.id)).result).toBe(true)
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1 && devnet.sockets() === 1)
    const again = await listener.subscribe('pendingLogs', { address: OTHER_UNLISTED_ADDRESS })
    await devnet.until(() => devnet.subscriptions().pendingLogs === 2)
    emitLog(OTHER_UNLISTED_ADDRESS, 5)
    devnet.makeFlashblock()
    await again.waitForResults(1)
    expect(again.logs.map(logSummary)).toEqual(['+5'])
  })
})
