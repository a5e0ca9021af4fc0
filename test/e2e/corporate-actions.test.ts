import { expect, it } from 'vitest'
import { listenNdjson } from '../support/test-listener.ts'
import { listenToAll, openDevnet, openRelayFor } from '../support/test-stack.ts'
import { openStackWithListener } from './listeners.ts'

const ONE_TOKEN = 100_000_000n
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
