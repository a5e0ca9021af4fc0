import type { SchedulerLike } from 'rxjs'
import type { BatchAnswer } from '../../../../../src/relay/chain/rpc/answer-envelope.ts'
import type { BatchRequest, RequestBatchFn } from '../../../../../src/relay/chain/rpc/endpoint-pool.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { waitOn } from '../../../../support/virtual-time.ts'

const reverted = new UpstreamError('reverted', '3 execution reverted')

/** Pools behind a node that answers batches. */
export class FakePools {
  /** The requests of each batch, without the headers: `call <to> <data>` or `slot <account> <slot>`. */
  readonly batches: string[][] = []
  /** The tag of each batch. */
  readonly tags: string[] = []
  /** The header of a tag, the same in the whole batch or one after the other. */
  readonly headers: Record<string, unknown[]> = {}
  /** By the text of the request. What is not set reverts as a call, and is zero as a slot. Errors are thrown. */
  readonly answers = new Map<string, unknown>()
  /** Called before each batch. It may change the answers, or throw. */
  beforeBatch: (count: number) => void = () => undefined
  delayMs = 0
  readonly #clock: SchedulerLike

  constructor(clock: SchedulerLike) {
    this.#clock = clock
  }

  readonly requestBatch: RequestBatchFn = async (requests, signal) => {
    const texts = requests.map(textOf)
    this.batches.push(texts.filter((text) => !text.startsWith('header')))
    this.tags.push(String(requests[0]?.params[0]))
    await waitOn(this.#clock, this.delayMs, signal)
    this.beforeBatch(this.batches.length)
    return texts.map((text): BatchAnswer => {
      const [kind, tag = ''] = text.split(' ')
      const headers = this.headers[tag] ?? []
      const result = kind === 'header' ? (headers.length > 1 ? headers.shift() : headers[0]) : this.#answerTo(text)
      return result instanceof UpstreamError ? { ok: false, error: result } : { ok: true, result }
    })
  }

  #answerTo(text: string): unknown {
    if (this.answers.has(text)) return this.answers.get(text)
    return text.startsWith('call') ? reverted : `0x${'0'.repeat(64)}`
  }
}

function textOf({ method, params }: BatchRequest): string {
  if (method === 'eth_call') return `call ${params[0].to} ${params[0].data}`
  if (method === 'eth_getStorageAt') return `slot ${params[0]} ${params[1]}`
  return `header ${params[0]}`
}
