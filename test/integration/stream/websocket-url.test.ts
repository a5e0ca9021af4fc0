import { describe, expect, it } from 'vitest'
import { listenWs } from '../../support/test-listener.ts'
import { messageTypesOf, openTestStack, tapeUpdatesOf, transfer } from '../../support/test-stack.ts'
import { listen, waitForAnswers } from './stream-listeners.ts'

describe('the URL parameters of a WebSocket', () => {
  it('are cleared by null in the first subscription', async () => {
    const stack = await openTestStack()
    const listener = await listen(stack, 'ws', 'since=start&stage=sealed&snapshot=false&types=token,transfer')
    listener.send({ type: 'subscribe', symbols: ['AAPLc'], since: null, stage: null, snapshot: null })
    await listener.waitFor('live')
    expect(messageTypesOf(listener.received)).toEqual(['hello', 'subscribed', 'snapshot', 'live'])
    transfer(stack)
    await listener.waitFor('transfer', ({ stage }) => stage === 'preconfirmed')
  })

  it('are ignored when their symbols are unknown', async () => {
    const stack = await openTestStack()
    const listener = await listen(stack, 'ws', 'symbols=APPL&types=transfer&since=start')
    await listener.waitFor('error')
    listener.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await listener.waitFor('live')
    expect(tapeUpdatesOf(listener)).toEqual([])
    transfer(stack)
    stack.devnet.seal()
    await listener.waitFor('seal')
  })

  it('do not count as a bad message: nine more do not end the connection', async () => {
    const stack = await openTestStack()
    const listener = await listen(stack, 'ws', 'symbols=AAPLc&types=dividends')
    await listener.waitFor('error')
    for (let time = 0; time < 9; time += 1) listener.send('nonsense')
    await waitForAnswers(listener)
  })
})

describe('the Last-Event-ID of a WebSocket', () => {
  it('resumes as on the other transports, as a header or a parameter: the header wins, then the parameter, then since', async () => {
    const stack = await openTestStack()
    const steady = await listen(stack, 'ws', 'symbols=AAPLc&types=transfer')
    transfer(stack, 'AAPLc', 3)
    await steady.until(() => steady.messagesOf('transfer').length === 3, 'the transfers')
    const [first = '', second = '', third = ''] = steady.messagesOf('transfer').map(({ id }) => id)
    const query = 'symbols=AAPLc&types=transfer&snapshot=false'
    for (const [urlQuery, header, missed] of [
      [query, first, [second, third]],
      [`${query}&since=start`, second, [third]],
      [`${query}&since=start&lastEventId=${first}`, second, [third]],
      [`${query}&since=start&lastEventId=${first}`, '', [second, third]],
    ] as const) {
      const listener = await listenWs(`${stack.relay.wsUrl}?${urlQuery}`, { headers: { 'last-event-id': header } })
      await listener.waitFor('live')
      listener.close()
      expect(listener.messagesOf('subscribed')).toMatchObject([{ resume: 'full' }])
      expect(tapeUpdatesOf(listener).map(({ id }) => id)).toEqual(missed)
    }
  })
})

describe('a first subscription with unknown symbols only', () => {
  it('lets the next one set since', async () => {
    const stack = await openTestStack()
    const steady = await listen(stack, 'ws', 'symbols=AAPLc&types=transfer')
    transfer(stack)
    const { id } = await steady.waitFor('transfer')
    const listener = await listen(stack, 'ws', '')
    listener.send({ type: 'subscribe', req: 1, symbols: ['APPL'], since: 'start' })
    listener.send({ type: 'subscribe', req: 2, symbols: ['AAPLc'], types: ['transfer'], since: 'start', snapshot: false })
    listener.send({ type: 'ping', req: 3 })
    await listener.waitFor('pong')
    expect(listener.messagesOf('subscribed')).toMatchObject([
      { req: 1, symbols: [], rejected: [{ symbol: 'APPL', suggest: ['AAPLc'] }] },
      { req: 2, symbols: ['AAPLc'], rejected: [] },
    ])
    expect(tapeUpdatesOf(listener).map((update) => update.id)).toEqual([id])
    expect(messageTypesOf(listener.received).slice(-3)).toEqual(['transfer', 'live', 'pong'])
  })
})
