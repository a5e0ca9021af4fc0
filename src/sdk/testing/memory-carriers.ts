import type { Carrier } from './scripted-connection.ts'

const NORMAL_CLOSE = 1_000
const LOST = 1_006
const CONNECTING = 0
const OPEN = 1
const CLOSED = 3
/** Time that the relay asks a client of an event stream to wait before it reconnects. */
const RETRY_MS = 100

type SocketListener = ((event: Event) => void) | null

/** A WebSocket whose other end is in this process. Events follow in microtasks, in the order in which the relay made them. */
export class MemoryWebSocket extends EventTarget {
  readonly url: string
  readonly protocol: string
  readyState = CONNECTING
  onopen: SocketListener = null
  onmessage: SocketListener = null
  onclose: SocketListener = null
  onerror: SocketListener = null
  #onClose = () => {}

  constructor(url: string | URL, protocol = '') {
    super()
    this.url = String(url)
    this.protocol = protocol
  }

  /** The relay needs nothing of what a client says. */
  send(_text: string): void {}

  close(code = NORMAL_CLOSE, reason = ''): void {
    this.#end(code, reason)
    this.#onClose()
  }

  /** The relay's end. */
  readonly carrier: Carrier = {
    accept: () => {
      if (this.readyState !== CONNECTING) return
      this.readyState = OPEN
      this.#emit('open')
    },
    send: (data) => this.#emit('message', { data }),
    close: (code, reason) => this.#end(code, reason),
    cut: () => this.#end(LOST, ''),
    refuse: () => {
      this.#emit('error')
      this.#end(LOST, '')
    },
    onClose: (callback) => {
      this.#onClose = callback
    },
  }

  #end(code: number, reason: string): void {
    if (this.readyState === CLOSED) return
    this.#emit('close', { code, reason, wasClean: code !== LOST })
    this.readyState = CLOSED
  }

  #emit(type: 'open' | 'message' | 'close' | 'error', fields: object = {}): void {
    if (this.readyState === CLOSED) return
    queueMicrotask(() => {
      const event = Object.assign(new Event(type), fields)
      this[`on${type}`]?.(event)
      this.dispatchEvent(event)
    })
  }
}

/** Answers a request for a stream, as SSE or as NDJSON, when the relay accepts or refuses it. */
export function answerStream(isNdjson: boolean, signal: AbortSignal | null | undefined, connect: (carrier: Carrier) => void) {
  return new Promise<Response>((resolve, reject) => {
    let body: ReadableStreamDefaultController<Uint8Array> | null = null
    let onClose = () => {}
    const write = (text: string) => body?.enqueue(new TextEncoder().encode(text))
    const fail = (error: unknown) => {
      reject(error)
      body?.error(error)
      body = null
    }
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        body = controller
      },
      cancel: () => onClose(),
    })
    signal?.addEventListener('abort', () => {
      fail(signal.reason)
      onClose()
    })
    connect({
      accept: () => {
        resolve(new Response(stream, { headers: { 'content-type': isNdjson ? 'application/x-ndjson' : 'text/event-stream' } }))
        if (!isNdjson) write(`retry: ${RETRY_MS}\n\n`)
      },
      send: (text) => write(isNdjson ? `${text}\n` : `data: ${text}\n\n`),
      close: () => {
        body?.close()
        body = null
      },
      cut: () => fail(new TypeError('the connection was lost')),
      refuse: (status, text, headers) => resolve(new Response(text, { status, headers })),
      onClose: (callback) => {
        onClose = callback
      },
    })
  })
}
