import type { RequestListener } from 'node:http'
import { asyncScheduler } from 'rxjs'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { fetchList, type PolledList, pollList } from '../../../../../src/relay/tokens/list/list-poller.ts'
import { APPLE, apple, listBody, TESLA, tesla } from '../stock-records.ts'
import { addressesOf, openPoller, serve } from './list-poller-fixture.ts'

const twoTokens = listBody(apple(), tesla())
const oneToken = listBody(apple())

/** A poller of scripted answers. */
const openListPoller = (inputs: Omit<Partial<Parameters<typeof openPoller>[0]>, 'fetch'> = {}) => {
  const answers: (() => Promise<Buffer>)[] = []
  const previousTexts: (string | null)[] = []
  const poller = openPoller({
    ...inputs,
    fetch: (last) => {
      previousTexts.push(last === null ? null : String(last))
      return (answers.shift() ?? (() => Promise.reject(new Error('unexpected request'))))()
    },
  })
  let last: PolledList | null = null
  return {
    ...poller,
    previousTexts,
    warnings: () => poller.warnings.map(({ kind }) => kind),
    /** The addresses in the last answer, full or partial. */
    lastAddresses: () => addressesOf(last) ?? [],
    /** The addresses of the next answer if it is accepted as the full list; else null. */
    next: async (answer: string | Error | (() => never)) => {
      answers.push(() => {
        if (typeof answer === 'function') return answer()
        return typeof answer === 'string' ? Promise.resolve(Buffer.from(answer)) : Promise.reject(answer)
      })
      last = await poller.next()
      return last === null || last.partial ? null : (addressesOf(last) ?? null)
    },
  }
}

describe('the list poller', () => {
  it('polls at once, and then at every refresh', async () => {
    const { next, clock } = openListPoller()
    const times: number[] = []
    for (const answer of [twoTokens, twoTokens, twoTokens]) {
      expect(await next(answer)).toEqual([APPLE, TESLA])
      times.push(clock.now())
    }
    expect(times).toEqual([0, 15_000, 30_000])
  })

  it.each([
    [0, 13_500],
    [1, 16_500],
  ])('varies the wait, so that relays do not poll together: with random %d it waits %d ms', async (random, ms) => {
    const { next, clock } = openListPoller({ random: () => random })
    await next(twoTokens)
    await next(twoTokens)
    expect(clock.now()).toBeCloseTo(ms)
  })

  it('counts skipped records, and accepts the others', async () => {
    const { next, unreadable, warnings } = openListPoller()
    expect(await next(listBody('null', apple(), '{}'))).toEqual([APPLE])
    expect(unreadable()).toBe(2)
    expect(warnings()).toEqual(['list_records_skipped'])
  })

  it('goes on polling during an outage of a day, and accepts the list after it', async () => {
    const { next, clock } = openListPoller({ stocksRefreshMs: 3_600_000 })
    await next(twoTokens)
    for (let hour = 1; hour <= 24; hour += 1) {
      expect(await next(new Error('timed out'))).toBeNull()
      expect(clock.now()).toBe(hour * 3_600_000)
    }
    expect(await next(twoTokens)).toEqual([APPLE, TESLA])
  })

  it('goes on after a request that could not be sent', async () => {
    const { next } = openListPoller()
    await next(twoTokens)
    expect(
      await next(() => {
        throw new Error('out of sockets')
      }),
    ).toBeNull()
    expect(await next(twoTokens)).toEqual([APPLE, TESLA])
  })

  it('fetches with the last text that was a list', async () => {
    const { next, previousTexts } = openListPoller()
    for (const answer of [twoTokens, '<html>', new Error('HTTP 503'), oneToken, twoTokens]) await next(answer)
    expect(previousTexts).toEqual([null, twoTokens, twoTokens, twoTokens, oneToken])
  })

  it('never has two requests in flight', async () => {
    const { next, requestTimes, clock } = openListPoller()
    await next(twoTokens)
    await new Promise(setImmediate)
    clock.flush()
    // The second request has begun, and has no answer yet.
    await Promise.resolve()
    clock.flush()
    expect(requestTimes).toHaveLength(2)
  })
})

describe('a long list', () => {
  const records = Array.from({ length: 900 }, (_, at) =>
    apple({ contract_address: `0x${String(at + 1).padStart(40, '0')}`, description: 'x'.repeat(300) }),
  )

  /** The parts of each answer, and in how many turns of the event loop they came. */
  async function readParts(...answers: readonly string[]) {
    const parts: PolledList[] = []
    let turns = 0
    const bodies = answers.map((answer) => Buffer.from(answer))
    const complete = Promise.withResolvers<void>()
    const subscription = pollList({
      fetch: () => {
        const body = bodies.shift()
        if (body) return Promise.resolve(body)
        complete.resolve()
        return new Promise(() => {})
      },
      ...{ stocksRefreshMs: 1, known: [], clock: asyncScheduler, random: () => 0.5, log: () => {}, onUnreadable: () => {} },
    }).subscribe((list) => list && parts.push(list))
    onTestFinished(() => subscription.unsubscribe())
    const countTurn = (): NodeJS.Immediate =>
      setImmediate(() => {
        turns += 1
        counting = countTurn()
      })
    let counting = countTurn()
    await complete.promise
    clearImmediate(counting)
    return { parts, turns }
  }

  it('comes in parts, and the last one has the addresses of all', async () => {
    const { parts, turns } = await readParts(listBody(...records))
    expect(parts.map(({ tokens, partial }) => [tokens.length, partial])).toEqual(Array.from({ length: 9 }, () => [100, false]))
    const all = parts.flatMap(({ tokens }) => tokens.map(({ address }) => address))
    expect(all).toEqual(records.map((record) => record.contract_address))
    expect(parts.map(({ order }) => order)).toEqual([...Array.from({ length: 8 }, () => null), all])
    expect(turns).toBeGreaterThanOrEqual(parts.length - 1)
  })

  it('is partial to its last part while it lacks known tokens', async () => {
    const { parts } = await readParts(listBody(...records, tesla()), listBody(...records))
    expect(parts.filter(({ order }) => order).map(({ partial }) => partial)).toEqual([false, true])
  })
})

/** The tokens that lists have, by the letters that stand for them. */
const contracts: Readonly<Record<string, string>> = { A: APPLE, T: TESLA, G: '0xb20000000000000000000000000000000000601d' }
const contractsOf = (letters: string) => [...letters].flatMap((letter) => contracts[letter] ?? []) as Hex[]

describe('a list', () => {
  // `AT+ A-`: a list of two tokens, which is accepted, then one that lacks a token, which is not. `0` is an empty list.
  it.each<[string, string, string?]>([
    ['that is longer is accepted at once, also with other symbols and in another order', 'A+ AT+ TA+'],
    ['that lost tokens is accepted at its third equal answer', 'AT+ A- A- A+ A+'],
    ['is accepted at the third answer if it is empty', '0- 0- 0+'],
    ['that lost tokens is not accepted while its tokens keep changing', 'AT+ A- 0- A- T- A- A- AT+ A- A- A+'],
    ['that lost tokens is confirmed also in another order and with other prices', 'ATG+ AT- TA- AT+'],
    ['that lost tokens since a restart needs a confirmation, too', 'A- AT+', 'AT'],
    ['that lost a token of a list that was not accepted needs a confirmation, too', 'A+ T- A-'],
    ['loses no token while two machines answer, of which one lags', Array(6).fill('AT+ A-').join(' ')],
  ])('%s', async (_, answers, known = '') => {
    const { next, lastAddresses, warnings } = openListPoller({ known: contractsOf(known) })
    for (const [index, answer] of answers.split(' ').entries()) {
      const addresses = contractsOf(answer)
      const records = addresses.map((contract_address) => apple({ contract_address, symbol: `A${index}`, nav_price: index + 1 }))
      const accepted = answer.endsWith('+') ? addresses : null
      expect([answer, await next(listBody(...records))]).toEqual([answer, accepted])
      expect(lastAddresses()).toEqual(addresses)
    }
    expect(warnings()).toEqual([...answers].filter((sign) => sign === '-').map(() => 'list_shrank'))
  })
})

describe('a list that lost tokens', () => {
  it('is accepted after ten seconds at the earliest, even if it is repeated often', async () => {
    const { next, clock } = openListPoller({ stocksRefreshMs: 1_000 })
    await next(twoTokens)
    let answer: readonly string[] | null = null
    const since = clock.now() + 1_000
    for (let times = 0; times < 30 && answer === null; times += 1) answer = await next(oneToken)
    expect(answer).toEqual([APPLE])
    expect(clock.now() - since).toBe(10_000)
  })
})

describe('the list over HTTP', () => {
  afterEach(() => vi.restoreAllMocks())
  const openList = async (answer: RequestListener) => {
    const paths: (string | undefined)[] = []
    const url = await serve((request, response) => {
      paths.push(request.url)
      answer(request, response)
    })
    return { url, paths, fetch: fetchList(url) }
  }

  it('is fetched in full from its path', async () => {
    const { fetch, paths } = await openList((_, response) => response.end(twoTokens))
    expect(String(await fetch(null))).toBe(twoTokens)
    expect(paths).toEqual(['/v1/tokenized-stocks'])
  })

  it('is refused with a redirect', async () => {
    const elsewhere = await openList((_, response) => response.end(twoTokens))
    const { fetch } = await openList((_, response) => response.writeHead(302, { location: elsewhere.url }).end())
    await expect(fetch(null)).rejects.toThrow()
    expect(elsewhere.paths).toEqual([])
  })

  it('is refused if it breaks off', async () => {
    const { fetch } = await openList((_, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write(twoTokens.slice(0, 30))
      response.destroy()
    })
    await expect(fetch(null)).rejects.toThrow()
  })

  it('has a deadline for its last byte', async () => {
    const deadline = new AbortController()
    const fetchCount = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => deadline.signal)
    const { fetch } = await openList((_, response) => {
      response.writeHead(200).write(twoTokens.slice(0, 30))
      setImmediate(() => deadline.abort(new DOMException('too slow', 'TimeoutError')))
    })
    await expect(fetch(null)).rejects.toThrow('too slow')
    expect(fetchCount).toHaveBeenCalledWith(10_000)
  })
})
