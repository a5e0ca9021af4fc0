import { onTestFinished } from 'vitest'
import { type Ear, listenNdjson, listenSse, listenWs } from '../../support/test-listener.ts'
import { seqOf, type World } from '../../support/test-stack.ts'

/** The ways in which a program listens. */
export const carriers = ['ws', 'sse', 'ndjson'] as const
export type Carrier = (typeof carriers)[number]

type Place = Pick<World, 'relay'>

/** Listens on a carrier, and leaves with the test. Where to go on is said as each carrier says it. */
export async function listen({ relay }: Place, carrier: Carrier, query: string, after?: string): Promise<Ear> {
  const since = after === undefined ? '' : `&since=${after}`
  const ear = await (carrier === 'ws'
    ? listenWs(`${relay.wsUrl}?${query}${since}`)
    : carrier === 'ndjson'
      ? listenNdjson(`${relay.url}/v1/stream?${query}${since}`)
      : listenSse(`${relay.url}/v1/stream?${query}`, after === undefined ? {} : { 'last-event-id': after }))
  onTestFinished(() => ear.close())
  return ear
}

/** The same, once it is live. */
export async function liveOn(place: Place, carrier: Carrier, query: string, after?: string): Promise<Ear> {
  const ear = await listen(place, carrier, query, after)
  await ear.hear('live')
  return ear
}

/** The texts of what a listener heard of the tape. */
export const toldTo = ({ heard }: Pick<Ear, 'heard'>): readonly string[] =>
  heard.flatMap(({ message, text }) => ('prev' in message ? [text] : []))

/** Where a place stands among others: what the sealed view gives before a seal stands before the seal. */
export function orderOf(position: string): number {
  const [, , n] = position.split('.')
  return n === undefined ? seqOf(position) : seqOf(position) - 1 + Number(n) / 1_000_000
}

/** Everything said before this on a socket has been answered once it resolves. */
export async function answered(ear: Ear): Promise<void> {
  const req = `after ${ear.heard.length}`
  ear.send({ type: 'ping', req })
  await ear.hear('pong', (pong) => pong.req === req)
}

/** The sum of a transfer in whole tokens of eight decimals. */
export const whole = (tokens: number): bigint => BigInt(tokens) * 100_000_000n
