import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { obey } from './pinned-processes.ts'

/** Whoever asks, in a process of its own: the same question again and again over so many connections. */

export type AskerOrder = {
  readonly do: 'ask'
  readonly port: number
  readonly connections: number
  readonly body: string
  readonly answers: number
}
export type AskerReport = {
  readonly done: 'ask'
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answers that were not what the first one was. */
  readonly wrong: number
}

const END = '\r\n\r\n'

/** One question at a time, over a connection that is kept for as long as the server keeps it. */
class Asker {
  readonly #port: number
  readonly #request: Buffer
  #socket: Socket | null = null
  #held: Buffer = Buffer.alloc(0)
  #answered: (body: string) => void = () => {}

  constructor(port: number, body: string) {
    this.#port = port
    const head = `POST /rpc HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}${END}`
    this.#request = Buffer.from(head + body)
  }

  async ask(): Promise<string> {
    const socket = this.#socket ?? (await this.#connect())
    return new Promise((resolve) => {
      this.#answered = resolve
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
    socket.on('data', (bytes) => this.#hear(bytes))
    await once(socket, 'connect')
    this.#socket = socket
    return socket
  }

  #hear(bytes: Buffer): void {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes])
    const end = this.#held.indexOf(END)
    if (end < 0) return
    const head = this.#held.toString('latin1', 0, end).toLowerCase()
    const [, length = '0'] = /content-length: (\d+)/.exec(head) ?? []
    const from = end + END.length
    if (this.#held.length < from + Number(length)) return
    const body = this.#held.toString('utf8', from)
    this.#held = Buffer.alloc(0)
    if (head.includes('connection: close')) this.end()
    this.#answered(body)
  }
}

async function carryOut({ port, connections, body, answers }: AskerOrder): Promise<AskerReport> {
  const askers = Array.from({ length: connections }, () => new Asker(port, body))
  const [expected] = await Promise.all(askers.map((asker) => asker.ask()))
  const tookMs: number[] = []
  let left = answers
  let wrong = 0
  const began = performance.now()
  await Promise.all(
    askers.map(async (asker) => {
      while (left > 0) {
        left -= 1
        const from = performance.now()
        if ((await asker.ask()) !== expected) wrong += 1
        tookMs.push(performance.now() - from)
      }
    }),
  )
  const seconds = (performance.now() - began) / 1_000
  for (const asker of askers) asker.end()
  tookMs.sort((a, b) => a - b)
  const at = (share: number) => tookMs[Math.floor(tookMs.length * share)] ?? Number.NaN
  return { done: 'ask', seconds, p50Ms: at(0.5), p99Ms: at(0.99), wrong }
}

obey(carryOut)
