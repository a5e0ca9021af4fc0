import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { WebSocketServer } from 'ws'
import type { Devnet } from '../../src/devnet/devnet.ts'

/** One URL over HTTP and WebSocket whose node can change between two requests, without any that fails. It pushes nothing. */
export async function openChainSwitch(devnet: Devnet) {
  const node = { devnet, url: '', wsUrl: '' }
  const forward = async (body: string) => (await fetch(node.devnet.rpcUrl, { method: 'POST', body, headers })).text()
  const headers = { 'content-type': 'application/json' }
  const server = createServer(async (request, response) => {
    const answer = await forward(await text(request)).catch(() => '')
    response.writeHead(200, headers).end(answer)
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    socket.on('message', async (message) => socket.send(await forward(String(message)).catch(() => '')))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return Object.assign(node, { url: `http://127.0.0.1:${port}`, wsUrl: `ws://127.0.0.1:${port}` })
}
