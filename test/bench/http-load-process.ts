import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Percentiles, percentilesOf } from './percentiles.ts'
import { serveCommands } from './pinned-processes.ts'

/** Sends requests again and again, from a process of its own. */

export type LoadCommand = {
  readonly do: 'repeat'
  readonly port: number
  /** Each has one request at a time, and is kept as long as the server keeps it. */
  readonly connections: number
  /** The requests in turn: a path, or the body of a POST to `/rpc`. */
  readonly requests: readonly string[]
  /** How many answers, or for how long; at least one. */
  readonly answers?: number
  readonly forMs?: number
}

export type LoadReply = Percentiles & {
  readonly done: 'repeat'
  readonly seconds: number
  /** The body of the first answer. */
  readonly first: string
  /** Answers to a POST that differ from the first one, and those without status 200. */
  readonly wrong: number
}

const END = '\r\n\r\n'

const requestOf = (text: string): Buffer =>
  Buffer.from(
    text.startsWith('/')
      ? `GET ${text} HTTP/1.1\r\nhost: 127.0.0.1${END}`
      : `POST /rpc HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}${END}${text}`,
  )

type Answer = { readonly isOk: boolean; readonly body: string }

class LoadConnection {
  readonly #port: number
  #socket: Socket | null = null
  #buffered: Buffer = Buffer.alloc(0)
  #onAnswer: (answer: Answer) => void = () => {}

  constructor(port: number) {
    this.#port = port
  }

  async ask(request: Buffer): Promise<Answer> {
    const socket = this.#socket ?? (await this.#connect())
    return new Promise((resolve) => {
      this.#onAnswer = resolve
      socket.write(request)
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
    const [, length] = /content-length: (\d+)/.exec(head) ?? []
    if (length === undefined) throw new Error(`an answer without a length: ${head}`)
    const from = end + END.length
    if (this.#buffered.length < from + Number(length)) return
    const body = this.#buffered.toString('utf8', from)
    this.#buffered = Buffer.alloc(0)
    if (head.includes('connection: close')) this.end()
    this.#onAnswer({ isOk: head.startsWith('http/1.1 200'), body })
  }
}

async function repeat({ port, connections, requests, answers = 1, forMs = 0 }: LoadCommand): Promise<LoadReply> {
  const texts = requests.map(requestOf)
  const clients = Array.from({ length: connections }, () => new LoadConnection(port))
  const isSame = requests.length === 1 && !requests[0]?.startsWith('/')
  const began = performance.now()
  let first: string | null = null
  let [begun, wrong] = [0, 0]
  const tookMs: number[] = []
  const run = async (client: LoadConnection) => {
    while (begun < answers || performance.now() - began < forMs) {
      const request = texts[begun % texts.length] ?? Buffer.alloc(0)
      begun += 1
      const from = performance.now()
      const { isOk, body } = await client.ask(request)
      tookMs.push(performance.now() - from)
      first ??= body
      if (!isOk || (isSame && body !== first)) wrong += 1
    }
  }
  await Promise.all(clients.map(run))
  const seconds = (performance.now() - began) / 1_000
  for (const client of clients) client.end()
  return { done: 'repeat', seconds, first: first ?? '', wrong, ...percentilesOf(tookMs) }
}

serveCommands<LoadCommand, LoadReply>(repeat)
