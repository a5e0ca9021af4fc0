import { describe, expect, it, onTestFinished } from 'vitest'
import { type Ear, listenNdjson, listenSse, listenWs } from '../support/test-listener.ts'
import { openDevnet, relayOn, seqOf, tapeOf } from '../support/test-stack.ts'

/** What the one who never leaves hears of the tape before the others may stop. */
const ENOUGH = 800
/** A connection says hello, subscribed and live beside the tape, and now and then a heartbeat. */
const NOTICES = 3

/** Dice that fall the same way each time. */
const dice = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
  return seed / 2 ** 31
}

type Open = (since: string) => Promise<Ear>

describe('who cuts and comes back again and again', () => {
  it('hears the same as one who never left, on every carrier, while the tape is being written', async () => {
    const devnet = await openDevnet({ pace: 'clock', flashMs: 20, blockMs: 200, transactionsPerFlash: 8 })
    const { url, wsUrl } = await relayOn(devnet)
    const query = 'symbols=*&types=*&snapshot=false'
    const steady = await listenSse(`${url}/v1/stream?${query}&since=start`)
    onTestFinished(() => steady.close())
    const { id: start } = await steady.hear('hello')
    const enough = steady.until(() => steady.heard.length >= ENOUGH + 2 * NOTICES, `${ENOUGH} updates`)
    let isEnough = false
    void enough.then(() => {
      isEnough = true
    })
    const carriers: readonly Open[] = [
      (since) => listenSse(`${url}/v1/stream?${query}`, { 'last-event-id': since }),
      (since) => listenNdjson(`${url}/v1/stream?${query}&since=${since}`),
      (since) => listenWs(`${wsUrl}?${query}&since=${since}`),
    ]
    const restless = carriers
      .flatMap((open) => [open, open, open])
      .map(async (open, index) => {
        const roll = dice(index + 1)
        const texts: string[] = []
        let last = start ?? ''
        let visits = 0
        const visit = async (leaves: (heard: number) => boolean) => {
          const ear = await open(last)
          onTestFinished(() => ear.close())
          await ear.until(() => leaves(ear.heard.length - NOTICES), 'enough to leave')
          ear.close()
          for (const { message, text } of ear.heard) {
            if (!('prev' in message)) continue
            texts.push(text)
            last = message.id
          }
          expect(ear.all('gap')).toEqual([])
          visits += 1
        }
        while (!isEnough) {
          const patience = Math.floor(roll() ** 3 * 150)
          await visit((heard) => heard >= patience || isEnough)
        }
        const end = seqOf(tapeOf(steady)[ENOUGH - 1]?.id)
        while (seqOf(last) < end) await visit((heard) => heard > 0)
        return { texts, visits }
      })
    await enough
    const told = steady.heard.filter(({ message }) => 'prev' in message).map(({ text }) => text)
    for (const { texts, visits } of await Promise.all(restless)) {
      expect(visits).toBeGreaterThan(3)
      expect(texts.slice(0, ENOUGH)).toEqual(told.slice(0, ENOUGH))
    }
  })

  it('can show that nothing is missing: each message names the one before it of its token and type', async () => {
    const devnet = await openDevnet({ pace: 'clock', flashMs: 20, blockMs: 200, transactionsPerFlash: 8 })
    const { url } = await relayOn(devnet)
    const all = await listenSse(`${url}/v1/stream?symbols=*&types=*&since=start`)
    const some = await listenNdjson(`${url}/v1/stream/AAPLc,TSLAc?types=transfer,mint&since=start`)
    for (const ear of [all, some]) onTestFinished(() => ear.close())
    await all.until(() => tapeOf(all).length >= 600)
    await some.until(() => tapeOf(some).length >= 30)
    for (const ear of [all, some]) {
      const newest = new Map<string, string>()
      for (const { address, type, prev, id } of tapeOf(ear)) {
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
    const { url, wsUrl } = await relayOn(devnet)
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    const steady = await listenSse(`${url}/v1/stream?symbols=*&types=transfer`)
    onTestFinished(() => steady.close())
    await steady.hear('live')
    const joined: Promise<Ear>[] = []
    for (let round = 1; round <= 60; round += 1) {
      const open =
        round % 2 === 0
          ? listenSse(`${url}/v1/stream?symbols=*&types=transfer`)
          : listenWs(`${wsUrl}?symbols=*&types=transfer`)
      joined.push(open)
      for (let flash = 0; flash < 3; flash += 1) {
        devnet.transfer({ symbol: 'AAPLc', raw: BigInt(round) })
        devnet.flash()
      }
      await steady.until(() => tapeOf(steady).length === round * 3)
    }
    const ids = tapeOf(steady).map(({ id }) => id)
    for (const ear of await Promise.all(joined)) {
      onTestFinished(() => ear.close())
      const { id } = await ear.hear('hello')
      const expected = ids.filter((one) => seqOf(one) > seqOf(id))
      await ear.until(() => tapeOf(ear).length >= expected.length, 'all after hello')
      expect(tapeOf(ear).map((update) => update.id)).toEqual(expected)
    }
  })
})
