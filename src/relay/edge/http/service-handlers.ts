import type { ServiceStatus } from '../../../protocol/status.ts'
import { hasBearerToken } from '../limits/authorizer.ts'
import { type Handlers, sendJson } from './handlers.ts'
import { metricsForbidden, sendRefusal, upgradeRequired } from './http-refusals.ts'

const loopbackAddresses = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1'])

/** A proxy on this machine forwards requests of other machines, and a browser those of any page. */
const foreignHeaders = ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip', 'origin']

export type ServiceReports = {
  readonly metrics: () => Promise<string>
  /** The token that gives other machines the metrics; without it they get none. */
  readonly metricsToken: string | undefined
  /** Why the relay is of no use now; empty when it is ready. */
  readonly unreadyReasons: () => readonly string[]
  readonly status: () => ServiceStatus
  /** Whether the upstream is the built-in chain. */
  readonly demo: boolean
}

/** How the service is, and the path that leads elsewhere. */
export const serviceHandlers = ({
  metrics,
  metricsToken,
  unreadyReasons,
  status,
  demo,
}: ServiceReports): Handlers<'socket' | 'status' | 'health' | 'ready' | 'metrics'> => ({
  socket: (c) => {
    c.header('upgrade', 'websocket')
    return sendRefusal(c, upgradeRequired)
  },
  status: (c) => sendJson(c, JSON.stringify(status())),
  health: (c) => c.json({ status: 'ok' }),
  ready: (c) => {
    const reasons = unreadyReasons()
    const isReady = reasons.length === 0
    return c.json({ status: isReady ? 'ready' : 'unready', reasons, demo }, isReady ? 200 : 503)
  },
  metrics: async (c) => {
    const { incoming } = c.env
    const isLocal =
      loopbackAddresses.has(incoming.socket.remoteAddress ?? '') && !foreignHeaders.some((name) => name in incoming.headers)
    if (!isLocal && !(metricsToken !== undefined && hasBearerToken(incoming, metricsToken))) throw metricsForbidden
    return c.text(await metrics())
  },
})
