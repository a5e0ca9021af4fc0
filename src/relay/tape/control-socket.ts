import { chmod, rmSync, statSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Host } from '../host.ts'
import type { WriteLine } from '../log-lines.ts'
import type { TapeStore } from './tape-store.ts'

/** Name of the socket in DATA_DIR. */
export const CONTROL_NAME = 'control'
/** Limit of the time in which a program copies the file. Meanwhile the write-ahead log only grows. */
const COPY_BOUND_MS = 600_000
const CONNECTIONS_BOUND = 4

/** A line from the relay to `stocktape backup`, which sends a line before each. */
export type ControlMessage =
  /** The file does not change until the next line of the program. */
  | { readonly say: 'copy' }
  /** `isUnchanged` is false if the copy has to be repeated. */
  | { readonly say: 'copied'; readonly isUnchanged: boolean }
  | { readonly say: 'refused'; readonly reason: string }

type ControlInputs = Pick<Host, 'log'> & { readonly tape: Pick<TapeStore, 'holdForCopy'>; readonly dataDir: string }

/** Lets `stocktape backup` copy the file of the tape. Returns a function that closes the socket. */
export function openControlSocket({ tape, dataDir, log }: ControlInputs): () => Promise<void> {
  if (dataDir === ':memory:' || process.platform === 'win32') return async () => {}
  const path = join(dataDir, CONTROL_NAME)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    handOut(socket, tape, log)
  })
  server.maxConnections = CONNECTIONS_BOUND
  // This process has locked the tape, so another socket here is from a relay that was killed.
  if (statSync(path, { throwIfNoEntry: false })?.isSocket()) rmSync(path)
  const onFailure = (failure: Error | null) => failure && log('no_control', { reason: failure.message })
  server.on('error', onFailure)
  server.listen(path, () => chmod(path, 0o600, onFailure))
  return async () => {
    for (const socket of sockets) socket.destroy()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
}

function handOut(socket: Socket, tape: ControlInputs['tape'], log: WriteLine): void {
  const lineOf = (message: ControlMessage) => `${JSON.stringify(message)}\n`
  let release: (() => boolean) | null = null
  const deadline = setTimeout(() => socket.destroy(), COPY_BOUND_MS)
  socket.once('close', () => {
    clearTimeout(deadline)
    release?.()
  })
  socket.on('data', () => {
    if (release) {
      const isUnchanged = release()
      release = null
      if (isUnchanged) log('backup_copied')
      socket.end(lineOf({ say: 'copied', isUnchanged }))
      return
    }
    release = tape.holdForCopy('', true)?.release ?? null
    if (release) socket.write(lineOf({ say: 'copy' }))
    else socket.end(lineOf({ say: 'refused', reason: 'the disk of DATA_DIR fails, so the newest messages are in memory only' }))
  })
}
