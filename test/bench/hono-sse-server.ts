import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { type SSEStreamingApi, streamSSE } from 'hono/streaming'
import { linesOf, openFeed } from './peer-feed.ts'

/** The peer that Hono's own guide describes: each message is written to the `streamSSE` of each client. */

const streams = new Set<SSEStreamingApi>()
const app = new Hono().get('/', (c) =>
  streamSSE(c, async (stream) => {
    streams.add(stream)
    await new Promise<void>((resolve) => stream.onAbort(resolve))
    streams.delete(stream)
  }),
)
const feedPort = await openFeed((record) => {
  for (const data of linesOf(record)) {
    const id = String(JSON.parse(data).id)
    for (const stream of streams) void stream.writeSSE({ id, data })
  }
})
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }: AddressInfo) => {
  process.stdout.write(`listens on ${port}, is fed on ${feedPort}\n`)
})
