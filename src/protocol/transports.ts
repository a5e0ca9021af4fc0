import type { Message } from './notices.ts'
import { formatTextLine } from './readable-line.ts'

/** `json` is the serialized message: the relay serializes it once for all formats. */
type Framing = (message: Message, json: string) => string

/** A row gives the bytes, headers, counter in `/v1/status` and value of `format`. WebSocket has no row: it frames bytes. */
type HttpFormat = {
  /** Name in the documents and in `/v1/status`. */
  readonly title: string
  readonly mediaType: string
  /** An `Accept` header may choose the format. If it prefers several equally, the first row wins. */
  readonly isNegotiable: boolean
  /** A stream has heartbeats without being asked for them. */
  readonly hasHeartbeats: boolean
  /** A refusal is one line for people, not the error record. */
  readonly refusesInWords: boolean
  /** Text before the first message. A browser waits `retryMs` before it reconnects. */
  readonly preface: (retryMs: number) => string
  /** Framings by the name of the transport. A second one is for `events=named`. */
  readonly variants: Readonly<Record<string, Framing>>
}

/** Serialized JSON contains no line breaks, so one `data:` line is enough. */
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
/** All listeners of a transport receive identical bytes. */
export type Transport = 'ws' | HttpVariant

export const DEFAULT_FORMAT: FormatName = 'sse'
export const formatNames = Object.keys(httpFormats) as readonly FormatName[]
export const formatOf = (name: FormatName): HttpFormat => httpFormats[name]
export const negotiableFormats = formatNames.filter((name) => formatOf(name).isNegotiable)
export const mapFormats = <Mapped>(map: (format: HttpFormat, name: FormatName) => Mapped) =>
  Object.fromEntries(formatNames.map((name) => [name, map(httpFormats[name], name)])) as Record<FormatName, Mapped>

/** The default transport of a format is first. */
export const variantsOf = (name: FormatName) => Object.keys(httpFormats[name].variants) as [HttpVariant, ...HttpVariant[]]
export const transports: readonly Transport[] = ['ws', ...formatNames.flatMap(variantsOf)]
export const framings = Object.assign({}, ...formatNames.map((name) => httpFormats[name].variants)) as Readonly<
  Record<HttpVariant, Framing>
>

export const contentTypeOf = (name: FormatName): string => `${httpFormats[name].mediaType}; charset=utf-8`
