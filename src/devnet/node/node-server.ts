import { once } from 'node:events'
import { createServer, type Server, STATUS_CODES } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { WebSocketServer } from 'ws'
import type { Faults } from '../faults/faults.ts'
import { CallError, errorReply, handleRequest, type RpcHandler } from './json-rpc.ts'
import { type DevnetSockets, SOCKETS_BOUND } from './node-sockets.ts'

const BODY_BOUND_BYTES = 1_024 * 1_024

export type DevnetServerInputs = {
  readListBody: () => string
  /** Returns the methods of the node that a request reaches. */
  selectNode: () => RpcHandler
  sockets: DevnetSockets
  faults: Faults
  /** Called before each answer. */
  onRequest: (kind: 'list' | 'post' | 'socket') => void
}

/** Opens the RPC and the list on one port, with WebSockets on any path. */
export const openServer = async (inputs: DevnetServerInputs, host: string, port: number): Promise<Server> => {
  const server = createServer(getRequestListener(createApp(inputs).fetch, { overrideGlobalObjects: false }))
  acceptSockets(server, inputs)
  server.listen(port, host)
  await once(server, 'listening')
  return server
}

export const portOf = (server: Server): number => (server.address() as AddressInfo).port

export const closeServer = async (server: Server): Promise<void> => {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

const notJson = new CallError(-32600, 'content type must be application/json', 415)

const createApp = ({ readListBody, selectNode, faults, onRequest }: DevnetServerInputs): Hono => {
  const app = new Hono()
  app.use(async (_, next) => {
    if (faults.delayMs > 0) await wait(faults.delayMs, undefined, { ref: false })
    await next()
  })

  app.get('/v1/tokenized-stocks', () => {
    onRequest('list')
    return faults.list ? json(faults.list.status, errorRecord(faults.list.status)) : json(200, readListBody())
  })
  app.all('/v1/tokenized-stocks', () => json(405, errorRecord(405), { allow: 'GET' }))

  // The connection is not reused, because the body is not read to its end.
  const tooLarge = () => json(413, errorReply(new CallError(-32021, 'request body too large')).text, { connection: 'close' })
  for (const path of ['/', '/rpc']) {
    app.post(path, bodyLimit({ maxSize: BODY_BOUND_BYTES, onError: tooLarge }), async (c) => {
      onRequest('post')
      if (faults.rpc) return json(faults.rpc.status, errorReply(errorOfStatus(faults.rpc.status)).text)
      const type = c.req.header('content-type')?.split(';')[0]?.trim()
      const isJson = type === 'application/json'
      const { status, text } = isJson ? handleRequest(await c.req.text(), selectNode()) : errorReply(notJson)
      return json(status, text)
    })
    app.all(path, () => json(405, errorRecord(405), { allow: 'POST' }))
  }

  app.notFound(() => json(404, errorRecord(404)))
  app.onError((error) => json(500, errorRecord(500, error.message)))
  return app
}

const acceptSockets = (server: Server, { sockets, faults, onRequest }: DevnetServerInputs): void => {
  // `autoPong` is off because a frozen node sends no pongs. `DevnetSockets` tracks the clients.
  const options = { noServer: true, clientTracking: false, perMessageDeflate: false, autoPong: false }
  const webSocketServer = new WebSocketServer({ ...options, maxPayload: BODY_BOUND_BYTES })
  server.on('upgrade', (request, socket: Duplex, head) => {
    socket.on('error', () => socket.destroy())
    onRequest('socket')
    const refusal = faults.sockets ?? (sockets.size < SOCKETS_BOUND ? undefined : { status: 503 })
    if (refusal) socket.end(upgradeRefusalText(refusal.status), () => socket.destroy())
    else webSocketServer.handleUpgrade(request, socket, head, (opened) => sockets.accept(opened))
  })
}

const json = (status: number, text: string, headers: Record<string, string> = {}): Response =>
  new Response(text, { status, headers: { 'content-type': 'application/json', ...headers } })

const upgradeRefusalText = (status: number): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`

const errorRecord = (code: number, message = STATUS_CODES[code] ?? 'unexpected error'): string =>
  JSON.stringify({ code, message, details: [] })

const errorOfStatus = (status: number): CallError => {
  if (status === 429) return new CallError(-32016, 'over rate limit', status)
  if (status === 403) return new CallError(-32601, 'rpc method is not whitelisted', status)
  return new CallError(-32011, 'no backend is currently healthy to serve traffic', status)
}
