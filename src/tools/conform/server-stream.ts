import { get } from 'node:http'
import { get as getOverTls } from 'node:https'
import { WebSocket } from 'ws'
import { ConditionWatchers } from '../../lib/condition-watchers.ts'
import { parseJson } from '../../lib/safe-json.ts'

/** A stream of the judged server: everything that it sent, and how it ended. */

/** Those whose messages are JSON. */
export const jsonTransports = ['ws', 'sse', 'ndjson'] as const
export type JsonTransport = (typeof jsonTransports)[number]

/** A message as it was received. Its fields are checked where a rule reads them. */
export type Received = {
  readonly type: string
  readonly text: string
  readonly message: Readonly<Record<string, unknown>>
  /** The `id:` and `event:` lines of SSE. */
  readonly id?: string
  readonly event?: string
}

export type StreamEnd = { readonly code: number; readonly reason: string }

/** A message on the tape, as far as rules read it. */
export type JudgedMessage = {
  readonly type: string
  readonly id: string
  readonly prev: string | null
  readonly symbol: string
  readonly address: string | null
  readonly time: string
  readonly key?: string
  readonly keys?: readonly string[]
  readonly types?: readonly string[]
  readonly block?: { readonly number: number } | null
}

/** Longer than a server takes for what a rule waits for. */
export const WAIT_MS = 15_000
/** Limit of the messages of one stream. A rule that needs more would take too long. */
const MESSAGES_BOUND = 200_000

export class ServerStream {
  readonly received: Received[] = []
  end: StreamEnd | null = null
  /** HTTP status of the answer, if the stream was refused, and its body. */
  refusal: { readonly status: number; readonly body: string } | null = null
  #close: () => void = () => {}
  #send: (text: string) => void = () => {}
  readonly #watchers = new ConditionWatchers()

  /** With `after` it resumes in the way of the transport: by `Last-Event-ID` with SSE, by `since` with the others. */
  constructor(url: string, transport: JsonTransport, query: string, headers: Readonly<Record<string, string>>, after?: string) {
    const since = after === undefined ? '' : `&since=${after}`
    if (transport === 'ws') this.#openWebSocket(`${url.replace(/^http/, 'ws')}/v1/ws?${query}${since}`, headers)
    else if (transport === 'ndjson') this.#openHttp(`${url}/v1/stream?format=ndjson&${query}${since}`, headers)
    else {
      const resume: Record<string, string> = after === undefined ? {} : { 'last-event-id': after }
      this.#openHttp(`${url}/v1/stream?${query}`, { accept: 'text/event-stream', ...resume, ...headers })
    }
  }

  get texts(): readonly string[] {
    return this.received.filter(({ message }) => 'prev' in message).map(({ text }) => text)
  }

  /** The messages of the tape that it received. */
  get tape(): readonly JudgedMessage[] {
    return this.received.filter(({ message }) => 'prev' in message).map(({ message }) => message as unknown as JudgedMessage)
  }

  first(type: string): Readonly<Record<string, unknown>> | undefined {
    return this.received.find((one) => one.type === type)?.message
  }

  /** Resolves to whether the condition became true in time. */
  until(condition: () => boolean, withinMs = WAIT_MS): Promise<boolean> {
    return this.#watchers.until(condition, withinMs)
  }

  send(message: unknown): void {
    this.#send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  close(): void {
    this.#close()
  }

  #receive(text: string, lines: { readonly id?: string; readonly event?: string } = {}): void {
    const message = parseJson(text)
    const isRecord = typeof message === 'object' && message !== null && !Array.isArray(message)
    const record = (isRecord ? message : {}) as Record<string, unknown>
    if (this.received.length < MESSAGES_BOUND) this.received.push({ type: String(record.type), text, message: record, ...lines })
    this.#watchers.notify()
  }

  #finish(end: StreamEnd): void {
    this.end ??= end
    this.#watchers.notify()
  }

  #openWebSocket(url: string, headers: Readonly<Record<string, string>>): void {
    const socket = new WebSocket(url, 'stocktape.v1', { headers })
    socket.on('message', (data) => this.#receive(String(data)))
    socket.on('close', (code, reason) => this.#finish({ code, reason: String(reason) }))
    socket.on('unexpected-response', (_, response) => {
      this.refusal = { status: response.statusCode ?? 0, body: '' }
      this.#finish({ code: 0, reason: `HTTP ${response.statusCode}` })
      socket.terminate()
    })
    socket.on('error', (failure) => this.#finish({ code: 0, reason: failure.message }))
    this.#close = () => socket.terminate()
    this.#send = (text) =>
      socket.readyState === WebSocket.CONNECTING ? socket.once('open', () => socket.send(text)) : socket.send(text)
  }

  #openHttp(url: string, headers: Readonly<Record<string, string>>): void {
    const request = (url.startsWith('https') ? getOverTls : get)(url, { headers }, (response) => {
      response.setEncoding('utf8')
      let rest = ''
      const isEvents = response.headers['content-type']?.startsWith('text/event-stream') ?? false
      response.on('data', (text: string) => {
        rest += text
        if (response.statusCode !== 200) return
        const parts = rest.split(isEvents ? '\n\n' : '\n')
        rest = parts.pop() ?? ''
        for (const part of parts) {
          if (!isEvents) this.#receive(part)
          else this.#receiveEvent(part)
        }
      })
      response.on('end', () => {
        if (response.statusCode !== 200) this.refusal = { status: response.statusCode ?? 0, body: rest }
        this.#finish({ code: 0, reason: 'ended' })
      })
      response.on('error', ({ message }) => this.#finish({ code: 0, reason: message }))
    })
    request.on('error', ({ message }) => this.#finish({ code: 0, reason: message }))
    this.#close = () => request.destroy()
  }

  #receiveEvent(event: string): void {
    const lines = event.split('\n')
    const fieldOf = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
    const [data, id, named] = [fieldOf('data'), fieldOf('id'), fieldOf('event')]
    if (data !== undefined) this.#receive(data, { ...(id !== undefined && { id }), ...(named !== undefined && { event: named }) })
  }
}
