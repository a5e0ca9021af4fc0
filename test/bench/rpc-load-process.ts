import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { serveCommands } from './pinned-processes.ts'

/** Sends the same request again and again over many connections, from a process of its own. */

export type LoadCommand = {
  readonly do: 'query'
  readonly port: number
  readonly connections: number
  readonly body: string
  readonly answers: number
}
export type LoadReply = {
  readonly done: 'query'
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answers that differ from the first one. */
  readonly wrong: number
}

const END = '\r\n\r\n'

/** One request at a time, over a connection that is kept as long as the server keeps it. */
class RpcLoadConnection {
  readonly #port: number
  readonly #request: Buffer
  #socket: Socket | null = null
  #buffered: Buffer = Buffer.alloc(0)
  #onAnswer: (body: string) => void = () => {}

  constructor(port: number, body: string) {
    this.#port = port
    const head = `POST /rpc HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}${END}`
    this.#request = Buffer.from(head + body)
  }

  async call(): Promise<string> {
    const socket = this.#socket ?? (await this.#connect())
    return new Promise((resolve) => {
      this.#onAnswer = resolve
      socket.write(this.#request)
    })
  }

  end(): void {
    this.#socket?.destroy()
    this.#socket = null
  }

  async #connect(): Promise<Socket> {
    const socket = connect(this.#port, '127.0.0.1')
    socket.setNoDelay(true)
    socket.on('data', (bytes) => this.#receive(bytes))
    await once(socket, 'connect')
    this.#socket = socket
    return socket
  }

  #receive(bytes: Buffer): void {
    this.#buffered = this.#buffered.length === 0 ? bytes : Buffer.concat([this.#buffered, bytes])
    const end = this.#buffered.indexOf(END)
    if (end < 0) return
    const head = this.#buffered.toString('latin1', 0, end).toLowerCase()
    const [, length = '0'] = /content-length: (\d+)/.exec(head) ?? []
    const from = end + END.length
    if (this.#buffered.length < from + Number(length)) return
    const body = this.#buffered.toString('utf8', from)
    this.#buffered = Buffer.alloc(0)
    if (head.includes('connection: close')) this.end()
    this.#onAnswer(body)
  }
}

async function runCommand({ port, connections, body, answers }: LoadCommand): Promise<LoadReply> {
  const clients = Array.from({ length: connections }, () => new RpcLoadConnection(port, body))
  const [expected] = await Promise.all(clients.map((client) => client.call()))
  const tookMs: number[] = []
  let left = answers
  let wrong = 0
  const began = performance.now()
  await Promise.all(
    clients.map(async (client) => {
      while (left > 0) {
        left -= 1
        const from = performance.now()
        if ((await client.call()) !== expected) wrong += 1
        tookMs.push(performance.now() - from)
      }
    }),
  )
  const seconds = (performance.now() - began) / 1_000
  for (const client of clients) client.end()
  tookMs.sort((a, b) => a - b)
  const at = (share: number) => tookMs[Math.floor(tookMs.length * share)] ?? Number.NaN
  return { done: 'query', seconds, p50Ms: at(0.5), p99Ms: at(0.99), wrong }
}

serveCommands(runCommand)
