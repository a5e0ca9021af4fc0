import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fetchList, type PolledList, pollList } from '../../../src/tokens/list-poller.ts'
import { APPLE, apple, listBody, TESLA, tesla } from './stock-records.ts'

type Answer = { readonly status?: number; readonly headers?: OutgoingHttpHeaders; readonly body?: string }

const REFRESH_MS = 15_000
const both = listBody(apple(), tesla())
const one = listBody(apple())
const tagged = (tag: string, body = both): Answer => ({ headers: { etag: tag }, body })
const unchanged: Answer = { status: 304 }

/** An upstream that answers one question after the other as it is told, and the list that is read from it. */
const openListPoller = async (random = 0.5) => {
  const clock = new VirtualTimeScheduler(undefined, Number.POSITIVE_INFINITY)
  const requests: IncomingHttpHeaders[] = []
  const warnings: unknown[] = []
  const requestTimes: number[] = []
  let unreadable = 0
  let answer: Answer = {}
  const server = createServer((request, response) => {
    requests.push(request.headers)
    response.writeHead(answer.status ?? 200, answer.headers).end(answer.body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const fetch = fetchList(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  let onReading: (reading: PolledList | null) => void = () => {}
  const start = () =>
    pollList({
      fetch: (held) => {
        requestTimes.push(clock.now())
        return fetch(held)
      },
      refreshMs: REFRESH_MS,
      known: [],
      clock,
      random: () => random,
      warn: (_, detail) => warnings.push(detail),
      onUnreadable: (count) => {
        unreadable += count
      },
    }).subscribe((reading) => onReading(reading))
  let subscription: ReturnType<typeof start> | undefined
  onTestFinished(() => {
    subscription?.unsubscribe()
    server.closeAllConnections()
    server.close()
  })
  return {
    requests,
    warnings,
    unreadable: () => unreadable,
    /** How long the last question waited for its turn. */
    lastWaitMs: () => (requestTimes.at(-1) ?? 0) - (requestTimes.at(-2) ?? 0),
    /** What is read of the next answer. */
    next: (response: Answer) => {
      answer = response
      const reading = new Promise<PolledList | null>((resolve) => {
        onReading = resolve
      })
      if (subscription) clock.flush()
      else subscription = start()
      return reading
    },
    /** The tag that the last question came with. */
    tag: () => requests.at(-1)?.['if-none-match'],
  }
}

const addressesOf = (reading: PolledList | null) => reading?.tokens.map(({ address }) => address)

describe('a list with a tag', () => {
  it.each(['"v1"', 'W/"v1"', '""', 'W/"a,b"', `"${'x'.repeat(1_022)}"`])(
    'is asked for with it, as it came: %s',
    async (tag) => {
      const { next, tag: sent } = await openListPoller()
      await next(tagged(tag))
      expect(sent()).toBeUndefined()
      expect(addressesOf(await next(unchanged))).toEqual([APPLE, TESLA])
      expect(sent()).toBe(tag)
    },
  )

  it.each(['*', 'v1', '"v1', 'w/"v1"', '"a" "b"', `"${'x'.repeat(1_023)}"`])(
    'that is none, or could mean every list, is asked for without it: %s',
    async (tag) => {
      const { next, tag: sent } = await openListPoller()
      await next(tagged(tag))
      expect(addressesOf(await next({ body: one }))).toEqual([APPLE])
      expect(sent()).toBeUndefined()
    },
  )

  it('that did not change is the very list, and is not read again', async () => {
    const { next } = await openListPoller()
    const before = await next(tagged('"v1"'))
    expect(await next(unchanged)).toEqual({ tokens: before?.tokens, partial: false })
    expect((await next(unchanged))?.tokens).toBe(before?.tokens)
    expect((await next({ body: both }))?.tokens).toBe(before?.tokens)
  })

  it('that changed is read, and asked for with its new tag', async () => {
    const { next, tag } = await openListPoller()
    await next(tagged('"v1"', one))
    expect(addressesOf(await next(tagged('"v2"')))).toEqual([APPLE, TESLA])
    await next(unchanged)
    expect(tag()).toBe('"v2"')
  })

  it('is asked for without one once it came without, as a cache may send it', async () => {
    const { next, tag } = await openListPoller()
    await next(tagged('"v1"'))
    await next({ body: both })
    await next({ body: both })
    expect(tag()).toBeUndefined()
  })

  it('is asked for with it after answers that were no list', async () => {
    const { next, tag } = await openListPoller()
    await next(tagged('"v1"'))
    expect(await next({ status: 503 })).toBeNull()
    expect(addressesOf(await next(unchanged))).toEqual([APPLE, TESLA])
    expect(tag()).toBe('"v1"')
  })

  it('that could not be read is asked for in full until it can be', async () => {
    const { next, tag } = await openListPoller()
    await next(tagged('"v1"'))
    expect(await next(tagged('"v2"', both.slice(0, -9)))).toBeNull()
    expect(await next(unchanged)).toBeNull()
    expect(tag()).toBeUndefined()
    expect(addressesOf(await next(tagged('"v2"')))).toEqual([APPLE, TESLA])
    await next(unchanged)
    expect(tag()).toBe('"v2"')
  })

  it('counts the records that it leaves out each time it is said', async () => {
    const { next, unreadable } = await openListPoller()
    await next(tagged('"v1"', listBody(apple(), '{}')))
    await next(unchanged)
    expect(unreadable()).toBe(2)
  })
})

describe('an answer that nothing changed', () => {
  it('confirms a list that lost tokens, as an equal one does', async () => {
    const { next } = await openListPoller()
    await next(tagged('"v1"'))
    expect(await next(tagged('"v2"', one))).toMatchObject({ partial: true })
    expect(await next(unchanged)).toMatchObject({ partial: true })
    const third = await next(unchanged)
    expect(third?.partial).toBe(false)
    expect(addressesOf(third)).toEqual([APPLE])
  })

  it('confirms an empty list, and no more quickly', async () => {
    const { next } = await openListPoller()
    await next(tagged('"v1"'))
    const partials = [await next(tagged('"v2"', '{"tokens":[]}')), await next(unchanged), await next(unchanged)]
    expect(partials.map((reading) => reading?.partial)).toEqual([true, true, false])
  })

  it('to a question that had no tag leaves the last good list, or none', async () => {
    const { next, warnings } = await openListPoller()
    expect(await next(unchanged)).toBeNull()
    await next({ body: both })
    expect(await next(unchanged)).toBeNull()
    expect(warnings).toEqual([{ reason: 'HTTP 304' }, { reason: 'HTTP 304' }])
  })
})

describe('an upstream that wants to be left alone', () => {
  const date = 'Fri, 20 Nov 2026 12:00:00 GMT'

  it.each<[string, number, OutgoingHttpHeaders, number]>([
    ['seconds', 429, { 'retry-after': '60' }, 63_000],
    ['seconds, busy or not', 503, { 'retry-after': '60' }, 63_000],
    ['seconds, for whatever reason', 403, { 'retry-after': '60' }, 63_000],
    ['a date', 503, { date, 'retry-after': 'Fri, 20 Nov 2026 12:02:00 GMT' }, 126_000],
    ['a date of the old kind', 429, { date, 'retry-after': 'Friday, 20-Nov-26 12:02:00 GMT' }, 126_000],
    ['less than a refresh', 429, { 'retry-after': '1' }, 15_000],
    ['nothing', 429, { 'retry-after': '0' }, 15_000],
    ['a day', 429, { 'retry-after': '86400' }, 300_000],
    ['an age', 429, { 'retry-after': '9'.repeat(400) }, 300_000],
    ['a far date', 503, { date, 'retry-after': 'Fri, 20 Nov 2099 12:00:00 GMT' }, 300_000],
    ['a past date', 503, { date, 'retry-after': 'Fri, 20 Nov 2026 11:00:00 GMT' }, 15_000],
    ['a date, and has none itself', 503, { date: 'now', 'retry-after': 'Fri, 20 Nov 2026 12:02:00 GMT' }, 15_000],
    ['a word', 503, { 'retry-after': 'soon' }, 15_000],
    ['a fraction', 503, { 'retry-after': '60.5' }, 15_000],
    ['less than nothing', 503, { 'retry-after': '-60' }, 15_000],
    ['two things', 503, { 'retry-after': '60, 120' }, 15_000],
    ['something while it answers', 200, { 'retry-after': '60' }, 15_000],
  ])('and says %s with %d', async (_, status, headers, ms) => {
    const { next, lastWaitMs } = await openListPoller()
    await next({ body: both })
    await next({ status, headers, body: both })
    await next({ body: both })
    expect(lastWaitMs()).toBe(ms)
    await next({ body: both })
    expect(lastWaitMs()).toBe(REFRESH_MS)
  })

  it.each([
    [0, 60_000],
    [1, 66_000],
  ])('is not asked sooner, nor in step with others: dice at %d wait %d ms', async (random, ms) => {
    const { next, lastWaitMs } = await openListPoller(random)
    await next({ status: 429, headers: { 'retry-after': '60' } })
    await next({ body: both })
    expect(lastWaitMs()).toBeCloseTo(ms)
  })

  it('is heard again at each refusal', async () => {
    const { next, lastWaitMs } = await openListPoller()
    const busy = { status: 429, headers: { 'retry-after': '60' } }
    for (const answer of [busy, busy, { status: 500 }]) await next(answer)
    expect(lastWaitMs()).toBe(63_000)
    await next({ body: both })
    expect(lastWaitMs()).toBe(REFRESH_MS)
  })
})

describe('the last good list stays', () => {
  const refusal = '{"code":8,"message":"try later","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo"}]}'
  const errors = '{"errors":[{"id":"rate_limit_exceeded","message":"Too many requests"}]}'

  it.each<[string, Answer]>([
    ['a refusal with an error record', { status: 500, body: refusal }],
    ['an error record that is called a success', { body: refusal }],
    ['a refusal of the house in its other shape', { status: 429, body: errors }],
    ['the other shape called a success', { body: errors }],
    ['a third shape', { body: '{"error":"unavailable","error_details":"x","message":"y"}' }],
    ['HTML', { headers: { 'content-type': 'text/html' }, body: '<!doctype html><title>Just a moment</title>' }],
    ['a cut answer', { body: both.slice(0, -9) }],
    ['half of it', { status: 206, body: both }],
    ['a list with a refusal', { status: 503, body: one }],
    ['nothing', { body: '' }],
    ['null', { body: 'null' }],
  ])('after %s', async (_, wrong) => {
    const { next } = await openListPoller()
    await next({ body: both })
    for (let times = 0; times < 4; times += 1) expect(await next(wrong)).toBeNull()
    expect(addressesOf(await next({ body: both }))).toEqual([APPLE, TESLA])
  })

  it('after a refusal whose own words never end', async () => {
    const { next, warnings } = await openListPoller()
    await next({ status: 502, body: 'x'.repeat(2 ** 20) })
    expect(warnings).toEqual([{ reason: 'HTTP 502' }])
  })
})
