import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Refusal } from '../../protocol/refusal.ts'

/** Whoever listens to a stream has nothing more to say; after so much of it the connection is cut. */
const INPUT_BOUND_BYTES = 16_384

const takenSockets = new WeakSet<object>()

/**
 * Takes a connection over for an answer that lasts. Node's HTTP server lets go of it as of one that was upgraded: a parser
 * and a response for each listener are most of what a silent stream would cost. What the client sends from now on, another
 * request too, is not answered: the stream's head says that it is the last answer on this connection.
 */
export function takeOver(incoming: IncomingMessage, outgoing: ServerResponse): Socket {
  const { socket } = incoming
  if (outgoing.socket !== socket) {
    throw new Refusal(400, 'pipelined', 'A stream is asked for once the answers before it on its connection have come.')
  }
  takenSockets.add(socket)
  detach(incoming, outgoing)
  return socket
}

/** Whether a connection is no longer the HTTP server's. */
export const isTaken = (socket: object): boolean => takenSockets.has(socket)

/** A request that came behind a stream's in one packet, before Node let go. */
export function detach(incoming: IncomingMessage, outgoing: ServerResponse): void {
  // Node reads it when its parser returns; were it not to, all would work the same with more memory.
  Object.assign(incoming, { upgrade: true })
  if (outgoing.socket) outgoing.detachSocket(incoming.socket)
}

/** What is said on a taken connection goes nowhere; its end, or too much of it, ends the stream. */
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
