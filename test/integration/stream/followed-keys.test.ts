import { describe, expect, it, onTestFinished } from 'vitest'
import type { BareLog } from '../../../src/devnet/chain/block.ts'
import { openFolder } from '../../support/child-program.ts'
import { type Ear, listenNdjson } from '../../support/test-listener.ts'
import { openDevnet, relayOn, type World } from '../../support/test-stack.ts'
import { liveOn, toldTo, whole } from './stream-listeners.ts'

const PARTY = `0x${'ab'.repeat(20)}` as const
const word = (value: bigint) => `0x${value.toString(16).padStart(64, '0')}` as const

/** The same transfer, of another amount, and to somebody else where one is named. */
const altered = ({ address, topics }: BareLog, raw: bigint, to?: string): BareLog => ({
  address,
  topics: to ? [...topics.slice(0, 2), word(BigInt(to))] : topics,
  data: word(raw),
})

/** A relay whose tape outlives it. */
async function openLasting(): Promise<World & { restart(): Promise<World> }> {
  const devnet = await openDevnet()
  const settings = { DATA_DIR: await openFolder({ onTestFinished }), STOCKS_REFRESH_MS: '3600000' }
  const relay = await relayOn(devnet, settings)
  await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
  const restart = async () => {
    await relay.stop()
    return { devnet, relay: await relayOn(devnet, settings) }
  }
  return { devnet, relay, restart }
}

/**
 * A block of six transfers, of one token and of ten by turns: the third grows over every bound when it is sealed, the
 * fourth falls below and comes to another, the last two fall out. Then the block is replaced by one with the first alone.
 */
async function makeHistory({ devnet, relay }: World): Promise<readonly string[]> {
  const all = await listenNdjson(`${relay.url}/v1/stream?symbols=AAPLc&types=transfer,amend,retract,seal`)
  onTestFinished(() => all.close())
  await all.hear('live')
  const amounts = [1, 10, 1, 10, 10, 1]
  const hashes = amounts.map((tokens, at) =>
    devnet.transfer({ symbol: 'AAPLc', raw: whole(tokens), ...(at === 0 ? { to: PARTY } : {}) }),
  )
  const logs = devnet.flash()
  await all.until(() => all.all('transfer').length === amounts.length)
  const [, second, third, fourth, fifth, sixth] = hashes
  const [, , grows, falls] = logs
  if (!second || !third || !fourth || !fifth || !sixth || !grows || !falls) throw new Error('too few transfers')
  devnet.weather.change(third, [altered(grows, whole(10))])
  devnet.weather.change(fourth, [altered(falls, whole(1), PARTY)])
  devnet.weather.drop(fifth)
  devnet.weather.drop(sixth)
  devnet.seal()
  await all.until(() => all.all('seal').length === 1)
  devnet.weather.clear()
  devnet.reorg(1, [second, third, fourth])
  await all.until(() => all.all('seal').length === 2)
  return hashes
}

/** What was heard, in short: what it is, of which of the transfers. */
const inShort = (ear: Ear, hashes: readonly string[]): readonly string[] =>
  toldTo(ear).map((text) => {
    const { type, key, keys } = JSON.parse(text)
    return type === 'seal' ? `seal of ${keys.length}` : `${type} ${hashes.indexOf(key.split('-')[1]) + 1}`
  })

const query = (rest: string) => `symbols=AAPLc&snapshot=false&${rest}`

/** Who listens, and what comes to them; in the order of the contract: retracts, amends, what is new, the seal. */
const listeners: Readonly<Record<string, readonly string[]>> = {
  'types=transfer': [
    ...[1, 2, 3, 4, 5, 6].map((at) => `transfer ${at}`),
    ...['retract 5', 'retract 6', 'amend 3', 'amend 4', 'seal of 4'],
    ...['retract 2', 'retract 3', 'retract 4', 'seal of 1'],
  ],
  'types=transfer&min_value=1000': [
    ...['transfer 2', 'transfer 4', 'transfer 5', 'retract 5', 'amend 3', 'amend 4', 'seal of 4'],
    ...['retract 2', 'retract 3', 'retract 4'],
  ],
  'types=transfer&min_shares=10': [
    ...['transfer 2', 'transfer 4', 'transfer 5', 'retract 5', 'amend 3', 'amend 4', 'seal of 4'],
    ...['retract 2', 'retract 3', 'retract 4'],
  ],
  [`types=transfer&party=${PARTY}`]: ['transfer 1', 'amend 4', 'seal of 4', 'retract 4', 'seal of 1'],
  [`types=transfer&party=${PARTY}&min_shares=10`]: [],
  // Of movements that were never let through, nothing that follows is either; seals are no movements.
  'types=retract,amend,seal&min_value=1000': ['seal of 4', 'seal of 1'],
  'types=retract,amend': [...['retract 5', 'retract 6', 'amend 3', 'amend 4', 'retract 2', 'retract 3', 'retract 4']],
  'types=mint,seize': [],
  'stage=sealed&types=transfer': [
    ...['transfer 1', 'transfer 2', 'transfer 3', 'transfer 4', 'seal of 4'],
    ...['retract 2', 'retract 3', 'retract 4', 'seal of 1'],
  ],
  'stage=sealed&types=transfer&min_value=1000': [
    ...['transfer 2', 'transfer 3', 'seal of 4', 'retract 2', 'retract 3'],
  ],
  [`stage=sealed&types=transfer&party=${PARTY}`]: ['transfer 1', 'transfer 4', 'seal of 4', 'retract 4', 'seal of 1'],
}

describe('what follows a key', () => {
  it('comes to who was told it: live, on coming later, on coming back from anywhere, and after a restart', async () => {
    const world = await openLasting()
    const live = await Promise.all(Object.keys(listeners).map((rest) => liveOn(world, 'sse', query(rest))))
    const { id: begin } = await (live[0] as Ear).hear('live')
    const hashes = await makeHistory(world)
    const expected = Object.values(listeners)
    const ids = live.map((ear) => toldTo(ear).map((text) => String(JSON.parse(text).id)))
    const check = async (at: World) => {
      for (const [index, rest] of Object.keys(listeners).entries()) {
        const later = await liveOn(at, 'ndjson', query(rest), begin)
        expect(inShort(later, hashes), rest).toEqual(expected[index])
        expect(toldTo(later), rest).toEqual(toldTo(live[index] as Ear))
        for (const [place, id] of (ids[index] ?? []).entries()) {
          const back = await liveOn(at, place % 2 === 0 ? 'ws' : 'sse', query(rest), id)
          expect(toldTo(back), `${rest} after ${id}`).toEqual(toldTo(later).slice(place + 1))
          back.close()
        }
      }
    }
    for (const [index, ear] of live.entries()) {
      await ear.until(() => toldTo(ear).length >= (expected[index]?.length ?? 0), Object.keys(listeners)[index])
      ids[index] = toldTo(ear).map((text) => String(JSON.parse(text).id))
    }
    await check(world)
    await check(await world.restart())
  })

  it('no longer comes of a token that was given up, nor once the options were replaced so that it would not', async () => {
    const world = await openLasting()
    const ears = await Promise.all(
      ['types=transfer', 'types=transfer', 'types=transfer&min_shares=1'].map((rest) =>
        liveOn(world, 'ws', `symbols=AAPLc,TSLAc&snapshot=false&${rest}`),
      ),
    )
    const [left, narrowed, widened] = ears as [Ear, Ear, Ear]
    world.devnet.transfer({ symbol: 'TSLAc', raw: whole(5) })
    const gone = [1, 2, 3].map((tokens) => world.devnet.transfer({ symbol: 'AAPLc', raw: whole(tokens) }))
    world.devnet.flash()
    for (const ear of ears) await ear.until(() => ear.all('transfer').length === 4)
    left.send({ type: 'unsubscribe', req: 1, symbols: ['AAPLc'] })
    await left.hear('unsubscribed')
    narrowed.send({ type: 'subscribe', req: 1, min_shares: '3' })
    widened.send({ type: 'subscribe', req: 1, min_shares: null, types: ['transfer', 'retract'] })
    await narrowed.hear('subscribed', ({ req }) => req === 1)
    await widened.hear('subscribed', ({ req }) => req === 1)
    for (const hash of gone) world.devnet.weather.drop(hash)
    world.devnet.seal()
    for (const ear of ears) await ear.hear('seal')
    expect(left.all('retract')).toEqual([])
    expect(left.all('seal').map(({ symbol }) => symbol)).toEqual(['TSLAc'])
    expect(narrowed.all('retract').map(({ key }) => gone.indexOf(key.split('-')[1] as (typeof gone)[number]))).toEqual([
      2,
    ])
    expect(widened.all('retract')).toHaveLength(3)
    left.send({ type: 'subscribe', req: 2, symbols: ['AAPLc'] })
    await left.hear('subscribed', ({ req }) => req === 2)
    world.devnet.transfer({ symbol: 'AAPLc', raw: whole(7) })
    world.devnet.flash()
    await left.hear('transfer', ({ raw }) => raw === String(whole(7)))
  })
})
