import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { Ear } from '../../support/test-listener.ts'
import { ask, openWorld, seqOf, type World } from '../../support/test-stack.ts'
import { liveOn, orderOf, toldTo } from './stream-listeners.ts'

const TOPIC = `0x${'77'.repeat(32)}` as const
/** Bytes of one log: some hundreds of them are more than any socket takes in. */
const LOG_BYTES = 16_000
/** More than is kept at hand beside the tape, for those who are nearly through. */
const MANY = 5_000
/** So often something else is asked until what a socket takes in is full. */
const ASKED = 200
const query = 'symbols=AAPLc&types=log'

/** Logs of one size, some in each flashblock; resolves when one who reads has heard them all. */
async function say(
  { devnet }: World,
  times: number,
  heard: Ear,
  { bytes = LOG_BYTES, together = 20 } = {},
): Promise<void> {
  const before = heard.all('log').length
  const address = devnet.list.addressOf('AAPLc')
  for (let said = 0; said < times; said += together) {
    for (let log = 0; log < together; log += 1) {
      devnet.emit({ address, topics: [TOPIC], data: `0x${'5a'.repeat(bytes)}` })
    }
    devnet.flash()
    await heard.until(() => heard.all('log').length === before + said + together, 'what was said')
  }
}

/** An HTTP request over a bare socket that is not read until it is asked to. */
async function askSlowly({ relay }: World, path: string): Promise<Socket> {
  const socket = connect(Number(new URL(relay.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.write(`GET ${path} HTTP/1.0\r\nhost: localhost\r\n\r\n`)
  await once(socket, 'readable')
  return socket
}

/** Resolves when the relay was asked so much else that whatever takes in unread bytes is full, and stays so. */
async function filled({ relay }: World): Promise<void> {
  for (let asked = 0; asked < ASKED; asked += 1) await ask(`${relay.url}/healthz`)
}

/** Reads the lines of NDJSON that a bare socket brings, from now on. */
function readOn(socket: Socket): Ear {
  const ear = new Ear({ close: () => socket.destroy() })
  let rest = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('{')) ear.take(line)
  })
  socket.on('close', () => ear.over({ code: 0, reason: 'ended' }))
  return ear
}

const idsOf = (ear: Ear) => toldTo(ear).map((text) => String(JSON.parse(text).id))

describe('a replay that eviction overtakes while it is read slowly', () => {
  it('goes on at the oldest after a gap, how things stand comes again, and then it is live', async () => {
    const world = await openWorld({ TAPE_BOUND: '600', FINALITY_POLL_MS: '3600000', STOCKS_REFRESH_MS: '3600000' })
    const steady = await liveOn(world, 'ndjson', query)
    await say(world, 500, steady)
    const slow = await askSlowly(world, `/v1/stream?${query}&since=start&format=ndjson`)
    await filled(world)
    await say(world, MANY, steady, { bytes: 1, together: 500 })
    const ear = readOn(slow)
    await ear.hear('live')
    await say(world, 20, steady)
    await ear.until(() => idsOf(ear).at(-1) === idsOf(steady).at(-1), 'what came last')
    const [gap, ...others] = ear.all('gap')
    if (!gap) throw new Error('no gap')
    expect(others).toEqual([])
    expect(gap).toMatchObject({ reason: 'expired', to: gap.id })
    const told = idsOf(ear)
    const before = told.filter((id) => orderOf(id) <= orderOf(gap.from ?? ''))
    const all = idsOf(steady)
    expect(before).toEqual(all.filter((id) => orderOf(id) <= orderOf(gap.from ?? '')))
    expect(told).toEqual([...all.slice(0, before.length), ...all.filter((id) => seqOf(id) > seqOf(gap.to))])
    expect(told.length).toBeLessThan(all.length)
    const types = ear.messages.map(({ type }) => type)
    const place = types.indexOf('gap')
    expect(types.slice(0, 3)).toEqual(['hello', 'subscribed', 'snapshot'])
    expect(types.slice(place, place + 2)).toEqual(['gap', 'snapshot'])
    expect(ear.all('snapshot').map(({ id }) => id)).toEqual([ear.all('hello')[0]?.id, gap.id])
    expect(ear.all('live')).toMatchObject([{ replayed: told.length - 20 }])
    // Who was cut off just before the gap is told the same on coming back.
    const back = await liveOn(world, 'sse', query, gap.from ?? '')
    expect(back.all('gap')).toMatchObject([{ reason: 'expired', from: gap.from }])
  })

  it('is none of it for one who reads slowly while nothing is evicted: all of it comes, however long it takes', async () => {
    const world = await openWorld({ BACKLOG_BOUND_BYTES: '16384' })
    const steady = await liveOn(world, 'ndjson', query)
    await say(world, 500, steady)
    const slow = await askSlowly(world, `/v1/stream?${query}&since=start&format=ndjson`)
    await say(world, 300, steady)
    const ear = readOn(slow)
    await ear.hear('live')
    expect(toldTo(ear)).toEqual(toldTo(steady))
    expect(ear.all('gap')).toEqual([])
    expect(ear.all('bye')).toEqual([])
    await say(world, 20, steady)
    await ear.until(() => toldTo(ear).length === toldTo(steady).length, 'what is live')
  })
})

describe('a listener whose backlog is over the bound', () => {
  it('is shown out of a socket with 4202: bye is the last word, and its position loses nothing', async () => {
    const world = await openWorld({ BACKLOG_BOUND_BYTES: '16384' })
    const steady = await liveOn(world, 'ndjson', query)
    const socket = new WebSocket(`${world.relay.wsUrl}?${query}`)
    onTestFinished(() => socket.terminate())
    const ear = new Ear({ close: () => socket.terminate() })
    socket.on('message', (data) => ear.take(String(data)))
    socket.on('close', (code, reason) => ear.over({ code, reason: String(reason) }))
    await ear.hear('live')
    socket.pause()
    const shownOut = async () => /stocktape_shown_out_total 1\b/.test((await ask(`${world.relay.url}/metrics`)).text)
    while (!(await shownOut())) await say(world, 20, steady)
    socket.resume()
    const { code, reason } = await ear.ended
    const [bye] = ear.all('bye')
    expect({ code, reason }).toEqual({ code: 4202, reason: `too_slow ${bye?.id}` })
    expect(ear.messages.at(-1)).toBe(bye)
    expect(bye?.retry_ms).toBeGreaterThan(0)
    const back = await liveOn(world, 'ws', query, bye?.id ?? '')
    expect([...toldTo(ear), ...toldTo(back)]).toEqual(toldTo(steady))
    expect(toldTo(back).length).toBeGreaterThan(0)
    expect(steady.all('bye')).toEqual([])
  })
})
