import { describe, expect, it, onTestFinished } from 'vitest'
import { EventsPage, OneFact } from '../../src/protocol/history.ts'
import { type Ear, listenNdjson, listenSse, listenWs } from '../support/test-listener.ts'
import { ask, openWorld, tapeOf, transfer, type World } from '../support/test-stack.ts'
import { follow, linesAt, textsIn, textsOf } from './history-reader.ts'

/** Longer replays than this are left out. */
const REPLAY_BOUND = 3

const heldBy = async (opening: Promise<Ear>): Promise<Ear> => {
  const ear = await opening
  onTestFinished(() => ear.close())
  await ear.hear('live')
  return ear
}
describe('what happened before', () => {
  it('is read page by page in the bytes of the stream, in both views', async () => {
    const world = await openWorld()
    for (const query of ['symbols=*&types=*', 'symbols=AAPLc,TSLAc', 'symbols=*&stage=sealed']) {
      const ear = await heldBy(listenNdjson(`${world.relay.url}/v1/stream?${query}&snapshot=false&since=start`))
      const before = ear.all('seal').length
      transfer(world, 'AAPLc', 3)
      transfer(world, 'TSLAc', 2)
      world.devnet.seal()
      await ear.until(() => ear.all('seal').length >= before + 2)
      const told = textsOf(ear)
      const read = await follow(world, `/v1/events?${query}&limit=4`)
      expect(read.slice(0, told.length)).toEqual(told)
    }
  })

  it('is all tokens where none is named, and may come newest first', async () => {
    const world = await openWorld()
    const ear = await heldBy(listenNdjson(`${world.relay.url}/v1/stream?symbols=*&types=transfer`))
    transfer(world, 'AAPLc', 2)
    transfer(world, 'TSLAc', 1)
    await ear.until(() => tapeOf(ear).length === 3)
    const { text, json } = await ask(`${world.relay.url}/v1/events?types=transfer&order=desc&limit=2`)
    const page = EventsPage.parse(json)
    expect(textsIn(text, page)).toEqual(textsOf(ear).slice(1).toReversed())
    const rest = await ask(`${world.relay.url}/v1/events?types=transfer&order=desc&limit=2&before=${page.next}`)
    expect(rest.json).toMatchObject({ events: [tapeOf(ear)[0]], next: null })
  })

  it('of one fact is everything about it, and how firm it is', async () => {
    const world = await openWorld()
    const ear = await heldBy(listenNdjson(`${world.relay.url}/v1/stream/AAPLc?snapshot=false`))
    transfer(world)
    const { key } = await ear.hear('transfer')
    const factNow = async () => {
      const { status, json, text } = await ask(`${world.relay.url}/v1/events/${key}`)
      expect(status).toBe(200)
      const fact = OneFact.parse(json)
      expect(text).toBe(JSON.stringify(fact))
      return { stage: fact.stage, texts: fact.updates.map((update) => JSON.stringify(update)) }
    }
    expect(await factNow()).toEqual({ stage: 'preconfirmed', texts: textsOf(ear) })
    world.devnet.seal()
    await ear.hear('seal', ({ keys }) => keys.includes(key))
    expect(await factNow()).toEqual({ stage: 'sealed', texts: textsOf(ear) })
  })
})

describe('the door to history', () => {
  it.each(['/v1/events', '/v1/events?types=status', '/v1/events/7'])('is open to every origin: %s', async (path) => {
    const { relay } = await openWorld()
    const url = `${relay.url}${path}`
    const got = await ask(url, { headers: { origin: 'https://example.com' } })
    expect(got.headers.get('access-control-allow-origin')).toBe('*')
    expect(got.headers.get('content-type')).toBe('application/json')
    const head = await ask(url, { method: 'HEAD' })
    expect([head.status, head.text]).toEqual([got.status, ''])
    const preflight = await ask(url, {
      method: 'OPTIONS',
      headers: { origin: 'https://example.com', 'access-control-request-method': 'GET' },
    })
    expect(preflight.status).toBeLessThan(300)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    const posted = await ask(url, { method: 'POST', body: '{}' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
  })

  it('lets nobody keep what may be more in a moment', async () => {
    const { relay } = await openWorld()
    expect((await ask(`${relay.url}/v1/events`)).headers.get('cache-control')).toBe('no-store')
  })

  it.each([
    ['/v1/events?limit=0', 400, 'bad_parameter'],
    ['/v1/events?after=k.1&after=k.2', 400, 'bad_parameter'],
    ['/v1/events?after=zzzzz9.1', 410, 'epoch'],
    ['/v1/events?symbols=APPL', 404, 'unknown_symbol'],
    ['/v1/events/7', 400, 'bad_parameter'],
    ['/v1/events/%E0%A4%A', 400, 'bad_parameter'],
    [`/v1/events/7-0x${'a'.repeat(64)}-0`, 404, 'unknown_key'],
  ])('says what is wrong with %s', async (path, code, reason) => {
    const { relay } = await openWorld()
    const { status, json } = await ask(`${relay.url}${path}`)
    expect(status).toBe(code)
    expect(json).toMatchObject({ code, details: [{ '@type': `stocktape/${reason}` }] })
  })
})

describe('what a too long replay left out', () => {
  const carriers = {
    SSE: ({ relay }: World, query: string) => listenSse(`${relay.url}/v1/stream?${query}`),
    NDJSON: ({ relay }: World, query: string) => listenNdjson(`${relay.url}/v1/stream?${query}`),
    WebSocket: ({ relay }: World, query: string) => listenWs(`${relay.wsUrl}?${query}`),
  }
  const selections = [
    'symbols=*&types=*',
    'symbols=AAPLc,TSLAc',
    'symbols=AAPLc&types=transfer&min_shares=2',
    'symbols=*&types=transfer,nav&min_value=1000',
    'symbols=*&stage=sealed',
    'symbols=AAPLc&stage=sealed&types=transfer&min_value=1000',
  ]

  it.each(Object.entries(carriers).flatMap(([name, open]) => selections.map((query) => [name, query, open] as const)))(
    'is found where the gap says, page by page and as lines, and with what comes live is the whole tape: %s, %s',
    async (_, query, open) => {
      const world = await openWorld({ REPLAY_BOUND: String(REPLAY_BOUND) })
      const all = await heldBy(listenNdjson(`${world.relay.url}/v1/stream?symbols=*&types=*&snapshot=false`))
      const steady = await heldBy(listenNdjson(`${world.relay.url}/v1/stream?${query}&snapshot=false`))
      const { id: start } = await steady.hear('live')
      const transfers = () => all.all('transfer').length
      /** Some of every kind, in a block that is then sealed; resolves once all of it is told. */
      const round = async () => {
        const before = all.all('seal').length
        for (const symbol of ['AAPLc', 'TSLAc']) {
          transfer(world, symbol, 3)
          transfer(world, symbol, 3, 500_000_000n)
        }
        world.devnet.seal()
        await all.until(() => all.all('seal').length >= before + 2)
      }
      await round()
      // In the sealed view this is open where the stream goes on, and belongs to what comes live.
      transfer(world, 'AAPLc', 2, 900_000_000n)
      await all.until(() => transfers() === 14)
      const back = await heldBy(open(world, `${query}&snapshot=false&since=${start}`))
      const gap = await back.hear('gap')
      expect(gap).toMatchObject({ reason: 'long', from: start })
      expect(await back.hear('live')).toMatchObject({ replayed: 0, id: gap.to })
      // The tape goes on while what was left out is read: now seals what was open, now tells more.
      let fillings = 0
      const between = async () => {
        fillings += 1
        const before = transfers()
        if (fillings === 2) world.devnet.seal()
        transfer(world, 'AAPLc', 1, 700_000_000n)
        await all.until(() => transfers() > before)
      }
      const leftOut = await follow(world, `${gap.backfill}&limit=3`, between)
      expect([fillings > 0, leftOut.length > REPLAY_BOUND]).toEqual([true, true])
      expect(await linesAt(world, `${gap.backfill}&format=ndjson`)).toEqual(leftOut)
      await round()
      expect(await linesAt(world, `${gap.backfill}&format=ndjson`)).toEqual(leftOut)
      // Whatever is selected, the seal of what was told comes.
      const last = all.all('seal').findLast(({ symbol }) => symbol === 'AAPLc')?.id
      const heardOf = async (ear: Ear) => {
        await ear.hear('seal', ({ id }) => id === last)
        return textsOf(ear).slice(0, tapeOf(ear).findIndex(({ id }) => id === last) + 1)
      }
      expect([...leftOut, ...(await heardOf(back))]).toEqual(await heardOf(steady))
    },
  )

  it('is asked for by addresses, so that a token may change its name meanwhile', async () => {
    const world = await openWorld({ REPLAY_BOUND: String(REPLAY_BOUND) })
    const ear = await heldBy(listenNdjson(`${world.relay.url}/v1/stream/AAPLc?snapshot=false`))
    const { id: start } = await ear.hear('live')
    transfer(world, 'AAPLc', 4)
    await ear.until(() => ear.all('transfer').length === 4)
    const back = await heldBy(listenNdjson(`${world.relay.url}/v1/stream/AAPLc?snapshot=false&since=${start}`))
    const { backfill } = await back.hear('gap')
    const { searchParams } = new URL(backfill ?? '', world.relay.url)
    expect(searchParams.get('symbols')).toBe(ear.all('transfer')[0]?.address)
  })
})
