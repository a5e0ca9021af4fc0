import { Observable, startWith } from 'rxjs'
import type { Config } from './config.ts'
import { openSqliteTape } from './tape/sqlite.ts'
import type { SearchableTape } from './tape/tape.ts'
import type { TapeFileOptions } from './tape/tape-file.ts'

type TapeInputs = Required<Pick<TapeFileOptions, 'now' | 'wallTime' | 'random' | 'warn'>> & {
  readonly config: Config
  readonly uptime: () => number
  /** Called when the tape has to be closed and opened again. */
  readonly onReset: (why: string) => void
}

/** The tape of the settings. `leadership` says whether this process writes it; null where no other can. */
export type ConfiguredTape = {
  readonly tape: SearchableTape
  readonly leadership: Observable<boolean> | null
  /** Whether the tape lacks what happens now. */
  readonly isCut: () => boolean
}

/** Opens the tape in a file, or with NATS_URL in a stream. NATS is loaded only then. */
export async function openConfiguredTape({ config, onReset, uptime, ...ports }: TapeInputs): Promise<ConfiguredTape> {
  const { DATA_DIR: dir, TAPE_RETENTION_MS: retentionMs, TAPE_BOUND: bound, NATS_URL: urls } = config
  const options = { dir, retentionMs, bound, ...ports }
  if (!urls) return { tape: openSqliteTape(options), leadership: null, isCut: () => false }
  const { openJetStreamTape } = await import('./tape/jetstream/open-jetstream-tape.ts')
  const tape = await openJetStreamTape({
    ...options,
    ...{ uptime, onReset, mayLead: config.ROLE !== 'edge' },
    nats: { urls, credentialsFile: config.NATS_CREDENTIALS, name: config.NATS_STREAM, replicas: config.NATS_REPLICAS },
  })
  const changes = new Observable<boolean>((subscriber) => tape.onLeadership((isLeading) => subscriber.next(isLeading)))
  return { tape, leadership: changes.pipe(startWith(tape.isLeading)), isCut: () => tape.isCut }
}
