import { describe, expect, it } from 'vitest'
import { behind } from '../chain/fake-chain.ts'
import { apple } from '../chain/node-json.ts'
import { down, feed, HEAD, live, POLL_MS, pushSealed, SILENCE_MS } from '../chain/source/source-fixture.ts'
import { answering } from './answers-fixture.ts'

const hex = (number: number) => `0x${number.toString(16)}`
/** Longer than any test goes on: what the node is asked stays under way. */
const FOREVER_MS = 1e9

/** A source, and answers that hear what it says. */
function openHouse({ linked = true } = {}) {
  const world = feed({ linked })
  const node = answering({ head: null })
  let told = 0
  const listen = () => {
    for (const one of world.heard.slice(told)) node.moment.hear(one)
    told = world.heard.length
  }
  const questions = (number: number, hash: string) =>
    ({
      latest: ['eth_getBlockByNumber', 'latest', false],
      number: ['eth_getBlockByNumber', hex(number), false],
      hash: ['eth_getBalance', apple, hash],
      'logs deep down': ['eth_getLogs', { fromBlock: hex(number - 100), toBlock: hex(number - 80) }],
    }) as const
  return {
    ...world,
    /** Lets time pass, and hears what the source says meanwhile. */
    pass: (ms: number) => {
      world.pass(ms)
      listen()
    },
    signal: (...signals: Parameters<typeof world.signal>) => {
      world.signal(...signals)
      listen()
    },
    /** Asks about a block, below it and about the head; of which the node is asked. */
    asked: async (number: number, hash: string) => {
      const anew: string[] = []
      for (const [name, question] of Object.entries(questions(number, hash)))
        if (await node.asksAnew(question, { hash: node.moment.hashOf(number) })) anew.push(name)
      return anew
    },
  }
}

describe('a reorganisation makes all answers new', () => {
  const NONE: string[] = []
  const ALL = ['latest', 'number', 'hash', 'logs deep down']

  it('in the step in which another head of the same height is pushed', async () => {
    const { chain, signal, head, pass, asked } = openHouse()
    signal(live(), head())
    pass(POLL_MS)
    chain.head += 1
    signal(head())
    pass(POLL_MS)
    const old = chain.hashOf(chain.head)
    expect([await asked(chain.head, old), await asked(chain.head, old)]).toEqual([ALL, NONE])
    chain.delayMs = FOREVER_MS
    chain.reorganise(1)
    signal(head())
    expect(await asked(chain.head, old)).toEqual(ALL)
  })

  it('in the step in which a sealed log is taken back', async () => {
    const { chain, signal, head, pass, asked } = openHouse()
    signal(live([apple], 'logs'), head())
    pass(POLL_MS)
    const log = chain.put(HEAD + 1)
    chain.head += 1
    signal(head())
    pass(POLL_MS)
    const [old, wire] = [chain.hashOf(chain.head), chain.wireOf(log)]
    expect([await asked(chain.head, old), await asked(chain.head, old)]).toEqual([ALL, NONE])
    chain.delayMs = FOREVER_MS
    chain.reorganise(1)
    signal(pushSealed({ ...wire, removed: true }))
    expect(await asked(chain.head, old)).toEqual(ALL)
  })

  it.each([
    ['an upstream without a socket', false],
    ['an upstream whose socket is lost', true],
  ])('with the next poll over %s', async (_, linked) => {
    const { chain, signal, head, pass, asked } = openHouse({ linked })
    if (linked) signal(live(), head(), down)
    pass(POLL_MS)
    chain.head += 1
    pass(2 * POLL_MS)
    const old = chain.hashOf(chain.head)
    expect([await asked(chain.head, old), await asked(chain.head, old)]).toEqual([ALL, NONE])
    chain.reorganise(1)
    pass(SILENCE_MS + POLL_MS)
    expect(await asked(chain.head, old)).toEqual(ALL)
  })

  it('in the step in which a head is pushed that stands on another block than the one we know', async () => {
    const { chain, signal, head, pass, asked } = openHouse()
    signal(live(), head())
    pass(POLL_MS)
    chain.head += 1
    signal(head())
    pass(POLL_MS)
    const [number, old] = [chain.head, chain.hashOf(chain.head)]
    expect([await asked(number, old), await asked(number, old)]).toEqual([ALL, NONE])
    chain.delayMs = FOREVER_MS
    chain.reorganise(1)
    chain.head += 1
    signal(head())
    expect(await asked(number, old)).toEqual(ALL)
  })

  it.each([
    ['pushed', true],
    ['polled', false],
  ])('though the block that is replaced was not settled yet, heads being %s', async (_, linked) => {
    const { chain, signal, head, pass, asked, sealed } = openHouse({ linked })
    if (linked) signal(live(), head())
    pass(POLL_MS)
    chain.head += 1
    // A node that has yet to index the block: settling it waits.
    chain.instead = ({ method, params: [filter] }) => {
      if (method === 'eth_getLogs' && JSON.stringify(filter).includes('blockHash')) throw behind()
      return undefined
    }
    if (linked) signal(head())
    else pass(POLL_MS)
    const old = chain.hashOf(chain.head)
    expect([await asked(chain.head, old), await asked(chain.head, old)]).toEqual([ALL, NONE])
    chain.reorganise(1)
    chain.instead = () => undefined
    if (linked) signal(head())
    else pass(POLL_MS)
    pass(5_000)
    expect(sealed().at(-1)?.hash).toBe(chain.hashOf(chain.head))
    expect(await asked(chain.head, old)).toEqual(ALL)
  })

  it('and so does each head that comes after it, though its number was the head before', async () => {
    const { chain, signal, head, pass, asked } = openHouse()
    signal(live(), head())
    pass(POLL_MS)
    chain.head += 2
    signal(head(chain.head - 1), head())
    pass(POLL_MS)
    chain.reorganise(2)
    chain.head -= 1
    signal(head())
    pass(POLL_MS)
    const first = chain.hashOf(chain.head)
    expect([await asked(chain.head, first), await asked(chain.head, first)]).toEqual([ALL, NONE])
    chain.head += 1
    signal(head())
    expect(await asked(chain.head - 1, first)).toContain('latest')
  })
})
