import { Agent, request } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ServiceStatus } from '../../src/protocol/service-status.ts'
import { listenNdjson } from '../support/test-listener.ts'
import { fetchDocumented, openTestStack, type TestStack, transfer } from '../support/test-stack.ts'
import { tapeTexts } from './history-reader.ts'
import { closeAfterTest } from './listeners.ts'

/** A stack with three transfers on the tape. */
async function openStackWithTape(
  settings: Record<string, string> = {},
): Promise<TestStack & { readonly published: readonly string[] }> {
  const stack = await openTestStack(settings)
  const listener = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream?symbols=*&since=start&snapshot=false`))
  transfer(stack, 'AAPLc', 3)
  await listener.until(() => listener.messagesOf('transfer').length === 3)
  return { ...stack, published: tapeTexts(listener) }
}

describe('history as NDJSON', () => {
  it('is requested in the URL or by the Accept header, and the URL wins', async () => {
    const { relay, published } = await openStackWithTape()
    const url = `${relay.url}/v1/events`
    const lines = { type: 'application/x-ndjson; charset=utf-8', text: published.map((text) => `${text}\n`).join('') }
    const page = { type: 'application/json', text: `{"events":[${published.join(',')}],"next":null}` }
    for (const [query, accept, expected] of [
      ['?format=ndjson', 'application/json', lines],
      ['', 'application/x-ndjson', lines],
      ['', 'application/x-ndjson, */*;q=0.1', lines],
      ['?format=json', 'application/x-ndjson', page],
      ['', '*/*', page],
      ['', 'application/*', page],
      ['', 'text/html', page],
    ] as const) {
      const response = await fetch(`${url}${query}`, { headers: { accept } })
      expect({ type: response.headers.get('content-type'), text: await response.text() }, `${query} ${accept}`).toEqual(expected)
    }
  })

  it('and pages have the header X-Kept-Since, after which nothing is evicted', async () => {
    const stack = await openStackWithTape({ TAPE_MAX_MESSAGES: '100' })
    const url = `${stack.relay.url}/v1/events`
    const keptSince = async (query = '') => {
      const { headers, body } = await fetch(`${url}${query}`)
      await body?.cancel()
      return headers.get('x-kept-since') ?? ''
    }
    expect(await keptSince()).toMatch(/^[0-9a-z]+\.0$/)
    const listener = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream/AAPLc?types=transfer`))
    await listener.waitFor('live')
    transfer(stack, 'AAPLc', 150)
    await listener.until(() => listener.messagesOf('transfer').length === 150)
    // What is open is not evicted.
    stack.devnet.seal()
    await listener.waitFor('seal')
    const { oldest } = ServiceStatus.parse((await fetchDocumented(`${stack.relay.url}/v1/status`)).json).tape
    expect(oldest).not.toMatch(/\.0$/)
    expect([await keptSince(), await keptSince('?format=ndjson')]).toEqual([oldest, oldest])
  })

  it('answers HEAD without a body, with the headers of the export', async () => {
    const { relay } = await openStackWithTape()
    const url = `${relay.url}/v1/events?format=ndjson&types=status&limit=1`
    const { status, headers, text } = await fetchDocumented(url, { method: 'HEAD' })
    expect([status, text]).toEqual([200, ''])
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/x-ndjson; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'access-control-expose-headers': 'etag, age, retry-after, x-kept-since, x-kept-since-time',
    })
  })

  it('can be read twice over one connection', async () => {
    const { relay, published } = await openStackWithTape()
    const { port } = new URL(relay.url)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const get = () =>
      new Promise<{ text: string; complete: boolean; from: number | undefined }>((resolve, reject) => {
        const asking = request({ port, agent, path: '/v1/events?format=ndjson' }, (answer) => {
          let text = ''
          answer.setEncoding('utf8').on('data', (piece: string) => {
            text += piece
          })
          answer.on('end', () => resolve({ text, complete: answer.complete, from: asking.socket?.localPort }))
        })
        asking.on('error', reject).end()
      })
    const [first, second] = [await get(), await get()]
    expect(second).toEqual(first)
    expect([first.complete, first.text]).toEqual([true, published.map((text) => `${text}\n`).join('')])
  })
})
