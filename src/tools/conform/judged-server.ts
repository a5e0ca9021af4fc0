import { parseJson } from '../../lib/safe-json.ts'
import { BrokenRule, NotApplicable } from './rule-verdict.ts'
import { type JsonTransport, type JudgedMessage, ServerStream, WAIT_MS } from './server-stream.ts'

/** Actions of the caller on the chain and on the server. A rule that needs an absent one is skipped. */
export type ServerControl = {
  /** Makes pre-confirmed transfers of a token. */
  readonly transfer?: (symbol: string, times: number) => void
  /** Seals the block that is being built. */
  readonly seal?: () => void
  /** Stops the server, and starts it again with the same tape. */
  readonly restart?: () => Promise<void>
}

/** Everything on the tape, without snapshots. */
export const ALL = 'symbols=*&types=*&snapshot=false'
/** Without control a rule waits this long for messages of the server's own chain. */
const TRAFFIC_WAIT_MS = 30_000
const PAGE_LIMIT = 1_000
/** Limit of the pages of one read. */
const PAGES_BOUND = 1_000

export type Answer = { readonly status: number; readonly headers: Headers; readonly text: string; readonly json: unknown }

/** The server that is judged, while one rule runs. Its streams end with the rule. */
export class JudgedServer {
  readonly url: string
  readonly control: ServerControl
  /** Two tokens of the list. */
  readonly symbols: readonly [string, string]
  readonly #headers: Readonly<Record<string, string>>
  readonly #streams: ServerStream[] = []

  constructor(url: string, control: ServerControl, symbols: readonly [string, string], headers: Readonly<Record<string, string>>) {
    this.url = url
    this.control = control
    this.symbols = symbols
    this.#headers = headers
  }

  open(transport: JsonTransport, query: string, after?: string, headers: Readonly<Record<string, string>> = {}): ServerStream {
    const stream = new ServerStream(this.url, transport, query, { ...this.#headers, ...headers }, after)
    this.#streams.push(stream)
    return stream
  }

  /** A stream that has sent `live`. */
  async openLive(transport: JsonTransport, query: string, after?: string, headers = {}): Promise<ServerStream> {
    const stream = this.open(transport, query, after, headers)
    await this.expectMessage(stream, 'live')
    return stream
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await fetch(this.url + path, {
      ...init,
      headers: { ...this.#headers, ...init.headers },
      signal: AbortSignal.timeout(WAIT_MS),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: parseJson(text) }
  }

  async expectMessage(
    stream: ServerStream,
    type: string,
    description = `no ${type} came`,
  ): Promise<Readonly<Record<string, unknown>>> {
    await stream.until(() => stream.first(type) !== undefined || stream.end !== null)
    const message = stream.first(type)
    if (message) return message
    const end = stream.refusal ? `HTTP ${stream.refusal.status} ${stream.refusal.body}` : (stream.end?.reason ?? 'still open')
    throw new BrokenRule(
      `${description}; received ${stream.received.map((one) => one.type).join(', ') || 'nothing'} (${end.slice(0, 200)})`,
    )
  }

  /** Makes messages, or waits for those of the server's own chain, until a stream has received `count` more of the tape. */
  async expectMore(stream: ServerStream, count = 1): Promise<readonly JudgedMessage[]> {
    const before = stream.tape.length
    this.control.transfer?.(this.symbols[0], count)
    const isReceived = await stream.until(
      () => stream.tape.length >= before + count,
      this.control.transfer ? WAIT_MS : TRAFFIC_WAIT_MS,
    )
    if (isReceived) return stream.tape.slice(before)
    if (this.control.transfer)
      throw new BrokenRule(`${count} transfers were made, and ${stream.tape.length - before} messages came`)
    throw new NotApplicable('too little happens on the chain of the server; it needs control of the chain')
  }

  /** Seals the block, or waits for the server's own chain to do so, until a stream has received another seal. */
  async expectSeal(stream: ServerStream): Promise<void> {
    const seals = () => stream.tape.filter(({ type }) => type === 'seal').length
    const before = seals()
    this.control.seal?.()
    if (await stream.until(() => seals() > before, this.control.seal ? WAIT_MS : TRAFFIC_WAIT_MS)) return
    if (this.control.seal) throw new BrokenRule('a block with facts was sealed, and no seal came')
    throw new NotApplicable('no block with facts was sealed on the chain of the server; it needs control of the chain')
  }

  /** Reads the stored messages of a range, page by page. */
  async history(query: string): Promise<readonly JudgedMessage[]> {
    const events: JudgedMessage[] = []
    let after = ''
    for (let page = 0; page < PAGES_BOUND; page += 1) {
      const { status, json, text } = await this.fetch(`/v1/events?${query}&limit=${PAGE_LIMIT}${after}`)
      if (status !== 200) throw new BrokenRule(`/v1/events?${query} answered ${status}: ${text.slice(0, 200)}`)
      const { events: more, next } = json as { events: readonly JudgedMessage[]; next: string | null }
      events.push(...more)
      if (next === null) return events
      after = `&after=${next}`
    }
    throw new BrokenRule(`/v1/events?${query} has more than ${PAGES_BOUND} pages`)
  }

  close(): void {
    for (const stream of this.#streams) stream.close()
  }
}
