import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { constants, gunzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openExport } from '../../../../../src/relay/edge/history/history-export.ts'
import { LongWorkQueue } from '../../../../../src/relay/edge/limits/long-work-queue.ts'
import type { EdgeContext } from '../../../../../src/relay/edge/live/edge-context.ts'
import type { TestTape } from '../../../../support/local-tape.ts'
import { token } from '../../tape/update-drafts.ts'
import { openEdge } from '../edge-fixture.ts'
import { at, transferAt } from '../fact-drafts.ts'
import { queryAt, tokenNotes } from './history-fixture.ts'

/** More megabytes than the kernel buffers for a client that does not read. */
const MANY_MESSAGES = 40
const MEGABYTE = 1_000_000
/** More bytes than a line of these tests has beside its text. */
const LINE_REST_BYTES = 10_000

/** A server of exports over a tape that the test writes; `answers` are its responses in order of their start. */
async function openExportServer() {
  const { context: edge, clock, hub, clients, beat, tape, close } = openEdge()
  await tape.append([], tokenNotes)
  const answers: ServerResponse[] = []
  const warnings: unknown[] = []
  const context: EdgeContext = {
    ...edge,
    clientAddressOf: ({ headers }) => String(headers.from ?? 'here'),
    log: (_, detail) => warnings.push(detail),
  }
  const workQueue = new LongWorkQueue()
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { searchParams } = new URL(incoming.url ?? '', 'http://localhost')
    const query = await queryAt(clock.now, tape, Object.fromEntries(searchParams))
    openExport(context, workQueue, { incoming, outgoing, query })
    answers.push(outgoing)
  }
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await close()
  })
  const { port } = server.address() as AddressInfo
  /** Sends a request; the test reads the response. */
  const openRequest = async (query = '', from = 'here', encoding = 'identity') => {
    const asking = request({ port, host: '127.0.0.1', path: `/?${query}`, headers: { from, 'accept-encoding': encoding } }).end()
    onTestFinished(() => void asking.destroy())
    const [answer] = (await once(asking, 'response')) as [IncomingMessage]
    return answer
  }
  return { tape, clock, hub, clients, beat, answers, warnings, port, openRequest }
}

/** The same over more than a client's buffers hold. */
async function openLongExport(textOf = () => 'x'.repeat(MEGABYTE)) {
  const opened = await openExportServer()
  for (let turn = 0; turn < MANY_MESSAGES; turn += 1) await opened.tape.append([{ ...token({ at }), token: { text: textOf() } }])
  return opened
}

/** A long export to a reader that does not read yet. All buffers on the way are full. */
async function openBlockedExport(textOf?: () => string, encoding?: string) {
  const opened = await openLongExport(textOf)
  const answer = await opened.openRequest('', 'here', encoding)
  const [outgoing] = opened.answers
  if (!outgoing) throw new Error('no answer has begun')
  await waitUntil(() => outgoing.writableNeedDrain)
  return { ...opened, answer, outgoing }
}

/** Reads the response, and whether it ended properly. */
async function readAll(answer: IncomingMessage) {
  let text = ''
  answer.setEncoding('utf8')
  try {
    for await (const chunk of answer) text += chunk
    return { text, complete: answer.complete }
  } catch {
    return { text, complete: false }
  }
}

const randomText = () => randomBytes(MEGABYTE / 2).toString('hex')
const linesOf = (tape: TestTape) =>
  Promise.resolve(tape.readAfter(0, 10_000)).then((entries) => entries.map(({ text }) => `${text}\n`).join(''))
/** Resolves once a condition holds, checked on every turn of the event loop. */
const waitUntil = async (condition: () => boolean) => {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

describe('a history export', () => {
  it('sends every update in the bytes of the tape and ends properly', async () => {
    const { tape, openRequest, clients } = await openExportServer()
    await tape.append(Array.from({ length: 450 }, (_, index) => transferAt({ index })))
    const answer = await openRequest()
    expect(answer.headers).toMatchObject({
      'content-type': 'application/x-ndjson; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'access-control-allow-origin': '*',
      'transfer-encoding': 'chunked',
    })
    expect(clients.count(['ndjson'])).toBe(1)
    expect(await readAll(answer)).toEqual({ text: await linesOf(tape), complete: true })
    await waitUntil(() => clients.count(['ndjson']) === 0)
  })

  it('waits for a reader that pauses, holds little memory, and continues when it reads', async () => {
    const { tape, openRequest, answers } = await openLongExport()
    const answer = await openRequest()
    const [outgoing] = answers
    // It stops once all buffers on the way are full, while the event loop goes on.
    let written: number | undefined
    while (written !== outgoing?.socket?.bytesWritten || !outgoing?.writableNeedDrain) {
      written = outgoing?.socket?.bytesWritten
      for (let turn = 0; turn < 500; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(outgoing.writableLength).toBeLessThan(3 * MEGABYTE)
    expect(written).toBeLessThan((MANY_MESSAGES / 2) * MEGABYTE)
    const { text, complete } = await readAll(answer)
    expect(complete).toBe(true)
    expect(text === (await linesOf(tape))).toBe(true)
  })

  it('is cut off when its reader takes nothing for a minute, not when it takes a little', async () => {
    const { answer, outgoing, clock, beat } = await openBlockedExport()
    const taken = () => (outgoing.socket?.bytesWritten ?? 0) - outgoing.writableLength
    for (let minute = 0; minute < 3; minute += 1) {
      await beat()
      const before = taken()
      // Reads until the kernel has taken more.
      while (taken() === before) {
        answer.read()
        await new Promise((resolve) => setImmediate(resolve))
      }
      await waitUntil(() => outgoing.writableNeedDrain)
      clock.now += 55_000
    }
    await beat()
    expect(outgoing.destroyed).toBe(false)
    // A read that was under way may take some more bytes.
    for (let minute = 0; minute < 3; minute += 1) {
      await new Promise((resolve) => setImmediate(resolve))
      clock.now += 60_000
      await beat()
    }
    expect(outgoing.destroyed).toBe(true)
    expect((await readAll(answer)).complete).toBe(false)
  })

  it('counts the lines that its reader has not taken when it is cut', async () => {
    const { clients } = await openBlockedExport()
    clients.drain()
    const sent = clients.measureSent().get('ndjson')
    expect(sent?.bytes).toBeGreaterThan(0)
    expect(sent?.messages).toBeGreaterThanOrEqual((sent?.bytes ?? 0) / (MEGABYTE + LINE_REST_BYTES))
  })

  it('runs twice at a time for one address, without delay for others', async () => {
    const { openRequest, answers } = await openLongExport()
    const [first, second, third] = [await openRequest(), await openRequest(), await openRequest()]
    expect(await readAll(await openRequest('limit=1', 'elsewhere'))).toMatchObject({ complete: true })
    await waitUntil(() => answers.slice(0, 2).every(({ writableNeedDrain }) => writableNeedDrain))
    const started = new Promise((resolve) => third.once('readable', resolve))
    expect(third.readableLength).toBe(0)
    first.destroy()
    await started
    expect(third.readableLength).toBeGreaterThan(0)
    second.destroy()
    expect((await readAll(third)).complete).toBe(true)
  })

  it('is cut off when the relay stops, and refused from then on', async () => {
    const { openRequest, hub, answers } = await openLongExport()
    const [answer, second, waiting] = [await openRequest(), await openRequest(), await openRequest()]
    await waitUntil(() => answers.slice(0, 2).every(({ writableNeedDrain }) => writableNeedDrain))
    hub.drain()
    expect((await readAll(answer)).complete).toBe(false)
    expect((await readAll(second)).complete).toBe(false)
    // An export holds history alone: no `bye` ends it.
    expect(await readAll(waiting)).toEqual({ text: '', complete: false })
    await expect(openRequest()).rejects.toThrow()
  })

  it('is cut off by a reset over HTTP/1.0, where any other end looks proper', async () => {
    const { hub, answers, port } = await openLongExport()
    const socket = connect(port, '127.0.0.1').pause()
    socket.write('GET / HTTP/1.0\r\n\r\n')
    await waitUntil(() => answers[0]?.writableNeedDrain === true)
    hub.drain()
    const failure = await new Promise((resolve) => socket.on('error', resolve).on('end', resolve).resume())
    expect(failure).toMatchObject({ code: 'ECONNRESET' })
  })

  it('stops when its reader is gone', async () => {
    const { openRequest, answer, outgoing, clients } = await openBlockedExport()
    answer.destroy()
    await waitUntil(() => outgoing.destroyed && clients.count(['ndjson']) === 0)
    // Its replay slot is free again.
    const others = await Promise.all([openRequest('limit=3'), openRequest('limit=3')])
    expect((await Promise.all(others.map(readAll))).map(({ complete }) => complete)).toEqual([true, true])
  })

  it('is cut off and logged when a read fails', async () => {
    const { tape, openRequest, warnings } = await openExportServer()
    const read = tape.read.bind(tape)
    const failing = () => {
      throw new Error('the disk is gone')
    }
    vi.spyOn(tape, 'read').mockImplementation(failing).mockImplementationOnce(read).mockImplementationOnce(read)
    await tape.append(Array.from({ length: 450 }, (_, index) => transferAt({ index })))
    const { text, complete } = await readAll(await openRequest())
    expect(complete).toBe(false)
    expect(text.split('\n').length - 1).toBeLessThanOrEqual(200)
    expect(warnings).toEqual([{ reason: 'Error: the disk is gone' }])
  })

  it('is cut off and not logged when eviction is faster than its reader', async () => {
    const { tape, clock, answer, warnings } = await openBlockedExport()
    // The next append evicts what is too old.
    clock.now += 60_001
    await tape.append([{ ...transferAt({ index: 1 }), time: new Date(clock.now).toISOString() }])
    const { text, complete } = await readAll(answer)
    expect(complete).toBe(false)
    expect(text.split('\n').length - 1).toBeLessThan(MANY_MESSAGES)
    expect(warnings).toEqual([])
  })

  it.each(['identity', 'gzip'])('that is cut ends at a whole line for a reader that still reads, in %s', async (encoding) => {
    const { hub, answer } = await openBlockedExport(randomText, encoding)
    expect(answer.headers['content-encoding']).toBe(encoding === 'gzip' ? 'gzip' : undefined)
    hub.drain()
    const parts: Buffer[] = []
    answer.on('data', (part: Buffer) => parts.push(part))
    await expect(new Promise((resolve, reject) => answer.on('end', resolve).on('error', reject))).rejects.toThrow('aborted')
    const bytes = Buffer.concat(parts)
    const text = encoding === 'gzip' ? gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }).toString() : bytes.toString()
    expect(text.length).toBeGreaterThan(MEGABYTE)
    expect(text.endsWith('}\n')).toBe(true)
  })

  it.each<[string, number, string, number]>([
    ['since=start', 0, 'E.9', 9],
    ['after=E.3&through=E.7', 3, 'E.7', 4],
    ['after=E.3&before=E.7', 3, 'E.6', 3],
    ['since=start&limit=4', 0, 'E.4', 4],
    ['after=E.5&order=desc', 5, 'E.9', 4],
    ['after=E.9', 9, 'E.9', 0],
  ])('with %s and a receipt says which messages it has', async (query, after, through, messages) => {
    const { tape, openRequest } = await openExportServer()
    await tape.append(Array.from({ length: 9 }, (_, index) => transferAt({ index })))
    const position = (text: string) => text.replaceAll('E.', `${tape.epoch}.`)
    const { text } = await readAll(await openRequest(`receipt=true&${position(query)}`))
    const lines = text.trimEnd().split('\n')
    const ids = lines.slice(0, -1).map((line) => JSON.parse(line).id)
    expect(ids).toHaveLength(messages)
    const digest = createHash('sha256').update(ids.join('\n')).digest('hex').slice(0, 32)
    const range = { after: `${tape.epoch}.${after}`, through: position(through) }
    expect(JSON.parse(lines.at(-1) ?? '')).toEqual({ type: 'receipt', ...range, messages, digest })
  })
})
