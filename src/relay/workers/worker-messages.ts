import type { ChainEvent } from '../chain/source/source.ts'
import type { Upstream } from '../config/config.ts'
import type { MetricsJson } from '../metrics.ts'

/** A message from the process that writes the tape to a worker. */
export type WorkerOrder =
  | {
      readonly do: 'start'
      /** The built-in chain runs in the writing process only. */
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
  /** Whether the tape lacks current updates. */
  | { readonly do: 'cut'; readonly isCut: boolean }
  /** Asks for the metrics of this worker. */
  | { readonly do: 'measure'; readonly request: number }
  /** Answers `askMetrics`. */
  | { readonly do: 'measured'; readonly text: string }
  | { readonly do: 'announceStop' }
  | { readonly do: 'stop' }

/** A message from a worker to the process that writes the tape. */
export type WorkerReport =
  /** The copy is complete, so batches may follow. */
  | { readonly did: 'copy' }
  | { readonly did: 'listen'; readonly port: number }
  | { readonly did: 'list' }
  | { readonly did: 'fail'; readonly message: string }
  /** Asks for the metrics of all processes. */
  | { readonly did: 'askMetrics' }
  /** Answers `measure`. */
  | { readonly did: 'measure'; readonly request: number; readonly json: MetricsJson }
