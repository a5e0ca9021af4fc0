import type { SchedulerLike } from 'rxjs'
import type { Config } from '../../config/config.ts'
import { link } from '../link/link.ts'
import type { ChainIdentity } from '../rpc/chain-id.ts'
import type { SourceOptions } from './source.ts'

type SourceSettingsInputs = {
  readonly config: Config
  readonly endpoints: { readonly wsUrls: readonly string[] }
  readonly chain: ChainIdentity
  readonly clock: SchedulerLike
  readonly random: () => number
  readonly warn: (kind: string, detail: unknown) => void
  /** Receives the host of each upstream socket that was lost. */
  readonly onLoss?: (endpoint: string) => void
}

/** What every source of this process shares: how it opens the upstream socket, and its intervals. */
export type SourceSettings = Pick<
  SourceOptions,
  'link' | 'linkCount' | 'pendingPollMs' | 'silenceMs' | 'finalityPollMs' | 'backfillBoundMs'
>

export const sourceSettingsOf = ({ config, endpoints: { wsUrls: urls }, ...ports }: SourceSettingsInputs): SourceSettings => ({
  link: urls.length === 0 ? null : (inputs) => link({ ...inputs, urls, ...ports }),
  linkCount: urls.length,
  pendingPollMs: config.PENDING_POLL_MS,
  silenceMs: config.SILENCE_MS,
  finalityPollMs: config.FINALITY_POLL_MS,
  backfillBoundMs: config.BACKFILL_BOUND_MS,
})
