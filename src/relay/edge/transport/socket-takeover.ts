import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Refusal } from '../../../protocol/refusal.ts'

/** A client of a stream has nothing to send; after this many bytes of it the connection is cut. */
const INPUT_BOUND_BYTES = 16_384

const takenSockets = new WeakSet<object>()
const lateRequests = new WeakSet<IncomingMessage>()

/** Says that a request begins after Node's parser returned: by then Node does not let its connection go. */
export const markLate = (incoming: IncomingMessage): void => void lateRequests.add(incoming)

/**
 * Detaches a connection from Node's HTTP server, as an upgrade does, to write a stream on it. The parser and response
 * objects would be most of the cost of an idle stream. Later requests on this connection are not answered: the head of
 * the stream carries `connection: close`.
 */
export function takeOver(incoming: IncomingMessage, outgoing: ServerResponse): Socket {
  const { socket } = incoming
  if (lateRequests.has(incoming)) {
    throw new Refusal(400, 'pipelined', 'Request a stream after the earlier answers on its connection have arrived.')
  }
  takenSockets.add(socket)
  detach(incoming, outgoing)
  return socket
}

/** Whether a connection is detached from the HTTP server. */
export const isTaken = (socket: object): boolean => takenSockets.has(socket)

/** Also called for a request that was pipelined behind the stream's in one packet, before Node let go. */
export function detach(incoming: IncomingMessage, outgoing: ServerResponse): void {
  // Node reads `upgrade` when its parser returns. If it stopped doing so, only memory use would grow.
  Object.assign(incoming, { upgrade: true })
  if (outgoing.socket) outgoing.detachSocket(incoming.socket)
}

/** Discards what the client sends on a taken connection; its end, or too many bytes, ends the stream. */
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
