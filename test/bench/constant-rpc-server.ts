import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'

/** The peer that no work can beat: a bare Hono route that reads nothing and answers the same constant each time. */

const app = new Hono().post('/rpc', (c) => c.json({ jsonrpc: '2.0', id: 1, result: '0x8ac7230489e80000' }))
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }: AddressInfo) => {
  process.stdout.write(`listens on ${port}\n`)
})
