import type { Config } from '../config/config.ts'
import type { Host } from '../host.ts'
import type { Metrics } from '../metrics.ts'
import { openControlSocket } from './control-socket.ts'
import { LocalWriter } from './local-writer.ts'
import type { SharedTapeLink, TapePeers, TapeWriter } from './tape.ts'
import { openTapeStore, type TapeStore } from './tape-store.ts'

type TapeInputs = Omit<Host, 'clock'> & {
  readonly config: Pick<Config, 'process' | 'tape'>
  readonly metrics: Metrics
  /** Called when the tape has to be closed and opened again. */
  readonly onReset: (why: string) => void
  readonly onFailure: (failure: unknown) => void
}

export type OpenedTape = {
  readonly tape: TapeStore
  /** Null if this process never writes the tape. */
  readonly writer: TapeWriter | null
  /** Null if no other process writes the tape. */
  readonly shared: SharedTapeLink | null
  /** Null if this process has no others to write the tape with. */
  readonly peers: TapePeers | null
  readonly close: () => Promise<void>
}

/** Topic in NATS of the pre-confirmed logs that ingesters send each other. */
const PEER_LOGS = 'pending'

/** Opens the tape, and the socket at which `stocktape backup` copies it. */
export async function openTape(inputs: TapeInputs): Promise<OpenedTape> {
  const { config, metrics, now, log } = inputs
  const opened = await (config.tape.natsUrl ? openOverNats(inputs, config.tape.natsUrl) : openLocal(inputs))
  const { tape } = opened
  measureTape(metrics, tape, now)
  const closeControl = openControlSocket({ tape, dataDir: config.tape.dataDir, log })
  const close = async () => {
    await closeControl()
    await opened.close()
  }
  return { ...opened, close }
}

function openLocal(inputs: TapeInputs): OpenedTape {
  const tape = openTapeStore(storeOptionsOf(inputs))
  return { tape, writer: new LocalWriter(tape), shared: null, peers: null, close: async () => tape.close() }
}

/** Opens the tape as a stream of NATS. Only this loads the NATS library. */
async function openOverNats(inputs: TapeInputs, natsUrl: readonly string[]): Promise<OpenedTape> {
  const { config, metrics, ...ports } = inputs
  const { openJetStreamTape } = await import('./jetstream/open-jetstream-tape.ts')
  const mayLead = config.process.role !== 'edge'
  const { stream, copy, writer, close } = await openJetStreamTape({
    ...{ ...ports, ...storeOptionsOf(inputs), mayLead, onUnreadable: () => metrics.streamUnreadable.inc() },
    nats: { ...config.tape, natsUrl },
  })
  metrics.leads.measureBy(() => (writer.isLeading ? 1 : 0))
  metrics.natsConnected.measureBy(() => (stream.link.isConnected ? 1 : 0))
  metrics.natsLag.measureBy(() => copy.lag)
  const peers: TapePeers = {
    leadership: writer.leadership,
    send: (bytes) => stream.link.send(PEER_LOGS, bytes),
    listen: (receive) => stream.link.listen(PEER_LOGS, receive),
  }
  return { tape: copy.store, shared: copy, close, ...(mayLead ? { writer, peers } : { writer: null, peers: null }) }
}

const storeOptionsOf = ({ config, metrics, now, wallTime, random, log }: TapeInputs) => ({
  ...{ ...config.tape, now, wallTime, random, log },
  onCommit: (seconds: number) => metrics.tapeCommitSeconds.observe(seconds),
})

function measureTape(metrics: Metrics, tape: TapeStore, now: () => number): void {
  metrics.tapeIsDurable.measureBy(() => (tape.isDurable ? 1 : 0))
  metrics.tapeRows.measureBy(() => tape.size.rows)
  metrics.tapeBytes.measureBy(() => tape.size.bytes)
  metrics.tapeOldestAge.measureBy(() => {
    const { oldestTimeMs } = tape.size
    return oldestTimeMs === null ? null : Math.max(0, now() - oldestTimeMs) / 1_000
  })
}
