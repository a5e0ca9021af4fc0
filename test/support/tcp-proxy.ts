import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy that can cut its connections, as a network does. */
export class TcpProxy {
  readonly #sockets = new Set<Socket>()
  readonly #server
  #isCut = false
  /** How many connections it has accepted. */
  accepted = 0
  /** The URL of each HTTP request that passed, and of each handshake. */
  readonly requestedUrls: string[] = []

  private constructor(targetPort: number) {
    this.#server = createServer((client) => {
      if (this.#isCut) return client.destroy()
      this.accepted += 1
      const target = connect(targetPort, '127.0.0.1')
      client.on('data', (bytes: Buffer) => {
        const [, url] = /^(?:GET|POST|OPTIONS|HEAD) (\S+) HTTP/.exec(bytes.toString('latin1')) ?? []
        if (url !== undefined) this.requestedUrls.push(url)
      })
      for (const [from, to] of [
        [client, target],
        [target, client],
      ] as const) {
        this.#sockets.add(from)
        from.on('error', () => {})
        from.on('close', () => {
          this.#sockets.delete(from)
          to.destroy()
        })
        from.pipe(to)
      }
    })
  }

  static async open(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Ends every connection, and refuses new ones until `mend`. */
  cut(): void {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  mend(): void {
    this.#isCut = false
  }

  close(): void {
    this.cut()
    this.#server.close()
  }
}
