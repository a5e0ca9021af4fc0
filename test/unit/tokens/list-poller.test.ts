import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { VirtualTimeScheduler } from 'rxjs'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { fetchList, type PolledList, pollList } from '../../../src/tokens/list-poller.ts'
import { APPLE, apple, listBody, TESLA, tesla } from './stock-records.ts'

const both = listBody(apple(), tesla())
const one = listBody(apple())
const none = listBody()

/** The list at each refresh; a wait passes when the test asks for the next answer. */
const openListPoller = ({
  known = [],
  refreshMs = 15_000,
  random = () => 0.5,
}: {
  known?: string[]
  refreshMs?: number
  random?: () => number
} = {}) => {
  const clock = new VirtualTimeScheduler(undefined, Number.POSITIVE_INFINITY)
  const answers: (() => Promise<string>)[] = []
  const warnings: string[] = []
  const previousTexts: (string | null)[] = []
  let unreadable = 0
  let fetchCount = 0
  let onReading: (reading: PolledList | null) => void = () => {}
  const start = () =>
    pollList({
      fetch: (held) => {
        fetchCount += 1
        previousTexts.push(held)
        return (answers.shift() ?? (() => Promise.reject(new Error('not asked for'))))()
      },
      refreshMs,
      known,
      clock,
      random,
      warn: (kind) => warnings.push(kind),
      onUnreadable: (count) => {
        unreadable += count
      },
    }).subscribe((reading) => onReading(reading))
  let last: PolledList | null = null
  let subscription: ReturnType<typeof start> | undefined
  onTestFinished(() => subscription?.unsubscribe())
  return {
    clock,
    warnings,
    previousTexts,
    /** What the last answer holds, the whole list or not. */
    lastAddresses: () => (last ? addressesOf(last) : []),
    fetchCount: () => fetchCount,
    unreadable: () => unreadable,
    /** The addresses of the next answer, where it is believed to be the whole list; else null. */
    next: async (answer: string | Error | (() => never)) => {
      answers.push(() => {
        if (typeof answer === 'function') return answer()
        return typeof answer === 'string' ? Promise.resolve(answer) : Promise.reject(answer)
      })
      const reading = new Promise<PolledList | null>((resolve) => {
        onReading = resolve
      })
      if (subscription) clock.flush()
      else subscription = start()
      last = await reading
      return last === null || last.partial ? null : addressesOf(last)
    },
  }
}

const addressesOf = (reading: PolledList) => reading.tokens.map(({ address }) => address)

describe('the list', () => {
  it('is asked for at once, then at every refresh', async () => {
    const { next, clock } = openListPoller()
    const at: number[] = []
    for (const answer of [both, both, both]) {
      expect(await next(answer)).toEqual([APPLE, TESLA])
      at.push(clock.now())
    }
    expect(at).toEqual([0, 15_000, 30_000])
  })

  it.each([
    [0, 13_500],
    [1, 16_500],
  ])('is not asked for in step with others: dice at %d wait %d ms', async (random, ms) => {
    const { next, clock } = openListPoller({ random: () => random })
    await next(both)
    await next(both)
    expect(clock.now()).toBeCloseTo(ms)
  })

  it.each<[string, string | Error]>([
    ['an error', new Error('HTTP 503')],
    ['HTML', '<html>'],
    ['an error record', '{"code":13,"message":"internal","details":[]}'],
    ['a cut answer', both.slice(0, -9)],
    ['nothing', ''],
  ])('stays as it was after %s, and goes on', async (_, wrong) => {
    const { next, warnings } = openListPoller()
    await next(both)
    expect(await next(wrong)).toBeNull()
    expect(await next(wrong)).toBeNull()
    expect(warnings).toEqual(['list unreadable', 'list unreadable'])
    expect(await next(both)).toEqual([APPLE, TESLA])
  })

  it('counts the records that it leaves out and believes the rest', async () => {
    const { next, unreadable, warnings } = openListPoller()
    expect(await next(listBody('null', apple(), '{}'))).toEqual([APPLE])
    expect(unreadable()).toBe(2)
    expect(warnings).toEqual(['list records skipped'])
  })

  it('that lost a token is heard at once for those that it holds, and as partial for the others', async () => {
    const { next, lastAddresses } = openListPoller()
    await next(both)
    expect(await next(one)).toBeNull()
    expect(lastAddresses()).toEqual([APPLE])
  })

  it('that names a token while it leaves out another may not lose that one either without confirmation', async () => {
    const { next, lastAddresses } = openListPoller()
    await next(one)
    expect(await next(listBody(tesla()))).toBeNull()
    expect(lastAddresses()).toEqual([TESLA])
    expect(await next(one)).toBeNull()
  })

  it('that grew is believed at once', async () => {
    const { next } = openListPoller()
    await next(one)
    expect(await next(both)).toEqual([APPLE, TESLA])
  })

  it('that only renamed its tokens is believed at once', async () => {
    const { next } = openListPoller()
    await next(both)
    expect(await next(listBody(tesla({ symbol: 'T' }), apple({ symbol: 'A' })))).toEqual([TESLA, APPLE])
  })

  it('that cannot be had for a day is asked for all day, and believed when it is back', async () => {
    const { next, clock } = openListPoller({ refreshMs: 3_600_000 })
    await next(both)
    for (let hour = 1; hour <= 24; hour += 1) {
      expect(await next(new Error('timed out'))).toBeNull()
      expect(clock.now()).toBe(hour * 3_600_000)
    }
    expect(await next(both)).toEqual([APPLE, TESLA])
  })

  it('of two machines of which one lags behind loses nothing that either names', async () => {
    const { next, lastAddresses } = openListPoller()
    for (let times = 0; times < 6; times += 1) {
      expect(await next(both)).toEqual([APPLE, TESLA])
      expect(await next(one)).toBeNull()
      expect(lastAddresses()).toEqual([APPLE])
    }
  })

  it('goes on after a question that could not even be asked', async () => {
    const { next } = openListPoller()
    await next(both)
    expect(
      await next(() => {
        throw new Error('out of sockets')
      }),
    ).toBeNull()
    expect(await next(both)).toEqual([APPLE, TESLA])
  })

  it('is asked for with the last text that was a list', async () => {
    const { next, previousTexts } = openListPoller()
    for (const answer of [both, '<html>', new Error('HTTP 503'), one, both]) await next(answer)
    expect(previousTexts).toEqual([null, both, both, both, one])
  })

  it('never has two questions under way', async () => {
    const { next, fetchCount, clock } = openListPoller()
    await next(both)
    clock.flush()
    clock.flush()
    expect(fetchCount()).toBe(2)
  })
})

describe('a list that lost tokens', () => {
  it('is believed at its third equal answer', async () => {
    const { next, warnings } = openListPoller()
    await next(both)
    expect(await next(one)).toBeNull()
    expect(await next(one)).toBeNull()
    expect(warnings).toEqual(Array(2).fill('list shrank, waiting for confirmation'))
    expect(await next(one)).toEqual([APPLE])
    expect(await next(one)).toEqual([APPLE])
  })

  it('is believed after no less than ten seconds, however often it is said', async () => {
    const { next, clock } = openListPoller({ refreshMs: 1_000 })
    await next(both)
    let answer: readonly string[] | null = null
    const since = clock.now() + 1_000
    for (let times = 0; times < 30 && answer === null; times += 1) answer = await next(one)
    expect(answer).toEqual([APPLE])
    expect(clock.now() - since).toBe(10_000)
  })

  it('is not believed when it changes its mind', async () => {
    const { next } = openListPoller()
    await next(both)
    for (const answer of [one, none, one, listBody(tesla()), one, one]) expect(await next(answer)).toBeNull()
    expect(await next(both)).toEqual([APPLE, TESLA])
    expect(await next(one)).toBeNull()
    expect(await next(one)).toBeNull()
    expect(await next(one)).toEqual([APPLE])
  })

  it('may say it in another order and with other prices', async () => {
    const { next } = openListPoller()
    const gold = apple({ contract_address: '0xb20000000000000000000000000000000000601d' })
    await next(listBody(apple(), tesla(), gold))
    expect(await next(listBody(apple(), tesla()))).toBeNull()
    expect(await next(listBody(tesla({ nav_price: 1 }), apple()))).toBeNull()
    expect(await next(listBody(apple({ nav_price: 2 }), tesla()))).toEqual([APPLE, TESLA])
  })

  it('is doubted too when it gained others', async () => {
    const { next } = openListPoller()
    await next(one)
    expect(await next(listBody(tesla()))).toBeNull()
  })

  it('is measured by what was known before a restart', async () => {
    const { next } = openListPoller({ known: [APPLE, TESLA] })
    expect(await next(one)).toBeNull()
    expect(await next(both)).toEqual([APPLE, TESLA])
  })

  it('to the last is empty: believed at the third answer, and never at the first', async () => {
    const { next } = openListPoller()
    expect(await next(none)).toBeNull()
    expect(await next(none)).toBeNull()
    expect(await next(none)).toEqual([])
  })
})

describe('the list over HTTP', () => {
  afterEach(() => vi.restoreAllMocks())
  const serve = async (answer: RequestListener) => {
    const fetchCount: (string | undefined)[] = []
    const server = createServer((request, response) => {
      fetchCount.push(request.url)
      answer(request, response)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return { url, fetchCount, fetch: fetchList(url) }
  }

  it('is read from its place, in full', async () => {
    const { fetch, fetchCount } = await serve((_, response) => response.end(both))
    expect(await fetch(null)).toBe(both)
    expect(fetchCount).toEqual(['/v1/tokenized-stocks'])
  })

  it.each([204, 304, 400, 404, 429, 500, 503])('is no list when it comes with %d', async (status) => {
    const { fetch } = await serve((_, response) =>
      response.writeHead(status).end(status === 204 || status === 304 ? '' : both),
    )
    await expect(fetch(null)).rejects.toThrow(`HTTP ${status}`)
  })

  it('is not followed to another place', async () => {
    const elsewhere = await serve((_, response) => response.end(both))
    const { fetch } = await serve((_, response) => response.writeHead(302, { location: elsewhere.url }).end())
    await expect(fetch(null)).rejects.toThrow()
    expect(elsewhere.fetchCount).toEqual([])
  })

  it('that breaks off is no list', async () => {
    const { fetch } = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write(both.slice(0, 30))
      response.destroy()
    })
    await expect(fetch(null)).rejects.toThrow()
  })

  it('is waited for up to a deadline, to the last byte', async () => {
    const deadline = new AbortController()
    const fetchCount = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => deadline.signal)
    const { fetch } = await serve((_, response) => {
      response.writeHead(200).write(both.slice(0, 30))
      setImmediate(() => deadline.abort(new DOMException('too slow', 'TimeoutError')))
    })
    await expect(fetch(null)).rejects.toThrow('too slow')
    expect(fetchCount).toHaveBeenCalledWith(10_000)
  })
})
