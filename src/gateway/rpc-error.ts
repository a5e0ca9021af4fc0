/** The codes of JSON-RPC 2.0, and those of Ethereum's nodes beside them. */
export const codes = {
  parse: -32700,
  request: -32600,
  method: -32601,
  params: -32602,
  internal: -32603,
  server: -32000,
  limit: -32005,
} as const

/** What a call is answered with where there is no result: a JSON-RPC error, and the HTTP status if it is not 200. */
export class Fault extends Error {
  readonly code: number
  readonly status: number
  readonly data: unknown

  constructor(code: number, message: string, status = 200, data?: unknown) {
    super(message)
    this.code = code
    this.status = status
    this.data = data
  }

  /** The error object as it is written. */
  get text(): string {
    const { code, message, data } = this
    return JSON.stringify({ code, message, ...(data !== undefined && { data }) })
  }
}
