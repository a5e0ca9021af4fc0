import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { fetchList } from '../../../../../src/relay/tokens/list/list-poller.ts'
import { APPLE, apple, listBody, TESLA, tesla } from '../stock-records.ts'
import { addressesOf, openPoller, serve } from './list-poller-fixture.ts'

type Answer = { readonly status?: number; readonly headers?: OutgoingHttpHeaders; readonly body?: string | Buffer }

const REFRESH_MS = 15_000
const twoTokens = listBody(apple(), tesla())
const oneToken = listBody(apple())
const tagged = (tag: string, body = twoTokens): Answer => ({ headers: { etag: tag }, body })
const unchanged: Answer = { status: 304 }

/** An upstream with scripted answers, and a poller of its list. */
const openListPoller = async (random = 0.5) => {
  const requests: IncomingHttpHeaders[] = []
  let answer: Answer = {}
  const url = await serve((request, response) => {
    requests.push(request.headers)
    response.writeHead(answer.status ?? 200, answer.headers).end(answer.body)
  })
  const { requestTimes, warnings, ...poller } = openPoller({ fetch: fetchList(url), random: () => random })
  return {
    ...poller,
    warnings: () => warnings.map(({ detail }) => detail),
    /** The wait before the last request. */
    lastWaitMs: () => (requestTimes.at(-1) ?? 0) - (requestTimes.at(-2) ?? 0),
    next: (response: Answer) => {
      answer = response
      return poller.next()
    },
    /** The tag of the last request. */
    tag: () => requests.at(-1)?.['if-none-match'],
  }
}

describe('a list with an entity tag', () => {
  it.each(['"v1"', 'W/"v1"', '""', 'W/"a,b"', `"${'x'.repeat(1_022)}"`])('is requested with its unchanged tag: %s', async (tag) => {
    const { next, tag: sent } = await openListPoller()
    await next(tagged(tag))
    expect(sent()).toBeUndefined()
    expect(addressesOf(await next(unchanged))).toEqual([APPLE, TESLA])
    expect(sent()).toBe(tag)
  })

  it.each(['*', 'v1', '"v1', 'w/"v1"', '"a" "b"', `"${'x'.repeat(1_023)}"`])(
    'is requested without the tag if that is invalid or could match every list: %s',
    async (tag) => {
      const { next, tag: sent } = await openListPoller()
      await next(tagged(tag))
      expect(addressesOf(await next({ body: oneToken }))).toEqual([APPLE])
      expect(sent()).toBeUndefined()
    },
  )

  it('is not parsed again if it did not change', async () => {
    const { next } = await openListPoller()
    const before = await next(tagged('"v1"'))
    expect(await next(unchanged)).toEqual(before)
    expect((await next(unchanged))?.tokens[0]).toBe(before?.tokens[0])
    expect((await next({ body: twoTokens }))?.tokens[0]).toBe(before?.tokens[0])
  })

  const both = [APPLE, TESLA]

  it.each<[string, ...(readonly [Answer, sent: string | undefined, addresses: readonly string[] | undefined])[]]>([
    [
      'with its new tag after a change',
      [tagged('"v1"', oneToken), undefined, [APPLE]],
      [tagged('"v2"'), '"v1"', both],
      [unchanged, '"v2"', both],
    ],
    [
      'without a tag once an answer had none, as a cache may send it',
      [tagged('"v1"'), undefined, both],
      [{ body: twoTokens }, '"v1"', both],
      [{ body: twoTokens }, undefined, both],
    ],
    [
      'with its tag after answers that were no list',
      [tagged('"v1"'), undefined, both],
      [{ status: 503 }, '"v1"', undefined],
      [unchanged, '"v1"', both],
    ],
    [
      'in full until it can be parsed',
      [tagged('"v1"'), undefined, both],
      [tagged('"v2"', twoTokens.slice(0, -9)), '"v1"', undefined],
      [unchanged, undefined, undefined],
      [tagged('"v2"'), undefined, both],
      [unchanged, '"v2"', both],
    ],
  ])('is requested %s', async (_, ...steps) => {
    const { next, tag } = await openListPoller()
    for (const [answer, sent, addresses] of steps) {
      expect(addressesOf(await next(answer))).toEqual(addresses)
      expect(tag()).toBe(sent)
    }
  })

  it('counts its skipped records at each answer', async () => {
    const { next, unreadable } = await openListPoller()
    await next(tagged('"v1"', listBody(apple(), '{}')))
    await next(unchanged)
    expect(unreadable()).toBe(2)
  })
})

describe('the answer 304', () => {
  it.each([
    ['confirms a list that lost tokens, as an equal list does', oneToken, [APPLE]],
    ['confirms an empty list, but not sooner', '{"tokens":[]}', []],
  ])('%s', async (_, body, addresses) => {
    const { next } = await openListPoller()
    await next(tagged('"v1"'))
    const readings = [await next(tagged('"v2"', body)), await next(unchanged), await next(unchanged)]
    expect(readings.map((reading) => reading?.partial)).toEqual([true, true, false])
    expect(addressesOf(readings[2] ?? null)).toEqual(addresses)
  })

  it('to a request without a tag keeps the last good list', async () => {
    const { next, warnings } = await openListPoller()
    expect(await next(unchanged)).toBeNull()
    await next({ body: twoTokens })
    expect(await next(unchanged)).toBeNull()
    expect(warnings()).toEqual([{ reason: 'HTTP 304' }, { reason: 'HTTP 304' }])
  })
})

describe('an upstream that sends Retry-After', () => {
  const date = 'Fri, 20 Nov 2026 12:00:00 GMT'

  it.each<[string, number, OutgoingHttpHeaders, number]>([
    ['seconds', 429, { 'retry-after': '60' }, 63_000],
    ['seconds in a 503', 503, { 'retry-after': '60' }, 63_000],
    ['seconds in a 403', 403, { 'retry-after': '60' }, 63_000],
    ['a date', 503, { date, 'retry-after': 'Fri, 20 Nov 2026 12:02:00 GMT' }, 126_000],
    ['a date in the old format', 429, { date, 'retry-after': 'Friday, 20-Nov-26 12:02:00 GMT' }, 126_000],
    ['less than a refresh', 429, { 'retry-after': '1' }, 15_000],
    ['zero', 429, { 'retry-after': '0' }, 15_000],
    ['a day', 429, { 'retry-after': '86400' }, 300_000],
    ['an endless number', 429, { 'retry-after': '9'.repeat(400) }, 300_000],
    ['a far date', 503, { date, 'retry-after': 'Fri, 20 Nov 2099 12:00:00 GMT' }, 300_000],
    ['a past date', 503, { date, 'retry-after': 'Fri, 20 Nov 2026 11:00:00 GMT' }, 15_000],
    ['a date, without a valid Date header', 503, { date: 'now', 'retry-after': 'Fri, 20 Nov 2026 12:02:00 GMT' }, 15_000],
    ['a word', 503, { 'retry-after': 'soon' }, 15_000],
    ['a fraction', 503, { 'retry-after': '60.5' }, 15_000],
    ['a negative number', 503, { 'retry-after': '-60' }, 15_000],
    ['two values', 503, { 'retry-after': '60, 120' }, 15_000],
    ['seconds with a list', 200, { 'retry-after': '60' }, 15_000],
  ])('is polled accordingly: %s with the status %d', async (_, status, headers, ms) => {
    const { next, lastWaitMs } = await openListPoller()
    await next({ body: twoTokens })
    await next({ status, headers, body: twoTokens })
    await next({ body: twoTokens })
    expect(lastWaitMs()).toBe(ms)
    await next({ body: twoTokens })
    expect(lastWaitMs()).toBe(REFRESH_MS)
  })

  it.each([
    [0, 60_000],
    [1, 66_000],
  ])('is polled no sooner, and not together with other relays: random %d waits %d ms', async (random, ms) => {
    const { next, lastWaitMs } = await openListPoller(random)
    await next({ status: 429, headers: { 'retry-after': '60' } })
    await next({ body: twoTokens })
    expect(lastWaitMs()).toBeCloseTo(ms)
  })

  it('sets the wait anew at each refusal', async () => {
    const { next, lastWaitMs } = await openListPoller()
    const busy = { status: 429, headers: { 'retry-after': '60' } }
    for (const answer of [busy, busy, { status: 500 }]) await next(answer)
    expect(lastWaitMs()).toBe(63_000)
    await next({ body: twoTokens })
    expect(lastWaitMs()).toBe(REFRESH_MS)
  })
})

describe('the poller keeps the last good list', () => {
  const refusal = '{"code":8,"message":"try later","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo"}]}'

  it.each<[string, Answer]>([
    ['a refusal with an error record', { status: 500, body: refusal }],
    ['an error record with the status 200', { body: refusal }],
    ['HTML', { headers: { 'content-type': 'text/html' }, body: '<!doctype html><title>Just a moment</title>' }],
    ['a truncated answer', { body: twoTokens.slice(0, -9) }],
    ['a partial response', { status: 206, body: twoTokens }],
    ['a list with an error status', { status: 503, body: oneToken }],
    ['an empty answer', { body: '' }],
    ['null', { body: 'null' }],
  ])('after %s', async (_, wrong) => {
    const { next, warnings } = await openListPoller()
    await next({ body: twoTokens })
    for (let times = 1; times <= 4; times += 1) {
      expect(await next(wrong)).toBeNull()
      expect(warnings()).toHaveLength(times)
    }
    expect(addressesOf(await next({ body: twoTokens }))).toEqual([APPLE, TESLA])
  })

  it('after a refusal with a huge body', async () => {
    const { next, warnings } = await openListPoller()
    await next({ status: 502, body: 'x'.repeat(2 ** 20) })
    expect(warnings()).toEqual([{ reason: 'HTTP 502' }])
  })

  it('after a list that is longer than its bound, which is read no further', async () => {
    const { next, warnings } = await openListPoller()
    const longList = gzipSync(listBody(`{"a":[${'0,'.repeat(10 * 2 ** 20)}0]}`))
    expect(longList.length).toBeLessThan(64 * 1_024)
    expect(await next({ headers: { 'content-encoding': 'gzip' }, body: longList })).toBeNull()
    expect(warnings()).toEqual([{ reason: 'the list is longer than 8388608 bytes' }])
  })
})
