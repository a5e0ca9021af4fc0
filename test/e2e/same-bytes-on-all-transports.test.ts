import { afterEach, describe, expect, it } from 'vitest'
import { type Devnet, startDevnet } from '../../src/devnet/devnet.ts'
import { openRelay, type TestRelay } from '../support/in-process-relay.ts'
import { listenNdjson, listenSse, listenWs } from '../support/test-listener.ts'

let devnet: Devnet
let relay: TestRelay

const openRelayWith = async (settings: Record<string, string> = {}) => {
  devnet = await startDevnet({ pace: 'manual' })
  relay = await openRelay(devnet, settings)
}

afterEach(async () => {
  await relay?.stop()
  await devnet?.stop()
})

describe('a transfer', () => {
  it('has the same bytes and the same id over every transport', async () => {
    await openRelayWith()
    const listeners = await Promise.all([
      listenSse(`${relay.url}/v1/stream/AAPLc`),
      listenNdjson(`${relay.url}/v1/stream?symbols=*`),
      listenWs(`${relay.wsUrl}?symbols=*`),
    ])
    for (const listener of listeners) await listener.waitFor('live')
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    devnet.transfer({ symbol: 'AAPLc', raw: 150_000_000n })
    devnet.makeFlashblock()
    for (const listener of listeners) await listener.waitFor('transfer')
    const texts = listeners.map((listener) => listener.received.find(({ message }) => message.type === 'transfer')?.text)
    expect(new Set(texts).size).toBe(1)
    expect(await listeners[0]?.waitFor('transfer')).toMatchObject({
      amount: '1.5',
      shares: '1.5',
      multiplier: '1',
      stage: 'preconfirmed',
    })
    for (const listener of listeners) listener.close()
  })
})
