import { type ClientRequest, get, type IncomingMessage } from 'node:http'
import { createParser } from 'eventsource-parser'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { listenWs, TestListener } from '../support/test-listener.ts'
import { transfer } from '../support/test-stack.ts'

/** A source address that is not the one of the attackers, who connect from 127.0.0.1. */
const localAddress = '127.0.0.2'
const SYMBOL = 'AAPLc'
const UNIT = 10n ** 8n

/** Listens over WebSocket and SSE, asks again and again, and measures how long each answer takes. */
export class WellBehavedClient {
  readonly #url: string
  readonly #devnet: Devnet
  readonly #listeners: readonly TestListener[]
  #transfers = 0

  static async open(url: string, devnet: Devnet): Promise<WellBehavedClient> {
    const listeners = [
      await listenWs(`${url.replace('http', 'ws')}/v1/ws?symbols=${SYMBOL}`, { localAddress }),
      await listenSseFrom(url),
    ]
    for (const listener of listeners) await listener.waitFor('live')
    return new WellBehavedClient(url, devnet, listeners)
  }

  private constructor(url: string, devnet: Devnet, listeners: readonly TestListener[]) {
    this.#url = url
    this.#devnet = devnet
    this.#listeners = listeners
  }

  /** Goes on for as long as the attack, and once more after it; how long the slowest update and the slowest answer took. */
  async useDuring(attack: Promise<unknown>): Promise<number> {
    let isOver = false
    const over = attack.finally(() => {
      isOver = true
    })
    const rounds = [await this.#round()]
    while (!isOver) rounds.push(await this.#round())
    await over
    rounds.push(await this.#round())
    return Math.max(...rounds)
  }

  /** The amounts of the transfers: as they were made, and as each listener received them. */
  get amounts(): { readonly made: readonly string[]; readonly received: readonly (readonly (string | null)[])[] } {
    return {
      made: Array.from({ length: this.#transfers }, (_, at) => String(at + 1)),
      received: this.#listeners.map((listener) => listener.messagesOf('transfer').map(({ amount }) => amount)),
    }
  }

  close(): void {
    for (const listener of this.#listeners) listener.close()
  }

  /** One update for each listener, and an answer on a new connection; the time that the slower one took. */
  async #round(): Promise<number> {
    this.#transfers += 1
    const amount = String(this.#transfers)
    const startedAt = performance.now()
    transfer({ devnet: this.#devnet }, SYMBOL, 1, BigInt(this.#transfers) * UNIT)
    await Promise.all([
      ...this.#listeners.map((listener) => listener.waitFor('transfer', (message) => message.amount === amount)),
      this.#ask(),
    ])
    return performance.now() - startedAt
  }

  async #ask(): Promise<void> {
    const answer = await responseTo(get(`${this.#url}/v1/tokenized-stocks/${SYMBOL}`, { localAddress, agent: false }))
    answer.resume()
    if (answer.statusCode !== 200) throw new Error(`HTTP ${answer.statusCode}`)
  }
}

const responseTo = (request: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request.once('response', resolve)
    request.once('error', reject)
  })

async function listenSseFrom(url: string): Promise<TestListener> {
  const request = get(`${url}/v1/stream/${SYMBOL}`, { localAddress, agent: false })
  const answer = await responseTo(request)
  const listener = new TestListener({ close: () => request.destroy() })
  const parser = createParser({ onEvent: ({ data, id, event }) => listener.receive(data, { id, event }) })
  answer.setEncoding('utf8').on('data', (text: string) => parser.feed(text))
  // The end of the test cuts it.
  answer.on('error', () => {})
  return listener
}
