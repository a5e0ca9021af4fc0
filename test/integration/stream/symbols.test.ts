import { describe, expect, it } from 'vitest'
import { openTestStack, transfer } from '../../support/test-stack.ts'
import { listenLive, waitForAnswers } from './stream-listeners.ts'

const NEW_ADDRESS = `0x${'7e'.repeat(20)}` as const

describe('a symbol', () => {
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
    stack.devnet.list.add({ symbol: 'NEWc', contract_address: NEW_ADDRESS, decimals: 8 })
    expect(await listener.waitFor('token')).toMatchObject({ change: 'listed', symbol: 'NEWc', address: NEW_ADDRESS })
    stack.devnet.transfer({ address: NEW_ADDRESS, raw: 5n })
    stack.devnet.makeFlashblock()
    expect(await listener.waitFor('transfer')).toMatchObject({ symbol: 'NEWc', raw: '5' })
  })
})
