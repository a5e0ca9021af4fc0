import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** How a peer gets what it has to tell: records over one connection, each with its length before it (four bytes). */

const LENGTH_BYTES = 4

/** Opens the way in; each record is handed on once it is whole. */
export async function openFeed(take: (record: Buffer) => void): Promise<number> {
  const server = createServer((socket) => {
    let held = Buffer.alloc(0)
    socket.on('data', (bytes) => {
      held = Buffer.concat([held, bytes])
      while (held.length >= LENGTH_BYTES) {
        const end = LENGTH_BYTES + held.readUInt32BE(0)
        if (held.length < end) return
        take(held.subarray(LENGTH_BYTES, end))
        held = held.subarray(end)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

export async function connectFeed(port: number): Promise<(record: Buffer) => void> {
  const socket: Socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.setNoDelay(true)
  return (record) => {
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt32BE(record.length)
    socket.write(Buffer.concat([length, record]))
  }
}

/** The messages of a record that a peer frames itself. */
export const linesOf = (record: Buffer): readonly string[] => record.toString().split('\n')
