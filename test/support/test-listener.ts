import { createParser } from 'eventsource-parser'
import { WebSocket } from 'ws'
import { Notice } from '../../src/protocol/notices.ts'
import { Update } from '../../src/protocol/updates.ts'
import { assertValidMessage, assertValidRequest } from './message-validator.ts'

/** A received message: the value, its text, when it was received, and the `id:` and `event:` lines if there are any. */
export type ReceivedMessage = {
  readonly message: Message
  readonly text: string
  readonly at: number
  readonly id?: string | undefined
  readonly event?: string | undefined
}
export type Message = Update | Notice
export type MessageOf<Type extends Message['type']> = Extract<Message, { type: Type }>

/** How a WebSocket ended. */
export type CloseResult = { readonly code: number; readonly reason: string }

/** Longer than any wait in a test. Reaching it is a failure. */
const WAIT_TIMEOUT_MS = 18_000

/** A listener: everything it has received, and waiting for what comes. */
export class TestListener {
  readonly received: ReceivedMessage[] = []
  readonly closed: Promise<CloseResult>
  readonly #close: () => void
  readonly #send: (data: string | Uint8Array) => void
  readonly #watchers = new Set<() => void>()
  #resolveClosed: (result: CloseResult) => void = () => {}

  constructor({ close, send }: { close: () => void; send?: (data: string | Uint8Array) => void }) {
    this.#close = close
    this.#send = send ?? (() => {})
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve
    })
  }

  /** Records a message. Fails the test if it does not fit the contract, field by field and in order. */
  receive(text: string, lines: { id?: string | undefined; event?: string | undefined } = {}): void {
    this.received.push({ message: parseMessage(text), text, at: performance.now(), ...lines })
    for (const check of this.#watchers) check()
  }

  markClosed(result: CloseResult): void {
    this.#resolveClosed(result)
  }

  get messages(): readonly Message[] {
    return this.received.map(({ message }) => message)
  }

  /** All messages of a type so far. */
  messagesOf<Type extends Message['type']>(type: Type): readonly MessageOf<Type>[] {
    return this.messages.filter((message): message is MessageOf<Type> => message.type === type)
  }

  /** The first matching message of a type, already received or still to come. */
  async waitFor<Type extends Message['type']>(
    type: Type,
    matches: (message: MessageOf<Type>) => boolean = () => true,
  ): Promise<MessageOf<Type>> {
    const found = () => this.messagesOf(type).find(matches)
    await this.until(() => found() !== undefined, `a matching ${type}`)
    const message = found()
    if (!message) throw new Error('unreachable')
    return message
  }

  /** Resolves when a condition over the received messages holds. */
  until(condition: () => boolean, description = 'the awaited messages'): Promise<void> {
    if (condition()) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const timeout = setTimeout(() => {
        this.#watchers.delete(check)
        reject(new Error(`did not receive ${description}; received ${this.messages.map((message) => message.type).join(' ')}`))
      }, WAIT_TIMEOUT_MS)
      const check = () => {
        if (!condition()) return
        clearTimeout(timeout)
        this.#watchers.delete(check)
        resolve()
      }
      this.#watchers.add(check)
    })
  }

  /** Sends text and bytes as they are, and anything else as JSON. */
  send(message: unknown): void {
    if (typeof message === 'string' || message instanceof Uint8Array) return this.#send(message)
    assertValidRequest(message)
    this.#send(JSON.stringify(message))
  }

  close(): void {
    this.#close()
  }
}

function parseMessage(text: string): Message {
  const parsed: { type: string } = JSON.parse(text)
  const schema = [...Update.options, ...Notice.options].find((option) => option.shape.type.value === parsed.type)
  if (!schema) throw new Error(`unknown message type: ${text}`)
  const message = schema.parse(assertValidMessage(parsed))
  const order = Object.keys(schema.shape)
  const fields = Object.keys(parsed)
  const positions = fields.map((field) => order.indexOf(field))
  if (positions.includes(-1)) throw new Error(`unknown field: ${text}`)
  if (positions.some((position, index) => index > 0 && position < (positions[index - 1] ?? 0)))
    throw new Error(`fields out of order: ${text}`)
  return message
}

/** Listens over WebSocket. */
export async function listenWs(
  url: string,
  { protocols = [], ...options }: { protocols?: string[]; headers?: Record<string, string>; localAddress?: string } = {},
): Promise<TestListener> {
  const socket = new WebSocket(url, protocols, options)
  const listener = new TestListener({ close: () => socket.terminate(), send: (data) => socket.send(data) })
  socket.on('message', (data, isBinary) => {
    if (isBinary) throw new Error('unexpected binary message')
    listener.receive(String(data))
  })
  socket.on('close', (code, reason) => listener.markClosed({ code, reason: String(reason) }))
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  return listener
}

/** Listens over SSE, with an independent parser. */
export async function listenSse(url: string, headers: Record<string, string> = {}): Promise<TestListener> {
  const { listener, body } = await openStream(url, headers)
  const parser = createParser({ onEvent: ({ data, id, event }) => listener.receive(data, { id, event }) })
  void readBody(body, listener, (text) => parser.feed(text))
  return listener
}

/** Listens to NDJSON. */
export async function listenNdjson(url: string, headers: Record<string, string> = {}): Promise<TestListener> {
  const { listener, body } = await openStream(url, { accept: 'application/x-ndjson', ...headers })
  let rest = ''
  void readBody(body, listener, (text) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) listener.receive(line)
  })
  return listener
}

async function openStream(
  url: string,
  headers: Record<string, string>,
): Promise<{ listener: TestListener; body: ReadableStream<Uint8Array> }> {
  const abort = new AbortController()
  const response = await fetch(url, { headers, signal: abort.signal })
  if (response.status !== 200 || !response.body) throw new Error(`HTTP ${response.status}: ${await response.text()}`)
  return { listener: new TestListener({ close: () => abort.abort() }), body: response.body }
}

async function readBody(body: ReadableStream<Uint8Array>, listener: TestListener, feed: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  try {
    for await (const chunk of body) feed(decoder.decode(chunk, { stream: true }))
    listener.markClosed({ code: 0, reason: 'ended' })
  } catch {
    listener.markClosed({ code: 0, reason: 'cut' })
  }
}
