import type { Message } from './notices.ts'
import { formatTextLine } from './readable-line.ts'

/** Writes a message in the bytes of a format. `json` is the message, serialized once for all formats. */
type Framing = (message: Message, json: string) => string

/** A row of the table: bytes, headers, counter in `/v1/status` and value of `format`. WebSocket has no row: it frames bytes. */
type HttpFormat = {
  /** Name of the format in the documents and in `/v1/status`. */
  readonly title: string
  readonly mediaType: string
  /** Whether people read it: a refusal is one line instead of the error record, and no `Accept` header chooses the format. */
  readonly isForPeople: boolean
  /** Returns the text before the first message. It tells a browser to wait `retryMs` before it reconnects. */
  readonly preface: (retryMs: number) => string
  /** Framings by the name of the transport. If there are two, the second one is for `events=named`. */
  readonly variants: Readonly<Record<string, Framing>>
}

/** Writes an event of SSE. Serialized JSON contains no line breaks, so one `data:` line is enough. */
const sseEvent =
  (isNamed: (message: Message) => boolean): Framing =>
  (message, json) => {
    const id = 'id' in message && message.id !== null ? `id: ${message.id}\n` : ''
    const event = isNamed(message) ? `event: ${message.type}\n` : ''
    const retry = message.type === 'bye' ? `retry: ${message.retry_ms}\n` : ''
    return `${retry}${event}${id}data: ${json}\n\n`
  }

const httpFormats = {
  sse: {
    title: 'Server-sent events',
    mediaType: 'text/event-stream',
    isForPeople: false,
    preface: (retryMs) => `: stocktape.v1\nretry: ${retryMs}\n\n`,
    variants: { sse: sseEvent(({ type }) => type === 'heartbeat'), 'sse-named': sseEvent(() => true) },
  },
  ndjson: {
    title: 'NDJSON',
    mediaType: 'application/x-ndjson',
    isForPeople: false,
    preface: () => '',
    variants: { ndjson: (_message, json) => `${json}\n` },
  },
  text: {
    title: 'Plain text',
    mediaType: 'text/plain',
    isForPeople: true,
    preface: () => '',
    variants: { text: (message) => `${formatTextLine(message)}\n` },
  },
} as const satisfies Readonly<Record<string, HttpFormat>>

export type FormatName = keyof typeof httpFormats
export type HttpVariant = { [Name in FormatName]: keyof (typeof httpFormats)[Name]['variants'] }[FormatName]
/** A kind of frame: each message has identical bytes for all listeners of a transport. */
export type Transport = 'ws' | HttpVariant

export const DEFAULT_FORMAT: FormatName = 'sse'
export const formatNames = Object.keys(httpFormats) as readonly FormatName[]
export const formatOf = (name: FormatName): HttpFormat => httpFormats[name]
/** Formats that an `Accept` header may choose. If it prefers several equally, the first one is used. */
export const negotiableFormats = formatNames.filter((name) => !formatOf(name).isForPeople)
export const mapFormats = <Mapped>(map: (format: HttpFormat, name: FormatName) => Mapped) =>
  Object.fromEntries(formatNames.map((name) => [name, map(httpFormats[name], name)])) as Record<FormatName, Mapped>

/** Returns the transports of a format, the default one first. */
export const variantsOf = (name: FormatName) => Object.keys(httpFormats[name].variants) as [HttpVariant, ...HttpVariant[]]
export const transports: readonly Transport[] = ['ws', ...formatNames.flatMap(variantsOf)]
export const framings = Object.assign({}, ...formatNames.map((name) => httpFormats[name].variants)) as Readonly<
  Record<HttpVariant, Framing>
>

export const contentTypeOf = (name: FormatName): string => `${httpFormats[name].mediaType}; charset=utf-8`
