import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/relay/chain/rpc/upstream-error.ts'
import { readCall } from '../../../../src/relay/gateway/validated-call.ts'
import { alice } from '../chain/node-json.ts'
import { ModelChain, type ModelRequest, UNKNOWN } from './model-chain.ts'
import { openAnswers } from './shared-answers-fixture.ts'

/** How long after its arrival an answer may be reused. */
const boundsMs: Readonly<Record<string, number>> = { pending: 200, head: 60_000 }
const SEALED_MS = 3_600_000

/** Numbers near the head, which is 99 at first, and near the depth where the chain is old. */
const arbNumber = fc.constantFrom(0, 33, 34, 35, 36, 37, 38, 97, 98, 99, 100, 101, 102)
const arbAt = fc.oneof(
  fc.constantFrom('latest', 'pending', 'pending', 'safe', 'finalized', 'earliest'),
  arbNumber.map((number) => `0x${number.toString(16)}`),
)
const queryKinds = ['number', 'block', 'balance', 'logs', 'balance by hash', 'logs by hash'] as const
type Query = { kind: (typeof queryKinds)[number]; at: string; to: string; number: number; ago: number }
const arbQuery: fc.Arbitrary<Query> = fc.record({
  ...{ kind: fc.constantFrom(...queryKinds), at: arbAt, to: arbAt },
  /** A hash is that of a block this many states ago. */
  ...{ number: arbNumber, ago: fc.nat(3) },
})
function requestFor({ kind, at, to, number, ago }: Query, chain: ModelChain): ModelRequest {
  const blockHash = chain.hash(number, ago)
  switch (kind) {
    case 'number':
      return ['eth_blockNumber']
    case 'block':
      return ['eth_getBlockByNumber', at, false]
    case 'balance':
      return ['eth_getBalance', alice, at]
    case 'logs':
      return ['eth_getLogs', { fromBlock: at, toBlock: to }]
    case 'balance by hash':
      return ['eth_getBalance', alice, blockHash]
    case 'logs by hash':
      return ['eth_getLogs', { blockHash }]
  }
}

/** What the chain, the source, the clock, a client and the node do. The node decides an answer, and later it arrives. */
type Deed =
  | 'build'
  | 'seal'
  | 'finalise'
  | 'lose'
  | 'regain'
  | 'reorganise'
  | 'receive'
  | 'wait'
  | 'ask'
  | 'answer'
  | 'think'
  | 'arrive'
type Action = readonly [deed: Deed, first: number, second: number]
const act = (weight: number, deed: Deed, first: fc.Arbitrary<number> = fc.constant(0), second = fc.nat(3)) => ({
  weight,
  arbitrary: fc.tuple(fc.constant(deed), first, second) as fc.Arbitrary<Action>,
})
const arbAction = fc.oneof(
  ...[act(4, 'build', fc.nat(1)), act(4, 'seal'), act(1, 'finalise'), act(1, 'lose'), act(1, 'regain')],
  ...[act(4, 'reorganise', fc.constantFrom(1, 1, 2, 3, 70)), act(12, 'receive', fc.constantFrom(1, 1, 2, 3, 99))],
  ...[act(2, 'wait', fc.constantFrom(50, 199, 59_801)), act(24, 'ask', fc.nat(7))],
  ...[act(10, 'answer'), act(10, 'think', fc.nat(7)), act(10, 'arrive', fc.nat(7))],
)
const arbActions = fc.array(arbAction, { minLength: 10, maxLength: 80, size: 'max' })
/** The same few calls again and again, so that the cache is used. */
const arbQueries = fc.array(arbQuery, { minLength: 1, maxLength: 3 })

/** Runs all steps; returns the first wrong answer, if any. */
async function findWrongAnswer(queries: readonly Query[], actions: readonly Action[]): Promise<string | null> {
  const [node, chain] = [openAnswers({ head: null }), new ModelChain()]
  const { chainState } = node
  const wrongAnswers: string[] = []
  /** The state up to which events arrived. */
  let receivedState = 0
  /** The node's answers, by the index of the call. */
  const nodeAnswers = new Map<number, unknown>()
  const arrived = new Set<number>()
  const arrivedAnswers: { name: string; text: string; at: number; boundMs: number }[] = []
  const nameOf = ({ method, params }: { readonly method: string; readonly params: unknown }) => JSON.stringify([method, params])
  const textOf = (answer: unknown) => (answer === UNKNOWN ? 'unknown' : JSON.stringify(answer))

  const receive = (count: number) => {
    for (const { state, event } of chain.events.splice(0, count)) {
      chainState.receive(event)
      receivedState = Math.max(receivedState, state)
    }
  }
  const oneOf = (which: number, fits: (place: number) => boolean): number => {
    const places = [...node.upstreamCalls.keys()].filter(fits)
    return places[which % places.length] ?? -1
  }
  const think = (which: number) => {
    const passed = node.upstreamCalls[which]
    if (passed && !nodeAnswers.has(which)) nodeAnswers.set(which, chain.answer([passed.method, ...passed.params] as never))
  }
  const arrive = (which: number) => {
    const passed = node.upstreamCalls[which]
    if (!passed || !nodeAnswers.has(which) || arrived.has(which)) return
    arrived.add(which)
    const answer = nodeAnswers.get(which)
    if (answer === UNKNOWN) return passed.fail(new UpstreamError('behind', 'block not found'))
    const { method, params } = passed
    const { scope } = readCall(method, params, chainState)
    const boundMs = scope.at === 'head' && chainState.isDisconnected ? boundsMs.pending : boundsMs[scope.at]
    const [name, at] = [nameOf(passed), node.clock.uptime]
    arrivedAnswers.push({ name, text: textOf(answer), at, boundMs: boundMs ?? SEALED_MS })
    return passed.succeed(answer)
  }
  /** An answer must have been true at some time since the newest event before its call. */
  const check = (name: string, request: ModelRequest, since: number, text: string) => {
    for (let state = chain.currentState; state >= since; state -= 1) if (textOf(chain.answer(request, state)) === text) return
    wrongAnswers.push(`${name} gave ${text}, which it was not since state ${since}`)
  }
  const makeRequest = (request: ModelRequest) => {
    const [method, ...params] = request
    const call = readCall(method, params, chainState)
    const [name, since] = [nameOf(call), receivedState]
    const answer = node.answers.answer(call)
    if (!Buffer.isBuffer(answer)) {
      const record = (text: string) => check(name, request, since, text)
      answer.then(
        (text) => record(String(text)),
        () => record('unknown'),
      )
      return
    }
    check(name, request, since, String(answer))
    const isYoung = (one: (typeof arrivedAnswers)[number]) => node.clock.uptime - one.at < one.boundMs
    if (!arrivedAnswers.some((one) => one.name === name && one.text === String(answer) && isYoung(one)))
      wrongAnswers.push(`${name} gave ${answer} for too long`)
  }
  const answerAll = async () => {
    for (let which = 0; which < node.upstreamCalls.length; which += 1) {
      think(which)
      await arrive(which)
    }
  }
  const deeds: Readonly<Record<Deed, (first: number, second: number) => unknown>> = {
    build: (isQuiet) => chain.build(isQuiet === 1),
    seal: () => chain.seal(),
    finalise: () => chain.finalise(),
    lose: () => chain.lose(),
    regain: () => chain.regain(),
    reorganise: (depth, replacements) => chain.reorganise(depth, replacements),
    receive,
    wait: (ms) => Object.assign(node.clock, { uptime: node.clock.uptime + ms }),
    ask: (which) => {
      const query = queries[which % queries.length]
      if (query) makeRequest(requestFor(query, chain))
    },
    answer: answerAll,
    think: (which) => think(oneOf(which, (place) => !nodeAnswers.has(place))),
    arrive: (which) => arrive(oneOf(which, (place) => nodeAnswers.has(place) && !arrived.has(place))),
  }
  receive(Number.POSITIVE_INFINITY)
  for (const [deed, first, second] of actions) {
    await deeds[deed](first, second)
    await yieldToEventLoop()
  }
  await answerAll()
  return wrongAnswers[0] ?? null
}

it('answers only what was true at some time since the newest event before the call', async () => {
  await fc.assert(
    fc.asyncProperty(arbQueries, arbActions, async (queries, actions) => {
      expect(await findWrongAnswer(queries, actions)).toBeNull()
    }),
    { numRuns: 300 },
  )
})
