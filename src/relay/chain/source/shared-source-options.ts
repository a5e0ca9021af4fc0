import type { Config } from '../../config/config.ts'
import type { Host } from '../../host.ts'
import { reconnectingLink } from '../link/reconnecting-link.ts'
import type { ChainIdentity } from '../rpc/chain-identity.ts'
import type { SourceOptions } from './source.ts'

type SharedSourceInputs = Pick<Host, 'clock' | 'random' | 'log'> & {
  readonly config: Config['chain']
  readonly chain: ChainIdentity
  /** Called with the host of each lost upstream socket. */
  readonly onLoss?: (endpoint: string) => void
}

/** The options that all sources of this process share. */
export type SharedSourceOptions = Pick<
  SourceOptions,
  'link' | 'linkCount' | 'pendingPollMs' | 'silenceMs' | 'finalityPollMs' | 'backfillLimitMs'
>

export function sharedSourceOptions({ config, ...ports }: SharedSourceInputs): SharedSourceOptions {
  const { upstreamWsUrl: urls, pendingPollMs, silenceMs, finalityPollMs, backfillLimitMs } = config
  return {
    link: urls.length === 0 ? null : (inputs) => reconnectingLink({ ...inputs, urls, ...ports }),
    linkCount: urls.length,
    ...{ pendingPollMs, silenceMs, finalityPollMs, backfillLimitMs },
  }
}
