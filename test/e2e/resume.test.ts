import { describe, expect, it, onTestFinished } from 'vitest'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../support/test-listener.ts'
import { openDevnet, openRelayFor, sequenceOf, tapeUpdatesOf } from '../support/test-stack.ts'
import { closeAfterTest } from './listeners.ts'

/** How many updates the uninterrupted listener receives before the others may stop. */
const UPDATE_COUNT = 800
/** Each connection receives hello, subscribed and live beside the tape, and sometimes a heartbeat. */
const NOTICES = 3

/** Reproducible random numbers. */
const random = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
  return seed / 2 ** 31
}

type OpenFrom = (since: string) => Promise<TestListener>

describe('a listener that reconnects again and again', () => {
  it('receives the same as an uninterrupted one, over every transport, while the tape grows', async () => {
    const devnet = await openDevnet({ pace: 'clock', flashblockMs: 20, blockMs: 200, transactionsPerFlashblock: 8 })
    const { url, wsUrl } = await openRelayFor(devnet)
    const query = 'symbols=*&types=*&snapshot=false'
    const uninterrupted = await closeAfterTest(listenSse(`${url}/v1/stream?${query}&since=start`))
    const { id: start } = await uninterrupted.waitFor('hello')
    const enough = uninterrupted.until(() => uninterrupted.received.length >= UPDATE_COUNT + 2 * NOTICES, `${UPDATE_COUNT} updates`)
    let isEnough = false
    void enough.then(() => {
      isEnough = true
    })
    const transports: readonly OpenFrom[] = [
      (since) => listenSse(`${url}/v1/stream?${query}`, { 'last-event-id': since }),
      (since) => listenNdjson(`${url}/v1/stream?${query}&since=${since}`),
      (since) => listenWs(`${wsUrl}?${query}&since=${since}`),
    ]
    const reconnecting = transports
      .flatMap((open) => [open, open, open])
      .map(async (open, index) => {
        const nextRandom = random(index + 1)
        const texts: string[] = []
        let last = start ?? ''
        let visits = 0
        const visit = async (isEnoughFor: (received: number) => boolean) => {
          const listener = await open(last)
          onTestFinished(() => listener.close())
          await listener.until(() => isEnoughFor(listener.received.length - NOTICES), 'enough to leave')
          listener.close()
          for (const { message, text } of listener.received) {
            if (!('prev' in message)) continue
            texts.push(text)
            last = message.id
          }
          expect(listener.messagesOf('gap')).toEqual([])
          visits += 1
        }
        while (!isEnough) {
          const length = Math.floor(nextRandom() ** 3 * 150)
          await visit((received) => received >= length || isEnough)
        }
        const end = sequenceOf(tapeUpdatesOf(uninterrupted)[UPDATE_COUNT - 1]?.id)
        while (sequenceOf(last) < end) await visit((received) => received > 0)
        return { texts, visits }
      })
    await enough
    const published = uninterrupted.received.filter(({ message }) => 'prev' in message).map(({ text }) => text)
    for (const { texts, visits } of await Promise.all(reconnecting)) {
      expect(visits).toBeGreaterThan(3)
      expect(texts.slice(0, UPDATE_COUNT)).toEqual(published.slice(0, UPDATE_COUNT))
    }
  })

  it('can verify that nothing is missing: each message names the previous one of its token and type', async () => {
    const devnet = await openDevnet({ pace: 'clock', flashblockMs: 20, blockMs: 200, transactionsPerFlashblock: 8 })
    const { url } = await openRelayFor(devnet)
    const all = await listenSse(`${url}/v1/stream?symbols=*&types=*&since=start`)
    const two = await listenNdjson(`${url}/v1/stream/AAPLc,TSLAc?types=transfer,mint&since=start`)
    for (const listener of [all, two]) onTestFinished(() => listener.close())
    await all.until(() => tapeUpdatesOf(all).length >= 600)
    await two.until(() => tapeUpdatesOf(two).length >= 30)
    for (const listener of [all, two]) {
      const newest = new Map<string, string>()
      for (const { address, type, prev, id } of tapeUpdatesOf(listener)) {
        const chain = `${address} ${type}`
        expect(prev).toBe(newest.get(chain) ?? null)
        newest.set(chain, id)
      }
    }
  })
})

describe('a listener that joins while the tape grows', () => {
  it('receives everything after its hello once', async () => {
    const devnet = await openDevnet({ pace: 'manual' })
    const { url, wsUrl } = await openRelayFor(devnet)
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    const uninterrupted = await closeAfterTest(listenSse(`${url}/v1/stream?symbols=*&types=transfer`))
    await uninterrupted.waitFor('live')
    const joined: Promise<TestListener>[] = []
    for (let round = 1; round <= 60; round += 1) {
      const open =
        round % 2 === 0 ? listenSse(`${url}/v1/stream?symbols=*&types=transfer`) : listenWs(`${wsUrl}?symbols=*&types=transfer`)
      joined.push(open)
      for (let flash = 0; flash < 3; flash += 1) {
        devnet.transfer({ symbol: 'AAPLc', raw: BigInt(round) })
        devnet.makeFlashblock()
      }
      await uninterrupted.until(() => tapeUpdatesOf(uninterrupted).length === round * 3)
    }
    const ids = tapeUpdatesOf(uninterrupted).map(({ id }) => id)
    for (const listener of await Promise.all(joined)) {
      onTestFinished(() => listener.close())
      const { id } = await listener.waitFor('hello')
      const expected = ids.filter((position) => sequenceOf(position) > sequenceOf(id))
      await listener.until(() => tapeUpdatesOf(listener).length >= expected.length, 'all after hello')
      expect(tapeUpdatesOf(listener).map((update) => update.id)).toEqual(expected)
    }
  })
})
