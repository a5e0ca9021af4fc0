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
    }
  | { readonly do: 'moveUsage'; readonly file: string }
  | { readonly do: 'batch'; readonly bytes: Uint8Array }
  | { readonly do: 'chainEvent'; readonly event: ChainEvent }
  /** Says whether the tape lacks current updates now. */
  | { readonly do: 'cut'; readonly isCut: boolean }
  /** Asks the worker for its metrics. */
  | { readonly do: 'measure'; readonly request: number }
  /** Answers the report `askMetrics` with the metrics of all processes. */
  | { readonly do: 'measured'; readonly text: string }
  /** Answers the report `reach`, after every batch that was written before it. */
  | { readonly do: 'reached'; readonly request: number; readonly isReached: boolean }
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
  | { readonly did: 'reach'; readonly request: number; readonly seq: number }
  /** Asks for the metrics of all processes. */
  | { readonly did: 'askMetrics' }
  /** Answers the order `measure` with the metrics of the worker. */
  | { readonly did: 'measure'; readonly request: number; readonly json: MetricsJson }
