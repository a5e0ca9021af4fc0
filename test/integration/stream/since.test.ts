import { describe, expect, it } from 'vitest'
import type { Ear, MessageOf } from '../../support/test-listener.ts'
import { ask, openWorld, seqOf, tapeOf, transfer, typesOf, type World } from '../../support/test-stack.ts'
import { type Carrier, carriers, listen, liveOn } from './stream-listeners.ts'

const query = 'symbols=AAPLc&types=transfer'

/** A tape with transfers whose times differ, and one who heard them. */
async function worldOfTimes(count = 4): Promise<{ world: World; told: readonly MessageOf<'transfer'>[] }> {
  const world = await openWorld()
  const ear = await liveOn(world, 'ws', query)
  while (ear.all('transfer').length < count) {
    const last = ear.all('transfer').at(-1)
    transfer(world)
    await ear.until(() => ear.all('transfer').at(-1) !== last)
    outlast(ear.all('transfer').at(-1)?.time)
  }
  return { world, told: ear.all('transfer') }
}

/** Waits until a time is past, so that neither the next one nor who asks for what comes from now on is in its millisecond. */
function outlast(time = ''): void {
  while (Date.now() <= Date.parse(time));
}

const at = (since: string) => `${query}&since=${encodeURIComponent(since)}`
const idsOf = (ear: Ear) => tapeOf(ear).map(({ id }) => id)

/** The same moment, as it is said an hour and a half east of Greenwich. */
const eastOf = (time: string) => new Date(Date.parse(time) + 5_400_000).toISOString().replace('Z', '+01:30')

describe('a time', () => {
  it('begins with the first message that is not before it, on every carrier, however the time is written', async () => {
    const { world, told } = await worldOfTimes()
    for (const [index, { time }] of told.entries()) {
      const ways = [time, time.replace('Z', '000Z'), time.replace('Z', '+00:00'), time.replace('Z', '-00:00')]
      for (const [way, since] of [...ways, eastOf(time)].entries()) {
        const ear = await liveOn(world, carriers[way % carriers.length] as Carrier, at(since))
        expect(idsOf(ear), since).toEqual(told.slice(index).map(({ id }) => id))
        expect(ear.all('subscribed')).toMatchObject([{ resume: 'none' }])
        expect(ear.all('snapshot')).toHaveLength(1)
        expect(ear.all('gap')).toEqual([])
      }
      const after = await liveOn(world, 'sse', at(new Date(Date.parse(time) + 1).toISOString()))
      expect(idsOf(after)).toEqual(told.slice(index + 1).map(({ id }) => id))
    }
  })

  it.each(['2100-01-01T00:00:00Z', '2999-12-31T23:59:59.999+14:00', '0s'])(
    'that is still to come begins at the end: %s',
    async (since) => {
      const { world } = await worldOfTimes(2)
      for (const carrier of carriers) {
        const ear = await liveOn(world, carrier, at(since))
        const [hello] = ear.all('hello')
        expect(tapeOf(ear)).toEqual([])
        expect(hello).toMatchObject({ id: hello?.end })
        expect(ear.all('live')).toMatchObject([{ replayed: 0, id: hello?.end }])
      }
    },
  )

  it.each(['1970-01-01T00:00:00Z', '0001-01-01T00:00:00-12:00', '90s', '5m', '2h', '8784h', 'start'])(
    'that lies before the oldest begins there, without a gap: %s',
    async (since) => {
      const { world, told } = await worldOfTimes(2)
      for (const carrier of carriers) {
        const ear = await liveOn(world, carrier, at(since))
        const [hello] = ear.all('hello')
        expect(idsOf(ear)).toEqual(told.map(({ id }) => id))
        expect(hello).toMatchObject({ id: hello?.oldest })
        expect(ear.all('subscribed')).toMatchObject([{ resume: 'none', id: hello?.oldest }])
        expect(typesOf(ear.heard)).not.toContain('gap')
      }
    },
  )
})

describe('a position', () => {
  it('is exclusive, needs no message of its own, and is honoured in full', async () => {
    const { world, told } = await worldOfTimes(3)
    const [first, second, third] = told
    if (!first || !second || !third) throw new Error('unreachable')
    // Another token's message stands at a place that this selection does not hear.
    transfer(world, 'TSLAc')
    const other = await liveOn(world, 'ws', 'symbols=TSLAc&types=transfer&since=start')
    const elsewhere = await other.hear('transfer')
    for (const carrier of carriers) {
      for (const [since, rest] of [
        [first.id, [second.id, third.id]],
        [third.id, []],
        [elsewhere.id, []],
        // Within a seal of the other view: just before it.
        [`${second.id}.7`, [second.id, third.id]],
      ] as const) {
        const ear = await liveOn(world, carrier, query, since)
        expect(idsOf(ear), since).toEqual(rest)
        expect(ear.all('subscribed')).toMatchObject([{ resume: 'full' }])
        expect(typesOf(ear.heard)).toEqual(['hello', 'subscribed', ...rest.map(() => 'transfer'), 'live'])
      }
    }
  })
})

/** What must be so with every gap, wherever it comes from: what is said first has no id, and the gap has one. */
async function gapOn(ear: Ear): Promise<MessageOf<'gap'>> {
  await ear.hear('live')
  const [hello, subscribed] = ear.messages
  expect(hello).toMatchObject({ type: 'hello', id: null })
  expect(subscribed).toMatchObject({ type: 'subscribed', id: null, resume: 'gap' })
  const gap = await ear.hear('gap')
  expect(ear.messages.indexOf(gap)).toBe(2)
  expect(gap.to).toBe(gap.id)
  return gap
}

describe('a gap', () => {
  it.each(carriers)('comes for another epoch, and beyond the end, with the snapshots after it: %s', async (carrier) => {
    const { world, told } = await worldOfTimes(2)
    const [epoch = ''] = told[0]?.id.split('.') ?? []
    const foreign = await listen(world, carrier, query, `${epoch}x.1`)
    const gap = await gapOn(foreign)
    expect(gap).toMatchObject({ reason: 'epoch', from: `${epoch}x.1`, to: foreign.all('hello')[0]?.oldest })
    expect(typesOf(foreign.heard).slice(3)).toEqual(['snapshot', 'transfer', 'transfer', 'live'])
    expect(foreign.all('snapshot')[0]?.id).toBe(gap.id)
    for (const beyond of [`${epoch}.${seqOf(told[1]?.id) + 100}`, `${epoch}.99999999999999999999`]) {
      const ahead = await listen(world, carrier, query, beyond)
      const { id, reason, from } = await gapOn(ahead)
      expect({ id, reason, from }).toEqual({ id: ahead.all('hello')[0]?.end, reason: 'ahead', from: beyond })
      expect(typesOf(ahead.heard).slice(3)).toEqual(['snapshot', 'live'])
    }
    const bare = await listen(world, carrier, `${query}&snapshot=false`, `${epoch}x.1`)
    await gapOn(bare)
    expect(bare.all('snapshot')).toEqual([])
  })

  it.each(carriers)(
    'comes for one message more than a replay may have, and not for exactly as many: %s',
    async (carrier) => {
      const world = await openWorld({ REPLAY_BOUND: '3' })
      const first = await liveOn(world, 'ws', query)
      const { id: before } = await first.hear('live')
      transfer(world, 'AAPLc', 2)
      transfer(world, 'TSLAc', 5)
      transfer(world, 'AAPLc', 1)
      await first.until(() => first.all('transfer').length === 3)
      const fits = await liveOn(world, carrier, query, before)
      expect(typesOf(fits.heard)).toEqual(['hello', 'subscribed', 'transfer', 'transfer', 'transfer', 'live'])
      expect(fits.all('hello')).toMatchObject([{ limits: { replay: 3 } }])
      transfer(world, 'AAPLc', 1)
      await first.until(() => first.all('transfer').length === 4)
      const long = await listen(world, carrier, query, before)
      const gap = await gapOn(long)
      expect(gap).toMatchObject({ reason: 'long', from: before, to: long.all('hello')[0]?.end })
      expect(typesOf(long.heard).slice(3)).toEqual(['snapshot', 'live'])
      expect(long.all('live')).toMatchObject([{ replayed: 0, id: gap.id }])
      // Where no position was named there is none to have come from.
      const start = await listen(world, carrier, `${query}&since=start`)
      expect(await gapOn(start)).toMatchObject({ reason: 'long', from: null })
      transfer(world, 'AAPLc', 1, 77n)
      expect(await long.hear('transfer')).toMatchObject({ raw: '77' })
      const back = await liveOn(world, carrier, query, gap.id)
      expect(back.all('transfer')).toMatchObject([{ raw: '77' }])
    },
  )

  it.each(carriers)('says first what is lost, and then what is only too long: %s', async (carrier) => {
    const world = await openWorld({ REPLAY_BOUND: '3' })
    const first = await liveOn(world, 'ws', query)
    transfer(world, 'AAPLc', 5)
    await first.until(() => first.all('transfer').length === 5)
    const ear = await listen(world, carrier, query, 'elsewhere.5')
    await ear.hear('live')
    const [{ oldest, end } = { oldest: '', end: '' }] = ear.all('hello')
    const [lost, long] = ear.all('gap')
    expect(lost).toMatchObject({ reason: 'epoch', id: oldest, from: 'elsewhere.5', to: oldest, backfill: null })
    expect(long).toMatchObject({ reason: 'long', id: end, from: oldest, to: end })
    expect(typesOf(ear.heard)).toEqual(['hello', 'subscribed', 'gap', 'gap', 'snapshot', 'live'])
    const { json } = await ask(`${world.relay.url}${long?.backfill}`)
    expect(json).toMatchObject({ events: first.all('transfer') })
  })

  it.each(carriers)(
    'comes for what was evicted, and not for the oldest place from which all is kept: %s',
    async (carrier) => {
      const world = await openWorld({ TAPE_BOUND: '100', FINALITY_POLL_MS: '3600000', STOCKS_REFRESH_MS: '3600000' })
      const first = await liveOn(world, 'ws', query)
      for (let flash = 0; flash < 5; flash += 1) transfer(world, 'AAPLc', 50)
      await first.until(() => first.all('transfer').length === 250)
      const told = idsOf(first)
      /** How far eviction had come for one who listens: whatever else is written takes the place of a transfer. */
      const oldestFor = (ear: Ear) => ear.all('hello')[0]?.oldest ?? ''
      const keptFor = (ear: Ear) => told.filter((id) => seqOf(id) > seqOf(oldestFor(ear)))
      const resumeAtOldest = async (): Promise<Ear> => {
        const at = oldestFor(await liveOn(world, 'ws', query))
        const ear = await liveOn(world, carrier, query, at)
        return oldestFor(ear) === at ? ear : resumeAtOldest()
      }
      const full = await resumeAtOldest()
      expect(full.all('subscribed')).toMatchObject([{ resume: 'full', id: oldestFor(full) }])
      expect(idsOf(full)).toEqual(keptFor(full))
      const before = told[told.indexOf(oldestFor(full)) - 1]
      const expired = await listen(world, carrier, query, before)
      expect(await gapOn(expired)).toMatchObject({ reason: 'expired', from: before, to: oldestFor(expired) })
      const kept = keptFor(expired)
      expect(typesOf(expired.heard).slice(2)).toEqual(['gap', 'snapshot', ...kept.map(() => 'transfer'), 'live'])
      expect(idsOf(expired)).toEqual(kept)
      expect(kept.length).toBeGreaterThan(0)
      const start = await liveOn(world, carrier, `${query}&since=start`)
      expect(start.all('hello')).toMatchObject([{ id: oldestFor(start) }])
      expect(idsOf(start)).toEqual(keptFor(start))
      expect(start.all('gap')).toEqual([])
    },
  )

  it('comes to one who subscribes by a message, without an id before it', async () => {
    const { world, told } = await worldOfTimes(2)
    const ear = await listen(world, 'ws', 'types=transfer')
    ear.send({ type: 'subscribe', req: 5, symbols: ['AAPLc'], since: 'elsewhere.5' })
    const gap = await gapOn(ear)
    expect(gap).toMatchObject({ reason: 'epoch', from: 'elsewhere.5' })
    expect(ear.all('subscribed')[0]).toMatchObject({ req: 5 })
    expect(idsOf(ear)).toEqual(told.map(({ id }) => id))
  })
})

describe('a Last-Event-ID', () => {
  it.each([
    ['of other words', 'yesterday'],
    ['that would be a since', 'start'],
    ['that would be a duration', '5m'],
    ['of 200 bytes', 'a'.repeat(200)],
    ['of 256 bytes', `k.${'1'.repeat(254)}`],
    ['of 257 bytes', `k.${'1'.repeat(255)}`],
    ['of 3,000 bytes', 'k'.repeat(3_000)],
    ['in other letters', Buffer.from('καλημέρα.7').toString('latin1')],
    ['of capitals', 'K3F9A1.7'],
    ['with a minus', 'k3f9a1.-7'],
    ['of three numbers', 'k3f9a1.7.7.7'],
  ])('%s is a gap of another epoch, whatever since says, and the stream goes on at the oldest', async (_, header) => {
    const { world, told } = await worldOfTimes(2)
    const ear = await listen(world, 'sse', `${query}&since=${told[1]?.id}`, header)
    const gap = await gapOn(ear)
    expect(gap).toMatchObject({ reason: 'epoch', from: null, to: ear.all('hello')[0]?.oldest })
    expect(ear.heard.slice(0, 3).map(({ id }) => id)).toEqual([undefined, undefined, gap.id])
    expect(idsOf(ear)).toEqual(told.map(({ id }) => id))
  })

  it('wins over since on NDJSON and text too, and is nothing where it is empty', async () => {
    const { world, told } = await worldOfTimes(2)
    const url = `${world.relay.url}/v1/stream?${query}&since=now`
    const [first, second] = told
    for (const format of ['ndjson', 'text']) {
      for (const [header, moved] of [
        [first?.id ?? '', [second]],
        ['', []],
        [' ', []],
      ] as const) {
        const abort = new AbortController()
        const response = await fetch(`${url}&format=${format}`, {
          headers: { 'last-event-id': header },
          signal: abort.signal,
        })
        let text = ''
        for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
          text += chunk
          if (/# live|"live"/.test(text)) break
        }
        abort.abort()
        expect(text.match(/transfer /g)?.length ?? text.match(/"type":"transfer"/g)?.length ?? 0).toBe(moved.length)
        expect(text).not.toContain('gap')
      }
    }
  })

  it('wins over a since that cannot be read, which is a mistake where it stands alone', async () => {
    const { world, told } = await worldOfTimes(2)
    const ear = await listen(world, 'sse', `${query}&since=yesterday`, told[0]?.id)
    await ear.hear('live')
    expect(idsOf(ear)).toEqual([told[1]?.id])
    const url = `${world.relay.url}/v1/stream?${query}&since=yesterday`
    for (const headers of [{}, { 'last-event-id': '' }]) {
      expect(await ask(url, { headers })).toMatchObject({
        status: 400,
        json: { message: expect.stringMatching(/since/) },
      })
    }
  })
})
