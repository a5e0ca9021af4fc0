import type { ChainEvent } from '../chain/source/source.ts'
import type { Upstream } from '../config/config.ts'
import type { MetricsJson } from '../metrics.ts'

/** What the process that writes the tape sends to one that serves it. */
export type WorkerOrder =
  | {
      readonly do: 'start'
      /** Where the upstream is: the worker does not know the built-in chain. */
      readonly upstream: Upstream
      /** The folder of the worker's copy of the tape, and the file of the shared counts. */
      readonly dir: string
      /** The file to copy; null where the copy is there. */
      readonly source: string | null
      readonly usageFile: string
      /** Signs access tokens in all workers. */
      readonly tokenSecret: string
      readonly port: number
    }
  /** The file of the shared counts is another one now. */
  | { readonly do: 'moveUsage'; readonly file: string }
  /** A batch of the tape, encoded once for all workers. */
  | { readonly do: 'batch'; readonly bytes: Uint8Array }
  | { readonly do: 'chainEvent'; readonly event: ChainEvent }
  /** Whether the tape lacks what happens now. */
  | { readonly do: 'cut'; readonly isCut: boolean }
  /** Asks for the metrics of this worker, or brings those of all processes. */
  | { readonly do: 'measure'; readonly request: number }
  | { readonly do: 'measured'; readonly request: number; readonly text: string }
  | { readonly do: 'announceStop' }
  | { readonly do: 'stop' }

/** What a worker sends back. */
export type WorkerReport =
  /** The copy is made, and batches may come. */
  | { readonly did: 'copy' }
  | { readonly did: 'listen'; readonly port: number }
  | { readonly did: 'list' }
  | { readonly did: 'fail'; readonly message: string }
  /** Asks for the metrics of all processes, or brings its own. */
  | { readonly did: 'askMetrics'; readonly request: number }
  | { readonly did: 'measure'; readonly request: number; readonly json: MetricsJson }
