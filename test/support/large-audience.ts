import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** With one more listener, an audience is so large that its bursts are compressed. */
const SIZE = 127
const LIVE = '"type":"live"'

/** Opens listeners of one selection that accept compression and read nothing after `live`. Returns what closes them. */
export async function openLargeAudience(wsUrl: string, query: string): Promise<() => void> {
  const { hostname, port, pathname } = new URL(wsUrl)
  const sockets = Array.from({ length: SIZE }, () => connect({ host: hostname, port: Number(port) }))
  await Promise.all(sockets.map((socket) => joinLive(socket, `${pathname}?${query}`)))
  return () => {
    for (const socket of sockets) socket.destroy()
  }
}

async function joinLive(socket: Socket, path: string): Promise<void> {
  const headers = [
    'host: localhost',
    'connection: upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-extensions: permessage-deflate',
  ]
  socket.write(`GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`)
  let received = ''
  while (!received.includes(LIVE)) {
    const [chunk] = await once(socket, 'data')
    received += chunk
  }
  socket.resume()
}
