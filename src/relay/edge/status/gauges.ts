import { SourceName } from '../../../protocol/fields.ts'
import type { Metrics, Sample } from '../../metrics.ts'
import type { Sender, SentTotals } from '../limits/sent-totals.ts'
import type { StreamServices } from '../live/edge-context.ts'
import { measureMarket } from './market-gauges.ts'

type Clients = { readonly streams: Pick<StreamServices, 'edge' | 'keys'>; readonly sentTotals: SentTotals }

/** Connects the gauges of source, chain, tokens and clients. `rpcClients` are the connected clients that are no listeners. */
export function measureState(metrics: Metrics, clients: Clients, rpcClients: () => Iterable<Sender>): void {
  const { edge: context } = clients.streams
  const { hub, current, now } = context
  const ageOf = (time: number) => Math.max(0, now() - time) / 1_000
  metrics.source.measureBy(() => SourceName.options.map((source): Sample => [{ source }, current.source === source ? 1 : 0]))
  metrics.sourceAge.measureBy(() => (current.startedAt === null ? null : ageOf(Date.parse(current.startedAt))))
  metrics.headBlock.measureBy(() =>
    Object.entries(current.head).flatMap(([stage, block]): Sample[] => (block === null ? [] : [[{ stage }, block]])),
  )
  metrics.lag.measureBy(() => current.newestSettled && ageOf(current.newestSettled.timestamp * 1_000))
  metrics.settlingLag.measureBy(() =>
    current.head.sealed === null || !current.newestSettled ? null : Math.max(0, current.head.sealed - current.newestSettled.number),
  )
  metrics.listAge.measureBy(() => (current.listReadAt === null ? null : ageOf(current.listReadAt)))
  measureMarket(metrics, context)
  const load = metrics.oncePerReading(() => hub.measure())
  metrics.audiences.measureBy(() => load().audiences)
  metrics.unsentBytes.measureBy(() => load().unsentBytes)
  metrics.replays.measureBy(() => load().replays)
  metrics.replayBytes.measureBy(() => load().replayBytes)
  measureSent(metrics, clients, rpcClients)
}

function measureSent(metrics: Metrics, { streams, sentTotals }: Clients, rpcClients: () => Iterable<Sender>): void {
  const { edge, keys } = streams
  const { hub } = edge
  const totals = metrics.oncePerReading(() => sentTotals.measure([...hub.listeners, ...rpcClients()]))
  metrics.sentMessages.measureBy(() => [...totals().byTransport].map(([transport, { messages }]) => [{ transport }, messages]))
  metrics.sentBytes.measureBy(() => [...totals().byTransport].map(([transport, { bytes }]) => [{ transport }, bytes]))
  if (!keys) return
  const byKey = (read: (client: string) => number) => () =>
    [...keys.clients].map(([client, { name }]): Sample => [{ key: name }, read(client)])
  metrics.keyClients.measureBy(byKey((client) => hub.connectionLimits.countOf(client)))
  metrics.keyRequests.measureBy(byKey((client) => keys.usageOf(client)?.requests ?? 0))
  metrics.keyRefusals.measureBy(byKey((client) => keys.usageOf(client)?.refusals ?? 0))
  metrics.keyMessages.measureBy(byKey((client) => totals().byClient.get(client)?.messages ?? 0))
  metrics.keyBytes.measureBy(byKey((client) => totals().byClient.get(client)?.bytes ?? 0))
}
