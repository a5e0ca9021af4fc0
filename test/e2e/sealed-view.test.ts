import { describe, expect, it, onTestFinished } from 'vitest'
import { openApp } from '../../src/relay/edge/http/http-app.ts'
import { listen } from '../../src/relay/edge/http/http-server.ts'
import type { StreamServices } from '../../src/relay/edge/live/edge-context.ts'
import { diffFullList } from '../../src/relay/tokens/list/list-diff.ts'
import { parseList } from '../../src/relay/tokens/list/list-parser.ts'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../support/test-listener.ts'
import { messageTypesOf, sequenceOf, tapeUpdatesOf } from '../support/test-stack.ts'
import { openTestEdge } from '../unit/relay/edge/edge-fixture.ts'
import { amendOf, approvalAt, retractOf, sealedAt, sealOf, transferAt } from '../unit/relay/edge/fact-drafts.ts'
import { apple, notesOfTokens, tesla } from '../unit/relay/tape/update-drafts.ts'
import { waitUntilLive } from './listeners.ts'

const first = transferAt({ index: 1 }, { reference_value: '5.00' })
const second = transferAt({ index: 2 }, { reference_value: '5000.00' })
const allowance = approvalAt({ index: 3 })

/** An edge with two tokens over a tape that the test writes. */
async function openRelayOnWrittenTape() {
  const { tape, context: edge } = openTestEdge()
  const records = [
    { symbol: 'AAPLc', contract_address: apple, decimals: 8 },
    { symbol: 'TSLAc', contract_address: tesla, decimals: 8 },
  ]
  const { tokens } = diffFullList(new Map(), [...parseList(Buffer.from(JSON.stringify({ tokens: records }))).tokens.values()], {
    now: 0,
    navStaleAfterMs: 1_000,
    at: { block: 0, logIndex: 0 },
  })
  await tape.append([], notesOfTokens(tokens))
  let connections = 0
  const createConnectionId = () => {
    connections += 1
    return String(connections)
  }
  const streams: StreamServices = {
    edge,
    random: () => 0.5,
    createConnectionId,
    clientAddressOf: () => 'here',
    compression: false,
    authorize: () => null,
    keys: null,
    warn: () => {},
    countRefusal: () => {},
  }
  const app = openApp({
    ...{ streams, nodeRoutes: [], loadDocuments: async () => new Map(), listCacheControl: '' },
    metrics: async () => '',
    metricsToken: undefined,
    unreadyReasons: () => [],
    status: () => null as never,
  })
  const server = await listen(app, { streams, webSocketRoutes: [] }, { host: '127.0.0.1', port: 0, maxClients: 100 })
  onTestFinished(() => server.close(0))
  const at = `127.0.0.1:${server.port}`
  return { tape, url: `http://${at}/v1/stream`, tailUrl: `http://${at}/v1/tail`, wsUrl: `ws://${at}/v1/ws` }
}

const typesAndPositions = (listener: TestListener) =>
  tapeUpdatesOf(listener).map(({ type, id }) => `${type} ${id.slice(id.indexOf('.') + 1)}`)

describe('the sealed view', () => {
  it('is the same over every transport, live and replayed, with the same ids', async () => {
    const { tape, url, wsUrl } = await openRelayOnWrittenTape()
    const query = 'symbols=*&types=*&stage=sealed&snapshot=false'
    const listenAll = (since: string) => [
      listenSse(`${url}?${query}${since}`),
      listenNdjson(`${url}?${query}${since}`),
      listenWs(`${wsUrl}?${query}${since}`),
    ]
    const live = await Promise.all(listenAll('').map(waitUntilLive))
    await tape.append([first, second])
    await tape.append([sealedAt(allowance), sealOf([first, second, allowance])])
    await tape.append([retractOf(first, 'reorg')])
    for (const listener of live) await listener.waitFor('retract')
    const later = await Promise.all(listenAll('&since=start').map(waitUntilLive))
    const published = ['approval 3', 'transfer 4.1', 'transfer 4.2', 'seal 4', 'retract 5']
    const texts = [...live, ...later].map((listener) => {
      expect(typesAndPositions(listener)).toEqual(published)
      return listener.received.flatMap(({ message, text }) => ('prev' in message ? [text] : []))
    })
    expect(new Set(texts.map((text) => text.join('\n'))).size).toBe(1)
    for (const { message, id } of live[0]?.received ?? []) expect(id).toBe('id' in message ? message.id : undefined)
    expect(later[1]?.messagesOf('live')[0]).toMatchObject({ replayed: 5, id: `${tape.epoch}.5` })
  })

  it('continues for a browser that lost its stream inside a seal', async () => {
    const { tape, url } = await openRelayOnWrittenTape()
    await tape.append([first, second])
    await tape.append([sealOf([first, second])])
    const id = `${tape.epoch}.3.1`
    const listener = await waitUntilLive(listenSse(`${url}/AAPLc?stage=sealed`, { 'last-event-id': id }))
    expect(messageTypesOf(listener.received)).toEqual(['hello', 'subscribed', 'transfer', 'seal', 'live'])
    expect(listener.messagesOf('subscribed')[0]).toMatchObject({ resume: 'full', id })
    expect(typesAndPositions(listener)).toEqual(['transfer 3.2', 'seal 3'])
    const outside = await waitUntilLive(listenSse(`${url}/AAPLc`, { 'last-event-id': id }))
    expect(typesAndPositions(outside)).toEqual(['seal 3'])
    expect(sequenceOf(outside.messagesOf('hello')[0]?.id)).toBe(2)
  })

  it('is readable as text without pre-confirmations', async () => {
    const { tape, tailUrl } = await openRelayOnWrittenTape()
    await tape.append([first])
    await tape.append([sealOf([first])])
    const abort = new AbortController()
    const { body } = await fetch(`${tailUrl}/AAPLc?stage=sealed&since=start`, { signal: abort.signal })
    let text = ''
    for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk
      if (text.includes('# live')) break
    }
    abort.abort()
    expect(text).toMatch(/transfer .* sealed in 7, .*\n.* seal +block 7/)
    expect(text).not.toContain('preconfirmed')
  })
})

describe('a listener that received a pre-confirmation', () => {
  it('receives its end, over every transport and after reconnecting, and no other listener does', async () => {
    const { tape, url, wsUrl } = await openRelayOnWrittenTape()
    const query = 'symbols=AAPLc&types=transfer&min_value=1000&snapshot=false'
    const live = await Promise.all(
      [listenSse(`${url}?${query}`), listenNdjson(`${url}?${query}`), listenWs(`${wsUrl}?${query}`)].map(waitUntilLive),
    )
    await tape.append([first, second])
    await tape.append([amendOf(second, sealedAt(second)), retractOf(first), sealOf([second])])
    await tape.append([retractOf(second, 'reorg')])
    const published = ['transfer 2', 'amend 3', 'seal 5', 'retract 6']
    for (const listener of live) {
      await listener.waitFor('retract')
      expect(typesAndPositions(listener)).toEqual(published)
    }
    for (const [place, rest] of [2, 3, 5].entries()) {
      const back = await waitUntilLive(listenNdjson(`${url}?${query}&since=${tape.epoch}.${rest}`))
      expect(typesAndPositions(back)).toEqual(published.slice(place + 1))
    }
  })

  it('receives ends by its new selection after a change', async () => {
    const { tape, wsUrl } = await openRelayOnWrittenTape()
    const listener = await waitUntilLive(listenWs(`${wsUrl}?symbols=AAPLc,TSLAc&types=transfer&snapshot=false`))
    const other = transferAt({ address: tesla })
    await tape.append([first, second, other])
    listener.send({ type: 'unsubscribe', req: 1, symbols: ['TSLAc'] })
    await listener.waitFor('unsubscribed')
    await tape.append([retractOf(other)])
    listener.send({ type: 'subscribe', req: 2, min_value: '1000' })
    await listener.waitFor('subscribed', ({ req }) => req === 2)
    await tape.append([retractOf(first)])
    listener.send({ type: 'subscribe', req: 3, types: ['nav', 'retract'], min_value: null })
    await listener.waitFor('subscribed', ({ req }) => req === 3)
    await tape.append([sealOf([second]), retractOf(second, 'reorg')])
    await listener.waitFor('retract')
    expect(typesAndPositions(listener)).toEqual(['transfer 1', 'transfer 2', 'transfer 3', 'retract 7'])
  })
})
