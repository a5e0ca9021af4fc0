import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { TcpConnections } from '../../../../../src/relay/edge/http/tcp-connections.ts'
import { UnsentAnswers } from '../../../../../src/relay/edge/http/unsent-answers.ts'
import { Budget } from '../../../../../src/relay/edge/limits/budget.ts'

const ANSWER = Buffer.alloc(100_000)
/** Room for four answers of one client, and six of all. */
const [PER_CLIENT_BYTES, ALL_BYTES] = [450_000, 650_000]

/** A server whose answers are counted, each for the client that its path names. */
async function openCountingServer() {
  const budget = new Budget(ALL_BYTES, PER_CLIENT_BYTES)
  const answers = new UnsentAnswers(() => {}, budget)
  const bounds = { idleBoundMs: 60_000, bound: 10, maxPerAddress: () => 10, trustedProxies: undefined, countRefusal() {} }
  const connections = new TcpConnections(bounds, answers)
  const server = createServer((incoming, outgoing) => {
    answers.start(incoming.socket, outgoing)
    outgoing.end(ANSWER)
    answers.hold(incoming.socket, outgoing, () => incoming.url ?? '')
  })
  server.on('connection', (socket) => connections.add(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    connections.destroyAll()
    connections.close()
    server.close()
  })
  /** Asks many times in one packet. Resolves with the bytes that came before the end or the last answer. */
  const ask = async (client: string, times: number): Promise<number> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.write(`GET ${client} HTTP/1.1\r\nhost: here\r\n\r\n`.repeat(times))
    let bytes = 0
    for await (const chunk of socket) {
      bytes += (chunk as Buffer).length
      if (bytes > times * ANSWER.length) break
    }
    socket.destroy()
    return bytes
  }
  /** Resolves when nothing of the first client is counted any more. */
  const isUnused = () => {
    const isFree = budget.reserve(PER_CLIENT_BYTES, '/a')
    if (isFree) budget.release(PER_CLIENT_BYTES, '/a')
    return isFree
  }
  const untilFree = () => expect.poll(isUnused).toBe(true)
  return { ask, untilFree }
}

it('answers that a client has not read are bounded, and others are served', async () => {
  const { ask, untilFree } = await openCountingServer()
  expect(await ask('/a', 4)).toBeGreaterThan(4 * ANSWER.length)
  await untilFree()
  // The kernel takes the first at once.
  expect(await ask('/a', 6)).toBeLessThan(6 * ANSWER.length)
  expect(await ask('/b', 4)).toBeGreaterThan(4 * ANSWER.length)
  await untilFree()
  expect(await ask('/a', 4)).toBeGreaterThan(4 * ANSWER.length)
})
