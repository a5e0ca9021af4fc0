import { onTestFinished } from 'vitest'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../../support/test-listener.ts'
import { sequenceOf, type TestStack } from '../../support/test-stack.ts'

export const transports = ['ws', 'sse', 'ndjson'] as const
export type Transport = (typeof transports)[number]

type HasRelay = Pick<TestStack, 'relay'>

/** Listens over a transport until the test ends. `after` resumes in the way of the transport. */
export async function listen({ relay }: HasRelay, transport: Transport, query: string, after?: string): Promise<TestListener> {
  const since = after === undefined ? '' : `&since=${after}`
  const listener = await (transport === 'ws'
    ? listenWs(`${relay.wsUrl}?${query}${since}`)
    : transport === 'ndjson'
      ? listenNdjson(`${relay.url}/v1/stream?${query}${since}`)
      : listenSse(`${relay.url}/v1/stream?${query}`, after === undefined ? {} : { 'last-event-id': after }))
  onTestFinished(() => listener.close())
  return listener
}

/** The same, once it is live. */
export async function listenLive(stack: HasRelay, transport: Transport, query: string, after?: string): Promise<TestListener> {
  const listener = await listen(stack, transport, query, after)
  await listener.waitFor('live')
  return listener
}

/** The texts of the updates that a listener received. */
export const tapeTextsOf = ({ received }: Pick<TestListener, 'received'>): readonly string[] =>
  received.flatMap(({ message, text }) => ('prev' in message ? [text] : []))

/** A position as a number in stream order: updates emitted before a seal are smaller than the seal. */
export function positionOrder(position: string): number {
  const [, , n] = position.split('.')
  return n === undefined ? sequenceOf(position) : sequenceOf(position) - 1 + Number(n) / 1_000_000
}

/** Resolves when every earlier message on the socket has been answered. */
export async function waitForAnswers(listener: TestListener): Promise<void> {
  const req = `after ${listener.received.length}`
  listener.send({ type: 'ping', req })
  await listener.waitFor('pong', (pong) => pong.req === req)
}

/** The raw amount of whole tokens with eight decimals. */
export const wholeTokens = (tokens: number): bigint => BigInt(tokens) * 100_000_000n
