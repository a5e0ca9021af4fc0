import { describe, expect, it } from 'vitest'
import { behindError } from '../chain/fake-chain.ts'
import { apple } from '../chain/node-json.ts'
import { downSignal, HEAD, liveSignal, openSource, POLL_MS, SILENCE_MS, sealedLogSignal } from '../chain/source/source-fixture.ts'
import { openAnswers } from './shared-answers-fixture.ts'

const hex = (number: number) => `0x${number.toString(16)}`
/** Longer than any test: the node never answers by itself. */
const FOREVER_MS = 1e9

/** A source, and answers that receive its events. */
function openSourceAndAnswers({ linked: hasLink = true } = {}) {
  const sourceFixture = openSource({ hasLink })
  const node = openAnswers({ head: null })
  let receivedCount = 0
  const receiveNew = () => {
    for (const one of sourceFixture.received.slice(receivedCount)) node.chainState.receive(one)
    receivedCount = sourceFixture.received.length
  }
  const callsAbout = (number: number, hash: string) =>
    ({
      latest: ['eth_getBlockByNumber', 'latest', false],
      number: ['eth_getBlockByNumber', hex(number), false],
      hash: ['eth_getBalance', apple, hash],
      'logs deep down': ['eth_getLogs', { fromBlock: hex(number - 100), toBlock: hex(number - 80) }],
    }) as const
  return {
    ...sourceFixture,
    /** Lets time pass and delivers the events of the source. */
    advance: async (ms: number) => {
      await sourceFixture.advance(ms)
      receiveNew()
    },
    emit: async (...signals: Parameters<typeof sourceFixture.emit>) => {
      await sourceFixture.emit(...signals)
      receiveNew()
    },
    /** Asks about a block, one below it and the head; returns which of them reach the node. */
    callsUpstreamFor: async (number: number, hash: string) => {
      const anew: string[] = []
      for (const [name, call] of Object.entries(callsAbout(number, hash)))
        if (await node.callsUpstream(call, { hash: node.chainState.hashOf(number) })) anew.push(name)
      return anew
    },
  }
}

const NONE: string[] = []
const ALL = ['latest', 'number', 'hash', 'logs deep down']

/** A source that settled one more block, about which the node has answered. */
async function openWithAnswers({ linked = true, lost = false } = {}) {
  const world = openSourceAndAnswers({ linked })
  const { chain, emit, head, advance, callsUpstreamFor } = world
  if (linked) await emit(liveSignal([apple], 'logs'), head(), ...(lost ? [downSignal] : []))
  await advance(POLL_MS)
  const log = chain.addLog(HEAD + 1)
  chain.head += 1
  if (linked && !lost) await emit(head())
  await advance(2 * POLL_MS)
  const [number, old, wire] = [chain.head, chain.hashOf(chain.head), chain.nodeLogOf(log)]
  expect([await callsUpstreamFor(number, old), await callsUpstreamFor(number, old)]).toEqual([ALL, NONE])
  return { ...world, wire, callsUpstreamAgain: () => callsUpstreamFor(number, old) }
}

describe('a reorganisation invalidates all answers', () => {
  it.each<[string, (world: Awaited<ReturnType<typeof openWithAnswers>>) => Promise<void>]>([
    ['pushes another head of the same height', ({ emit, head }) => emit(head())],
    ['removes a sealed log', ({ emit, wire }) => emit(sealedLogSignal({ ...wire, removed: true }))],
    [
      'pushes a head with another parent than the known block',
      ({ chain, emit, head }) => {
        chain.head += 1
        return emit(head())
      },
    ],
  ])('in the step that %s', async (_, change) => {
    const world = await openWithAnswers()
    world.chain.delayMs = FOREVER_MS
    world.chain.reorganise(1)
    await change(world)
    expect(await world.callsUpstreamAgain()).toEqual(ALL)
  })

  it.each([
    ['an upstream without a socket', { linked: false }],
    ['an upstream whose socket is lost', { lost: true }],
  ])('with the next poll over %s', async (_, options) => {
    const { chain, advance, callsUpstreamAgain } = await openWithAnswers(options)
    chain.reorganise(1)
    await advance(SILENCE_MS + POLL_MS)
    expect(await callsUpstreamAgain()).toEqual(ALL)
  })

  it.each([
    ['pushed', true],
    ['polled', false],
  ])('even if the replaced block was not settled yet, heads being %s', async (_, linked) => {
    const { chain, emit, head, advance, callsUpstreamFor, sealedBlocks } = openSourceAndAnswers({ linked })
    if (linked) await emit(liveSignal(), head())
    await advance(POLL_MS)
    chain.head += 1
    // The node has yet to index the block, so settling waits.
    chain.override = ({ method, params: [filter] }) => {
      if (method === 'eth_getLogs' && JSON.stringify(filter).includes('blockHash')) throw behindError()
      return undefined
    }
    if (linked) await emit(head())
    else await advance(POLL_MS)
    const old = chain.hashOf(chain.head)
    expect([await callsUpstreamFor(chain.head, old), await callsUpstreamFor(chain.head, old)]).toEqual([ALL, NONE])
    chain.reorganise(1)
    chain.override = () => undefined
    if (linked) await emit(head())
    else await advance(POLL_MS)
    await advance(5_000)
    expect(sealedBlocks().at(-1)?.hash).toBe(chain.hashOf(chain.head))
    expect(await callsUpstreamFor(chain.head, old)).toEqual(ALL)
  })

  it('and so does each later head, even if its number was the head before', async () => {
    const { chain, emit, head, advance, callsUpstreamFor } = openSourceAndAnswers()
    await emit(liveSignal(), head())
    await advance(POLL_MS)
    chain.head += 2
    await emit(head(chain.head - 1), head())
    await advance(POLL_MS)
    chain.reorganise(2)
    chain.head -= 1
    await emit(head())
    await advance(POLL_MS)
    const first = chain.hashOf(chain.head)
    expect([await callsUpstreamFor(chain.head, first), await callsUpstreamFor(chain.head, first)]).toEqual([ALL, NONE])
    chain.head += 1
    await emit(head())
    expect(await callsUpstreamFor(chain.head - 1, first)).toContain('latest')
  })
})
