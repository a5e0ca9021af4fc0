import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../src/chain/rpc/error.ts'
import { alice, apple, blockHash, word, ZERO_WORD } from '../chain/node-json.ts'
import { answering, faultOf, heard } from './answers-fixture.ts'
import { hashOf } from './log-feed-fixture.ts'

const HEAD = 1_000
const HOUR_MS = 3_600_000
const hex = (number: number) => `0x${number.toString(16)}`
type Asking = readonly [method: string, ...params: unknown[]]
const balance = (at: unknown): Asking => ['eth_getBalance', alice, at]
const block = (at: string): Asking => ['eth_getBlockByNumber', at, false]
const logs = (filter: object): Asking => ['eth_getLogs', filter]
const range = (from: number, to: number) => logs({ address: apple, fromBlock: hex(from), toBlock: hex(to) })

/** Far enough below the head: for a block that was never heard of, for a range, and where there is nothing. */
const NEAREST_OLD = HEAD - 64
const NEAREST_RANGE = HEAD - 8
const NEAREST_DEEP = 10_000
const pending = [balance('pending'), block('pending'), logs({ fromBlock: 'pending', toBlock: 'pending' })]
const ofTheHead = [
  block('latest'),
  block('safe'),
  balance('finalized'),
  logs({ address: apple }),
  logs({ fromBlock: hex(HEAD - 9), toBlock: 'latest' }),
  ['eth_blockNumber'] as const,
]
const longKept = [
  block(hex(HEAD)),
  balance(hex(HEAD - 1)),
  balance({ blockNumber: hex(HEAD - 1) }),
  block('earliest'),
  balance(blockHash(HEAD)),
  balance({ blockHash: blockHash(HEAD) }),
  logs({ blockHash: blockHash(HEAD) }),
  range(HEAD, HEAD),
  block(hex(NEAREST_OLD)),
  range(1, NEAREST_RANGE),
]
const shown = (question: Asking) => [JSON.stringify(question), question] as const

/** A node that has answered a question. */
async function answered(question: Asking, result?: unknown) {
  const node = answering({ head: HEAD })
  /** Where nothing else is said, the newest block that was heard of, as it was heard of last. */
  const again = () => node.asksAnew(question, result === undefined ? { hash: node.moment.hashOf(HEAD) } : result)
  expect(await again()).toBe(true)
  /** Whether the node is asked when the question is put again. */
  return { ...node, again }
}

describe('an answer about the pending state', () => {
  it.each(pending.map(shown))('is given again for less than 200 ms: %s', async (_, question) => {
    const { clock, again } = await answered(question)
    clock.uptime = 199
    expect(await again()).toBe(false)
    clock.uptime = 200
    expect(await again()).toBe(true)
  })

  it.each([
    ['a log', heard.log(HEAD + 1)],
    ['a block that is begun', heard.building(HEAD + 1)],
    ['a head', heard.head(HEAD + 1)],
  ])('ends with %s', async (_, news) => {
    for (const question of pending) {
      const { moment, again } = await answered(question)
      moment.hear(news)
      expect(await again()).toBe(true)
    }
  })

  it('that was asked before the pending state moved and came after is given to nobody else', async () => {
    const { ask, asksAnew, passed, moment } = answering()
    const answer = ask(...balance('pending'))
    await nextTurn()
    moment.hear(heard.log(HEAD + 1))
    await passed[0]?.give('0x1')
    expect(await answer).toBe('"0x1"')
    expect(await asksAnew(balance('pending'), '0x2')).toBe(true)
  })
})

describe('an answer about the head', () => {
  it.each(ofTheHead.map(shown))(
    'is given again while it is the head, for less than a minute: %s',
    async (_, question) => {
      const { clock, moment, again } = await answered(question)
      moment.hear(heard.log(HEAD + 1))
      moment.hear(heard.building(HEAD + 1))
      clock.uptime = 59_999
      expect(await again()).toBe(false)
      clock.uptime = 60_000
      expect(await again()).toBe(true)
    },
  )

  it.each(ofTheHead.map(shown))(
    'is given again for less than 200 ms while no head is heard: %s',
    async (_, question) => {
      const { clock, moment, again } = await answered(question)
      moment.hear(heard.deaf)
      expect(await again()).toBe(true)
      clock.uptime = 199
      expect(await again()).toBe(false)
      clock.uptime = 200
      expect(await again()).toBe(true)
      moment.hear(heard.hearing)
      clock.uptime = 400
      expect(await again()).toBe(true)
      clock.uptime = 60_399
      expect(await again()).toBe(false)
    },
  )

  it.each(ofTheHead.map(shown))('ends with the next head: %s', async (_, question) => {
    const { moment, again } = await answered(question)
    moment.hear(heard.head(HEAD + 1))
    expect(await again()).toBe(true)
  })

  it.each(['safe', 'finalized'] as const)('ends when the %s block rises', async (stage) => {
    const { moment, again } = await answered(block(stage))
    moment.hear(heard.finality(stage, HEAD - 30))
    expect(await again()).toBe(true)
  })

  it('is not kept if it is a number below the head: whoever said so is behind', async () => {
    const { asksAnew } = answering({ head: HEAD })
    expect(await asksAnew(['eth_blockNumber'], hex(HEAD - 1))).toBe(true)
    expect(await asksAnew(['eth_blockNumber'], hex(HEAD))).toBe(true)
    expect(await asksAnew(['eth_blockNumber'], hex(HEAD))).toBe(false)
  })

  it('outlives one that was asked before the head and comes after it', async () => {
    const { ask, asksAnew, passed, moment } = answering()
    const old = ask(...block('latest'))
    await nextTurn()
    moment.hear(heard.head(HEAD + 1))
    expect(await asksAnew(block('latest'), { number: HEAD + 1 })).toBe(true)
    await passed[0]?.give({ number: HEAD })
    expect(await old).toBe('{"number":1000}')
    expect(await asksAnew(block('latest'), { number: HEAD + 1 })).toBe(false)
  })
})

describe('an answer about what is sealed', () => {
  it.each(longKept.map(shown))('is given again for an hour, whatever comes upon it: %s', async (_, question) => {
    const { clock, moment, again } = await answered(question)
    for (const news of [heard.log(HEAD + 1), heard.sealed(HEAD), heard.head(HEAD + 1), heard.finality('safe', 900)])
      moment.hear(news)
    clock.uptime = HOUR_MS - 1
    expect(await again()).toBe(false)
    clock.uptime = HOUR_MS
    expect(await again()).toBe(true)
  })

  it.each([block(hex(HEAD)), block(hex(HEAD - 7)), balance(blockHash(HEAD))].map(shown))(
    'is not kept if it is null of a block that somebody may have by now: %s',
    async (_, question) => {
      const { again } = await answered(question, null)
      expect(await again()).toBe(true)
    },
  )

  it.each([[], '0x', '0x0', ZERO_WORD].map((one) => [one]))(
    'is given again for less than 200 ms if at the head there is nothing: %j',
    async (empty) => {
      for (const question of [balance(hex(HEAD)), range(HEAD - 9, HEAD), range(HEAD - 7, HEAD - 7)]) {
        const { clock, again } = await answered(question, empty)
        clock.uptime = 199
        expect(await again()).toBe(false)
        clock.uptime = 200
        expect(await again()).toBe(true)
      }
    },
  )

  it.each([[], '0x', '0x0', ZERO_WORD].map((one) => [one]))(
    'ends with the next head if near it there is nothing: %j',
    async (empty) => {
      for (const question of [balance(hex(1)), range(1, 9), logs({ blockHash: blockHash(HEAD) })]) {
        const { moment, again } = await answered(question, empty)
        expect(await again()).toBe(false)
        moment.hear(heard.head(HEAD + 1))
        expect(await again()).toBe(true)
      }
    },
  )

  it.each([null, [], '0x', '0x0', ZERO_WORD])('is kept deep down though there is nothing: %j', async (empty) => {
    for (const [at, safe, isKept] of [
      [NEAREST_DEEP, null, true],
      [NEAREST_DEEP + 1, null, false],
      [NEAREST_DEEP + 1, NEAREST_DEEP + 1, true],
      [NEAREST_DEEP + 1, NEAREST_DEEP, false],
    ] as const) {
      for (const question of [block(hex(at)), balance(hex(at)), range(at - 9, at)]) {
        const { moment, asksAnew } = answering({ head: NEAREST_DEEP + 1_024 })
        if (safe !== null) moment.hear(heard.finality('safe', safe))
        await asksAnew(question, empty)
        moment.hear(heard.sealed(NEAREST_DEEP + 1_024))
        expect(await asksAnew(question, empty)).toBe(false)
        moment.hear(heard.head(NEAREST_DEEP + 1_025))
        expect(await asksAnew(question, empty)).toBe(!isKept)
      }
    }
  })

  const things: unknown[] = ['0x1', '0x10', word(1), [null], {}, false]
  it.each(things.map((one) => [one]))('is something if it is %j', async (result) => {
    const { moment, again } = await answered(balance(hex(HEAD)), result)
    moment.hear(heard.head(HEAD + 1))
    expect(await again()).toBe(false)
  })

  it('ends with the next head where several blocks reach near it', async () => {
    for (const question of [range(HEAD - 1, HEAD), range(1, NEAREST_RANGE + 1), range(HEAD, HEAD - 1)]) {
      const { moment, again } = await answered(question, [{ some: 'log' }])
      expect(await again()).toBe(false)
      moment.hear(heard.head(HEAD + 1))
      expect(await again()).toBe(true)
    }
  })

  it('is not kept if it is another block than the one that was heard of: whoever gave it is on another chain', async () => {
    const { asksAnew } = answering({ head: HEAD })
    expect(await asksAnew(block(hex(HEAD)), { hash: word(7) })).toBe(true)
    expect(await asksAnew(block(hex(HEAD)), { hash: hashOf(HEAD) })).toBe(true)
    expect(await asksAnew(block(hex(HEAD)), { hash: hashOf(HEAD) })).toBe(false)
  })

  it('ends with the next head where no hash of the number was heard: that it is replaced would not be noticed', async () => {
    for (const question of [block(hex(HEAD - 2)), balance(hex(NEAREST_OLD + 1))]) {
      const { moment, again } = await answered(question)
      expect(await again()).toBe(false)
      moment.hear(heard.head(HEAD + 1))
      expect(await again()).toBe(true)
    }
  })
})

describe('an answer about a number above the head', () => {
  const above = [block(hex(HEAD + 1)), balance(hex(HEAD + 1)), range(HEAD, HEAD + 1), range(HEAD + 1, HEAD + 1)]

  it.each(above.map(shown))('is never kept: %s', async (_, question) => {
    const { again } = await answered(question)
    expect(await again()).toBe(true)
  })

  it.each(above.map(shown))('is not kept though the head comes while it is under way: %s', async (_, question) => {
    const { ask, asksAnew, passed, moment } = answering({ head: HEAD })
    const answer = ask(...question)
    await nextTurn()
    moment.hear(heard.head(HEAD + 1))
    await passed[0]?.give({ is: 'being built' })
    await answer
    expect(await asksAnew(question, { is: 'sealed' })).toBe(true)
  })

  it.each([1, 64])('is not kept where no head was known, %i below the first that is', async (below) => {
    const { ask, asksAnew, passed, moment } = answering({ head: null })
    const question = balance(hex(HEAD))
    expect(await asksAnew(question, '0x0')).toBe(true)
    const answer = ask(...question)
    await nextTurn()
    moment.hear(heard.head(HEAD + below))
    await passed[1]?.give('0x0')
    await answer
    expect(await asksAnew(question, '0x5')).toBe(true)
  })
})

describe('a reorganisation', () => {
  const all = [...pending, ...ofTheHead, ...longKept]
  const doubts = [heard.doubted(HEAD), heard.sealed(HEAD, word(7))]
  const otherHash = [heard.sealed(HEAD), heard.sealed(HEAD, word(7))]

  it.each([
    ['doubted', doubts],
    ['found when a block is settled anew', otherHash],
  ])('leaves nothing that was answered before it was %s', async (_, news) => {
    for (const question of all) {
      const { moment, again } = await answered(question)
      for (const one of news) moment.hear(one)
      expect(await again(), JSON.stringify(question)).toBe(true)
      expect(await again(), JSON.stringify(question)).toBe(false)
    }
  })

  it('leaves no depth to what it took back: a made-up answer there is no answer for long', async () => {
    const { asksAnew, moment } = answering({ head: HEAD })
    moment.hear(heard.doubted(900))
    expect(await asksAnew(balance(hex(920)), '0x0')).toBe(true)
    moment.hear(heard.head(901))
    expect(await asksAnew(balance(hex(920)), '0x0')).toBe(true)
  })

  it('leaves nothing that was under way when it came', async () => {
    for (const question of all) {
      const { ask, asksAnew, passed, moment } = answering({ head: HEAD })
      const answer = ask(...question)
      await nextTurn()
      moment.hear(heard.doubted(HEAD))
      await passed[0]?.give({ of: 'a chain that is no more' })
      await answer
      expect(await asksAnew(question, { of: 'the chain' }), JSON.stringify(question)).toBe(true)
    }
  })
})

describe('a failure', () => {
  it('is never given again', async () => {
    for (const question of [...pending, ...ofTheHead, ...longKept]) {
      const { ask, asksAnew, passed } = answering({ head: HEAD })
      const fault = faultOf(ask(...question))
      await nextTurn()
      await passed[0]?.fail(new UpstreamError('invalid', '-32602 no'))
      await fault
      expect(await asksAnew(question, {})).toBe(true)
    }
  })

  it('takes nothing from what is kept', async () => {
    const { ask, asksAnew, passed, moment } = answering({ head: HEAD })
    const old = faultOf(ask(...block('latest')))
    await nextTurn()
    moment.hear(heard.head(HEAD + 1))
    expect(await asksAnew(block('latest'), {})).toBe(true)
    await passed[0]?.fail(new UpstreamError('unreachable', 'timed out'))
    await old
    expect(await asksAnew(block('latest'), {})).toBe(false)
  })
})

describe('the chain id', () => {
  it('is known without asking, once it is known at all', async () => {
    const known = answering({ chainId: 84_532 })
    expect(await known.ask('eth_chainId')).toBe('"0x14a34"')
    expect(known.passed).toEqual([])
    const { moment, clock, again } = await answered(['eth_chainId'], '0x1')
    moment.hear(heard.head(HEAD + 1))
    clock.uptime = HOUR_MS - 1
    expect(await again()).toBe(false)
  })
})
