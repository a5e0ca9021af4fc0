import { Counter, Gauge, Registry } from '@prometheus-io/client'

/** What the process counts, in Prometheus text at `/metrics`. Made in main and handed down; nothing else is global. */
export function openMetrics() {
  const registry = new Registry()
  const registers = [registry]
  const counter = (name: string, help: string) => new Counter({ name: `stocktape_${name}`, help, registers })
  return {
    text: () => registry.metrics(),
    upstreamUnreadable: counter(
      'upstream_unreadable_total',
      'Upstream messages and list records that could not be read',
    ),
    logsRepeated: counter('logs_repeated_total', 'Logs that had been told before'),
    logsUnlisted: counter('logs_foreign_total', 'Logs of addresses that are not listed'),
    updates: new Counter({
      name: 'stocktape_updates_total',
      help: 'Updates written to the tape',
      labelNames: ['type'],
      registers,
    }),
    requestsForwarded: new Counter({
      name: 'stocktape_rpc_passed_total',
      help: 'Questions that were passed on to the upstream, and not answered from memory or with others',
      labelNames: ['method'],
      registers,
    }),
    disconnectedAsSlow: counter('shown_out_total', 'Listeners shown out because they read too slowly'),
    listeners: new Gauge({
      name: 'stocktape_listeners',
      help: 'Listeners connected now',
      labelNames: ['carrier'],
      registers,
    }),
  }
}

export type Metrics = ReturnType<typeof openMetrics>
