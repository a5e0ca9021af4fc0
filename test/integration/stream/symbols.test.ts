import { describe, expect, it } from 'vitest'
import { listenNdjson } from '../../support/test-listener.ts'
import { openTestStack, type TestStack, transfer } from '../../support/test-stack.ts'
import { listenLive, transports, waitForAnswers } from './stream-listeners.ts'

const TWIN_ADDRESS = `0x${'7e'.repeat(20)}` as const

/** A list with two tokens whose symbols differ only in case, both known to the relay. */
async function openStackWithDuplicateSymbol(): Promise<TestStack> {
  const stack = await openTestStack()
  const listener = await listenNdjson(`${stack.relay.url}/v1/stream?symbols=*&types=token&since=start`)
  stack.devnet.list.add({ symbol: 'AAPLC', contract_address: TWIN_ADDRESS, decimals: 8 })
  await listener.waitFor('token', ({ address }) => address === TWIN_ADDRESS)
  listener.close()
  return stack
}

describe('a symbol', () => {
  it.each(['aapl', '0xB200000000000000000000C2E324D24D7EECD1FB', 'ISIN:us0378331005'])(
    '%s selects its token, and any other name of it unsubscribes',
    async (name) => {
      const listener = await listenLive(await openTestStack(), 'ws', `symbols=${name}&types=transfer`)
      expect(listener.messagesOf('subscribed')).toMatchObject([{ symbols: ['AAPLc'], rejected: [] }])
      expect(listener.messagesOf('snapshot').map(({ symbol }) => symbol)).toEqual(['AAPLc'])
      listener.send({ type: 'unsubscribe', req: 1, symbols: [name, 'AAPLc'] })
      expect(await listener.waitFor('unsubscribed')).toEqual({ type: 'unsubscribed', req: 1, symbols: ['AAPLc'] })
    },
  )

  it('that a token had before still selects it, and a subscription survives the change', async () => {
    const stack = await openTestStack()
    const before = await listenLive(stack, 'ws', 'symbols=AAPLc&types=transfer,token')
    stack.devnet.list.change('AAPLc', { symbol: 'APLEc' })
    expect(await before.waitFor('token')).toMatchObject({ change: 'changed', changed: ['symbol'], before: { symbol: 'AAPLc' } })
    const after = await listenLive(stack, 'sse', 'symbols=AAPLc,aple&types=transfer')
    expect(after.messagesOf('subscribed')).toMatchObject([{ symbols: ['APLEc'], rejected: [] }])
    expect(after.messagesOf('snapshot')).toHaveLength(1)
    before.send({ type: 'list', req: 1 })
    expect(await before.waitFor('subscribed', ({ req }) => req === 1)).toMatchObject({ symbols: ['APLEc'] })
    transfer(stack, 'APLEc')
    expect(await before.waitFor('transfer')).toMatchObject({ symbol: 'APLEc' })
    before.send({ type: 'unsubscribe', symbols: ['AAPLc'] })
    expect(await before.waitFor('unsubscribed')).toMatchObject({ symbols: ['APLEc'] })
  })

  it('of several tokens is rejected with their addresses, and the others are subscribed', async () => {
    const stack = await openStackWithDuplicateSymbol()
    const address = stack.devnet.list.addressOf('AAPLc')
    for (const transport of transports) {
      const listener = await listenLive(stack, transport, 'symbols=aaplc,TSLA,nvdia&types=transfer')
      const [subscribed] = listener.messagesOf('subscribed')
      expect(subscribed).toMatchObject({ symbols: ['TSLAc'] })
      expect(subscribed?.rejected[0]).toMatchObject({ symbol: 'aaplc', reason: 'ambiguous_symbol' })
      expect(subscribed?.rejected[0]?.suggest.toSorted()).toEqual([TWIN_ADDRESS, address].toSorted())
      expect(subscribed?.rejected[1]).toMatchObject({ symbol: 'nvdia', reason: 'unknown_symbol', suggest: ['NVDAc'] })
      expect(listener.messagesOf('snapshot').map(({ symbol }) => symbol)).toEqual(['TSLAc'])
    }
    const exact = await listenLive(stack, 'ws', `symbols=${TWIN_ADDRESS.toUpperCase().replace('X', 'x')}`)
    expect(exact.messagesOf('snapshot')).toMatchObject([{ address: TWIN_ADDRESS }])
  })

  it('beside * that is unknown is rejected, and all tokens are subscribed', async () => {
    const stack = await openTestStack()
    const listener = await listenLive(stack, 'sse', 'symbols=APPL,*,TSLAc&types=transfer')
    expect(listener.messagesOf('subscribed')).toMatchObject([
      { symbols: ['*'], rejected: [{ symbol: 'APPL', reason: 'unknown_symbol', suggest: ['AAPLc'] }] },
    ])
    expect(listener.messagesOf('snapshot')).toHaveLength(stack.devnet.tokens.length)
  })

  it('of several tokens brings their updates in the order of the tape', async () => {
    const stack = await openTestStack()
    const [two, all] = [await listenLive(stack, 'sse', 'symbols=AAPLc,TSLAc'), await listenLive(stack, 'sse', 'symbols=*')]
    const symbols = ['AAPLc', 'TSLAc', 'NVDAc', 'TSLAc', 'AAPLc', 'TSLAc']
    for (const symbol of symbols) stack.devnet.transfer({ symbol, raw: 1n })
    stack.devnet.makeFlashblock()
    for (const [listener, expected] of [
      [two, symbols.toSpliced(2, 1)],
      [all, symbols],
    ] as const) {
      await listener.until(() => listener.messagesOf('transfer').length === expected.length)
      expect(listener.messagesOf('transfer').map(({ symbol }) => symbol)).toEqual(expected)
    }
  })
})

describe('the wildcard', () => {
  it('extends a subscription, sends only the missing snapshots, and stays', async () => {
    const stack = await openTestStack()
    const listener = await listenLive(stack, 'ws', 'symbols=AAPLc&types=transfer')
    listener.send({ type: 'subscribe', req: 1, symbols: ['*'] })
    expect(await listener.waitFor('subscribed', ({ req }) => req === 1)).toMatchObject({ symbols: ['*'], resume: 'none' })
    await waitForAnswers(listener)
    const snapshotSymbols = listener.messagesOf('snapshot').map(({ symbol }) => symbol)
    expect(snapshotSymbols.toSorted()).toEqual(stack.devnet.tokens.map(({ symbol }) => symbol).toSorted())
    listener.send({ type: 'subscribe', req: 2, symbols: ['TSLAc'] })
    expect(await listener.waitFor('subscribed', ({ req }) => req === 2)).toMatchObject({ symbols: ['*'] })
    listener.send({ type: 'list', req: 3 })
    expect(await listener.waitFor('subscribed', ({ req }) => req === 3)).toMatchObject({ symbols: ['*'] })
    await waitForAnswers(listener)
    expect(listener.messagesOf('snapshot')).toHaveLength(snapshotSymbols.length)
    expect(listener.messagesOf('live')).toHaveLength(1)
  })

  it('loses no single symbol, and is removed as a whole', async () => {
    const stack = await openTestStack()
    const listener = await listenLive(stack, 'ws', 'symbols=*&types=transfer')
    listener.send({ type: 'unsubscribe', req: 1, symbols: ['AAPLc'] })
    expect(await listener.waitFor('error')).toMatchObject({ req: 1, code: 400 })
    listener.send({ type: 'unsubscribe', req: 2, symbols: ['*'] })
    expect(await listener.waitFor('unsubscribed')).toMatchObject({ symbols: ['*'] })
    transfer(stack, 'AAPLc')
    listener.send({ type: 'subscribe', req: 3, symbols: ['TSLAc'], snapshot: false })
    expect(await listener.waitFor('subscribed', ({ req }) => req === 3)).toMatchObject({ symbols: ['TSLAc'] })
    transfer(stack, 'TSLAc')
    expect(await listener.waitFor('transfer')).toMatchObject({ symbol: 'TSLAc' })
    expect(listener.messagesOf('snapshot')).toHaveLength(stack.devnet.tokens.length)
  })

  it('includes a token that is listed later', async () => {
    const stack = await openTestStack()
    const listener = await listenLive(stack, 'ws', 'symbols=*&types=token,transfer')
    stack.devnet.list.add({ symbol: 'NEWc', contract_address: TWIN_ADDRESS, decimals: 8 })
    expect(await listener.waitFor('token')).toMatchObject({ change: 'listed', symbol: 'NEWc', address: TWIN_ADDRESS })
    stack.devnet.transfer({ address: TWIN_ADDRESS, raw: 5n })
    stack.devnet.makeFlashblock()
    expect(await listener.waitFor('transfer')).toMatchObject({ symbol: 'NEWc', raw: '5' })
  })
})
