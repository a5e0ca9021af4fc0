import { Counter, Gauge, Registry } from '@prometheus-io/client'

/** The metrics of the process, served as Prometheus text at `/metrics`. */
export function openMetrics() {
  const registry = new Registry()
  const registers = [registry]
  const counter = (name: string, help: string) => new Counter({ name: `stocktape_${name}`, help, registers })
  /** A gauge that is measured when the metrics are read. */
  const measured = (name: string, help: string) => {
    let measure = () => 0
    new Gauge({
      ...{ name: `stocktape_${name}`, help, registers },
      collect() {
        this.set(measure())
      },
    })
    return {
      measureBy: (by: () => number) => {
        measure = by
      },
    }
  }
  return {
    text: () => registry.metrics(),
    upstreamUnreadable: counter('upstream_unreadable_total', 'Upstream messages and list records that could not be read'),
    logsRepeated: counter('logs_repeated_total', 'Logs that were already published'),
    logsUnlisted: counter('logs_foreign_total', 'Logs of addresses that are not listed'),
    updates: new Counter({ name: 'stocktape_updates_total', help: 'Updates written to the tape', labelNames: ['type'], registers }),
    requestsForwarded: new Counter({
      name: 'stocktape_rpc_passed_total',
      help: 'JSON-RPC requests that went to the upstream, not answered from the cache or a shared request',
      labelNames: ['method'],
      registers,
    }),
    leads: measured('leads', 'Whether this process writes the tape that it shares over NATS'),
    streamUnreadable: counter('stream_unreadable_total', 'Messages of the stream in NATS that are no batch of the tape'),
    oldestOpenKeySeconds: measured('oldest_open_key_seconds', 'Age of the oldest key that is neither sealed nor retracted'),
    disconnectedAsSlow: counter('shown_out_total', 'Listeners disconnected as slow'),
    heldBytes: new Gauge({
      name: 'stocktape_backlog_held_bytes',
      help: 'Memory that live updates hold because some listener has not taken them yet',
      registers,
    }),
    listeners: new Gauge({ name: 'stocktape_listeners', help: 'Listeners connected now', labelNames: ['carrier'], registers }),
  }
}

export type Metrics = ReturnType<typeof openMetrics>
