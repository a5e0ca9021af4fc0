import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { Budget } from '../../../../../src/relay/edge/limits/budget.ts'
import { type Body, readBody } from '../../../../../src/relay/edge/limits/request-body.ts'
import { formatRequest, openRawConnection } from '../../../../integration/http/raw-connection.ts'

const BOUND_BYTES = 1_000
const BUDGET_BYTES = 3_000

/** A server that reads bodies up to a bound and answers with the result. */
async function openBodyServer() {
  const budget = new Budget(BUDGET_BYTES)
  const bodies: Body[] = []
  let receivedBytes = 0
  const server = createServer(async (incoming, outgoing) => {
    incoming.on('data', (chunk: Buffer) => {
      receivedBytes += chunk.length
    })
    const body = await readBody(incoming, BOUND_BYTES, budget, 'client')
    bodies.push(body)
    outgoing.end(typeof body === 'string' ? body : `read ${body.length}`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const connect = async () => {
    const raw = await openRawConnection(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    onTestFinished(() => void raw.socket.destroy())
    return raw
  }
  /** Whether all reserved bytes are released. */
  const isFree = () => {
    if (!budget.reserve(BUDGET_BYTES)) return false
    budget.release(BUDGET_BYTES)
    return true
  }
  return { connect, bodies, isFree, receivedBytes: () => receivedBytes }
}

const head = (bytes: number): string => formatRequest('POST /', [`content-length: ${bytes}`])
const chunked = formatRequest('POST /', ['transfer-encoding: chunked'])
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

it('reads a too large body to its end and holds none of it', async () => {
  const { connect, isFree } = await openBodyServer()
  const raw = await connect()
  raw.send(head(BOUND_BYTES + 1), 'x'.repeat(BOUND_BYTES + 1))
  expect((await raw.response()).body).toBe('too_large')
  raw.send(chunked, ...Array.from({ length: 100 }, () => chunk('x'.repeat(100))))
  await new Promise((taken) => raw.socket.write('', taken))
  expect(raw.bytes.length).toBe(0)
  raw.send('0\r\n\r\n')
  expect((await raw.response()).body).toBe('too_large')
  expect(isFree()).toBe(true)
})

it('reserves what it holds and reports when there is no room', async () => {
  const { connect, isFree, receivedBytes } = await openBodyServer()
  const waiting = await Promise.all(Array.from({ length: 3 }, () => connect()))
  for (const raw of waiting) raw.send(head(BOUND_BYTES), 'x'.repeat(BOUND_BYTES - 1))
  await vi.waitUntil(() => receivedBytes() === 3 * (BOUND_BYTES - 1))
  const late = await connect()
  late.send(head(10), 'x'.repeat(10))
  expect((await late.response()).body).toBe('no_room')
  for (const raw of waiting) raw.send('x')
  for (const raw of waiting) expect((await raw.response()).body).toBe(`read ${BOUND_BYTES}`)
  late.send(head(10), 'x'.repeat(10))
  expect((await late.response()).body).toBe('read 10')
  expect(isFree()).toBe(true)
})

it('reports once that a sender left and releases its bytes', async () => {
  const { connect, bodies, isFree, receivedBytes } = await openBodyServer()
  for (const way of ['reset', 'finish'] as const) {
    const before = receivedBytes()
    const raw = await connect()
    raw.send(head(BOUND_BYTES), 'x'.repeat(500))
    await vi.waitUntil(() => receivedBytes() === before + 500)
    expect(isFree()).toBe(false)
    raw[way]()
    await vi.waitUntil(isFree)
  }
  expect(bodies).toEqual(['gone', 'gone'])
})
