import type { ServiceStatus } from '../../../protocol/service-status.ts'
import { hasBearerToken } from '../limits/authorizer.ts'
import { metricsForbidden, unknownPath, upgradeRequired } from '../limits/refusals.ts'
import { sendRefusal } from '../transport/send-refusal.ts'
import { type Handlers, sendJson } from './handler-basics.ts'

const loopbackAddresses = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1'])

/** Headers of requests that a proxy on this machine forwards for other machines, or a browser on it sends for any page. */
const foreignHeaders = ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip', 'origin']

export type ServiceReports = {
  /** Null if METRICS_PORT serves the metrics. */
  readonly metrics: (() => Promise<string>) | null
  /** Access token that other machines need to read the metrics. */
  readonly metricsToken: string | undefined
  /** Returns the reasons why the relay is not ready; empty if it is ready. */
  readonly unreadyReasons: () => readonly string[]
  readonly status: () => ServiceStatus
  readonly demo: () => boolean
}

export const serviceHandlers = (reports: ServiceReports): Handlers<'socket' | 'status' | 'health' | 'ready' | 'metrics'> => ({
  socket: (c) => {
    c.header('upgrade', 'websocket')
    return sendRefusal(c, upgradeRequired)
  },
  status: (c) => sendJson(c, JSON.stringify(reports.status())),
  health: (c) => c.json({ status: 'ok' }),
  ready: (c) => {
    const reasons = reports.unreadyReasons()
    const isReady = reasons.length === 0
    return c.json({ status: isReady ? 'ready' : 'unready', reasons, demo: reports.demo() }, isReady ? 200 : 503)
  },
  metrics: async (c) => {
    const { incoming } = c.env
    const { metrics, metricsToken } = reports
    if (metrics === null) throw unknownPath(c.req.path)
    const isLocal =
      loopbackAddresses.has(incoming.socket.remoteAddress ?? '') && !foreignHeaders.some((name) => name in incoming.headers)
    if (!isLocal && !(metricsToken !== undefined && hasBearerToken(incoming, metricsToken))) throw metricsForbidden
    return c.text(await metrics())
  },
})
