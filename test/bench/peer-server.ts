import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { type SSEStreamingApi, streamSSE } from 'hono/streaming'
import { WebSocketServer } from 'ws'
import { linesOf, openFeed } from './peer-feed.ts'

/** A peer, in a process of its own, by the name that is its first argument. */

const print = (port: number, fed = 0): void => void process.stdout.write(`listens on ${port}, is fed on ${fed}\n`)
const listen = (app: Hono, fed?: number) =>
  serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }: AddressInfo) => print(port, fed))

const peers: Readonly<Record<string, () => Promise<unknown>>> = {
  /** The obvious implementation: each message is sent to each client of a `ws` server. */
  'naive ws': async () => {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
    await once(server, 'listening')
    const fed = await openFeed((record) => {
      for (const message of linesOf(record)) for (const client of server.clients) client.send(message)
    })
    print((server.address() as AddressInfo).port, fed)
  },
  /** What Hono's own guide describes: each message is written to the `streamSSE` of each client. */
  'hono streamSSE': async () => {
    const streams = new Set<SSEStreamingApi>()
    const app = new Hono().get('/', (c) =>
      streamSSE(c, async (stream) => {
        streams.add(stream)
        await new Promise<void>((resolve) => stream.onAbort(resolve))
        streams.delete(stream)
      }),
    )
    const fed = await openFeed((record) => {
      for (const data of linesOf(record)) {
        const id = String(JSON.parse(data).id)
        for (const stream of streams) void stream.writeSSE({ id, data })
      }
    })
    return listen(app, fed)
  },
  /** The upper bound for answers to JSON-RPC: a bare route that reads nothing and always returns the same. */
  constant: async () => listen(new Hono().post('/rpc', (c) => c.json({ jsonrpc: '2.0', id: 1, result: '0x8ac7230489e80000' }))),
}

await peers[process.argv[2] ?? '']?.()
