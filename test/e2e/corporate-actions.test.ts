import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../src/devnet/devnet.ts'
import type { DraftOf } from '../../src/protocol/updates.ts'
import { keyStatesFrom } from '../support/key-states.ts'
import { listenNdjson, type TestListener } from '../support/test-listener.ts'
import { listenToAll, openDevnet, openRelayFor, tapeUpdatesOf } from '../support/test-stack.ts'
import { openStackWithListener, waitForSealAt } from './listeners.ts'

const ONE_TOKEN = 100_000_000n
/** The relay does not read the list again, so multipliers come from the chain alone. */
const withoutListRefresh = { STOCKS_REFRESH: '1h' }

/** Transfers one token; the hash of the transaction. */
const transferToken = (devnet: Devnet, flash = true) => {
  const hash = devnet.transfer({ symbol: 'TSLAc', raw: ONE_TOKEN })
  if (flash) devnet.makeFlashblock()
  return hash
}
/** The multiplier and the shares of a transaction's movement, as last published. */
const lastMovementOf = (listener: TestListener, hash: string) => {
  const published = tapeUpdatesOf(listener).flatMap((update) => {
    const content = update.type === 'amend' ? update.update : update
    return 'shares' in content && content.tx.hash === hash ? [content] : []
  })
  const last = published.at(-1)
  return last && `${last.multiplier} ${last.shares}`
}
const waitForMovement = (listener: TestListener, hash: string) =>
  listener.until(() => lastMovementOf(listener, hash) !== undefined, `the movement in ${hash.slice(0, 10)}`)
/** A token's first multiplier follows its listing, and names none before it. */
const isChange = ({ previous, source }: Pick<DraftOf<'multiplier'>, 'previous' | 'source'>): boolean =>
  source !== 'list' || previous !== null

const changesOf = (listener: TestListener) => listener.messagesOf('multiplier').filter(isChange)

describe.each([
  // What a pushed log says of its block's time is one message: it is believed once the block is settled.
  ['pushed', {}, ['1', 'effective by clock', 'amend multiplier,shares 2']],
  ['polled', { UPSTREAM_WS_URL: '' }, ['effective by clock', '2']],
])('a split that is %s', (_, settings, firstEffect) => {
  const open = async () => {
    const devnet = await openDevnet()
    const relay = await openRelayFor(devnet, { ...withoutListRefresh, ...settings })
    const listener = await listenToAll({ relay }, 'start')
    await listener.waitFor('status', ({ source }) => source === 'pendingLogs' || source === 'poll')
    return { devnet, listener }
  }

  it('applies from its chain position on, also after a reorganisation moves it', async () => {
    const { devnet, listener } = await open()
    const before = transferToken(devnet)
    devnet.seal()
    const first = transferToken(devnet, false)
    const split = devnet.issuer.split({ symbol: 'TSLAc', to: '2' })
    const second = transferToken(devnet)
    await waitForMovement(listener, second)
    devnet.seal()
    const after = transferToken(devnet)
    await waitForMovement(listener, after)
    expect([before, first, second, after].map((hash) => lastMovementOf(listener, hash))).toEqual(['1 1', '1 1', '2 2', '2 2'])
    const { number } = devnet.seal()
    await waitForSealAt(listener, number)
    devnet.reorg(2, [split], [split])
    devnet.makeFlashblock()
    const last = transferToken(devnet)
    await waitForMovement(listener, last)
    await listener.until(() => lastMovementOf(listener, after) === '1 1', 'the amended movement after it')
    expect([before, first, second, after, last].map((hash) => lastMovementOf(listener, hash))).toEqual([
      ...Array(4).fill('1 1'),
      '2 2',
    ])
    const retracted = listener.messagesOf('retract').filter(({ fact_type }) => fact_type === 'multiplier')
    expect(retracted.map(({ key, reason }) => [key.split('-')[1], reason])).toEqual([[split, 'reorg']])
    expect(changesOf(listener).map(({ previous, multiplier, phase }) => `${phase} ${previous} ${multiplier}`)).toEqual([
      'effective 1 2',
      'effective 1 2',
    ])
    keyStatesFrom(listener.messages)
  })

  it('that is scheduled applies from the first block at its time, without a log', async () => {
    const { devnet, listener } = await open()
    const effectiveAt = devnet.chain.pending.timestamp + 4
    devnet.issuer.split({ symbol: 'TSLAc', to: '2', effectiveAt })
    const moves: string[] = []
    for (let block = 0; block < 4; block += 1) {
      if (block > 0) await waitForSealAt(listener, devnet.seal().number)
      moves.push(transferToken(devnet))
      await waitForMovement(listener, moves.at(-1) ?? '')
    }
    expect(moves.map((hash) => lastMovementOf(listener, hash))).toEqual(['1 1', '1 1', '2 2', '2 2'])
    const published = tapeUpdatesOf(listener).flatMap((update) => {
      if (update.type === 'multiplier' && isChange(update)) return [`${update.phase} by ${update.source}`]
      if (update.type === 'amend') return [`amend ${update.changed.join()} ${(update.update as { shares?: string }).shares}`]
      return 'shares' in update ? [update.shares] : []
    })
    expect(published).toEqual(['scheduled by log', '1', '1', ...firstEffect, '2'])
  })
})

it('a dividend, a seizure, a pause and a rename are published, and the old name finds the new one', async () => {
  const { devnet, relay, listener } = await openStackWithListener({ STOCKS_REFRESH: '100ms' })
  const memo = `0x${'4d'.repeat(32)}` as const
  devnet.issuer.dividend({ symbol: 'NVDAc', to: '1.25', id: 'div-1', description: 'a dividend' })
  devnet.issuer.seize({ symbol: 'TSLAc', raw: ONE_TOKEN, memo })
  devnet.issuer.pause({ symbol: 'TSLAc', features: [0] })
  devnet.issuer.rename({ symbol: 'TSLAc', to: 'TSLXc' })
  devnet.makeFlashblock()
  devnet.seal()
  expect(await listener.waitFor('action')).toMatchObject({ action_id: 'div-1', keys: [listener.messagesOf('multiplier')[0]?.key] })
  expect(listener.messagesOf('multiplier')).toMatchObject([{ multiplier: '1.25', source: 'log' }])
  expect(await listener.waitFor('seize')).toMatchObject({ memo, amount: '1' })
  expect(await listener.waitFor('pause')).toMatchObject({ paused: ['TRANSFER'], source: 'log' })
  expect(await listener.waitFor('token')).toMatchObject({ symbol: 'TSLXc', changed: ['symbol'], before: { symbol: 'TSLAc' } })
  await listener.waitFor('seal', ({ types }) => types.includes('seize'))
  const other = await listenNdjson(`${relay.url}/v1/stream?symbols=tsla`)
  expect(await other.waitFor('snapshot')).toMatchObject({ symbol: 'TSLXc', paused: ['TRANSFER'] })
  other.close()
})

it('a feed round is the NAV before the list has it', async () => {
  const devnet = await openDevnet()
  const feed = devnet.feeds.TSLAc
  if (!feed) throw new Error('no feed')
  const relay = await openRelayFor(devnet, { FEEDS: `TSLAc=${feed.proxy}`, STOCKS_REFRESH: '100ms' })
  const listener = await listenToAll({ relay }, 'start')
  await listener.waitFor('token', ({ symbol }) => symbol === 'TSLAc')
  const updatedAt = Math.floor(Date.now() / 1_000)
  // The relay first asks which aggregator publishes the rounds, and misses earlier ones.
  const isPublished = () => listener.messagesOf('nav').some(({ source }) => source === 'log')
  for (let price = 500; !isPublished(); price += 1) {
    const { eth_getLogs: asked } = devnet.requests
    devnet.publishRound({ symbol: 'TSLAc', price: `${price}.25`, updatedAt })
    devnet.makeFlashblock()
    devnet.seal()
    await devnet.until(() => devnet.requests.eth_getLogs > asked)
  }
  expect(listener.messagesOf('nav').find(({ source }) => source === 'log')).toMatchObject({
    symbol: 'TSLAc',
    nav: { price: expect.stringMatching(/\.25$/), state: 'fresh' },
  })
})
