import type { Message } from './notices.ts'
import { formatTextLine } from './readable-line.ts'

/**
 * The forms in which a stream reaches a client over plain HTTP. Its bytes, its headers, its counter in `/v1/status` and the
 * values of `format` follow from a row. WebSocket is beside them: it frames bytes and can be written to by the client.
 */

/** A message as text. `json` is the message serialized, once for all forms. */
type Framing = (message: Message, json: string) => string

type HttpFormat = {
  /** Its name in the documents and in `/v1/status`. */
  readonly title: string
  readonly mediaType: string
  /** Whether an `Accept` header may choose it; of equals the first row. */
  readonly isNegotiable: boolean
  /** Whether a stream has heartbeats unless the client asks for none. */
  readonly hasHeartbeats: boolean
  /** Whether a refusal is one line for people in place of the error record. */
  readonly refusesInWords: boolean
  /** Sent before the first message; `retryMs` is how long a browser waits before it reconnects. */
  readonly preface: (retryMs: number) => string
  /** How messages are framed, by the name of the transport. A second one is for `events=named`. */
  readonly variants: Readonly<Record<string, Framing>>
}

/** JSON text contains no raw line breaks, so one `data:` line always holds it. */
const sseEvent =
  (isNamed: (message: Message) => boolean): Framing =>
  (message, json) => {
    const id = 'id' in message && message.id !== null ? `id: ${message.id}\n` : ''
    const event = isNamed(message) ? `event: ${message.type}\n` : ''
    return `${event}${id}data: ${json}\n\n`
  }

const httpFormats = {
  sse: {
    title: 'Server-sent events',
    mediaType: 'text/event-stream',
    isNegotiable: true,
    hasHeartbeats: true,
    refusesInWords: false,
    preface: (retryMs) => `: stocktape.v1\nretry: ${retryMs}\n\n`,
    variants: { sse: sseEvent(({ type }) => type === 'heartbeat'), 'sse-named': sseEvent(() => true) },
  },
  ndjson: {
    title: 'NDJSON',
    mediaType: 'application/x-ndjson',
    isNegotiable: true,
    hasHeartbeats: false,
    refusesInWords: false,
    preface: () => '',
    variants: { ndjson: (_message, json) => `${json}\n` },
  },
  text: {
    title: 'Plain text',
    mediaType: 'text/plain',
    isNegotiable: false,
    hasHeartbeats: true,
    refusesInWords: true,
    preface: () => '',
    variants: { text: (message) => `${formatTextLine(message)}\n` },
  },
} as const satisfies Readonly<Record<string, HttpFormat>>

export type FormatName = keyof typeof httpFormats
export type HttpVariant = { [Name in FormatName]: keyof (typeof httpFormats)[Name]['variants'] }[FormatName]
/** Listeners of one transport receive the same bytes. */
export type Transport = 'ws' | HttpVariant

/** The format of a stream whose request names none. */
export const DEFAULT_FORMAT: FormatName = 'sse'
export const formatNames = Object.keys(httpFormats) as readonly FormatName[]
export const formatOf = (name: FormatName): HttpFormat => httpFormats[name]
/** The formats that an `Accept` header may choose. */
export const negotiableFormats = formatNames.filter((name) => formatOf(name).isNegotiable)
export const mapFormats = <Mapped>(map: (format: HttpFormat, name: FormatName) => Mapped) =>
  Object.fromEntries(formatNames.map((name) => [name, map(httpFormats[name], name)])) as Record<FormatName, Mapped>

/** The transports of a format: the usual one first. */
export const variantsOf = (name: FormatName) => Object.keys(httpFormats[name].variants) as [HttpVariant, ...HttpVariant[]]
export const transports: readonly Transport[] = ['ws', ...formatNames.flatMap(variantsOf)]
export const framings = Object.assign({}, ...formatNames.map((name) => httpFormats[name].variants)) as Readonly<
  Record<HttpVariant, Framing>
>

export const contentTypeOf = (name: FormatName): string => `${httpFormats[name].mediaType}; charset=utf-8`
