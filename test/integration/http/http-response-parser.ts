/** Status and headers of a response; header names are in lower case. */
export type ResponseHead = { readonly status: number; readonly headers: ReadonlyMap<string, string> }

export type HttpResponse = ResponseHead & { readonly body: string }
/** A value parsed from the front of the bytes, and the bytes after it. */
type Parsed<Value> = { readonly value: Value; readonly rest: Buffer }

const statusLine = /^HTTP\/1\.1 (\d{3}) [ -~]*$/
const headerLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t -~\u0080-\u00ff]*)$/
/** Responses without a body, in spite of their headers (RFC 9112 §6.3). */
const hasNoBody = (status: number): boolean => status < 200 || status === 204 || status === 304

/** Parses a status line and headers by RFC 9112; null while they are incomplete. */
export function parseResponseHead(bytes: Buffer): Parsed<ResponseHead> | null {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return null
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const status = statusLine.exec(first)?.[1]
  if (!status) throw new Error(`no status line: ${JSON.stringify(first)}`)
  const headers = new Map<string, string>()
  for (const line of lines) {
    const [, name, value] = headerLine.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Error(`no header: ${JSON.stringify(line)}`)
    if (headers.has(name.toLowerCase())) throw new Error(`a repeated header: ${name}`)
    headers.set(name.toLowerCase(), value)
  }
  return { value: { status: Number(status), headers }, rest: bytes.subarray(end + 4) }
}

/** Parses a response; null while it is incomplete. `over` means that no more bytes will come. */
export function parseResponse(bytes: Buffer, { toHead = false, over = false }): Parsed<HttpResponse> | null {
  const head = parseResponseHead(bytes)
  if (!head) return null
  const { value, rest } = head
  if (toHead || hasNoBody(value.status)) return { value: { ...value, body: '' }, rest }
  const length = value.headers.get('content-length')
  if (length !== undefined) {
    if (rest.length < Number(length)) return null
    return { value: { ...value, body: rest.toString('utf8', 0, Number(length)) }, rest: rest.subarray(Number(length)) }
  }
  if (value.headers.get('transfer-encoding') !== 'chunked') {
    return over ? { value: { ...value, body: rest.toString() }, rest: Buffer.alloc(0) } : null
  }
  const body = parseChunks(rest)
  return body.last ? { value: { ...value, body: body.value.toString() }, rest: body.rest } : null
}

/** Parses the complete chunks (RFC 9112 §7.1). */
export function parseChunks(bytes: Buffer): Parsed<Buffer> & { readonly last: boolean } {
  const chunks: Buffer[] = []
  for (let rest = bytes; ; ) {
    const unfinished = { value: Buffer.concat(chunks), rest, last: false }
    const end = rest.indexOf('\r\n')
    if (end < 0) return unfinished
    const size = rest.toString('latin1', 0, end)
    if (!/^[0-9a-f]+$/i.test(size)) throw new Error(`no chunk: ${JSON.stringify(size)}`)
    const from = end + 2
    const to = from + Number.parseInt(size, 16)
    if (rest.length < to + 2) return unfinished
    if (rest.toString('latin1', to, to + 2) !== '\r\n') throw new Error('a chunk that does not end where it should')
    chunks.push(rest.subarray(from, to))
    rest = rest.subarray(to + 2)
    if (to === from) return { value: Buffer.concat(chunks), rest, last: true }
  }
}
