import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { linesOf, openFeed } from './peer-feed.ts'

/** The obvious implementation as a peer: each message is sent to each client of a `ws` server. */

const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
await once(server, 'listening')
const feedPort = await openFeed((record) => {
  for (const message of linesOf(record)) for (const client of server.clients) client.send(message)
})
process.stdout.write(`listens on ${(server.address() as AddressInfo).port}, is fed on ${feedPort}\n`)
