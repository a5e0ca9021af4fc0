import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { pipelined } from '../limits/refusals.ts'

/** Limit of the bytes that a client of a stream sends, since it has nothing to send. Beyond it the connection is cut. */
const INPUT_BOUND_BYTES = 16_384

const takenSockets = new WeakSet<object>()
const lateRequests = new WeakSet<IncomingMessage>()

/** Marks a request that begins after Node's parser has returned: Node can then no longer release the connection. */
export const markLate = (incoming: IncomingMessage): void => void lateRequests.add(incoming)

/**
 * Detaches a connection from Node's HTTP server, like an upgrade, to write a stream on it: the parser and response objects would be
 * most of the cost of an idle stream. The stream's head contains `connection: close`.
 */
export function takeOver(incoming: IncomingMessage, outgoing: ServerResponse): Socket {
  const { socket } = incoming
  if (lateRequests.has(incoming)) throw pipelined
  takenSockets.add(socket)
  detach(incoming, outgoing)
  return socket
}

export const isTaken = (socket: object): boolean => takenSockets.has(socket)

/** Releases a connection from Node's server. Also called for a request that follows the stream's request in one packet. */
export function detach(incoming: IncomingMessage, outgoing: ServerResponse): void {
  // Node reads `upgrade` when its parser returns. If a release of Node did not, only memory use would grow.
  Object.assign(incoming, { upgrade: true })
  if (outgoing.socket) outgoing.detachSocket(incoming.socket)
}

/** Discards the bytes that a client of a stream sends. If it sends too many, or ends its side, the connection ends. */
export function discardInput(socket: Socket): void {
  socket.on('data', cutAtBound)
  socket.on('end', endSocket)
  socket.resume()
}

function cutAtBound(this: Socket): void {
  if (this.bytesRead > INPUT_BOUND_BYTES) this.destroy()
}

function endSocket(this: Socket): void {
  this.end()
}
