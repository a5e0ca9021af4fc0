import { closeCodes } from '../../protocol/close-codes.ts'
import { lineDigest } from '../../relay/tape/line-digest.ts'
import { comparePositions } from '../../sdk/client/position-order.ts'
import type { JudgedServer } from './judged-server.ts'
import { BrokenRule } from './rule-verdict.ts'
import type { JsonTransport, JudgedMessage, Received, ServerStream } from './server-stream.ts'

/** Scenarios of the rules by name. Each throws if the server breaks its rule, or if the rule does not apply. */
export type ServerScenarios = Readonly<Record<string, (server: JudgedServer, transport: JsonTransport) => Promise<void>>>

/** Messages of the tape that come before a rule looks at them. */
export const SOME = 6
export const HEARTBEAT_S = 1

export function check(isKept: boolean, detail: string): asserts isKept {
  if (!isKept) throw new BrokenRule(detail)
}

export const shortened = (text: string): string => (text.length > 300 ? `${text.slice(0, 300)}…` : text)
export const idsOf = (messages: readonly JudgedMessage[]): readonly string[] => messages.map(({ id }) => id)
export const isAfter = (a: string, b: string): boolean => (comparePositions(a, b) ?? 0) > 0

/** Says where two lists of ids differ first. */
export function checkSameIds(received: readonly string[], expected: readonly string[], what: string): void {
  const length = Math.max(received.length, expected.length)
  for (let index = 0; index < length; index += 1)
    check(
      received[index] === expected[index],
      `${what}: message ${index + 1} is ${received[index] ?? 'absent'}, and must be ${expected[index] ?? 'absent'}`,
    )
}

export const newestOf = (stream: ServerStream): string => stream.tape.at(-1)?.id ?? String(stream.first('live')?.id)

/** Returns the messages of the tape after `after`, up to `through`. */
export const storedBetween = (server: JudgedServer, after: string, through: string): Promise<readonly JudgedMessage[]> =>
  server.history(`types=*&after=${after}&through=${through}`)

export async function checkGap(server: JudgedServer, stream: ServerStream, reason: string, after: string | null): Promise<void> {
  const gap = await server.expectMessage(stream, 'gap')
  check(gap.reason === reason, `the gap has the reason ${gap.reason}, and must have ${reason}`)
  check(gap.after === after, `gap.after is ${gap.after}, and the client gave ${after}`)
  check(gap.id === gap.through, `gap.id is ${gap.id}, and gap.through is ${gap.through}`)
  await server.expectMessage(stream, 'live')
  const types = stream.received.map(({ type }) => type)
  checkOrder(types, ['hello', 'subscribed', 'gap', 'live'])
  const subscribed = stream.first('subscribed')
  check(
    subscribed?.resume === 'gap' && subscribed.id === null,
    `subscribed must have resume gap and id null: ${JSON.stringify(subscribed)}`,
  )
  const hello = stream.first('hello')
  check(hello?.id === null, `hello.id is ${hello?.id}, and a gap follows`)
}

export function checkOrder(types: readonly string[], order: readonly string[]): void {
  const places = order.map((type) => types.indexOf(type))
  check(
    places.every((place, index) => place >= 0 && (index === 0 || place > (places[index - 1] ?? 0))),
    `the stream began with ${types.slice(0, 8).join(', ')}, and must begin with ${order.join(', ')}`,
  )
}

/** Sends to a WebSocket, and returns the next message of a type. */
export async function ask(stream: ServerStream, message: unknown, type: string): Promise<Readonly<Record<string, unknown>>> {
  const before = stream.received.length
  const find = (): Received | undefined => stream.received.slice(before).find((one) => one.type === type)
  stream.send(message)
  await stream.until(() => find() !== undefined || stream.end !== null)
  const answer = find()
  check(
    answer !== undefined,
    `${shortened(JSON.stringify(message))} got no ${type}; ${stream.end ? `the connection ended with ${stream.end.code}` : 'nothing came'}`,
  )
  return answer.message
}

/** Checks that `live` is a receipt of the messages that were replayed after a position. */
export function checkReceipt(live: Readonly<Record<string, unknown>> | undefined, after: string, ids: readonly string[]): void {
  const { id, after: begin, through, digest } = live ?? {}
  check(begin === after && through === id, `live is of ${begin} to ${through}, and must be of ${after} to ${id}`)
  const expected = lineDigest(ids)
  check(digest === expected, `live.digest is ${digest}, and of the ids after ${after} it is ${expected}`)
}

export function checkClose(stream: ServerStream, reason: keyof typeof closeCodes): void {
  const { code, reason: text } = stream.end ?? { code: null, reason: '' }
  check(code === closeCodes[reason], `the close code is ${code}, and must be ${closeCodes[reason]}`)
  check(text.split(' ')[0] === reason, `the close reason is '${text}', and must begin with ${reason}`)
}
