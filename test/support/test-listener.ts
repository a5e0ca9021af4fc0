import { createParser } from 'eventsource-parser'
import { WebSocket } from 'ws'
import { Notice } from '../../src/protocol/notices.ts'
import { Update } from '../../src/protocol/updates.ts'
import { asPublished, saidAsPublished } from './message-validator.ts'

/** What a listener heard: the message, the text it came in, and the `id:` and `event:` lines where there are such. */
export type Heard = {
  readonly message: Message
  readonly text: string
  readonly id?: string | undefined
  readonly event?: string | undefined
}
export type Message = Update | Notice
export type MessageOf<Type extends Message['type']> = Extract<Message, { type: Type }>

/** How a WebSocket ended. */
export type Ending = { readonly code: number; readonly reason: string }

/** Longer than anything that a test waits for takes; reaching it is a failure, never a pause. */
const PATIENCE_MS = 10_000

/** One who listens: everything that was heard, and the wait for what is still to come. */
export class Ear {
  readonly heard: Heard[] = []
  readonly ended: Promise<Ending>
  readonly #close: () => void
  readonly #send: (data: string | Uint8Array) => void
  readonly #watchers = new Set<() => void>()
  #end: (ending: Ending) => void = () => {}

  constructor({ close, send }: { close: () => void; send?: (data: string | Uint8Array) => void }) {
    this.#close = close
    this.#send = send ?? (() => {})
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  /** Takes a message in, and fails the test if it is not as the contract says, field by field and in order. */
  take(text: string, lines: { id?: string | undefined; event?: string | undefined } = {}): void {
    this.heard.push({ message: checked(text), text, ...lines })
    for (const look of this.#watchers) look()
  }

  over(ending: Ending): void {
    this.#end(ending)
  }

  get messages(): readonly Message[] {
    return this.heard.map(({ message }) => message)
  }

  /** All messages of a type heard so far. */
  all<Type extends Message['type']>(type: Type): readonly MessageOf<Type>[] {
    return this.messages.filter((message): message is MessageOf<Type> => message.type === type)
  }

  /** The first message of a type that fits, heard or still to come. */
  async hear<Type extends Message['type']>(
    type: Type,
    fits: (message: MessageOf<Type>) => boolean = () => true,
  ): Promise<MessageOf<Type>> {
    const found = () => this.all(type).find(fits)
    await this.until(() => found() !== undefined, `a fitting ${type}`)
    const message = found()
    if (!message) throw new Error('unreachable')
    return message
  }

  /** Resolves once a condition over what was heard holds. */
  until(holds: () => boolean, what = 'what was waited for'): Promise<void> {
    if (holds()) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const impatient = setTimeout(() => {
        this.#watchers.delete(look)
        reject(new Error(`did not hear ${what}; heard ${this.messages.map((message) => message.type).join(' ')}`))
      }, PATIENCE_MS)
      const look = () => {
        if (!holds()) return
        clearTimeout(impatient)
        this.#watchers.delete(look)
        resolve()
      }
      this.#watchers.add(look)
    })
  }

  /** Says something: text and bytes as they are, anything else as JSON. */
  send(message: unknown): void {
    if (typeof message === 'string' || message instanceof Uint8Array) return this.#send(message)
    saidAsPublished(message)
    this.#send(JSON.stringify(message))
  }

  close(): void {
    this.#close()
  }
}

function checked(text: string): Message {
  const given: { type: string } = JSON.parse(text)
  const schema = [...Update.options, ...Notice.options].find((one) => one.shape.type.value === given.type)
  if (!schema) throw new Error(`a message of unknown type: ${text}`)
  const message = schema.parse(asPublished(given))
  const order = Object.keys(schema.shape)
  const fields = Object.keys(given)
  const places = fields.map((field) => order.indexOf(field))
  if (places.includes(-1)) throw new Error(`a field that the contract does not name: ${text}`)
  if (places.some((place, index) => index > 0 && place < (places[index - 1] ?? 0)))
    throw new Error(`fields out of order: ${text}`)
  return message
}

/** Listens over WebSocket. */
export async function listenWs(
  url: string,
  options: { protocols?: string[]; headers?: Record<string, string> } = {},
): Promise<Ear> {
  const socket = new WebSocket(url, options.protocols ?? [], { headers: options.headers ?? {} })
  const ear = new Ear({ close: () => socket.terminate(), send: (data) => socket.send(data) })
  socket.on('message', (data, isBinary) => {
    if (isBinary) throw new Error('a binary message')
    ear.take(String(data))
  })
  socket.on('close', (code, reason) => ear.over({ code, reason: String(reason) }))
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  return ear
}

/** Listens over SSE, read by an independent parser. */
export async function listenSse(url: string, headers: Record<string, string> = {}): Promise<Ear> {
  const { ear, body } = await open(url, headers)
  const parser = createParser({ onEvent: ({ data, id, event }) => ear.take(data, { id, event }) })
  void drink(body, ear, (text) => parser.feed(text))
  return ear
}

/** Listens to NDJSON. */
export async function listenNdjson(url: string, headers: Record<string, string> = {}): Promise<Ear> {
  const { ear, body } = await open(url, { accept: 'application/x-ndjson', ...headers })
  let rest = ''
  void drink(body, ear, (text) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) ear.take(line)
  })
  return ear
}

async function open(
  url: string,
  headers: Record<string, string>,
): Promise<{ ear: Ear; body: ReadableStream<Uint8Array> }> {
  const abort = new AbortController()
  const response = await fetch(url, { headers, signal: abort.signal })
  if (response.status !== 200 || !response.body) throw new Error(`HTTP ${response.status}: ${await response.text()}`)
  return { ear: new Ear({ close: () => abort.abort() }), body: response.body }
}

async function drink(body: ReadableStream<Uint8Array>, ear: Ear, feed: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  try {
    for await (const chunk of body) feed(decoder.decode(chunk, { stream: true }))
    ear.over({ code: 0, reason: 'ended' })
  } catch {
    ear.over({ code: 0, reason: 'cut' })
  }
}
