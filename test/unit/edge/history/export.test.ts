import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openExport } from '../../../../src/edge/history/export.ts'
import { Turnstile } from '../../../../src/edge/limits/work-queue.ts'
import type { Streams } from '../../../../src/edge/live/http-stream.ts'
import type { Reader, Tape, Wanted } from '../../../../src/tape/tape.ts'
import { token } from '../../tape/update-drafts.ts'
import { openHouse } from '../edge-fixture.ts'
import { at, transferAt } from '../fact-drafts.ts'
import { askedAt, board } from './history-fixture.ts'

/** What is more than the kernel takes for somebody who does not read. */
const MUCH = 40
const MEGABYTE = 1_000_000

/** A door to a tape that the test writes itself; `answers` are those under way or over, in the order in which they began. */
async function openDoor(over?: (tape: Tape) => Tape) {
  const under = openHouse()
  await under.tape.append([], board)
  const own = over ? openHouse({ over: over(under.tape) }) : under
  const { house, clock, hub, tape } = own
  const answers: ServerResponse[] = []
  const said: unknown[] = []
  const streams: Streams = {
    ...{ house, dice: () => 0.5, connectionId: () => String(answers.length) },
    ...{ addressOf: ({ headers }) => String(headers.from ?? 'here'), admit: () => null },
    say: (_, detail) => said.push(detail),
  }
  const turnstile = new Turnstile()
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { searchParams } = new URL(incoming.url ?? '', 'http://localhost')
    const asked = await askedAt(clock.now, tape, Object.fromEntries(searchParams))
    openExport(streams, turnstile, { incoming, outgoing, asked })
    answers.push(outgoing)
  }
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    for (const one of new Set([own, under])) await one.close()
  })
  const { port } = server.address() as AddressInfo
  /** Asks, and reads nothing until it is told to. */
  const ask = (query = '', from = 'here') =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const asking = request({ port, host: '127.0.0.1', path: `/?${query}`, headers: { from } }, resolve)
      asking.on('error', reject)
      asking.end()
      onTestFinished(() => void asking.destroy())
    })
  return { tape, clock, hub, answers, said, port, ask }
}

/** All that comes, and whether it ended as it should. */
async function read(answer: IncomingMessage) {
  let text = ''
  answer.setEncoding('utf8')
  try {
    for await (const piece of answer) text += piece
    return { text, complete: answer.complete }
  } catch {
    return { text, complete: false }
  }
}

const long = { ...token({ at }), token: { text: 'x'.repeat(MEGABYTE) } }
const linesOf = (tape: Tape) =>
  Promise.resolve(tape.since(0, 10_000)).then((entries) => entries.map(({ text }) => `${text}\n`).join(''))
/** Resolves once a condition holds; it is looked at in every turn of the event loop. */
const until = async (holds: () => boolean) => {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}

describe('history as lines', () => {
  it('is everything in the bytes of the tape, and ends', async () => {
    const { tape, ask, hub } = await openDoor()
    await tape.append(Array.from({ length: 450 }, (_, index) => transferAt({ index })))
    const answer = await ask()
    expect(answer.headers).toMatchObject({
      'content-type': 'application/x-ndjson; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'access-control-allow-origin': '*',
      'transfer-encoding': 'chunked',
    })
    expect(hub.present.ndjson).toBe(1)
    expect(await read(answer)).toEqual({ text: await linesOf(tape), complete: true })
    await until(() => hub.present.ndjson === 0)
  })

  it('of nothing is an answer without lines that ends as well', async () => {
    const { ask } = await openDoor()
    expect(await read(await ask('types=nav'))).toEqual({ text: '', complete: true })
  })

  it('waits for a reader who does not read, holds little of it, and goes on when it reads', async () => {
    const { tape, ask, answers } = await openDoor()
    for (let turn = 0; turn < MUCH; turn += 1) await tape.append([long])
    const answer = await ask()
    const [outgoing] = answers
    // The turns of others go on, and it comes to a stand once all buffers on the way are full.
    let written: number | undefined
    while (written !== outgoing?.socket?.bytesWritten || !outgoing?.writableNeedDrain) {
      written = outgoing?.socket?.bytesWritten
      for (let turn = 0; turn < 500; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(outgoing.writableLength).toBeLessThan(3 * MEGABYTE)
    expect(written).toBeLessThan((MUCH / 2) * MEGABYTE)
    const { text, complete } = await read(answer)
    expect(complete).toBe(true)
    expect(text === (await linesOf(tape))).toBe(true)
  })

  it('is cut for whoever takes nothing for a minute, and not for whoever takes a little', async () => {
    const { tape, ask, answers, clock, hub } = await openDoor()
    for (let turn = 0; turn < MUCH; turn += 1) await tape.append([long])
    const answer = await ask()
    const [outgoing] = answers
    const taken = () => (outgoing?.socket?.bytesWritten ?? 0) - (outgoing?.writableLength ?? 0)
    await until(() => outgoing?.writableNeedDrain === true)
    for (let minute = 0; minute < 3; minute += 1) {
      await hub.beat()
      const before = taken()
      // Reads until the kernel has taken more.
      while (taken() === before) {
        answer.read()
        await new Promise((resolve) => setImmediate(resolve))
      }
      await until(() => outgoing?.writableNeedDrain === true)
      clock.now += 55_000
    }
    await hub.beat()
    expect(outgoing?.destroyed).toBe(false)
    // What it had begun to read may go on for a moment.
    for (let minute = 0; minute < 3; minute += 1) {
      await new Promise((resolve) => setImmediate(resolve))
      clock.now += 60_000
      await hub.beat()
    }
    expect(outgoing?.destroyed).toBe(true)
    expect((await read(answer)).complete).toBe(false)
  })

  it('is read two at a time by one address, while others come in between', async () => {
    const { tape, ask, answers } = await openDoor()
    for (let turn = 0; turn < MUCH; turn += 1) await tape.append([long])
    const [first, second, third] = [await ask(), await ask(), await ask()]
    expect(await read(await ask('limit=1', 'elsewhere'))).toMatchObject({ complete: true })
    await until(() => answers.slice(0, 2).every(({ writableNeedDrain }) => writableNeedDrain))
    const begins = new Promise((resolve) => third.once('readable', resolve))
    expect(third.readableLength).toBe(0)
    first.destroy()
    await begins
    expect(third.readableLength).toBeGreaterThan(0)
    second.destroy()
    expect((await read(third)).complete).toBe(true)
  })

  it('is cut when the relay stops, and refused from then on', async () => {
    const { tape, ask, hub, answers } = await openDoor()
    for (let turn = 0; turn < MUCH; turn += 1) await tape.append([long])
    const [answer, second, waiting] = [await ask(), await ask(), await ask()]
    await until(() => answers.slice(0, 2).every(({ writableNeedDrain }) => writableNeedDrain))
    hub.drain()
    expect((await read(answer)).complete).toBe(false)
    expect((await read(second)).complete).toBe(false)
    // Nothing but history stands in it, so nobody takes a farewell for a message.
    expect(await read(waiting)).toEqual({ text: '', complete: false })
    await expect(ask()).rejects.toThrow()
  })

  it('is cut by a reset for who would take any other end for the end, as a proxy may', async () => {
    const { tape, hub, answers, port } = await openDoor()
    for (let turn = 0; turn < MUCH; turn += 1) await tape.append([long])
    const socket = connect(port, '127.0.0.1').pause()
    socket.write('GET / HTTP/1.0\r\n\r\n')
    await until(() => answers[0]?.writableNeedDrain === true)
    hub.drain()
    const failure = await new Promise((resolve) => socket.on('error', resolve).on('end', resolve).resume())
    expect(failure).toMatchObject({ code: 'ECONNRESET' })
  })

  it('reads no further once its reader is gone', async () => {
    const { tape, ask, answers, hub } = await openDoor()
    for (let turn = 0; turn < MUCH; turn += 1) await tape.append([long])
    const answer = await ask()
    const [outgoing] = answers
    await until(() => outgoing?.writableNeedDrain === true)
    answer.destroy()
    await until(() => outgoing?.destroyed === true && hub.present.ndjson === 0)
    // Its turn is another's again.
    const others = await Promise.all([ask('limit=3'), ask('limit=3')])
    expect((await Promise.all(others.map(read))).map(({ complete }) => complete)).toEqual([true, true])
  })

  it('is cut where reading fails, and why is said for the log', async () => {
    let reads = 0
    const failing = (read: Reader): Reader => {
      return (stretch) => {
        reads += 1
        if (reads > 2) throw new Error('the disk is gone')
        return read(stretch)
      }
    }
    const { tape, ask, said } = await openDoor(
      (under) =>
        new Proxy(under, {
          get: (_, name: keyof Tape) => {
            if (name === 'reader') return (wanted: Wanted) => failing(under.reader(wanted))
            const part = under[name]
            return typeof part === 'function' ? part.bind(under) : part
          },
        }),
    )
    await tape.append(Array.from({ length: 450 }, (_, index) => transferAt({ index })))
    const { text, complete } = await read(await ask())
    expect(complete).toBe(false)
    expect(text.split('\n').length - 1).toBeLessThanOrEqual(200)
    expect(said).toEqual([{ failure: 'Error: the disk is gone' }])
  })

  it('is cut where eviction is faster than its reader, which is nothing to tell the log', async () => {
    const { tape, clock, ask, answers, said } = await openDoor()
    for (let turn = 0; turn < MUCH; turn += 1) await tape.append([long])
    const answer = await ask()
    await until(() => answers[0]?.writableNeedDrain === true)
    // What is too old goes with whatever is written next.
    clock.now += 60_001
    await tape.append([{ ...transferAt({ index: 1 }), time: new Date(clock.now).toISOString() }])
    const { text, complete } = await read(answer)
    expect(complete).toBe(false)
    expect(text.split('\n').length - 1).toBeLessThan(MUCH)
    expect(said).toEqual([])
  })
})
