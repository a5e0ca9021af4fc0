import {
  type BatchAnswer,
  type ParseAnswer,
  parseBatch,
  parseLogsResult,
  parseResult,
} from '../../relay/chain/rpc/answer-envelope.ts'
import { type BatchRequest, exchangeWith, REQUEST_TIMEOUT_MS, type RequestFn } from '../../relay/chain/rpc/endpoint-pool.ts'
import type { JsonRpcRequest } from '../../relay/chain/rpc/request-text.ts'
import { UpstreamError } from '../../relay/chain/rpc/upstream-error.ts'
import { reasonOf } from './finding.ts'

/** Asks one endpoint as the relay does, but without retries and without other endpoints. */
export class EndpointProbe {
  readonly #exchange: ReturnType<typeof exchangeWith>
  readonly #deadline: AbortSignal
  readonly #wallTime: () => number
  #lastId = 0
  roundTripMs = 0
  /** Time by which the server's clock is ahead of ours; null if the server sends no Date. */
  clockAheadMs: number | null = null

  constructor(url: string, deadline: AbortSignal, wallTime: () => number) {
    this.#exchange = exchangeWith(url)
    this.#deadline = deadline
    this.#wallTime = wallTime
  }

  readonly request: RequestFn = (method, params) => this.ask(method, params)

  ask(method: string, params: readonly unknown[] = []): Promise<unknown> {
    this.#lastId += 1
    const payload = { jsonrpc: '2.0', id: this.#lastId, method, params } as const
    return this.#send(payload, this.#lastId, method === 'eth_getLogs' ? parseLogsResult : parseResult)
  }

  batch(requests: readonly BatchRequest[]): Promise<readonly BatchAnswer[]> {
    const first = this.#lastId + 1
    this.#lastId += requests.length
    const payload = requests.map(({ method, params }, index) => ({ jsonrpc: '2.0', id: first + index, method, params }) as const)
    return this.#send(payload, first, parseBatch(requests.length))
  }

  async #send<T>(payload: JsonRpcRequest | readonly JsonRpcRequest[], id: number, parse: ParseAnswer<T>): Promise<T> {
    const startedAt = performance.now()
    try {
      const bounds = AbortSignal.any([this.#deadline, AbortSignal.timeout(REQUEST_TIMEOUT_MS)])
      const { response, body } = await this.#exchange(payload, bounds)
      this.roundTripMs = Math.round(performance.now() - startedAt)
      this.#compareClocks(response.headers.get('date'))
      return parse(response, body, id)
    } catch (failure) {
      if (failure instanceof UpstreamError && (failure.kind !== 'unreachable' || failure.detail)) throw failure
      const isLate = failure instanceof DOMException && failure.name === 'TimeoutError'
      const seconds = Math.round((performance.now() - startedAt) / 100) / 10
      throw new UpstreamError('unreachable', isLate ? `no answer in ${seconds} s` : reasonOf(failure))
    }
  }

  /** Measures `clockAheadMs`. The header has whole seconds, so on average the server's clock is half a second ahead of it. */
  #compareClocks(date: string | null): void {
    const serverMs = Date.parse(date ?? '')
    if (!Number.isNaN(serverMs)) this.clockAheadMs = serverMs + 500 - (this.#wallTime() - this.roundTripMs / 2)
  }
}
