import { describe, expect, it, onTestFinished } from 'vitest'
import type { TestListener } from '../../support/test-listener.ts'
import { listenToAll, messageTypesOf, openTestStack, type TestStack, transfer } from '../../support/test-stack.ts'
import { listenLive, tapeTextsOf, transports, wholeTokens } from './stream-listeners.ts'

const MEMO = `0x${'4d'.repeat(32)}` as const
/** A text with line breaks, cursor movement, colours, bidi overrides and invisible characters. */
const HOSTILE = 'a\nb\r\nc\u001b[31mred\u0000\u0007\u009b2J\u202eesrever\u2066x\u2069\u200f\u061c\u2028\u2029\ufeffz'
const UNRULY = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/u

/** A tape with updates of nearly every type, some with hostile texts from outside. */
async function openStackWithHistory(): Promise<{ stack: TestStack; listener: TestListener }> {
  const stack = await openTestStack({ FINALITY_POLL: '100ms' })
  const { devnet } = stack
  const listener = await listenToAll(stack, 'start')
  const symbol = 'AAPLc'
  devnet.list.change('INTCc', { name: HOSTILE })
  devnet.list.change('TSLAc', { nav_price: 500.25, nav_price_updated_at: new Date().toISOString() })
  transfer(stack, symbol, 2)
  devnet.issuer.announce({ symbol, id: `id ${HOSTILE}`, description: HOSTILE, uri: HOSTILE, split: { to: '2' } })
  devnet.issuer.pause({ symbol: 'NVDAc', features: [0, 7] })
  devnet.issuer.seize({ symbol: 'MSFTc', raw: wholeTokens(3), memo: MEMO })
  devnet.transfer({ symbol: 'MSFTc', raw: wholeTokens(2), memo: MEMO })
  devnet.transfer({ symbol: 'METAc', from: `0x${'0'.repeat(40)}`, raw: 5n })
  devnet.transfer({ symbol: 'METAc', to: `0x${'0'.repeat(40)}`, raw: 5n })
  devnet.emit({ address: devnet.list.addressOf('COINc'), topics: [MEMO], data: '0x01' })
  const changed = devnet.transfer({ symbol: 'GOOGLc', raw: 1n })
  const dropped = devnet.transfer({ symbol: 'CRCLc', raw: 9n })
  const log = devnet.makeFlashblock().find(({ transactionHash }) => transactionHash === changed)
  if (!log) throw new Error('no log')
  await listener.waitFor('transfer', ({ symbol }) => symbol === 'CRCLc')
  devnet.faults.change(changed, [{ ...log, data: `0x${'7'.padStart(64, '0')}` }])
  devnet.faults.drop(dropped)
  devnet.seal()
  for (const type of ['action', 'multiplier', 'pause', 'seize', 'mint', 'burn', 'log', 'amend', 'retract', 'finality'] as const) {
    await listener.waitFor(type)
  }
  await listener.waitFor('nav', ({ symbol, nav }) => symbol === 'TSLAc' && nav.price === '500.25')
  await listener.waitFor('token', ({ symbol, change }) => symbol === 'INTCc' && change === 'changed')
  await listener.until(() => listener.messagesOf('seal').length === 6, 'the seals')
  return { stack, listener }
}

/** Reads a streaming response as text until it matches. */
async function readTextUntil(url: string, pattern: RegExp): Promise<string> {
  const abort = new AbortController()
  onTestFinished(() => abort.abort())
  const response = await fetch(url, { signal: abort.signal })
  let text = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    if (pattern.test(text)) break
  }
  return text
}

describe('a message', () => {
  it.each(['preconfirmed', 'sealed'])('has the same bytes on every transport, live and replayed, in the %s view', async (stage) => {
    const { stack, listener } = await openStackWithHistory()
    const { id: end } = listener.messagesOf('seal').at(-1) ?? { id: '' }
    const query = `symbols=*&types=*&snapshot=false&stage=${stage}&since=start`
    const listeners = await Promise.all(transports.map((transport) => listenLive(stack, transport, query)))
    const named = await listenLive(stack, 'sse', `${query}&events=named`)
    const texts = [...listeners, named].map((received) => {
      const published = tapeTextsOf(received)
      return published.slice(0, published.findIndex((text) => JSON.parse(text).id === end) + 1)
    })
    if (stage === 'preconfirmed') texts.push(tapeTextsOf(listener).slice(0, texts[0]?.length))
    expect(texts[0]?.length).toBeGreaterThan(40)
    for (const published of texts) expect(published).toEqual(texts[0])
  })

  it('is one line of text, in the same order, without control characters from outside', async () => {
    const { stack, listener } = await openStackWithHistory()
    const count = tapeTextsOf(listener).length
    const text = await readTextUntil(`${stack.relay.url}/v1/tail/*?types=*&since=start&heartbeat=1`, /\n# \d{4}-.* source .*\n/)
    const lines = text.trimEnd().split('\n')
    for (const line of lines) expect(line).not.toMatch(UNRULY)
    const published = lines.filter((line) => !line.startsWith('#'))
    expect(published.length).toBeGreaterThanOrEqual(count)
    for (const [at, line] of published.slice(0, count).entries()) {
      const message = listener.messages.filter((one) => 'prev' in one)[at]
      if (!message || !('prev' in message)) throw new Error('unreachable')
      const [time, symbol, type] = line.split(/ +/)
      expect({ time, symbol, type }).toEqual({ time: message.time.slice(11, 23), symbol: message.symbol, type: message.type })
    }
    expect(published.find((line) => / action /.test(line))).toMatch(/\ufffd/)
    // Notices start with #.
    expect(lines[0]).toMatch(/^# stocktape\.v1 /)
    expect(lines[1]).toMatch(/^# subscribed to \*/)
    expect(lines.some((line) => /^# live after \d+ replayed$/.test(line))).toBe(true)
    const streamText = await readTextUntil(`${stack.relay.url}/v1/stream?symbols=*&types=*&since=start&format=text`, /# live/)
    const streamLines = streamText.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    expect(streamLines.slice(0, count)).toEqual(published.slice(0, count))
    const sealed = await readTextUntil(`${stack.relay.url}/v1/tail/MSFTc?stage=sealed&since=start`, /# live/)
    expect(sealed).toMatch(/ MSFTc +transfer .* sealed in \d+/)
    expect(sealed).not.toContain('preconfirmed')
  })
})

it('events=named names every event after its type, heartbeats too, and keeps the ids', async () => {
  const stack = await openTestStack({ HEARTBEAT: '100ms' })
  const listener = await listenLive(stack, 'sse', 'symbols=AAPLc&events=named')
  transfer(stack)
  await listener.waitFor('transfer')
  await listener.waitFor('heartbeat')
  expect(listener.received.map(({ event }) => event)).toEqual(messageTypesOf(listener.received))
  for (const { message, id } of listener.received) expect(id).toBe('id' in message ? message.id : undefined)
})

describe('a browser', () => {
  it('gets a comment first, and a random retry time of its own', async () => {
    const stack = await openTestStack()
    const times = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const text = await readTextUntil(`${stack.relay.url}/v1/stream/AAPLc`, /data: /)
        expect(text).toMatch(/^:[^\n]*\nretry: \d+\n\n(id: \S+\n)?data: \{"type":"hello"/)
        return Number(/^retry: (\d+)$/m.exec(text)?.[1])
      }),
    )
    for (const time of times) {
      expect(time).toBeGreaterThanOrEqual(1_000)
      expect(time).toBeLessThanOrEqual(3_000)
    }
    expect(new Set(times).size).toBeGreaterThan(1)
  })
})
