import { SourceName } from '../../../protocol/fields.ts'
import type { Metrics, Sample } from '../../metrics.ts'
import { connectionTransports } from '../clients/client.ts'
import type { Clients, Sent } from '../clients/clients.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { Listener } from '../live/listener.ts'
import { measureMarket } from './market-gauges.ts'

/** Connects the gauges of source, chain, tokens and clients. */
export function measureState(metrics: Metrics, context: EdgeContext): void {
  const { hub, clients, current, now } = context
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
  const load = metrics.oncePerReading(() => loadOf(clients))
  metrics.audiences.measureBy(() => hub.audienceCount)
  metrics.unsentBytes.measureBy(() => load().unsentBytes)
  metrics.replays.measureBy(() => load().replays)
  metrics.replayBytes.measureBy(() => load().replayBytes)
  measureSent(metrics, context)
}

/** The bytes that clients have not taken yet, and those of the replays among them. */
function loadOf({ connected }: Clients) {
  const load = { unsentBytes: 0, replays: 0, replayBytes: 0 }
  for (const client of connected) {
    const { backlog } = client.outlet
    load.unsentBytes += backlog
    if (!(client instanceof Listener) || client.phase.name !== 'replaying') continue
    load.replays += 1
    load.replayBytes += backlog
  }
  return load
}

function measureSent(metrics: Metrics, { clients, keys }: EdgeContext): void {
  const sums = metrics.oncePerReading(() => clients.measureSent())
  const byTransport = (read: (sent: Sent) => number) => (): Sample[] =>
    connectionTransports.flatMap((transport) => {
      const sent = sums().get(transport)
      return sent ? [[{ transport }, read(sent)]] : []
    })
  metrics.sentMessages.measureBy(byTransport(({ messages }) => messages))
  metrics.sentBytes.measureBy(byTransport(({ bytes }) => bytes))
  if (!keys) return
  const byKey = (read: (client: string) => number | undefined) => () =>
    [...keys.clients].map(([client, { name }]): Sample => [{ key: name }, read(client) ?? 0])
  metrics.keyRequests.measureBy(byKey((client) => keys.usageOf(client)?.requests))
  metrics.keyRefusals.measureBy(byKey((client) => keys.usageOf(client)?.refusals))
  metrics.keyClients.measureBy(byKey((client) => sums().get(client)?.clients))
  metrics.keyMessages.measureBy(byKey((client) => sums().get(client)?.messages))
  metrics.keyBytes.measureBy(byKey((client) => sums().get(client)?.bytes))
}
