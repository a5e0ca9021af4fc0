import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { SocketOutlet } from '../../../../../src/relay/edge/transport/socket-outlet.ts'

/** More bytes than the kernel takes of a client that does not read. */
const BYTES = 16 * 2 ** 20

it('an outlet never takes back the bytes that it has counted', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').pause()
  onTestFinished(() => void client.destroy())
  const [socket] = (await once(server, 'connection')) as [Socket]
  const outlet = new SocketOutlet(socket)
  for (let part = 0; part < 2; part += 1) outlet.write(Buffer.alloc(BYTES / 2))
  await expect.poll(() => outlet.takenBytes).toBeGreaterThan(0)
  const { takenBytes } = outlet
  socket.destroy()
  expect(outlet.takenBytes).toBeGreaterThanOrEqual(takenBytes)
  await once(socket, 'close')
  expect(outlet.takenBytes).toBeGreaterThanOrEqual(takenBytes)
})
