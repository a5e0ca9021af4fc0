import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { livesOf } from '../support/key-states.ts'
import { type Ear, listenNdjson } from '../support/test-listener.ts'
import { hearAll, openDevnet, openWorld, relayOn, tapeOf } from '../support/test-stack.ts'

const SHARE = 100_000_000n
/** The list is not read again, so that it says nothing of what the chain has to tell. */
const unlisted = { STOCKS_REFRESH_MS: '3600000' }

/** Moves one token; in which transaction. */
const move = (devnet: Devnet, flash = true) => {
  const hash = devnet.transfer({ symbol: 'TSLAc', raw: SHARE })
  if (flash) devnet.flash()
  return hash
}
/** How the movement of a transaction was told last: its stage, its multiplier and its shares. */
const lastOf = (ear: Ear, hash: string) => {
  const told = tapeOf(ear).flatMap((update) => {
    const content = update.type === 'amend' ? update.update : update
    return 'shares' in content && content.tx.hash === hash ? [content] : []
  })
  const last = told.at(-1)
  return last && `${last.multiplier} ${last.shares}`
}
const heardOf = (ear: Ear, hash: string) =>
  ear.until(() => lastOf(ear, hash) !== undefined, `what moved in ${hash.slice(0, 10)}`)
const sealedAt = (ear: Ear, number: number) => ear.hear('seal', ({ block }) => block.number === number)

describe.each([
  ['pushed', {}],
  ['polled', { UPSTREAM_WS_URL: '' }],
])('a split that is %s', (_, settings) => {
  const open = async () => {
    const devnet = await openDevnet()
    const relay = await relayOn(devnet, { ...unlisted, ...settings })
    const ear = await hearAll({ relay }, 'start')
    await ear.hear('status', ({ source }) => source === 'pendingLogs' || source === 'poll')
    return { devnet, ear }
  }

  it('counts from its place on, and elsewhere once a reorganisation has moved it', async () => {
    const { devnet, ear } = await open()
    const before = move(devnet)
    devnet.seal()
    const first = move(devnet, false)
    const split = devnet.act.split({ symbol: 'TSLAc', to: '2' })
    const second = move(devnet)
    await heardOf(ear, second)
    devnet.seal()
    const after = move(devnet)
    await heardOf(ear, after)
    expect([before, first, second, after].map((hash) => lastOf(ear, hash))).toEqual(['1 1', '1 1', '2 2', '2 2'])
    const { number } = devnet.seal()
    await sealedAt(ear, number)
    devnet.reorg(2, [split], [split])
    devnet.flash()
    const last = move(devnet)
    await heardOf(ear, last)
    await ear.until(() => lastOf(ear, after) === '1 1', 'that what came after is amended')
    expect([before, first, second, after, last].map((hash) => lastOf(ear, hash))).toEqual([
      ...Array(4).fill('1 1'),
      '2 2',
    ])
    const retracted = ear.all('retract').filter(({ of }) => of === 'multiplier')
    expect(retracted.map(({ key, reason }) => [key.split('-')[1], reason])).toEqual([[split, 'reorg']])
    expect(ear.all('multiplier').map(({ from, to, phase }) => `${phase} ${from} ${to}`)).toEqual([
      'effective 1 2',
      'effective 1 2',
    ])
    livesOf(ear.messages)
  })

  it('that is scheduled counts from the block whose time has come, though the chain says nothing', async () => {
    const { devnet, ear } = await open()
    const effectiveAt = devnet.chain.pending.timestamp + 4
    devnet.act.split({ symbol: 'TSLAc', to: '2', effectiveAt })
    const moves = [move(devnet)]
    for (let block = 0; block < 3; block += 1) {
      devnet.seal()
      moves.push(move(devnet))
      await heardOf(ear, moves.at(-1) ?? '')
    }
    expect(moves.map((hash) => lastOf(ear, hash))).toEqual(['1 1', '1 1', '2 2', '2 2'])
    const told = tapeOf(ear).flatMap((update) =>
      update.type === 'multiplier'
        ? [`${update.phase} by ${update.source}`]
        : 'shares' in update
          ? [update.shares]
          : [],
    )
    expect(told).toEqual(['scheduled by log', '1', '1', 'effective by clock', '2', '2'])
  })
})

it('a split that was lost is found with its block, and corrects what moved since', async () => {
  const world = await openWorld(unlisted)
  const { devnet } = world
  const ear = await hearAll(world)
  devnet.weather.lostFlashes = 1
  devnet.act.split({ symbol: 'TSLAc', to: '2' })
  devnet.flash()
  const moved = move(devnet)
  await heardOf(ear, moved)
  expect(lastOf(ear, moved)).toBe('1 1')
  devnet.seal()
  await ear.until(() => lastOf(ear, moved) === '2 2', 'that it is amended')
  expect(ear.all('multiplier')).toMatchObject([{ late: true, stage: 'sealed', to: '2' }])
  expect(ear.all('amend')).toMatchObject([{ changed: ['multiplier', 'shares'], update: { stage: 'sealed' } }])
})

it('a split that happens while nobody listens is told between what moved before and after it', async () => {
  const world = await openWorld({ ...unlisted, SILENCE_MS: '300' })
  const { devnet } = world
  const effectiveAt = devnet.chain.pending.timestamp + 8
  devnet.act.split({ symbol: 'TSLAc', to: '2', effectiveAt })
  devnet.flash()
  const ear = await hearAll(world, 'start')
  await ear.hear('multiplier')
  const { number } = devnet.seal()
  await sealedAt(ear, number)
  devnet.weather.dropSockets()
  devnet.weather.rpc = { status: 503 }
  await ear.hear('status', ({ source }) => source === 'down')
  const moves = Array.from({ length: 6 }, () => {
    const hash = move(devnet)
    devnet.seal()
    return hash
  })
  devnet.weather.clear()
  await heardOf(ear, moves.at(-1) ?? '')
  const told = tapeOf(ear).flatMap((update) =>
    update.type === 'multiplier' ? [`${update.phase} by ${update.source}`] : 'shares' in update ? [update.shares] : [],
  )
  expect(told).toEqual(['scheduled by log', '1', '1', '1', 'effective by clock', '2', '2', '2'])
})

it('a corporate action, a seizure and a rename are told whole, and lead from the old name to the new', async () => {
  const world = await openWorld({ STOCKS_REFRESH_MS: '100' })
  const { devnet, relay } = world
  const ear = await hearAll(world)
  const memo = `0x${'4d'.repeat(32)}` as const
  devnet.act.dividend({ symbol: 'NVDAc', to: '1.25', id: 'div-1', description: 'a dividend' })
  devnet.act.seize({ symbol: 'TSLAc', raw: SHARE, memo })
  devnet.act.pause({ symbol: 'TSLAc', features: [0] })
  devnet.act.rename({ symbol: 'TSLAc', to: 'TSLXc' })
  devnet.flash()
  devnet.seal()
  expect(await ear.hear('action')).toMatchObject({ action_id: 'div-1', keys: [ear.all('multiplier')[0]?.key] })
  expect(ear.all('multiplier')).toMatchObject([{ to: '1.25', source: 'log' }])
  expect(await ear.hear('seize')).toMatchObject({ memo, amount: '1' })
  expect(await ear.hear('pause')).toMatchObject({ now: [0], source: 'log' })
  expect(await ear.hear('token')).toMatchObject({ symbol: 'TSLXc', changed: ['symbol'], was: { symbol: 'TSLAc' } })
  await ear.hear('seal', ({ types }) => types.includes('seize'))
  const other = await listenNdjson(`${relay.url}/v1/stream?symbols=tsla`)
  expect(await other.hear('snapshot')).toMatchObject({ symbol: 'TSLXc', paused: ['TRANSFER'] })
  other.close()
})

it('a round of a feed is the NAV before any list says so, and a token that takes the place of another is heard', async () => {
  const devnet = await openDevnet()
  const feed = devnet.feeds.TSLAc
  if (!feed) throw new Error('no feed')
  const relay = await relayOn(devnet, { FEEDS: `TSLAc=${feed.proxy}`, STOCKS_REFRESH_MS: '100' })
  const ear = await hearAll({ relay }, 'start')
  await ear.hear('token', ({ symbol }) => symbol === 'TSLAc')
  const updatedAt = Math.floor(Date.now() / 1_000)
  // Who makes its rounds has to be asked first: one that comes before is not heard.
  const isHeard = () => ear.all('nav').some(({ source }) => source === 'log')
  for (let price = 500; !isHeard(); price += 1) {
    const { eth_getLogs: asked } = devnet.requests
    devnet.round({ symbol: 'TSLAc', price: `${price}.25`, updatedAt })
    devnet.flash()
    devnet.seal()
    await devnet.until(() => devnet.requests.eth_getLogs > asked)
  }
  expect(ear.all('nav').find(({ source }) => source === 'log')).toMatchObject({
    symbol: 'TSLAc',
    nav: { price: expect.stringMatching(/\.25$/), state: 'fresh' },
  })
  devnet.list.remove('TSLAc')
  devnet.list.add({ symbol: 'NEWc', contract_address: `0xb2${'77'.repeat(19)}`, decimals: 8 })
  expect(await ear.hear('token', ({ change }) => change === 'listed')).toBeDefined()
  await ear.hear('token', ({ symbol, change }) => symbol === 'NEWc' && change === 'listed')
})
