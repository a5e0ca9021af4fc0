import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'

/** The upper bound for a peer: a bare Hono route that reads nothing and always returns the same constant. */

const app = new Hono().post('/rpc', (c) => c.json({ jsonrpc: '2.0', id: 1, result: '0x8ac7230489e80000' }))
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }: AddressInfo) => {
  process.stdout.write(`listens on ${port}\n`)
})
