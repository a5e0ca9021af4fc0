import type { ChainEvent } from '../chain/source/source.ts'
import type { Upstream } from '../config/config.ts'
import type { MetricsJson } from '../metrics.ts'

/** A message from the process that writes the tape to a worker. */
export type WorkerOrder =
  | {
      readonly do: 'start'
      /** A worker cannot know the URLs of the built-in chain, which runs in the writing process. */
      readonly upstream: Upstream
      readonly dir: string
      /** The file to copy; null if the copy is already in the folder. */
      readonly source: string | null
      readonly usageFile: string
      readonly tokenSecret: string
      readonly port: number
      /** Place of the worker among the workers of the relay: 1 is the first. */
      readonly slot: number
    }
  | { readonly do: 'moveUsage'; readonly file: string }
  | { readonly do: 'batch'; readonly bytes: Uint8Array }
  | { readonly do: 'chainEvent'; readonly event: ChainEvent }
  /** Says whether the tape lacks current updates now. */
  | { readonly do: 'cut'; readonly isCut: boolean }
  /** Asks the worker for its metrics. */
  | { readonly do: 'measure'; readonly question: number }
  /** Answers `reach`, after every batch that was written before it, or `askMetrics`, with the text of all metrics. */
  | { readonly do: 'answer'; readonly question: number; readonly answer: boolean | string }
  | { readonly do: 'announceStop' }
  | { readonly do: 'stop' }

/** A message from a worker to the process that writes the tape. */
export type WorkerReport =
  /** The worker has its copy of the tape, so it can receive batches. */
  | { readonly did: 'copy' }
  | { readonly did: 'listen'; readonly port: number }
  | { readonly did: 'list' }
  | { readonly did: 'fail'; readonly message: string }
  /** Asks for all batches up to a number, for a client that has received it from another process. */
  | { readonly did: 'reach'; readonly question: number; readonly seq: number }
  /** Asks for the metrics of all processes. */
  | { readonly did: 'askMetrics'; readonly question: number }
  /** Answers the order `measure` with the metrics of the worker. */
  | { readonly did: 'measure'; readonly question: number; readonly json: MetricsJson }

/** Questions to another process that wait for its answers. */
export class Questions {
  readonly #waiting = new Map<number, (answer: unknown) => void>()
  #count = 0

  /** Sends a question with its number. Resolves to null if it is not answered in time. */
  ask<Answer>(withinMs: number, send: (question: number) => void): Promise<Answer | null> {
    this.#count += 1
    const question = this.#count
    const { promise, resolve } = Promise.withResolvers<Answer | null>()
    this.#waiting.set(question, resolve as (answer: unknown) => void)
    setTimeout(() => this.answer(question, null), withinMs).unref()
    send(question)
    return promise
  }

  /** Ignores an answer that is late. */
  answer(question: number, answer: unknown): void {
    this.#waiting.get(question)?.(answer)
    this.#waiting.delete(question)
  }
}
