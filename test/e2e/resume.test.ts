import { describe, expect, it, onTestFinished } from 'vitest'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../support/test-listener.ts'
import { openDevnet, openRelayFor, sequenceOf, tapeUpdatesOf } from '../support/test-stack.ts'

/** What the one who never leaves hears of the tape before the others may stop. */
const UPDATE_COUNT = 800
/** A connection says hello, subscribed and live beside the tape, and now and then a heartbeat. */
const NOTICES = 3

/** Dice that fall the same way each time. */
const random = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
  return seed / 2 ** 31
}

type OpenFrom = (since: string) => Promise<TestListener>

describe('who cuts and comes back again and again', () => {
  it('hears the same as one who never left, on every carrier, while the tape is being written', async () => {
    const devnet = await openDevnet({ pace: 'clock', flashblockMs: 20, blockMs: 200, transactionsPerFlashblock: 8 })
    const { url, wsUrl } = await openRelayFor(devnet)
    const query = 'symbols=*&types=*&snapshot=false'
    const steady = await listenSse(`${url}/v1/stream?${query}&since=start`)
    onTestFinished(() => steady.close())
    const { id: start } = await steady.waitFor('hello')
    const enough = steady.until(() => steady.received.length >= UPDATE_COUNT + 2 * NOTICES, `${UPDATE_COUNT} updates`)
    let isEnough = false
    void enough.then(() => {
      isEnough = true
    })
    const carriers: readonly OpenFrom[] = [
      (since) => listenSse(`${url}/v1/stream?${query}`, { 'last-event-id': since }),
      (since) => listenNdjson(`${url}/v1/stream?${query}&since=${since}`),
      (since) => listenWs(`${wsUrl}?${query}&since=${since}`),
    ]
    const restless = carriers
      .flatMap((open) => [open, open, open])
      .map(async (open, index) => {
        const roll = random(index + 1)
        const texts: string[] = []
        let last = start ?? ''
        let visits = 0
        const visit = async (leaves: (received: number) => boolean) => {
          const listener = await open(last)
          onTestFinished(() => listener.close())
          await listener.until(() => leaves(listener.received.length - NOTICES), 'enough to leave')
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
          const patience = Math.floor(roll() ** 3 * 150)
          await visit((received) => received >= patience || isEnough)
        }
        const end = sequenceOf(tapeUpdatesOf(steady)[UPDATE_COUNT - 1]?.id)
        while (sequenceOf(last) < end) await visit((received) => received > 0)
        return { texts, visits }
      })
    await enough
    const published = steady.received.filter(({ message }) => 'prev' in message).map(({ text }) => text)
    for (const { texts, visits } of await Promise.all(restless)) {
      expect(visits).toBeGreaterThan(3)
      expect(texts.slice(0, UPDATE_COUNT)).toEqual(published.slice(0, UPDATE_COUNT))
    }
  })

  it('can show that nothing is missing: each message names the one before it of its token and type', async () => {
    const devnet = await openDevnet({ pace: 'clock', flashblockMs: 20, blockMs: 200, transactionsPerFlashblock: 8 })
    const { url } = await openRelayFor(devnet)
    const all = await listenSse(`${url}/v1/stream?symbols=*&types=*&since=start`)
    const some = await listenNdjson(`${url}/v1/stream/AAPLc,TSLAc?types=transfer,mint&since=start`)
    for (const listener of [all, some]) onTestFinished(() => listener.close())
    await all.until(() => tapeUpdatesOf(all).length >= 600)
    await some.until(() => tapeUpdatesOf(some).length >= 30)
    for (const listener of [all, some]) {
      const newest = new Map<string, string>()
      for (const { address, type, prev, id } of tapeUpdatesOf(listener)) {
        const chain = `${address} ${type}`
        expect(prev).toBe(newest.get(chain) ?? null)
        newest.set(chain, id)
      }
    }
  })
})

describe('who joins while the tape is being written', () => {
  it('hears everything after its hello, once', async () => {
    const devnet = await openDevnet({ pace: 'manual' })
    const { url, wsUrl } = await openRelayFor(devnet)
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    const steady = await listenSse(`${url}/v1/stream?symbols=*&types=transfer`)
    onTestFinished(() => steady.close())
    await steady.waitFor('live')
    const joined: Promise<TestListener>[] = []
    for (let round = 1; round <= 60; round += 1) {
      const open =
        round % 2 === 0
          ? listenSse(`${url}/v1/stream?symbols=*&types=transfer`)
          : listenWs(`${wsUrl}?symbols=*&types=transfer`)
      joined.push(open)
      for (let flash = 0; flash < 3; flash += 1) {
        devnet.transfer({ symbol: 'AAPLc', raw: BigInt(round) })
        devnet.makeFlashblock()
      }
      await steady.until(() => tapeUpdatesOf(steady).length === round * 3)
    }
    const ids = tapeUpdatesOf(steady).map(({ id }) => id)
    for (const listener of await Promise.all(joined)) {
      onTestFinished(() => listener.close())
      const { id } = await listener.waitFor('hello')
      const expected = ids.filter((one) => sequenceOf(one) > sequenceOf(id))
      await listener.until(() => tapeUpdatesOf(listener).length >= expected.length, 'all after hello')
      expect(tapeUpdatesOf(listener).map((update) => update.id)).toEqual(expected)
    }
  })
})
