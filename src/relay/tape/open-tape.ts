import type { Observable, SchedulerLike } from 'rxjs'
import type { Config } from '../config/config.ts'
import type { Metrics } from '../metrics.ts'
import { openControlSocket } from './control-socket.ts'
import { openEmbeddedTape } from './embedded-tape.ts'
import { type PeerChannel, PeerLogs } from './peer-logs.ts'
import type { StoredTape, StoredTapeOptions } from './stored-tape.ts'

type TapeInputs = Required<Pick<StoredTapeOptions, 'now' | 'wallTime' | 'random' | 'log'>> & {
  readonly config: Pick<Config, 'process' | 'tape'>
  readonly metrics: Metrics
  readonly uptime: () => number
  readonly clock: SchedulerLike
  /** Called when the tape has to be closed and opened again. */
  readonly onReset: (why: string) => void
  readonly onFailure: (failure: unknown) => void
}

/** `leadership` is null for a tape that no other process shares. `peers` is null for an edge too. */
export type RelayTape = {
  readonly tape: StoredTape
  /** Whether this process writes the tape: now, and at every change. */
  readonly leadership: Observable<boolean> | null
  readonly peers: PeerLogs | null
  readonly isCut: () => boolean
  readonly close: () => Promise<void>
}

/** Topic in NATS of the pre-confirmed logs that ingesters send each other. */
const PEER_LOGS = 'pending'

/** Opens the tape, and the socket at which `stocktape backup` copies it. */
export async function openTape(inputs: TapeInputs): Promise<RelayTape> {
  const opened = await openWithoutControl(inputs)
  const closeControl = openControlSocket({ tape: opened.tape, dataDir: inputs.config.tape.dataDir, log: inputs.log })
  return {
    ...opened,
    close: async () => {
      await closeControl()
      await opened.tape.close()
    },
  }
}

/** Opens the tape in a file or, if NATS_URL is set, in a stream of NATS. Only the latter loads the NATS library. */
async function openWithoutControl({ config, metrics, onReset, onFailure, uptime, clock, ...ports }: TapeInputs) {
  const { natsUrl } = config.tape
  const onCommit = (seconds: number) => metrics.tapeCommitSeconds.observe(seconds)
  const options = { ...config.tape, onCommit, ...ports }
  if (!natsUrl) {
    const tape = openEmbeddedTape(options)
    measureTape(metrics, tape, ports.now)
    return { tape, leadership: null, peers: null, isCut: () => false }
  }
  const { openJetStreamTape } = await import('./jetstream/open-jetstream-tape.ts')
  const mayLead = config.process.role !== 'edge'
  const tape = await openJetStreamTape({
    ...options,
    ...{ uptime, onReset, onFailure, mayLead, onUnreadable: () => metrics.streamUnreadable.inc() },
    nats: { ...config.tape, natsUrl },
  })
  measureTape(metrics, tape, ports.now)
  metrics.leads.measureBy(() => (tape.isLeading ? 1 : 0))
  const { stream, leadership } = tape
  metrics.natsConnected.measureBy(() => (stream.isConnected ? 1 : 0))
  metrics.natsLag.measureBy(() => tape.lag)
  const channel: PeerChannel = {
    send: (bytes) => stream.send(PEER_LOGS, bytes),
    listen: (receive) => stream.listen(PEER_LOGS, receive),
  }
  const peers = mayLead ? new PeerLogs(channel, clock) : null
  return { tape, peers, leadership, isCut: () => tape.isCut }
}

function measureTape(metrics: Metrics, tape: StoredTape, now: () => number): void {
  metrics.tapeIsDurable.measureBy(() => (tape.isDurable ? 1 : 0))
  metrics.tapeRows.measureBy(() => tape.measure().rows)
  metrics.tapeBytes.measureBy(() => tape.measure().bytes)
  metrics.tapeOldestAge.measureBy(() => {
    const { oldestTime } = tape.measure()
    return oldestTime === null ? null : Math.max(0, now() - oldestTime) / 1_000
  })
}
