export const errorCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  serverError: -32000,
  limitExceeded: -32005,
} as const

/** The answer to a call that failed. */
export class RpcError extends Error {
  readonly code: number
  readonly status: number
  readonly data: unknown

  constructor(code: number, message: string, status = 200, data?: unknown) {
    super(message)
    this.code = code
    this.status = status
    this.data = data
  }

  get json(): string {
    const { code, message, data } = this
    return JSON.stringify({ code, message, ...(data !== undefined && { data }) })
  }
}

export const invalidParams = (message: string): RpcError => new RpcError(errorCodes.invalidParams, `invalid params: ${message}`)

export const limitExceeded = (message: string, status = 200): RpcError => new RpcError(errorCodes.limitExceeded, message, status)
