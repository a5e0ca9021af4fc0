import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { UpstreamError } from '../../../src/chain/rpc/error.ts'
import type { ChainEvent } from '../../../src/chain/source/source.ts'
import { readCall } from '../../../src/gateway/call.ts'
import { ChainState } from '../../../src/gateway/chain-state.ts'
import { alice } from '../chain/node-json.ts'
import { openAnswers } from './answers-fixture.ts'
import { ModelChain, type ModelRequest, UNKNOWN } from './model-chain.ts'

/** How long after it came an answer may be given again. */
const boundsMs: Readonly<Record<string, number>> = { pending: 200, head: 60_000 }
const SEALED_MS = 3_600_000

type ChainAction =
  | { readonly kind: 'build'; readonly quiet: boolean }
  | { readonly kind: 'seal' | 'finalise' | 'lose' | 'regain' }
  /** The node answers all that it was asked. */
  | { readonly kind: 'answer' }
  | { readonly kind: 'reorganise'; readonly depth: number; readonly others: number }
  /** So many of the things that there are to hear are heard. */
  | { readonly kind: 'hear'; readonly count: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'ask'; readonly request: (chain: ModelChain) => ModelRequest }
  /** The node makes up its mind about a question; what it said arrives. */
  | { readonly kind: 'think' | 'arrive'; readonly which: number }

/** Numbers about the head, which is 99 at first, and about where the chain is deep. */
const arbNumber = fc.constantFrom(0, 33, 34, 35, 36, 37, 38, 97, 98, 99, 100, 101, 102)
const arbAt = fc.oneof(
  fc.constantFrom('latest', 'pending', 'pending', 'safe', 'finalized', 'earliest'),
  arbNumber.map((number) => `0x${number.toString(16)}`),
)
type FromChain<T> = (chain: ModelChain) => T
const arbHash = fc.tuple(arbNumber, fc.nat(3)).map(
  ([number, ago]): FromChain<string> =>
    (chain) =>
      chain.hash(number, ago),
)
const arbRequest: fc.Arbitrary<FromChain<ModelRequest>> = fc.oneof(
  fc.constant((): ModelRequest => ['eth_blockNumber']),
  arbAt.map((at) => (): ModelRequest => ['eth_getBlockByNumber', at, false]),
  arbAt.map((at) => (): ModelRequest => ['eth_getBalance', alice, at]),
  arbHash.map(
    (hash) =>
      (chain: ModelChain): ModelRequest => ['eth_getBalance', alice, hash(chain)],
  ),
  arbHash.map(
    (hash) =>
      (chain: ModelChain): ModelRequest => ['eth_getLogs', { blockHash: hash(chain) }],
  ),
  fc.tuple(arbAt, arbAt).map(
    ([fromBlock, toBlock]) =>
      (): ModelRequest => ['eth_getLogs', { fromBlock, toBlock }],
  ),
)
/** The same few questions again and again, so that memory has something to do. */
const arbActions = fc.array(arbRequest, { minLength: 1, maxLength: 3 }).chain((requests) => {
  const action: fc.Arbitrary<ChainAction> = fc.oneof(
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('build'), quiet: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('seal') }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('finalise', 'lose', 'regain') }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('reorganise'),
        depth: fc.constantFrom(1, 1, 2, 3, 70),
        others: fc.nat(3),
      }),
    },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('hear'), count: fc.constantFrom(1, 1, 2, 3, 99) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait'), ms: fc.constantFrom(50, 199, 59_801) }) },
    {
      weight: 12,
      arbitrary: fc
        .nat(requests.length - 1)
        .map((at): ChainAction => ({ kind: 'ask', request: requests[at] ?? (() => ['eth_blockNumber']) })),
    },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('answer') }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('think'), which: fc.nat(7) }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('arrive'), which: fc.nat(7) }) },
  ) as fc.Arbitrary<ChainAction>
  return fc.array(action, { minLength: 10, maxLength: 80, size: 'max' })
})

/** Lets all of it happen; the first thing told that was not so, if there is one. */
async function findWrongAnswer(actions: readonly ChainAction[], chainState: ChainState): Promise<string | null> {
  const [node, chain] = [openAnswers({ chainState }), new ModelChain()]
  const wrongAnswers: string[] = []
  /** Up to which state was heard. */
  let receivedState = 0
  /** What the node will say, by the place of the question among all that it was asked. */
  const nodeAnswers = new Map<number, unknown>()
  const arrived = new Set<number>()
  const arrivedAnswers: { name: string; text: string; at: number; boundMs: number }[] = []
  const nameOf = ({ method, params }: { readonly method: string; readonly params: unknown }) =>
    JSON.stringify([method, params])
  const textOf = (answer: unknown) => (answer === UNKNOWN ? 'unknown' : JSON.stringify(answer))

  const hear = (count: number) => {
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
    if (passed && !nodeAnswers.has(which))
      nodeAnswers.set(which, chain.answer([passed.method, ...passed.params] as never))
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
  /** What is answered must have been so since what was heard last when it was asked. */
  const check = (name: string, request: ModelRequest, since: number, text: string) => {
    for (let state = chain.currentState; state >= since; state -= 1)
      if (textOf(chain.answer(request, state)) === text) return
    wrongAnswers.push(`${name} gave ${text}, which it was not since state ${since}`)
  }
  const ask = (request: ModelRequest) => {
    const [method, ...params] = request
    const question = readCall(method, params, chainState)
    const [name, since] = [nameOf(question), receivedState]
    const answer = node.answers.answer(question)
    if (!Buffer.isBuffer(answer)) {
      const told = (text: string) => check(name, request, since, text)
      answer.then(
        (text) => told(String(text)),
        () => told('unknown'),
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
  const carryOut = (action: ChainAction) => {
    switch (action.kind) {
      case 'build':
        return chain.build(action.quiet)
      case 'seal':
        return chain.seal()
      case 'finalise':
      case 'lose':
      case 'regain':
        return chain[action.kind]()
      case 'reorganise':
        return chain.reorganise(action.depth, action.others)
      case 'hear':
        return hear(action.count)
      case 'wait':
        node.clock.uptime += action.ms
        return
      case 'ask':
        return ask(action.request(chain))
      case 'answer':
        return answerAll()
      case 'think':
        return think(oneOf(action.which, (place) => !nodeAnswers.has(place)))
      case 'arrive':
        return arrive(oneOf(action.which, (place) => nodeAnswers.has(place) && !arrived.has(place)))
    }
  }
  hear(Number.POSITIVE_INFINITY)
  for (const action of actions) {
    await carryOut(action)
    await yieldToEventLoop()
  }
  await answerAll()
  return wrongAnswers[0] ?? null
}

/** One that does not hear what is of a kind. */
class DeafChainState extends ChainState {
  readonly #ignores: (heard: ChainEvent) => boolean

  constructor(ignores: (heard: ChainEvent) => boolean) {
    super()
    this.#ignores = ignores
  }

  override receive(heard: ChainEvent): void {
    if (!this.#ignores(heard)) super.receive(heard)
  }
}

it('tells nothing that was not so since whatever had been heard of the chain when it was asked', async () => {
  await fc.assert(
    fc.asyncProperty(arbActions, async (actions) => {
      expect(await findWrongAnswer(actions, new ChainState())).toBeNull()
    }),
    { numRuns: 300 },
  )
})

it.each<[ChainEvent['type']]>([['log'], ['head'], ['doubted'], ['finality']])(
  'would tell what is no more if it did not hear of a %s',
  async (type) => {
    let heard = 0
    const deaf = (one: ChainEvent) => one.type === type && heard++ > 0
    const told = await fc.check(
      fc.asyncProperty(arbActions, async (actions) => {
        heard = 0
        return (await findWrongAnswer(actions, new DeafChainState(deaf))) === null
      }),
      { numRuns: 5_000, endOnFailure: true, seed: 5 },
    )
    expect(told.failed).toBe(true)
  },
)
