import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { linesOf, openFeed } from './peer-feed.ts'

/** A peer, in a process of its own, by the name that is its first argument. */

const takeLines = (take: (line: string) => void) => openFeed((record) => linesOf(record).forEach(take))

const peers: Readonly<Record<string, () => Promise<void>>> = {
  /** The obvious implementation: each message is sent to each client of a `ws` server. */
  'naive ws': async () => {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
    await once(server, 'listening')
    const fed = await takeLines((line) => {
      for (const client of server.clients) client.send(line)
    })
    print((server.address() as AddressInfo).port, fed)
  },
  /** Each message is written to the response of each client. JSON-RPC gets a constant: no answer can cost less. */
  'bare Node': async () => {
    const streams = new Set<ServerResponse>()
    const server = createServer((request, response) => {
      if (request.method === 'POST') return void response.end(CONSTANT)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      streams.add(response.on('close', () => streams.delete(response)))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const fed = await takeLines((line) => {
      const event = `id: ${JSON.parse(line).id}\ndata: ${line}\n\n`
      for (const stream of streams) stream.write(event)
    })
    print((server.address() as AddressInfo).port, fed)
  },
}

const CONSTANT = '{"jsonrpc":"2.0","id":1,"result":"0x8ac7230489e80000"}'
const print = (port: number, fed: number): void => void process.stdout.write(`listens on ${port}, is fed on ${fed}\n`)

await peers[process.argv[2] ?? '']?.()
