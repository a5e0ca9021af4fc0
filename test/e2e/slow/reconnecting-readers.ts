import { setTimeout as pause } from 'node:timers/promises'
import { EventSource } from 'eventsource'
import type { Update } from '../../../src/protocol/updates.ts'
import { type CloseResult, TestListener } from '../../support/test-listener.ts'
import type { TestLifecycle } from './deployed-relay.ts'

/** When a client comes back that nobody told when to. */
const RETRY_MS = 500

/** One who listens over many connections, and has heard one story in all. */
export interface ReconnectingReader {
  readonly name: string
  /** One for each connection; one for all of them where the client does not show where one ends. */
  readonly connections: readonly TestListener[]
  /** Resolves once a condition over what it heard holds. */
  until(condition: () => boolean, description: string): Promise<void>
}

/** An update, and the text in which it was told. */
export type ReceivedUpdate = { readonly update: Update; readonly text: string }

/** What was heard of the tape on one connection. */
export const receivedUpdatesOf = ({ received }: TestListener): readonly ReceivedUpdate[] =>
  received.flatMap(({ message, text }) => ('prev' in message ? [{ update: message, text }] : []))

/** What a reader heard of the tape in all. */
export const allReceivedUpdates = ({ connections }: ReconnectingReader): readonly ReceivedUpdate[] =>
  connections.flatMap(receivedUpdatesOf)

/** A story as far as a position; all of it where that is not in it. */
export function upTo(last: string, updates: readonly ReceivedUpdate[]): readonly ReceivedUpdate[] {
  const at = updates.findIndex(({ update }) => update.id === last)
  return at < 0 ? updates : updates.slice(0, at + 1)
}

/** What speaks against a story being the tape itself, byte for byte; nothing if it is. */
export function differencesFromTape(
  updates: readonly ReceivedUpdate[],
  tape: readonly ReceivedUpdate[],
): readonly string[] {
  const texts = new Map(tape.map(({ update, text }) => [update.id, text]))
  const received = new Set<string>()
  const errors = updates.flatMap(({ update: { id }, text }) => {
    const twice = received.has(id)
    received.add(id)
    if (!texts.has(id)) return [`${id} is not on the tape`]
    if (twice) return [`${id} came twice`]
    return texts.get(id) === text ? [] : [`${id} is ${texts.get(id)} on the tape, and ${text} was heard`]
  })
  const missing = tape.flatMap(({ update: { id } }) => (received.has(id) ? [] : [`${id} is missing`]))
  const same = updates.length === tape.length && updates.every(({ update }, at) => update.id === tape[at]?.update.id)
  return [...errors, ...missing, ...(same ? [] : ['what was heard is not in the order of the tape'])]
}

/** Updates whose `prev` is not the one that was heard before of the same token and type. */
export function brokenPrevChains(updates: readonly Update[]): readonly string[] {
  const heads = new Map<string, string>()
  return updates.flatMap(({ id, prev, address, type }) => {
    const chain = `${address} ${type}`
    const before = heads.get(chain)
    heads.set(chain, id)
    return before === undefined || before === prev ? [] : [`${id}: ${prev} after ${before}`]
  })
}

/** How each of its connections went on. */
export const resumeResultsOf = ({ connections }: ReconnectingReader): readonly string[] =>
  connections.flatMap((listener) => listener.messagesOf('subscribed').map(({ resume }) => resume))

/** A reader whose client comes back by itself and hides that it was away. */
export const selfReconnecting = (name: string, listener: TestListener): ReconnectingReader => ({
  name,
  connections: [listener],
  until: (condition, description) => listener.until(condition, `${description}, as ${name}`),
})

/** The `EventSource` of npm. */
export function readEventSource(test: TestLifecycle, url: string): ReconnectingReader {
  const source = new EventSource(url)
  const listener = new TestListener({ close: () => source.close() })
  test.onTestFinished(() => listener.close())
  source.onmessage = ({ data, lastEventId: id }) => listener.receive(data, { id })
  source.addEventListener('heartbeat', ({ data, lastEventId: id }) =>
    listener.receive(data, { id, event: 'heartbeat' }),
  )
  return selfReconnecting('the package eventsource', listener)
}

/** How a connection is opened: from a position on, once there is one. */
type OpenConnection = (last: string | null) => Promise<TestListener>

/** A client of a few lines: keeps the last id, waits as long as it was told to, and comes back with that id. */
export class ReturningReader implements ReconnectingReader {
  readonly name: string
  readonly connections: TestListener[] = []
  readonly closeResults: CloseResult[] = []
  readonly #open: OpenConnection
  #nextConnection = Promise.withResolvers<void>()
  #isClosed = false

  constructor(test: TestLifecycle, name: string, open: OpenConnection) {
    this.name = name
    this.#open = open
    test.onTestFinished(() => this.close())
    void this.#listen()
  }

  async until(condition: () => boolean, description: string): Promise<void> {
    while (!condition()) {
      const next = this.#nextConnection.promise
      const listener = this.connections[this.closeResults.length]
      await (listener
        ? Promise.race([listener.until(condition, `${description}, as ${this.name}`), listener.closed])
        : next)
    }
  }

  close(): void {
    this.#isClosed = true
    this.connections.at(-1)?.close()
  }

  async #listen(): Promise<void> {
    let last: string | null = null
    while (!this.#isClosed) {
      const listener: TestListener | null = await this.#open(last).catch(() => null)
      if (listener && !this.#isClosed) {
        this.connections.push(listener)
        this.#nextConnection.resolve()
        this.#nextConnection = Promise.withResolvers()
        this.closeResults.push(await listener.closed)
        last = lastIdOf(listener) ?? last
      }
      await pause(listener?.messagesOf('bye').at(-1)?.retry_ms ?? RETRY_MS)
    }
  }
}

const lastIdOf = (listener: TestListener): string | null =>
  listener.messages.reduce<string | null>((last, message) => ('id' in message ? message.id : null) ?? last, null)
