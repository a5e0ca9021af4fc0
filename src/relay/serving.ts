import type { Observable } from 'rxjs'
import type { ChainEvent } from './chain/source/source.ts'
import { openHttpEdge } from './edge/http/http-edge.ts'
import { openLiveEdge } from './edge/live/live-edge.ts'
import { measureState } from './edge/status/measured-state.ts'
import { openStatus } from './edge/status/status-service.ts'
import { openGateway } from './gateway/gateway.ts'

type ServingInputs = Omit<Parameters<typeof openGateway>[0], 'view' | 'connections' | 'addressOf' | 'limitsOf'> &
  Parameters<typeof openLiveEdge>[0] & {
    /** Opens the parts that a relay can do without. */
    readonly openParts?: readonly (typeof openGateway)[]
    readonly onFailure: (failure: unknown) => void
  }

/** Everything that reads the tape for clients. */
export type Serving = {
  readonly port: number
  /** Resolves when the first list has been read, so that symbols can be named. */
  readonly whenListed: Promise<void>
  /** Takes every chain event. */
  readonly onChainEvent: (event: ChainEvent) => void
  readonly activities: readonly Observable<unknown>[]
  /** From now on it is unready. */
  announceStop(): void
  /** Sends every client its position. */
  drain(): void
  close(): Promise<void>
}

/** Opens the hub, the gateway, the status and the port. */
export async function openServing({ openParts = [openGateway], ...context }: ServingInputs): Promise<Serving> {
  const live = openLiveEdge(context)
  const parts = openParts.map((open) => open({ ...context, ...live }))
  live.onRevoked((clients) => {
    for (const part of parts) part.disconnect(clients)
  })
  const clientCount = () => parts.reduce((sum, part) => sum + part.clientCount(), 0)
  measureState(context.metrics, live.streams.edge)
  const status = await openStatus(live.streams.edge, clientCount, context.onFailure)
  const server = await openHttpEdge({ ...context, ...live, parts, status: status.read })
  return {
    port: server.port,
    whenListed: live.whenListed,
    onChainEvent: (event) => {
      for (const part of parts) part.onChainEvent(event)
    },
    activities: parts.map(({ activity }) => activity),
    announceStop: live.announceStop,
    drain: () => {
      for (const { drain } of [live, ...parts]) drain()
    },
    close: async () => {
      await server.close(context.config.DRAIN_MS)
      for (const { close } of [live, ...parts]) close()
      await status.close()
    },
  }
}
