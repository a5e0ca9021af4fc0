import { Client } from '../../../../../src/relay/edge/clients/client.ts'
import { Clients } from '../../../../../src/relay/edge/clients/clients.ts'
import type { UsageCounts } from '../../../../../src/relay/edge/limits/usage-counts.ts'
import { openMetrics } from '../../../../../src/relay/metrics.ts'
import { QuietOutlet } from '../quiet-outlet.ts'

const metrics = openMetrics()

type Limits = {
  readonly maxClients: number
  readonly maxClientsPerAddress: number
  readonly workers?: number
  readonly sharedUsage?: UsageCounts
}

export const openClients = (limits: Limits = { maxClients: 5, maxClientsPerAddress: 3 }, uptime = () => 0) =>
  new Clients({
    ...{ workers: 1, maxBacklogBytes: 1_000, backlogPatienceMs: 5_000, ...limits },
    ...{ keys: null, isOneOfMany: false, uptime, random: () => 0.5, metrics, log: () => {} },
  })

/** Takes bytes when the test wants it. */
export class ManualOutlet extends QuietOutlet {
  #taken = 0
  #written = 0

  override get backlog(): number {
    return this.#written - this.#taken
  }

  override get takenBytes(): number {
    return this.#taken
  }

  override write({ length }: { readonly length: number }): void {
    this.#written += length
  }

  take(bytes: number): void {
    this.#taken += bytes
  }
}

export const clientAt = (address: string, outlet = new ManualOutlet()) =>
  new Client({ transport: 'ndjson', address, outlet, heartbeatMs: null, patience: openClients().patience, uptime: 0 })
