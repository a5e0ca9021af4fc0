import type { BatchRequest, RequestBatchFn, RequestFn } from './endpoint-pool.ts'

type BatchedRequest = {
  readonly request: BatchRequest
  readonly resolve: (result: unknown) => void
  readonly reject: (failure: unknown) => void
}

/** Returns a request function that sends the requests of one turn of the event loop in one batch. The caller limits their number. */
export function batchedRequests(requestBatch: RequestBatchFn, signal: AbortSignal): RequestFn {
  let waiting: BatchedRequest[] = []
  const send = () => {
    const sent = waiting
    waiting = []
    const requests = sent.map(({ request }) => request)
    requestBatch(requests, signal).then(
      (answers) => {
        for (const [index, answer] of answers.entries())
          answer.ok ? sent[index]?.resolve(answer.result) : sent[index]?.reject(answer.error)
      },
      (failure: unknown) => {
        for (const { reject } of sent) reject(failure)
      },
    )
  }
  return (method, params) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(send)
      waiting.push({ request: { method, params } as BatchRequest, resolve, reject })
    })
}
