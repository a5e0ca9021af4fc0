import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** How a peer gets its messages: records over one connection, each after its length (four bytes). */

const LENGTH_BYTES = 4

/** Opens the peer's input. Each complete record is passed on. */
export async function openFeed(takeRecord: (record: Buffer) => void): Promise<number> {
  const server = createServer((socket) => {
    let buffered = Buffer.alloc(0)
    socket.on('data', (bytes) => {
      buffered = Buffer.concat([buffered, bytes])
      while (buffered.length >= LENGTH_BYTES) {
        const end = LENGTH_BYTES + buffered.readUInt32BE(0)
        if (buffered.length < end) return
        takeRecord(buffered.subarray(LENGTH_BYTES, end))
        buffered = buffered.subarray(end)
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

/** The messages of a record that the peer frames itself. */
export const linesOf = (record: Buffer): readonly string[] => record.toString().split('\n')
