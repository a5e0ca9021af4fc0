import { setTimeout as pause } from 'node:timers/promises'
import { EventSource } from 'eventsource'
import type { Update } from '../../../src/protocol/updates.ts'
import { type CloseResult, TestListener } from '../../support/test-listener.ts'
import type { TestLifecycle } from './deployed-relay.ts'

/** How long a client waits that got no retry time. */
const RETRY_MS = 500

/** A client that reads one stream of updates over several connections. */
export interface ReconnectingReader {
  readonly name: string
  /** One for each connection; one for all where the client hides its reconnections. */
  readonly connections: readonly TestListener[]
  /** Resolves once a condition over its messages holds. */
  until(condition: () => boolean, description: string): Promise<void>
}

/** An update with its text. */
export type ReceivedUpdate = { readonly update: Update; readonly text: string }

/** The updates of one connection. */
export const receivedUpdatesOf = ({ received }: TestListener): readonly ReceivedUpdate[] =>
  received.flatMap(({ message, text }) => ('prev' in message ? [{ update: message, text }] : []))

/** The updates of all connections of a reader. */
export const allReceivedUpdates = ({ connections }: ReconnectingReader): readonly ReceivedUpdate[] =>
  connections.flatMap(receivedUpdatesOf)

/** Updates up to a position; all of them if none has it. */
export function upTo(last: string, updates: readonly ReceivedUpdate[]): readonly ReceivedUpdate[] {
  const at = updates.findIndex(({ update }) => update.id === last)
  return at < 0 ? updates : updates.slice(0, at + 1)
}

/** How updates differ from the tape, byte for byte. */
export function differencesFromTape(updates: readonly ReceivedUpdate[], tape: readonly ReceivedUpdate[]): readonly string[] {
  const texts = new Map(tape.map(({ update, text }) => [update.id, text]))
  const received = new Set<string>()
  const errors = updates.flatMap(({ update: { id }, text }) => {
    const isRepeated = received.has(id)
    received.add(id)
    if (!texts.has(id)) return [`${id} is not on the tape`]
    if (isRepeated) return [`${id} arrived twice`]
    return texts.get(id) === text ? [] : [`${id} is ${texts.get(id)} on the tape, and arrived as ${text}`]
  })
  const missing = tape.flatMap(({ update: { id } }) => (received.has(id) ? [] : [`${id} is missing`]))
  const same = updates.length === tape.length && updates.every(({ update }, at) => update.id === tape[at]?.update.id)
  return [...errors, ...missing, ...(same ? [] : ['the updates are not in the order of the tape'])]
}

/** Updates whose `prev` is not the update received before with the same token and type. */
export function brokenPrevChains(updates: readonly Update[]): readonly string[] {
  const heads = new Map<string, string>()
  return updates.flatMap(({ id, prev, address, type }) => {
    const chain = `${address} ${type}`
    const before = heads.get(chain)
    heads.set(chain, id)
    return before === undefined || before === prev ? [] : [`${id}: ${prev} after ${before}`]
  })
}

/** The resume result of each connection. */
export const resumeResultsOf = ({ connections }: ReconnectingReader): readonly string[] =>
  connections.flatMap((listener) => listener.messagesOf('subscribed').map(({ resume }) => resume))

/** A reader whose client reconnects by itself and hides it. */
export const selfReconnecting = (name: string, listener: TestListener): ReconnectingReader => ({
  name,
  connections: [listener],
  until: (condition, description) => listener.until(condition, `${description}, as ${name}`),
})

/** The npm package eventsource. */
export function readEventSource(test: TestLifecycle, url: string): ReconnectingReader {
  const source = new EventSource(url)
  const listener = new TestListener({ close: () => source.close() })
  test.onTestFinished(() => listener.close())
  source.onmessage = ({ data, lastEventId: id }) => listener.receive(data, { id })
  source.addEventListener('heartbeat', ({ data, lastEventId: id }) => listener.receive(data, { id, event: 'heartbeat' }))
  return selfReconnecting('the package eventsource', listener)
}

/** Opens a connection, after the last position once there is one. */
type OpenConnection = (last: string | null) => Promise<TestListener>

/** A small client: keeps the last id, waits for the retry time, and reconnects with that id. */
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
      await (listener ? Promise.race([listener.until(condition, `${description}, as ${this.name}`), listener.closed]) : next)
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
